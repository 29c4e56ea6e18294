"""Recording a run, and its HDF5 file.

One file per cell, all repeats on the leading axis:

    /history/<column>    (repeats, records)   iteration, round, scalars_*, bytes_*, the metrics, and
                                              epsilon in a private run
    /iterates/<name>     (repeats, kept, …)   under the policy "none", "last", "log" or "all"
    /final/<name>        (repeats, …)         arrays that the algorithm returned
    /reference/<name>    the answer that the problem came with
    /twin/<column>       (repeats, records)   the same columns of each repeat's twin, whose start is
                                              changed by one rounding (see `fedcore.twins`)

Every dataset carries ``units`` and ``description``, the root the provenance, and the file the seal
of `fedcore.sealed`. In a private run each column also says under ``privacy`` whether it was
``released``; measures were not, as exact functions of the data. There is no clock in the file: the
same run gives the same bytes where CPU type, BLAS, its number of threads and library versions are
the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np

from fedcore import sealed
from fedcore.checks import require_one_of, require_tall
from fedcore.errors import HistoryError, InputError
from fedcore.ledger import Ledger
from fedcore.metrics import Metric, shared_matrix
from fedcore.problems import Problem

SCHEMA = 1
_PARTS = ("params", "problem", "seed", "versions", "privacy")  # of the provenance

POLICIES: dict[str, Callable[[int], bool]] = {
    "none": lambda iteration: False,
    "last": lambda iteration: False,  # the final arrays are always kept
    "log": lambda iteration: iteration & (iteration - 1) == 0,  # 0, 1, 2, 4, 8, …
    "all": lambda iteration: True,
}

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


def released_columns(of_algorithm: Collection[str] = ()) -> frozenset[str]:
    """Columns that a private run releases: what follows from messages, and what its algorithm says.

    Whoever sees the messages counts rounds and bytes, and knows from the released iterates whether
    one is not finite; ε follows from the parameters and from what was released before.
    """
    return frozenset(COLUMNS) | frozenset(of_algorithm)


def require_released(columns: Iterable[str], released: Collection[str]) -> None:
    """Refuse that a stop rule of a private run reads what was not released.

    Raises
    ------
    InputError
    """
    for name in columns:
        if name not in released:
            raise InputError(
                f"stop: '{name}' is not released in a private run, and a run that ends by it gives "
                f"it away unpaid: a rule may read {', '.join(sorted(released))}"
            )


class _Readable(dict[str, float]):
    """Row of a private run as its stop rule sees it: asking for another column is refused."""

    def __init__(self, row: Mapping[str, float], released: Collection[str]) -> None:
        super().__init__({name: value for name, value in row.items() if name in released})
        self._hidden = row.keys() - self.keys()

    def __missing__(self, name: str) -> float:
        require_released({name} & self._hidden, self.keys())
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dictionary; a hidden column is refused, not absent."""
        return self[name] if name in self or name in self._hidden else default


