"""Client steps: functions ``step(data, state, message) -> reply``, and their faster forms.

A step may run once for the stack of all clients (`stacked`), be called by a scheduler of its own
(`scheduled_by`), or be replaced by a function that computes the sum of all replies (`summed`).
Engines may use these forms; they need not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Step = Callable[[Any, Any, Any], Any]
AnyStep = TypeVar("AnyStep", bound=Step)
AnyExchange = TypeVar("AnyExchange", bound=Callable[..., Any])


def stacked(step: AnyStep) -> AnyStep:
    """Declare that a client step also works on many clients of equal shape at once.

    Its data, the arrays in its state and its reply then have a leading axis of clients, and one
    array operation replaces thousands of calls. The step must index axes from the end, use neither
    ``state.rng`` nor ``state.privacy``, keep only arrays of equal shape in its state, and reply
    with one array. A client's reply from the stack and from a call of its own must agree up to
    rounding. Which form runs depends only on the clients' shapes and messages, and on the engine.

    Parameters
    ----------
    step : callable

    Returns
    -------
    callable
        The step itself.
    """
    step.stacked = True  # type: ignore[attr-defined]
    return step


def of_runs(step: AnyStep) -> AnyStep:
    """Declare that a `stacked` or `summed` step also works on several runs at once.

    Its message, the arrays in its state and its reply then have a leading axis of runs. Its data
    belong to one client, or to all clients; see `fedcore.federation.lockstep`. The reply for a run
    must not depend on the other runs, not even by rounding.
    """
    step.of_runs = True  # type: ignore[attr-defined]
    return step


def scheduled_by(run_all: Callable[[list[Callable[[], Any]]], list[Any]], step: AnyStep) -> AnyStep:
    """Declare that ``run_all(calls)`` calls the step for several clients, and returns the replies.

    Each element of `calls` runs the step of one client. The reply must equal that of the step
    called for this client alone, up to rounding.
    """
    step.run_all = run_all  # type: ignore[attr-defined]
    return step


def summed(at_once: Step) -> Callable[[AnyStep], AnyStep]:
    """Declare that ``at_once(clients, state, message)`` gives the sum of the step's replies.

    `Federation.sum` and `Federation.mean` call ``at_once`` when all clients take part and hold the
    same message; it may return None, and then the step runs. Its `state` is one state for all
    clients, with ``state.kept``. The ledger is charged as if every client had replied. The step
    must be a function of data and message alone. The result of ``at_once`` and the sum of the
    step's replies must agree up to rounding. Which of the two is used may depend on sizes and on
    earlier calls, but not on time or threads.
    """

    def attach(step: AnyStep) -> AnyStep:
        step.summed = at_once  # type: ignore[attr-defined]
        return step

    return attach


def protected(exchange: AnyExchange) -> AnyExchange:
    """Declare that an exchange before or after a private algorithm is protected, too.

    The exchange calls `Federation.protect` itself or comes after that call, and the steps of the
    exchange add noise. The ledger charges these steps, and says so if one of them adds no noise.
    """
    exchange.protected = True  # type: ignore[attr-defined]
    return exchange


def name_of(step: Step) -> str:
    """Return the name of a step, for messages; a functools.partial has the name of its function."""
    return getattr(getattr(step, "func", step), "__name__", "a step")
