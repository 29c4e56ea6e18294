"""Client steps: functions ``step(data, state, message) -> reply`` that run at a client.

The decorators of this module declare faster ways to run a step. A step may run once for all clients
(`stacked`), or another function may call it for several clients (`scheduled_by`). A third function
may compute the sum of all clients' replies, so that the step need not run (`summed`). An engine,
the code that calls the steps, may ignore these decorators and run every step client by client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Step = Callable[[Any, Any, Any], Any]
AnyStep = TypeVar("AnyStep", bound=Step)
AnyExchange = TypeVar("AnyExchange", bound=Callable[..., Any])


def stacked(step: AnyStep) -> AnyStep:
    """Declare that one call of a client step can serve many clients with data of equal shapes.

    The step's data, the arrays in its state and its reply then have a leading axis over the
    clients. The step must index axes from the end and reply with one array. The step must use
    neither ``state.rng`` nor ``state.privacy``, and keep only arrays of equal shape in its state. A
    client's reply must be the same, up to rounding, if the step runs for this client alone. Whether
    the step runs for many clients at once depends only on the engine and on the clients' shapes and
    messages.

    Parameters
    ----------
    step : callable
        Client step, a function ``(data, state, message) -> reply``.
    """
    step.stacked = True  # type: ignore[attr-defined]
    return step


def of_runs(step: AnyStep) -> AnyStep:
    """Declare that one call of a `stacked` or `summed` step can serve several runs.

    The message, the arrays in the state and the reply then have a leading axis over the runs (see
    `fedcore.federation.lockstep`). The step gets the data of one client; a function that was passed
    to `summed` gets all clients. The reply for a run must not depend on the other runs, not even by
    rounding.
    """
    step.of_runs = True  # type: ignore[attr-defined]
    return step


def scheduled_by(run_all: Callable[[list[Callable[[], Any]]], list[Any]], step: AnyStep) -> AnyStep:
    """Declare that ``run_all(calls)`` calls the step for several clients, and returns the replies.

    Each element of `calls` runs the step for one client. Up to rounding, the reply must be the same
    as if the step were called for this client alone.
    """
    step.run_all = run_all  # type: ignore[attr-defined]
    return step


def summed(at_once: Step) -> Callable[[AnyStep], AnyStep]:
    """Declare that ``at_once(clients, state, message)`` returns the sum of the step's replies.

    `Federation.sum` and `Federation.mean` call ``at_once`` if all clients take part and hold the
    same message. If ``at_once`` returns None, the step runs instead. The argument `state` belongs
    to all clients together, and ``at_once`` may store values in ``state.kept`` for later calls. The
    ledger is charged as if every client had replied. The step's reply must depend on data and
    message alone. The result of ``at_once`` must equal the sum of the step's replies up to
    rounding. Whether ``at_once`` returns None may depend on sizes and on earlier calls, but not on
    time or threads.
    """

    def attach(step: AnyStep) -> AnyStep:
        step.summed = at_once  # type: ignore[attr-defined]
        return step

    return attach


def protected(exchange: AnyExchange) -> AnyExchange:
    """Declare that a function called before or after a private algorithm adds privacy noise.

    The function `exchange` calls `Federation.protect`, or runs after a call of
    `Federation.protect`. The ledger charges traffic and privacy loss of the function's client
    steps, and reports a step that adds no noise.
    """
    exchange.protected = True  # type: ignore[attr-defined]
    return exchange


def name_of(step: Step) -> str:
    """Return the name of a step's function; a step may be a ``functools.partial``."""
    return getattr(getattr(step, "func", step), "__name__", "a step")