class Recorder:
    """What an algorithm calls with every new iterate.

    Parameters
    ----------
    problem : Problem
        What the metrics are evaluated against.
    ledger : Ledger
        The federation's.
    metrics : sequence of Metric
    iterates : {"none", "last", "log", "all"}
        Which of the shared matrices to keep.
    stop : callable, optional
        ``row -> bool``; the run ends when it is true. `row` maps column names to the newest values,
        in a private run those of released columns only.
    counts_released : collection of str
        Columns of the algorithm's own that a private run releases.
    algorithm : str
        Who calls it, for messages.
    """

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        metrics: Sequence[Metric],
        *,
        iterates: str = "last",
        stop: Callable[[Mapping[str, float]], bool] | None = None,
        counts_released: Collection[str] = (),
        algorithm: str = "the algorithm",
    ) -> None:
        require_one_of(POLICIES, iterates=iterates)
        self.problem, self.ledger, self._metrics = problem, ledger, metrics
        self._keep, self._stop = POLICIES[iterates], stop
        self._algorithm = algorithm
        self._released = released_columns(counts_released)
        self.rows: list[dict[str, float]] = []
        self.kept: list[tuple[int, np.ndarray]] = []

    def __call__(
        self, iteration: int, *, counts: Mapping[str, int] | None = None, **iterate: Any
    ) -> bool:
        """Record one iterate; return True when the run should end.

        `counts` are columns of the algorithm's own, the same ones in every call. An iterate that is
        not finite is marked as diverged, has no measures, and is the last. So is one of which a
        measure is not finite, unless the run is private: the measures are no part of what it may
        depend on.

        Raises
        ------
        InputError
            Without a basis or factors, or of a shape other than (n_features, ·).
        """
        if not iterate.keys() & {"basis", "factors"}:
            given = ", ".join(iterate) or "nothing"
            raise InputError(f"{self._algorithm} records {given}: record takes basis or factors")
        who = f"{self._algorithm} records a matrix"
        require_tall(shared_matrix(iterate), self.problem.n_features, who)
        row: dict[str, float] = {"iteration": iteration, **self.ledger.snapshot(), **(counts or {})}
        diverged = not all(np.isfinite(array).all() for array in _shared_arrays(iterate))
        row["diverged"] = int(diverged)
        for metric in self._metrics:
            row[metric.name] = np.nan if diverged else metric.function(iterate, self.problem)
        if self.ledger.privacy is None:
            diverged = diverged or any(m.fails(row[m.name]) for m in self._metrics)
            row["diverged"] = int(diverged)
        self.rows.append(row)
        if self._keep(iteration):
            self.kept.append((iteration, np.array(shared_matrix(iterate))))
        if diverged or self._stop is None:
            return diverged
        return self._stop(row if self.ledger.privacy is None else _Readable(row, self._released))

    def end(self, output: Mapping[str, Any]) -> None:
        """Mark the last record as diverged when a matrix that the run returned is not finite."""
        matrices = [a for a in output.values() if isinstance(a, np.ndarray) and a.ndim > 1]
        if self.rows and not all(np.isfinite(a).all() for a in matrices if a.dtype.kind in "fc"):
            self.rows[-1]["diverged"] = 1

    def add(self, name: str, values: Sequence[float]) -> None:
        """Add a column, one value per row, that was found out after the run."""
        for row, value in zip(self.rows, values, strict=True):
            row[name] = value

    @property
    def released(self) -> frozenset[str] | None:
        """Columns that were released; None of a run without privacy, where nothing is protected."""
        return None if self.ledger.privacy is None else self._released & self.rows[0].keys()

    def columns(self) -> dict[str, np.ndarray]:
        """Return what was recorded, one array of shape (records,) per column."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}


@dataclass
class History:
    """Recorded repeats of one cell.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (repeats, records)
        Shorter repeats are padded: with −1 in integer columns, with NaN in the others.
    final : dict of str to ndarray of shape (repeats, …)
    iterates : dict of str to ndarray
        ``iteration`` of shape (repeats, kept) and ``shared`` of shape (repeats, kept, d, r).
    reference : dict of str to ndarray
    about : dict
        Provenance: paper, experiment, algorithm, cell, parameters, data, seeds, versions, code.
    units : dict of str to (str, str)
        Units and description of each column.
    released : frozenset of str or None
        Columns that a private run released, the others being exact functions of the data; None of a
        run without privacy.
    twin : dict of str to ndarray of shape (repeats, records)
        Columns of the repeats' twins, in a cell that has them.
    """

    columns: dict[str, np.ndarray]
    final: dict[str, np.ndarray] = field(default_factory=dict)
    iterates: dict[str, np.ndarray] = field(default_factory=dict)
    reference: dict[str, np.ndarray] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    units: dict[str, tuple[str, str]] = field(default_factory=lambda: dict(COLUMNS))
    released: frozenset[str] | None = None
    twin: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        """What was run on what, its size and the names of its columns, in one line; no arrays."""
        about, shape = self.about, self.columns.get("iteration", np.empty((0, 0))).shape
        return (
            f"History({about.get('algorithm', '?')} on {about.get('problem', {}).get('name', '?')};"
            f" {shape[0]} repeats x {shape[1]} records of {', '.join(self.columns)}; "
            f"final: {', '.join(self.final) or '–'})"
        )

    @classmethod
    def from_runs(
        cls,
        recorders: Sequence[Recorder],
        finals: Sequence[Mapping[str, Any]],
        *,
        metrics: Sequence[Metric] = (),
        reference: Mapping[str, np.ndarray] | None = None,
        about: Mapping[str, Any] | None = None,
        counts: Mapping[str, tuple[str, str]] | None = None,
        twins: Sequence[Recorder] = (),
    ) -> History:
        """Stack the repeats of a cell, and their twins if there are any.

        `counts` describes the algorithm's own columns.
        """
        columns, twin = _stack_columns(recorders), _stack_columns(twins)
        # Per-client matrices (lists) are results of a run, not of a cell: too large to keep.
        arrays = [k for k, v in finals[0].items() if isinstance(v, np.ndarray | np.generic)]
        # Nor do those stack that draws of different sizes give.
        arrays = [name for name in arrays if len({np.shape(run[name]) for run in finals}) == 1]
        final = {name: np.stack([np.asarray(run[name]) for run in finals]) for name in arrays}
        iterates: dict[str, np.ndarray] = {}
        if all(recorder.kept for recorder in recorders):
            kept = [list(zip(*recorder.kept, strict=True)) for recorder in recorders]
            iterates["iteration"] = _stack([np.array(pair[0]) for pair in kept])
            iterates["shared"] = _stack([np.array(pair[1]) for pair in kept])
        units = COLUMNS | dict(counts or {}) | {m.name: (m.units, m.description) for m in metrics}
        return cls(
            columns, final, iterates, dict(reference or {}), dict(about or {}), units,
            recorders[0].released, twin,
        )  # fmt: skip

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the column `name`, shape (repeats, records)."""
        if name not in self.columns:
            raise InputError(f"no column '{name}' in this history: it has {sorted(self.columns)}")
        return self.columns[name]

    def last(self, name: str) -> np.ndarray:
        """Return the last recorded value of a column in each repeat, shape (repeats,)."""
        lengths = (self["iteration"] >= 0).sum(axis=1)
        return self[name][np.arange(len(lengths)), lengths - 1]

    @property
    def twins(self) -> History | None:
        """The repeats' twins as a history of their own; None where the cell has none."""
        if not self.twin:
            return None
        released = None if self.released is None else frozenset[str]()
        return History(
            self.twin, reference=self.reference, about=self.about, units=self.units,
            released=released,
        )  # fmt: skip

    @property
    def repeats(self) -> int:
        """Number of repeats."""
        return len(self["iteration"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the history, whole or not at all; equal histories give equal bytes."""
        with sealed.create(path) as file:
            file.attrs["schema"] = SCHEMA
            file.attrs["about"] = json.dumps(self.about, sort_keys=True)
            for group, arrays in self._groups().items():
                for name, array in sorted(arrays.items()):
                    dataset = file.create_dataset(f"{group}/{name}", data=array)
                    units, text = self.units.get(name, ("data units", f"{group} {name}"))
                    dataset.attrs["units"], dataset.attrs["description"] = units, text
                    if self.released is not None and group in ("history", "reference", "twin"):
                        open_to_all = group == "history" and name in self.released
                        dataset.attrs["privacy"] = "released" if open_to_all else NOT_RELEASED

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read a history; a damaged file is noticed by its seal (see `fedcore.sealed`).

        Raises
        ------
        HistoryError
            When the file is missing, cut off, damaged, somebody else's, or of another schema
            version.
        """

        def decode(file: h5py.File) -> History:
            schema = int(file.attrs["schema"])
            if schema != SCHEMA:
                raise HistoryError(
                    f"{path}: history of schema {schema}, this version reads {SCHEMA}; run its "
                    "cell again, or read it with the fedcore that wrote it"
                )
            return cls._decode(file)

        return sealed.load(
            path,
            decode,
            kind="history",
            first="run its cell",
            again="run again",
            failure=HistoryError,
        )

    @classmethod
    def _decode(cls, file: h5py.File) -> History:
        groups = {
            key: {name: data[()] for name, data in file[key].items()}
            for key in ("history", "final", "iterates", "reference", "twin")
            if key in file
        }
        columns, stored = groups["history"], file["history"].items()
        if {array.ndim for array in columns.values()} != {2} or "iteration" not in columns:
            raise ValueError("its columns are not those of a history")
        about = json.loads(file.attrs["about"])
        if not all(isinstance(about.get(key, {}), dict) for key in _PARTS):
            raise ValueError("its provenance is not that of a history")
        units = {
            name: (str(data.attrs["units"]), str(data.attrs["description"]))
            for name, data in stored
        }
        marks = {name: data.attrs["privacy"] for name, data in stored if "privacy" in data.attrs}
        return cls(
            columns,
            groups.get("final", {}),
            groups.get("iterates", {}),
            groups.get("reference", {}),
            about,
            units,
            frozenset(name for name in marks if marks[name] == "released") if marks else None,
            groups.get("twin", {}),
        )

    def _groups(self) -> dict[str, dict[str, np.ndarray]]:
        return {
            "history": self.columns,
            "final": self.final,
            "iterates": self.iterates,
            "reference": self.reference,
            "twin": self.twin,
        }


def _shared_arrays(iterate: Mapping[str, Any]) -> list[np.ndarray]:
    """What all clients share of an iterate, and their models where it holds these."""
    models = [iterate["models"]] if "models" in iterate else []
    return [shared_matrix(iterate), *models]  # type: ignore[arg-type]


def _stack_columns(recorders: Sequence[Recorder]) -> dict[str, np.ndarray]:
    """Columns of several runs, stacked by name."""
    runs = [recorder.columns() for recorder in recorders]
    return {name: _stack([run[name] for run in runs]) for name in runs[0]} if runs else {}


def _stack(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays that differ in their first length, padding the short ones."""
    length = max(len(array) for array in arrays)
    padding: float = -1 if arrays[0].dtype.kind in "iu" else np.nan
    stacked = np.full((len(arrays), length, *arrays[0].shape[1:]), padding, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked
