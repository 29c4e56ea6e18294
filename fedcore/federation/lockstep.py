"""Execute several runs side by side, with one call for each client step they have in common.

A product of a large matrix and a matrix of few columns takes as long as reading the large matrix.
Algebra on small matrices hardly takes longer than the function calls. One call for several runs
therefore saves time. Runs on the same clients, such as runs from several random starting matrices,
need the same client steps (functions that run at the clients). At each common step, runs side by
side wait for each other, and their messages are joined into one array
(`fedcore.federation.engines.in_process`).

Only one run executes at a time, until it makes a request by `meet`. Each request has a key. When
all runs wait, the scheduler (`_Lockstep`) answers all waiting requests that have the same key.
Among several keys, the scheduler chooses the key that appeared first since the runs began. The
order of the requests depends on the runs alone, not on time.

A run gives the same bits alone and beside other runs. BLAS may round a product of 10 columns
differently if these columns are part of a matrix of 50 columns. The rounding depends on the width
of this matrix, but not on the values in its other columns. Each run therefore has a number, its
`slot`, and `WIDTH` consecutive slots form a block. The runs of a block wait for each other.
Products for several runs have columns for all slots of a block, with zeros for slots without a run.
Where the width is known not to matter, they have columns for the waiting runs alone
(`fedcore.parts.gram_products`). Everything else is computed run by run.

Over MPI, or if every step runs client by client, runs do not wait for each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_info

WIDTH = 5  # slots of a block; a product of 50 columns takes as long as three of 10
SMALL_PRODUCT = 1_000_000  # multiplications
TILES, OTHER_TILE = {"Haswell": 8, "Zen": 8}, 24  # rows, by OpenBLAS's name of its kernel
Result = TypeVar("Result")
Serve = Callable[[list[Any]], list[Any]]


class _Request(NamedTuple):
    """A request of a run that waits for the answer."""

    key: Hashable
    serve: Serve
    argument: Any


class _Abandoned(Exception):
    """Raised in a waiting run when another run has failed."""


def meet(key: Hashable, serve: Serve, argument: Any) -> Any:
    """Return ``serve([argument])[0]``; inside `run_all`, one call of `serve` answers several runs.

    Parameters
    ----------
    key : hashable
        One call of `serve` answers all waiting requests with equal keys.
    serve : callable
        Function ``arguments -> answers`` with one answer for each argument, in order.
    argument : object
        Argument for which this run needs the answer.
    """
    run = _RUN.get()
    if run is None:
        return serve([argument])[0]
    scheduler, me = run
    return scheduler.meet(me, _Request(key, serve, argument))


def run_all(
    calls: Sequence[Callable[[], Result]], slots: Sequence[int] | None = None
) -> list[Result]:
    """Run all `calls` side by side and return their results, in order.

    If a call raises an error, the other calls are abandoned and `run_all` raises this error.

    Parameters
    ----------
    calls : sequence of callable
        Functions without arguments, one for each run.
    slots : sequence of int, optional
        A different number for each run. Runs in the same block of `WIDTH` consecutive numbers
        share client steps. Without slots, only the requests that the calls
        make by `meet` are joined, and client steps run separately for each run.
    """
    return _Lockstep(len(calls), slots).run(calls)


def tile_of_blas() -> int | None:
    """Return how many rows OpenBLAS computes alike, or None if this is not known.

    Let the number of rows of A be a multiple of the result, and let A M be a product in double
    precision with more than `SMALL_PRODUCT` multiplications. Then the bits of each row of A M
    depend on the row and on M, but not on the number of rows. OpenBLAS computes groups of rows by
    one code and what is left by another, and small products by a third. The numbers were measured
    for twelve kernels with one thread. More threads divide the rows among them.
    """
    found = [blas for blas in threadpool_info() if blas["user_api"] == "blas"]
    kinds = {(blas["internal_api"], blas["num_threads"]) for blas in found}
    if kinds != {("openblas", 1)}:
        return None
    return max(TILES.get(blas.get("architecture"), OTHER_TILE) for blas in found)


def slot() -> int | None:
    """Return the slot (a number) of this run; None outside `run_all` and for runs without slots."""
    run = _RUN.get()
    return None if run is None or run[0].slots is None else run[0].slots[run[1]]


def tile() -> int | None:
    """Return `tile_of_blas` as it was when these runs began."""
    run = _RUN.get()
    return None if run is None else run[0].tile


def cpu_seconds() -> float:
    """Return the CPU seconds of this process or, inside `run_all`, of this run alone.

    Time spent for several runs is divided equally among these runs. Inside `run_all`, threads of
    BLAS beyond the first are not counted.
    """
    run = _RUN.get()
    return time.process_time() if run is None else run[0].cpu_seconds(run[1])


class _Lockstep:
    """Scheduler that runs calls side by side and serves their requests."""

    def __init__(self, runs: int, slots: Sequence[int] | None) -> None:
        self.slots = slots
        self.tile = None if slots is None else tile_of_blas()
        self._change = threading.Lock()
        self._turns = [threading.Condition(self._change) for _ in range(runs)]
        self._turn: int | None = 0
        self._ready = set(range(runs))
        self._waiting: dict[int, _Request] = {}
        self._answers: dict[int, Any] = {}
        self._order: dict[Hashable, int] = {}
        self._moved = [0.0] * runs  # seconds in which other runs computed for a run
        self._error: BaseException | None = None

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """See `run_all`."""
        results: list[Any] = [None] * len(calls)

        def live(me: int) -> None:
            _RUN.set((self, me))
            try:
                with self._change:
                    self._wait(me)
                results[me] = calls[me]()
            except _Abandoned:
                pass
            except BaseException as error:
                self._error = self._error or error
            with self._change:
                self._ready.discard(me)
                self._pass_on(me)

        # Each in a copy of the context, so that what NumPy ignores here it ignores there.
        threads = [
            threading.Thread(target=copy_context().run, args=(live, i), daemon=True)
            for i in range(len(calls))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return results

    def meet(self, me: int, request: _Request) -> Any:
        """Make a request, and return the answer when the request has been served."""
        with self._change:
            self._ready.discard(me)
            self._waiting[me] = request
            self._pass_on(me)
            self._wait(me)
            return self._answers.pop(me)

    def cpu_seconds(self, me: int) -> float:
        """See `cpu_seconds`."""
        return time.thread_time() + self._moved[me]

    def _wait(self, me: int) -> None:
        self._turns[me].wait_for(lambda: self._turn == me)
        if self._error is not None:
            raise _Abandoned

    def _pass_on(self, me: int) -> None:
        """Let a ready run continue; if all runs wait, first serve the requests of one key."""
        if self._waiting and not self._ready and self._error is None:
            try:
                self._serve(me)
            except BaseException as error:  # not of the run that happens to serve
                self._error = error
        if self._error is not None:  # let waiting runs go on, so that they end
            self._ready.update(self._waiting)
            self._waiting.clear()
        self._turn = min(self._ready, default=None)
        if self._turn is not None:
            self._turns[self._turn].notify()

    def _serve(self, me: int) -> None:
        began = time.thread_time()
        for request in self._waiting.values():
            self._order.setdefault(request.key, len(self._order))
        key = min((request.key for request in self._waiting.values()), key=self._order.__getitem__)
        served = sorted(run for run, request in self._waiting.items() if request.key == key)
        requests = [self._waiting[run] for run in served]
        answers = requests[0].serve([request.argument for request in requests])
        for run, answer in zip(served, answers, strict=True):  # if serve fails, all stay waiting
            self._answers[run] = answer
            del self._waiting[run]
        self._ready.update(served)
        spent = time.thread_time() - began
        self._moved[me] -= spent
        for run in served:
            self._moved[run] += spent / len(served)


_RUN: ContextVar[tuple[_Lockstep, int] | None] = ContextVar("run", default=None)
