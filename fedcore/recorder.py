"""Record a row of numbers for each iterate of a run, and decide after each row if the run ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.errors import InputError, nearest
from fedcore.federation import lockstep
from fedcore.federation.ledger import Ledger
from fedcore.iterates import Iterate
from fedcore.metrics import Metric
from fedcore.problems.problem import Problem
from fedcore.snapshots import Snapshots
from fedcore.stop_rules import StopRule, require_released
from fedcore.validation import require_tall
from fedcore.words import counted

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
    """Return the columns that a private run may publish: `COLUMNS` and `of_algorithm`.

    The standard columns `COLUMNS` reveal nothing new. An observer of the messages can count rounds
    and bytes, see whether a released iterate is finite, and compute ε from the parameters and
    earlier releases.
    """
    return frozenset(COLUMNS) | frozenset(of_algorithm)


def require_columns(
    algorithm: str, of_algorithm: Collection[str], measured: Collection[str]
) -> None:
    """Refuse a name of a column if another column has it, or if a history file cannot store it.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.
    of_algorithm, measured : collection of str
        Names of the algorithm's own columns, and of the metrics.

    Raises
    ------
    InputError
        Raised for a refused name, for example if two registered metrics have one name in
        `measured`.
    """
    families, _ = metrics.families()
    registered = dict.fromkeys(metric for family in families.values() for metric in family)
    named = [(name, f"column '{name}' of {algorithm}") for name in of_algorithm]
    for one in registered:
        if one.name in measured:
            named.append((one.name, f"metric '{one.name}' ({one.code})"))
    taken = {name: f"fedcore's column '{name}'" for name in COLUMNS}
    for name, what in named:
        if name in taken:
            raise InputError(f"{what} and {taken[name]} have the same name: rename yours")
        if "/" in name or not name.strip(". "):
            raise InputError(
                f"{what} cannot be stored under this name: rename it, with letters and without '/'"
            )
        taken[name] = what


class _Readable(dict[str, float]):
    """Row of a private run, of which a stop rule can read only the columns that are published."""

    def __init__(self, row: Mapping[str, float], released: Collection[str]) -> None:
        super().__init__({name: value for name, value in row.items() if name in released})
        self._hidden = row.keys() - self.keys()

    def __missing__(self, name: str) -> float:
        require_released({name} & self._hidden, self.keys())
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a released column, or `default` for an unknown name; refuse other columns."""
        return self[name] if name in self or name in self._hidden else default


@dataclass(frozen=True)
class Recording:
    """Options that say what is recorded of a run, and when the run ends.

    Attributes
    ----------
    metrics : sequence of Metric
    iterates : {"none", "last", "log", "all"}
        Policy that chooses which iterates are stored (see `fedcore.snapshots`).
    client_iterates : bool, default=False
        Whether the clients' arrays are stored, too, and not only the server's.
    stop : callable, optional
        Function ``row -> bool``; the run ends when the function returns true. `row` maps column
        names to the newest values. In a private run, `row` has only the columns that the privacy
        guarantee covers.
    measured : mapping
        Mapping with the integers ``every`` and ``last``. Metrics are computed if the iteration's
        number is a multiple of ``every``, or exceeds the planned number of rounds minus ``last``.
        At all other iterates, metrics are NaN. By default, metrics are computed at every iterate.
    on_iterate : callable, optional
        Function ``on_iterate(record, iterate)``, called with each record's number, from 0, and its
        iterate.
    checkpoint : Checkpoint, optional
        Checkpoint (`fedcore.experiments.checkpoint`) from which a killed run continues.
    """

    metrics: Sequence[Metric] = ()
    iterates: str = "none"
    client_iterates: bool = False
    stop: StopRule | None = None
    measured: Mapping[str, int] = field(default_factory=dict)
    on_iterate: OnIterate | None = None
    checkpoint: Any = None


def call_now(job: Callable[[], Any], *, last: bool = False) -> Any:
    """Call `job` and return its result, as `Federation.once` does in a single process."""
    return job()


