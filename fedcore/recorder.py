"""Record a run, one row of numbers per iterate, and decide when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from fedcore.errors import InputError, nearest
from fedcore.federation import lockstep
from fedcore.federation.ledger import Ledger
from fedcore.iterates import Iterate
from fedcore.metrics import Metric
from fedcore.problems.problem import Problem
from fedcore.snapshots import Snapshots
from fedcore.stop_rules import StopRule, require_released
from fedcore.validation import require_tall

COLUMNS = {
    "iteration": ("iterations", "steps of the algorithm, local ones included"),
    "round": ("communication rounds", "uploads by the clients so far"),
    "scalars_up": ("scalars", "sent from all clients to the server so far"),
    "scalars_down": ("scalars", "sent from the server to all clients so far"),
    "bytes_up": ("bytes", "sent from all clients to the server so far"),
    "bytes_down": ("bytes", "sent from the server to all clients so far"),
    "epsilon": ("1", "privacy loss so far at the run's δ, the largest of any client's record"),
    "diverged": ("0 or 1", "whether the iterate, a measure or what came out is not finite"),
}
NOT_RELEASED = "not released"
OnIterate = Callable[[int, Iterate], None]
ITERATE_FIELDS = tuple(part.name for part in fields(Iterate) if part.init)


def released_columns(of_algorithm: Collection[str] = ()) -> frozenset[str]:
    """Columns that a private run releases: those that follow from messages, and `counts_released`.

    Whoever sees the messages can count rounds and bytes, and sees whether a released iterate is
    finite. ε follows from the parameters and earlier releases.
    """
    return frozenset(COLUMNS) | frozenset(of_algorithm)


class _Readable(dict[str, float]):
    """Row of a private run for its stop rule, which may not read columns that are not released."""

    def __init__(self, row: Mapping[str, float], released: Collection[str]) -> None:
        super().__init__({name: value for name, value in row.items() if name in released})
        self._hidden = row.keys() - self.keys()

    def __missing__(self, name: str) -> float:
        require_released({name} & self._hidden, self.keys())
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Like ``dict.get``, but a hidden column is refused instead of missing."""
        return self[name] if name in self or name in self._hidden else default


@dataclass(frozen=True)
class Recording:
    """What is recorded of a run, and when the run ends.

    Attributes
    ----------
    metrics : sequence of Metric
    iterates : {"none", "last", "log", "all"}
        Iterates at which the server's arrays are kept; see `fedcore.snapshots`.
    client_iterates : bool, default=False
        Whether the clients' arrays are kept at these iterates, too.
    stop : callable, optional
        ``row -> bool``; the run ends when it is true. `row` maps column names to the newest values.
        In a private run it has released columns only.
    measured : mapping
        Metrics are computed at iterations that are multiples of ``every``, in the last ``last``
        rounds, and after them; elsewhere they are NaN. By default they are computed at every
        iterate.
    on_iterate : callable, optional
        ``on_iterate(record, iterate)`` is called with every iterate, and its number from 0.
    checkpoint : Checkpoint, optional
        Checkpoint from which a killed run goes on; see `fedcore.experiments.checkpoint`.
    """

    metrics: Sequence[Metric] = ()
    iterates: str = "none"
    client_iterates: bool = False
    stop: StopRule | None = None
    measured: Mapping[str, int] = field(default_factory=dict)
    on_iterate: OnIterate | None = None
    checkpoint: Any = None


def call_now(job: Callable[[], Any], *, last: bool = False) -> Any:
    """Call `job` at once, as `Federation.once` does if there is only one process."""
    return job()


