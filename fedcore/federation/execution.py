"""The clients' side: their data, states and messages, and how their steps are run.

A client step runs client by client, or in threads, or once for the stack of all clients
(`stacked`), or is replaced by a function that computes the sum of all replies (`summed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from fedcore.federation.crossing import opened
from fedcore.federation.state import StackedState, State
from fedcore.problems.clients import Clients, Labelled

Step = Callable[[Any, Any, Any], Any]
AnyStep = TypeVar("AnyStep", bound=Step)


def stacked(step: AnyStep) -> AnyStep:
    """Declare that a client step also works on many clients of equal shape at once.

    Its data, the arrays in its state and its reply then have a leading axis of clients, and one
    array operation replaces thousands of calls. The step must index axes from the end, use neither
    ``state.rng`` nor ``state.privacy``, keep only arrays of equal shape in its state, and reply
    with one array. Both forms must agree to rounding. Which form runs depends only on the clients'
    shapes and messages, and on the `stack` option of the federation.
    """
    step.stacked = True  # type: ignore[attr-defined]
    return step


def summed(at_once: Step) -> Callable[[AnyStep], AnyStep]:
    """Declare that ``at_once(clients, state, message)`` gives the sum of the step's replies.

    `Federation.sum` and `Federation.mean` call ``at_once`` when all clients take part and hold the
    same message; it may return None, and then the step runs. Its `state` is one state for all
    clients, with ``state.kept``. The ledger is charged as if every client had replied. The step
    must be a function of data and message alone, and both forms must agree to rounding. Their
    choice may depend on sizes and on earlier calls, but not on time or threads.
    """

    def attach(step: AnyStep) -> AnyStep:
        step.summed = at_once  # type: ignore[attr-defined]
        return step

    return attach


class ClientSide:
    """Data, states and messages of all clients; see `Federation` for the parameters.

    Attributes
    ----------
    data : Clients
    states : list of State
    inbox : list
        The last message sent to each client.
    everyone : range
        Positions of all clients.
    """

    def __init__(
        self,
        data: Clients,
        root: np.random.SeedSequence,
        ids: Sequence[int],
        *,
        threads: int,
        labelled: bool,
        stack: bool,
    ) -> None:
        self.data, self.everyone = data, range(len(data))
        self.states = [State(_root=root, _id=i) for i in ids]
        self.inbox: list[Any] = [None] * len(data)
        self._as_one = SimpleNamespace()
        self._arrays: dict[str, np.ndarray] = {}  # arrays of stacked states, see StackedState
        self._threads, self._labelled = threads, labelled
        self._stack = stack and data.uniform and len(data) > 1
        self.go_on_with(data)

    def go_on_with(self, data: Clients) -> None:
        """Replace the clients' samples, and drop what was derived from the old ones."""
        self.data, self._as_one.kept = data, data.kept
        for state, kept in zip(self.states, data.kept_of, strict=True):
            state.kept = kept

    def held(self, name: str, positions: Iterable[int]) -> Sequence[Any]:
        """Return ``state.<name>`` of the clients at `positions`."""
        if name in self._arrays:
            whole = self._arrays[name]
            return whole if positions == self.everyone else whole[list(positions)]  # type: ignore[return-value]
        return [getattr(self.states[i], name) for i in positions]

    def common_message(self, positions: Sequence[int]) -> Any:
        """Return the message that these clients hold; None when they hold different ones."""
        first = self.inbox[positions[0]]
        return first if all(self.inbox[i] is first for i in positions) else None

    def sum_at_once(self, step: Step, positions: Sequence[int]) -> Any:
        """Return the sum by the function that `summed` declares; None when it does not apply."""
        at_once: Step | None = getattr(step, "summed", None)
        if at_once is None or sorted(positions) != list(self.everyone):
            return None
        message = self.common_message(positions)
        return None if message is None else at_once(self.data, self._as_one, message)

    def run(self, step: Step, positions: Sequence[int]) -> Sequence[Any]:
        """Return the replies of the clients at `positions`; a position may occur twice."""
        if self._stack and getattr(step, "stacked", False) and self._alike(positions):
            return self._run_stacked(step, positions)
        self._arrays.clear()  # a plain step writes to the states, which hold the same values

        def call(i: int) -> Any:
            data = self.data.labelled(i) if self._labelled else self.data[i]
            return step(data, self.states[i], opened(self.inbox[i]))

        if self._threads == 1 or len(positions) == 1:
            return [call(i) for i in positions]
        # Calls of one client share its state and stream, so they run one after the other.
        times = Counter(positions)
        with ThreadPoolExecutor(self._threads) as pool:
            done = pool.map(lambda i: [call(i) for _ in range(times[i])], times)
            replies = {i: iter(calls) for i, calls in zip(times, done, strict=True)}
        return [next(replies[i]) for i in positions]

    def _run_stacked(self, step: Step, positions: Sequence[int]) -> Sequence[Any]:
        """Run a stacked step once for all participants, which hold the same message."""
        rows = None if positions == self.everyone else np.asarray(positions, dtype=np.intp)
        data: Any = self.data.labelled_stack if self._labelled else self.data.stack
        if rows is not None:
            data = Labelled(*(part[rows] for part in data)) if self._labelled else data[rows]
        state = StackedState(self.states, self._arrays, rows)
        return step(data, state, opened(self.inbox[positions[0]]))

    def _alike(self, positions: Sequence[int]) -> bool:
        """Return whether `positions` are distinct clients that hold the same message."""
        if not positions or len(set(positions)) < len(positions):
            return False
        first = self.inbox[positions[0]]
        return all(self.inbox[i] is first for i in positions)