class Recorder:
    """Recorder of one run; the algorithm calls the recorder with every new iterate.

    Parameters
    ----------
    problem : Problem
        Data and exact answer that the metrics use.
    ledger : Ledger
        Ledger of the federation.
    recording : Recording, optional
        Options of the recording. The default options compute no metrics.
    counts_released : collection of str
        The algorithm's own columns that a private run may publish.
    algorithm : str
        Name of the algorithm for error messages.
    once : callable, optional
        Method `Federation.once`. Over MPI, it lets rank 0 compute each row and sends the row to all
        ranks.

    Attributes
    ----------
    ended : bool
        True if the run ends with the newest record.
    by_client : dict of str to list of ndarray of shape (n_clients,)
        For metrics with a value per client, each client's value at every record.
    seconds : list of float
        CPU seconds of the run up to each record, not counting the time that recording takes.
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
        """Yield the round numbers `done` + 1, …, `most`; stop early if a record ends the run."""
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
        """Record one iterate and return whether the run ends.

        The keyword arguments `shown` are the attributes of the recorded `Iterate`. The run ends if
        `last` is true, for example because the iterate meets the algorithm's tolerance. `counts`
        has the values of the algorithm's own columns. An iterate that is not finite is marked as
        diverged, gets NaN for all metrics, and ends the run. If `Metric.fails` rejects a metric's
        value, the iterate is marked as diverged and the run ends. In a private run, the values of
        metrics do not end the run, because its end would reveal something about these secret
        values.

        Raises
        ------
        InputError
            Raised if the iterate has no basis, factors or classifiers, or has an unknown attribute.
            Raised if the iterate's matrix does not have `n_features` rows. Raised if the names in
            `counts` are not those of the first record, or if a metric does not return one value for
            each client.
        """
        self._spent += lockstep.cpu_seconds() - self._since
        self.seconds.append(self._spent)
        iterate = self._iterate(shown)
        if self._asked.on_iterate is not None:
            self._asked.on_iterate(len(self.rows), iterate)
        record = partial(self._record, iteration, counts or {}, iterate, last)
        row, of_clients, self.ended = self.once(record)
        self._require_columns_of_first(row)
        self.rows.append(row)
        for name in of_clients:
            self.by_client[name].append(of_clients[name])
        clients = self._asked.client_iterates
        self.snapshots.see(len(self.rows) - 1, iteration, iterate, clients=clients)
        self._since = lockstep.cpu_seconds()
        return self.ended

    def resume(self, federation: Any, held: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the number of rounds that are already done, and the server's array after them.

        Without a checkpoint, return 0 and the given array `held`. With a checkpoint, restore the
        state of the federation and the records.
        """
        if self._asked.checkpoint is None:
            return 0, held
        done, held = self._asked.checkpoint.resume(self, federation, held)
        if done:
            self.snapshots.resume(len(self.rows) - 1, int(self.rows[-1]["iteration"]), held)
        return done, held

    def keep(self, federation: Any, held: np.ndarray) -> None:
        """Save the state after the last record in the checkpoint; `held` is the server's array."""
        if self._asked.checkpoint is not None:
            self._asked.checkpoint.keep(self, federation, held)

    def progress(self) -> dict[str, Any]:
        """Return the records for a checkpoint, without the values of single clients."""
        return {"rows": self.rows, "seconds": self.seconds, "ended": self.ended}

    def restore(self, progress: Mapping[str, Any], by_client: Mapping[str, list]) -> None:
        """Replace all records by the records that a checkpoint stored."""
        self.rows, self.ended = list(progress["rows"]), progress["ended"]
        self.seconds, self.by_client = list(progress["seconds"]), dict(by_client)
        self._spent, self._since = self.seconds[-1], lockstep.cpu_seconds()

    def _record(
        self, iteration: int, counts: Mapping[str, int], iterate: Iterate, last: bool
    ) -> tuple[dict[str, float], dict[str, np.ndarray], bool]:
        """Return an iterate's row, its metrics for each client, and whether the run ends."""
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
                if np.shape(values) != nothing.shape:
                    raise InputError(
                        f"'each' of metric '{metric.name}' returns shape {np.shape(values)}: "
                        f"return one value for each of the {counted(len(nothing), 'client')}"
                    )
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

    def _require_columns_of_first(self, row: Mapping[str, float]) -> None:
        """Require that a row has the same columns as the first record; ignore `COLUMNS`."""
        first = self.rows[0] if self.rows else row
        for name in (row.keys() ^ first.keys()).difference(COLUMNS):
            raise InputError(
                f"{self._algorithm} gives '{name}' in the counts of record 0 or of record "
                f"{len(self.rows)}, but not of both: give it in the counts of every record"
            )

    def _due(self, iteration: int) -> bool:
        """Return whether the metrics are computed at this iteration."""
        every, last = self._asked.measured.get("every", 1), self._asked.measured.get("last", 0)
        return iteration % every == 0 or iteration > self._most - last

    def _iterate(self, shown: Mapping[str, Any]) -> Iterate:
        """Make an `Iterate` from the keyword arguments and check it."""
        if not shown.keys() & {"basis", "factors", "classifiers"}:
            given = ", ".join(shown) or "nothing"
            raise InputError(
                f"{self._algorithm} records {given}: give record basis, factors or classifiers"
            )
        for name in shown.keys() - set(ITERATE_FIELDS):
            raise InputError(f"{self._algorithm} records {name}: {nearest(name, ITERATE_FIELDS)}")
        iterate = Iterate(**shown)
        if iterate.classifiers is None:
            who = f"{self._algorithm} records a matrix"
            require_tall(iterate.held, self.problem.n_features, who)
        return iterate

    def end(self, output: Mapping[str, Any]) -> None:
        """Store the last iterate; mark its row as diverged if a matrix in `output` has NaN or ∞."""
        self.snapshots.end()
        matrices = [a for a in output.values() if isinstance(a, np.ndarray) and a.ndim > 1]
        if self.rows and not all(np.isfinite(a).all() for a in matrices if a.dtype.kind in "fc"):
            self.rows[-1]["diverged"] = 1

    def add(self, name: str, values: Sequence[float]) -> None:
        """Add a column with one value per row, computed after the run."""
        for row, value in zip(self.rows, values, strict=True):
            row[name] = value

    @property
    def released(self) -> frozenset[str] | None:
        """Return the columns that a private run may publish, or None for a run without privacy."""
        return None if self.ledger.privacy is None else self._released & self.rows[0].keys()

    def columns(self) -> dict[str, np.ndarray]:
        """Return the recorded columns, each an array of shape (records,)."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