class Recorder:
    """Records the iterates of an algorithm, which calls it with every new one.

    Parameters
    ----------
    problem : Problem
        Data and reference for the metrics.
    ledger : Ledger
        The federation's.
    recording : Recording, optional
        By default rows have no metrics.
    counts_released : collection of str
        The algorithm's own columns that a private run releases.
    algorithm : str
        Name of the algorithm, for messages.
    once : callable, optional
        The federation's `once`: over MPI, rank 0 measures, and all ranks get its results.

    Attributes
    ----------
    ended : bool
        Whether the last record ends the run.
    by_client : dict of str to list of ndarray of shape (n_clients,)
        For each metric that has values of single clients, these values at every record.
    seconds : list of float
        CPU seconds of the run until every record, without the time of recording.
    """

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        recording: Recording = Recording(),
        *,
        counts_released: Collection[str] = (),
        algorithm: str = "the algorithm",
        once: Callable[..., Any] = call_now,
    ) -> None:
        self.once = once
        self.problem, self.ledger, self._asked = problem, ledger, recording
        self.snapshots, self._errors = Snapshots(recording.iterates), np.geterr()
        self._algorithm, self._most = algorithm, 0
        self._released = released_columns(counts_released)
        self.rows: list[dict[str, float]] = []
        self.by_client: dict[str, list[np.ndarray]] = {
            m.name: [] for m in recording.metrics if m.each
        }
        self.ended = False
        self.seconds: list[float] = []
        self._spent, self._since = 0.0, lockstep.cpu_seconds()

    def rounds(self, most: int, done: int = 0) -> Iterator[int]:
        """Yield `done` + 1, …, `most`; end early when a record has ended the run."""
        self._most = most
        for k in range(done + 1, most + 1):
            if self.ended:
                return
            yield k

    def __call__(
        self,
        iteration: int,
        *,
        counts: Mapping[str, int] | None = None,
        last: bool = False,
        **shown: Any,
    ) -> bool:
        """Record one iterate, given by the attributes of `Iterate`; return whether the run ends.

        The run ends with the `last` iterate, such as one that meets the algorithm's own tolerance.
        `counts` are the algorithm's own columns, the same ones in every call. An iterate that is
        not finite is marked as diverged, gets NaN for all measures, and ends the run. A measure
        that `Metric.fails` rejects also marks the iterate as diverged and ends the run, unless the
        run is private: a private run must not depend on measures.

        Raises
        ------
        InputError
            For an iterate without basis, factors or classifiers, with a matrix of a shape other
            than (n_features, ·), or with an unknown part.
        """
        self._spent += lockstep.cpu_seconds() - self._since
        self.seconds.append(self._spent)
        iterate = self._iterate(shown)
        if self._asked.on_iterate is not None:
            self._asked.on_iterate(len(self.rows), iterate)
        record = partial(self._record, iteration, counts or {}, iterate, last)
        row, of_clients, self.ended = self.once(record)
        self.rows.append(row)
        for name in of_clients:
            self.by_client[name].append(of_clients[name])
        clients = self._asked.client_iterates
        self.snapshots.see(len(self.rows) - 1, iteration, iterate, clients=clients)
        self._since = lockstep.cpu_seconds()
        return self.ended

    def resume(self, federation: Any, held: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the number of rounds that are done, and what the server holds after them.

        Without a checkpoint these are 0 and `held`. With a checkpoint, federation and records are
        set to its state.
        """
        if self._asked.checkpoint is None:
            return 0, held
        done, held = self._asked.checkpoint.resume(self, federation, held)
        if done:
            self.snapshots.resume(len(self.rows) - 1, int(self.rows[-1]["iteration"]), held)
        return done, held

    def keep(self, federation: Any, held: np.ndarray) -> None:
        """Offer the checkpoint the state after the last record; the server holds `held`."""
        if self._asked.checkpoint is not None:
            self._asked.checkpoint.keep(self, federation, held)

    def progress(self) -> dict[str, Any]:
        """Return the records for a checkpoint, without the values of the single clients."""
        return {"rows": self.rows, "seconds": self.seconds, "ended": self.ended}

    def restore(self, progress: Mapping[str, Any], by_client: Mapping[str, list]) -> None:
        """Replace all records so far by the records of a checkpoint."""
        self.rows, self.ended = list(progress["rows"]), progress["ended"]
        self.seconds, self.by_client = list(progress["seconds"]), dict(by_client)
        self._spent, self._since = self.seconds[-1], lockstep.cpu_seconds()

    def _record(
        self, iteration: int, counts: Mapping[str, int], iterate: Iterate, last: bool
    ) -> tuple[dict[str, float], dict[str, np.ndarray], bool]:
        """Return the row of an iterate, the values of the clients, and whether the run ends."""
        asked, of_clients = self._asked, {}
        row: dict[str, float] = {"iteration": iteration, **self.ledger.snapshot(), **counts}
        diverged = not iterate.finite
        row["diverged"] = int(diverged)
        due = self._due(iteration) and not diverged
        for metric in asked.metrics:
            row[metric.name] = metric.value(iterate, self.problem) if due else np.nan
            if metric.each is not None:
                nothing = np.full(len(self.problem.clients), np.nan)
                values = metric.each(iterate, self.problem) if due else nothing
                of_clients[metric.name] = values
        if self.ledger.privacy is None and due:
            diverged = any(m.fails(row[m.name]) for m in asked.metrics)
            row["diverged"] = int(diverged)
        readable = row if self.ledger.privacy is None else _Readable(row, self._released)
        ended = bool(diverged or last)
        if asked.stop is not None and not diverged:
            with np.errstate(**self._errors):  # the caller's function, in the caller's state
                ended = bool(asked.stop(readable)) or ended
        return row, of_clients, ended

    def _due(self, iteration: int) -> bool:
        """Return whether the metrics are computed at this iteration."""
        every, last = self._asked.measured.get("every", 1), self._asked.measured.get("last", 0)
        return iteration % every == 0 or iteration > self._most - last

    def _iterate(self, shown: Mapping[str, Any]) -> Iterate:
        """Make an `Iterate` of the arguments and check it."""
        if not shown.keys() & {"basis", "factors", "classifiers"}:
            given = ", ".join(shown) or "nothing"
            raise InputError(
                f"{self._algorithm} records {given}: record takes basis or factors, or classifiers"
            )
        for name in shown.keys() - set(ITERATE_FIELDS):
            raise InputError(f"{self._algorithm} records {name}: {nearest(name, ITERATE_FIELDS)}")
        iterate = Iterate(**shown)
        if iterate.classifiers is None:
            who = f"{self._algorithm} records a matrix"
            require_tall(iterate.held, self.problem.n_features, who)
        return iterate

    def end(self, output: Mapping[str, Any]) -> None:
        """Keep the last iterate; mark it as diverged if a returned matrix is not finite."""
        self.snapshots.end()
        matrices = [a for a in output.values() if isinstance(a, np.ndarray) and a.ndim > 1]
        if self.rows and not all(np.isfinite(a).all() for a in matrices if a.dtype.kind in "fc"):
            self.rows[-1]["diverged"] = 1

    def add(self, name: str, values: Sequence[float]) -> None:
        """Add a column that was computed after the run, one value per row."""
        for row, value in zip(self.rows, values, strict=True):
            row[name] = value

    @property
    def released(self) -> frozenset[str] | None:
        """Columns that were released; None for a run without privacy."""
        return None if self.ledger.privacy is None else self._released & self.rows[0].keys()

    def columns(self) -> dict[str, np.ndarray]:
        """Return what was recorded, one array of shape (records,) per column."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
