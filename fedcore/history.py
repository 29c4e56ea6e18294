"""History of a cell: what its runs recorded, and the HDF5 file.

Each cell has one file, with all repeats on the leading axis:

    /history/<column>          (repeat, record)   iteration, round, scalars_*, bytes_*, the metrics,
                               and epsilon in a private run
    /clients/<metric>          (repeat, record, client)   one value for each client
    /iterates/<name>           (repeat, snapshot, …)   kept by `fedcore.snapshots`
    /client_iterates/<name>    (snapshot, client, …)   what the clients of the first repeat held
    /final/<name>              (repeat, …)   arrays that the algorithm returned
    /reference/<name>          the answer that the problem came with
    /twin/<column>             (repeat, record)   the same columns of each repeat's twin, whose
                               start differs by one rounding (`fedcore.experiments.twins`)

The root holds an HDF5 dimension scale for each dimension, and says where the file comes from. Every
data set has the attributes ``units`` and ``long_name``, and ``_FillValue`` where values may be
missing (`fedcore.files.history_schema`). The file has the seal of `fedcore.files.hdf5`. In a
private run the attribute ``privacy`` says whether a data set was ``released``; measures were not,
because they are exact functions of the data. The file holds no time: the same run gives the same
bytes if commit, CPU type, BLAS, its number of threads and library versions are the same.
"""

from __future__ import annotations

import csv
import html
import importlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import h5py
import numpy as np

from fedcore import snapshots
from fedcore.errors import HistoryError, InputError
from fedcore.files import atomic, hdf5, outputs
from fedcore.files import history_schema as schema
from fedcore.metrics import Metric
from fedcore.recorder import COLUMNS, NOT_RELEASED, Recorder
from fedcore.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RELEASED = ("iterates/iteration", "iterates/record_number", "iterates/shared", "final/basis")
_PUBLIC = {"name", "status", "note", "n_clients", "n_features"}  # of a private run's problem
_PARTS = ("params", "problem", "seed", "versions", "privacy")  # of the provenance


@dataclass
class History:
    """Recorded repeats of one cell, or of one run of `fedcore.run`.

    Each parameter is also an attribute.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (repeats, records)
        Shorter repeats are padded: with −1 in integer columns, with NaN in the others.
    final : dict of str to ndarray of shape (repeats, …)
        Arrays that the algorithm returned at its end.
    iterates : dict of str to ndarray
        ``iteration`` and ``record_number`` of shape (repeats, snapshots), and ``shared``, what the
        server held, of shape (repeats, snapshots, d, r), or (repeats, snapshots, p) for the p
        parameters of networks. These arrays cover as many repeats as fit into the limit of
        `fedcore.snapshots`, which may be fewer repeats than in `columns`; see
        ``about["iterates"]``.
    reference : dict of str to ndarray
        Singular values of the samples, and other arrays of the exact answer that are known.
    about : dict
        Provenance: paper, experiment, algorithm, cell, parameters, data, seeds, versions, code.
    units : dict of str to (str, str)
        Units and description of each column.
    released : frozenset of str or None
        Columns that a private run released; the others are exact functions of the data. None for a
        run without privacy.
    twin : dict of str to ndarray of shape (repeats, records)
        Columns of the repeats' twins; empty if the cell has none.
    clients : dict of str to ndarray of shape (repeats, records, n_clients)
        For each metric that is a mean over clients, the value of each client; padded with NaN.
    seconds : ndarray of shape (repeats, records), optional
        CPU seconds of a run until each record, without the time of recording; see `save_seconds`.
    client_iterates : dict of str to ndarray
        ``iteration`` and ``record_number`` of shape (snapshots,), and the arrays that clients of
        the first repeat held, each of shape (snapshots, clients, …), for as many clients as fit
        into the same limit.

    Examples
    --------
    >>> import numpy as np
    >>> import fedcore
    >>> clients = [np.diag([3.0, 2.0, 1.0]), np.eye(3)]
    >>> found = fedcore.run("block_krylov", clients, 1, rounds=2).history
    >>> found.columns["round"]
    array([[0, 1, 2]])
    """

    columns: dict[str, np.ndarray]
    final: dict[str, np.ndarray] = field(default_factory=dict)
    iterates: dict[str, np.ndarray] = field(default_factory=dict)
    reference: dict[str, np.ndarray] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    units: dict[str, tuple[str, str]] = field(default_factory=lambda: dict(COLUMNS))
    released: frozenset[str] | None = None
    twin: dict[str, np.ndarray] = field(default_factory=dict)
    clients: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: np.ndarray | None = None
    client_iterates: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Algorithm, problem, size and names of the columns in one line, without arrays."""
        about, shape = self.about, self.columns.get("iteration", np.empty((0, 0))).shape
        known = [about.get("algorithm"), about.get("problem", {}).get("name")]
        whose = " on ".join(str(name) for name in known if name)
        return (
            f"History({whose}{'; ' * bool(whose)}{counted(shape[0], 'repeat')} x "
            f"{counted(shape[1], 'record')} of {', '.join(self.columns)}; "
            f"final: {', '.join(self.final) or '–'})"
        )

    @classmethod
    def from_run(
        cls,
        recorder: Recorder,
        final: Mapping[str, Any],
        units: Mapping[str, tuple[str, str]] = COLUMNS,
        *,
        reference: Mapping[str, np.ndarray] | None = None,
        about: Mapping[str, Any] | None = None,
        twin: Recorder | None = None,
    ) -> Self:
        """Return the history of one run, and of its twin if it has one, as one repeat.

        Parameters
        ----------
        recorder : Recorder
            Records of the run.
        final : mapping of str to object
            What the algorithm returned; only arrays are kept.
        units : mapping of str to (str, str)
            Units and description of each column, see `units_of`.
        reference : mapping of str to ndarray, optional
        about : mapping, optional
            See the attributes of these names.
        twin : Recorder, optional
            Records of the run's twin.

        Returns
        -------
        History
        """
        # Lists of per-client matrices are too large to keep.
        kept = {k: _plain(v) for k, v in final.items() if isinstance(v, np.ndarray | np.generic)}
        iterates, of_clients, left_out = snapshots.stack([recorder.snapshots])
        about = dict(about or {})
        if iterates:
            about["iterates"] = {
                "policy": recorder.snapshots.policy,
                "limit_bytes": snapshots.LIMIT,
                "left_out": left_out,
            }
        return cls(
            _one(recorder.columns()),
            _one(kept),
            iterates,
            dict(reference or {}),
            about,
            dict(units),
            recorder.released,
            {} if twin is None else _one(twin.columns()),
            _one(recorder.by_client),
            np.array([recorder.seconds]),
            of_clients,
        )

    @classmethod
    def joined(
        cls,
        repeats: Sequence[History],
        about: Mapping[str, Any],
        units: Mapping[str, tuple[str, str]],
    ) -> History:
        """Return the history of a cell from the histories of its single repeats.

        Parameters
        ----------
        repeats : sequence of History
        about : mapping
            What all repeats have in common.
        units : mapping of str to (str, str)
            Units and description of each column.
        """
        first, about = repeats[0], dict(about)
        runs = [
            snapshots.unstack(one.iterates, one.client_iterates, one.about.get("iterates", {}))
            for one in repeats
        ]
        iterates, of_clients, left_out = snapshots.stack(runs)
        if iterates:
            about["iterates"] = first.about["iterates"] | {"left_out": left_out}
        if "privacy" in first.about:
            kinds = {kind for one in repeats for kind in one.about["privacy"]["mechanisms"]}
            about["privacy"] = first.about["privacy"] | {"mechanisms": sorted(kinds)}

        def stacked(group: str) -> dict[str, np.ndarray]:
            every = [getattr(one, group) for one in repeats]
            return {name: _stack([one[name][0] for one in every]) for name in every[0]}

        # Draws of different sizes give arrays of different shapes; they are left out.
        final = {
            name: np.concatenate([one.final[name] for one in repeats])
            for name, array in first.final.items()
            if all(name in one.final and one.final[name].shape == array.shape for one in repeats)
        }
        return cls(
            stacked("columns"),
            final,
            iterates,
            first.reference,
            about,
            dict(units),
            first.released,
            stacked("twin"),
            stacked("clients"),
            _stack([one.seconds[0] for one in repeats if one.seconds is not None]),
            of_clients,
        )

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the column `name`, shape (repeats, records)."""
        if name not in self.columns:
            raise InputError(f"this history has no column '{name}': it has {sorted(self.columns)}")
        return self.columns[name]

    def last(self, name: str) -> np.ndarray:
        """Return the last recorded value of a column in each repeat.

        Parameters
        ----------
        name : str

        Returns
        -------
        ndarray of shape (repeats,)
        """
        lengths = (self.columns["iteration"] >= 0).sum(axis=1)
        column = History.__getitem__(self, name)  # with all repeats, also of one run
        return column[np.arange(len(lengths)), lengths - 1]

    @property
    def twins(self) -> History | None:
        """The repeats' twins as a history of their own; None if the cell has none."""
        if not self.twin:
            return None
        released = None if self.released is None else frozenset[str]()
        return History(
            self.twin, reference=self.reference, about=self.about, units=self.units,
            released=released,
        )  # fmt: skip

    @property
    def protected(self) -> list[str]:
        """Names of the facts on a private run's problem that are exact and were not released."""
        facts, relation = self.about["problem"], self.about["privacy"]["neighbours"]
        fixed = set() if relation == "add_or_remove_one" else {"n_samples"}
        return sorted(facts.keys() - _PUBLIC - fixed)

    def released_alone(self) -> History:
        """Return a history with only public facts and the values that a private run has released.

        Returns
        -------
        History
            ``about["privacy"]["left_out"]`` names the columns that are left out.
        """
        kept: dict[str, Any] = {
            group: {k: v for k, v in arrays.items() if self._mark(group, k) == "released"}
            for group, arrays in self._groups().items()
        }
        columns, problem = kept.pop("history"), self.about["problem"]
        about = {
            **self.about,
            "problem": {k: v for k, v in problem.items() if k not in self.protected},
            "privacy": self.about["privacy"] | {"left_out": sorted(self.columns.keys() - columns)},
        }
        return replace(self, columns=columns, about=about, seconds=None, **kept)

    @property
    def repeats(self) -> int:
        """Number of repeats."""
        return len(self.columns["iteration"])

    @property
    def copies(self) -> list[int]:
        """Repeats that equal an earlier one in all columns and final arrays.

        A repeat without finite final arrays is not listed, because its few records may equal those
        of another repeat by chance.
        """
        seen: set[tuple[bytes, ...]] = set()
        copies = []
        for repeat in range(self.repeats if self.final else 0):
            final = [array[repeat] for array in self.final.values()]
            key = tuple(x.tobytes() for x in (*final, *(c[repeat] for c in self.columns.values())))
            if key in seen and all(np.isfinite(array).all() for array in final):
                copies.append(repeat)
            seen.add(key)
        return copies

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the history, whole or not at all.

        The bytes of the file depend only on the history and on the version of HDF5.

        Parameters
        ----------
        path : path-like
        force : bool, default=False
            Whether to replace a link, a write-protected file, or one that fedcore has not written.
        """
        outputs.require(path, "history", force=force)
        with hdf5.create(path) as file:
            file.attrs.update(self.attributes)
            arrays = list(self.arrays())
            for group, name, array, described in arrays:
                data = file.create_dataset(
                    f"{group}/{name}", data=array, **schema.storage(group, array)
                )
                data.attrs["units"], data.attrs["long_name"] = described.units, described.long_name
                if (fill := schema.fill_value(group, array)) is not None:
                    data.attrs["_FillValue"] = fill
                if (mark := self._mark(group, name)) is not None:
                    data.attrs["privacy"] = mark
            scales = {}
            for name, (size, text) in dimensions(arrays).items():
                places = np.arange(size)
                packed = schema.storage(schema.ROOT, places)
                scales[name] = file.create_dataset(name, data=places, **packed)
                scales[name].attrs["units"], scales[name].attrs["long_name"] = "1", text
                scales[name].make_scale(name)
            for group, name, _, described in arrays:
                for axis, dimension in enumerate(described.axes):
                    file[f"{group}/{name}"].dims[axis].attach_scale(scales[dimension])

    @property
    def attributes(self) -> dict[str, str | int]:
        """Attributes of the file's root, such as its title and its source."""
        about = self.about
        cell = "/".join(str(about[key]) for key in ("paper", "experiment", "name") if key in about)
        problem = about.get("problem", {}).get("name")
        whose = [str(about.get("algorithm", "a run")), *([f"on {problem}"] if problem else [])]
        version = about.get("versions", {}).get("fedcore", "")
        return {
            "title": " ".join([*whose, *([f"({cell})"] if cell else [])]),
            "references": str(about.get("references", "")),
            "source": f"fedcore {version}, commit {about.get('commit', 'unknown')}",
            "license": schema.LICENCE,
            "schema": schema.VERSION,
            "documentation": schema.PAGE,
            "about": json.dumps(about, sort_keys=True),
        }

    def arrays(self) -> Iterator[tuple[str, str, np.ndarray, schema.Described]]:
        """Yield group, name, values and description of every data set.

        If two data sets differ in the size of a dimension, the later one gets a dimension of its
        own, whose name ends in its size.
        """
        sizes: dict[str, int] = {}
        for group, arrays in self._groups().items():
            for name, array in sorted(arrays.items()):
                described = schema.describe(group, name, array, self.units)
                axes = tuple(
                    axis if sizes.setdefault(axis, size) == size else f"{axis}_{size}"
                    for axis, size in zip(described.axes, array.shape, strict=True)
                )
                yield group, name, array, described._replace(axes=axes)

    def _mark(self, group: str, name: str) -> str | None:
        """Return the mark that says whether a private run has released a data set, or None.

        Data sets of runs without privacy get no mark, nor do final arrays other than ``basis``.
        """
        if self.released is None or (group == "final" and name != "basis"):
            return None
        column = group == "history" and name in self.released
        return "released" if column or f"{group}/{name}" in _RELEASED else NOT_RELEASED

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read a history and check its seal (see `fedcore.files.hdf5`).

        Parameters
        ----------
        path : path-like

        Raises
        ------
        HistoryError
            When the file is missing, cut off, damaged, no history, or of another schema version.
        """

        def decode(file: h5py.File) -> History:
            if "history" not in file:
                raise ValueError("it holds no columns")
            version = int(file.attrs["schema"])
            if version != schema.VERSION:
                raise HistoryError(
                    f"{path}: history of schema {version}, this version reads {schema.VERSION}; "
                    "run its cell again, or read it with the fedcore that wrote it"
                )
            return cls._decode(file)

        return hdf5.load(
            path,
            decode,
            kind="history",
            first="keep it by fedcore run --out",
            again="run again",
            failure=HistoryError,
        )

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        against: Sequence[str] = (),
        metrics: Sequence[str] = (),
    ) -> Figure:
        """Draw the metrics against rounds or another column of the ledger.

        The line is the median over the repeats, and the band reaches from the smallest to the
        largest. A notebook shows the figure.

        Parameters
        ----------
        path : path-like, optional
            Where to save the figure, without the ending; PNG and PDF are written.
        against : str or sequence of str, optional
            ``round``, ``bytes_up``, ``bytes_down``, ``epsilon`` or ``iteration``.
        metrics : str or sequence of str, optional
            By default all.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            For an unknown column or metric, or a history without metrics.
        """
        # By name: the figures stand above, and no cell depends on them.
        comparison = importlib.import_module("fedcore.reports.comparison")
        name = str(self.about.get("algorithm", "this run"))
        across, chosen = (
            [given] if isinstance(given, str) else given for given in (against, metrics)
        )
        figure: Figure = comparison.figure({name: self}, across, chosen, path=path)
        return figure

    def to_xarray(self) -> Any:
        """Return the whole history as the tree that xarray's ``open_datatree`` reads from its file.

        Returns
        -------
        xarray.DataTree
            One group for each of ``history``, ``iterates``, ``final``, ``reference`` and the other
            parts that the history has, with named dimensions. Missing values are NaN. The
            coordinate ``feature`` has the names of the features if the history knows them.

        Raises
        ------
        InputError
            When xarray is not installed.
        """
        try:
            import xarray
        except ImportError as error:
            raise InputError(
                "to_xarray needs xarray, which is not installed: pip install xarray h5netcdf"
            ) from error
        groups: dict[str, dict[str, Any]] = {}
        for group, name, array, described in self.arrays():
            attributes: dict[str, Any] = {
                "units": described.units,
                "long_name": described.long_name,
            }
            if (fill := schema.fill_value(group, array)) is not None:
                attributes["_FillValue"] = fill
            groups.setdefault(group, {})[name] = (described.axes, array, attributes)
        tree = {group: xarray.decode_cf(xarray.Dataset(arrays)) for group, arrays in groups.items()}
        axes = {
            name: (name, np.arange(size), {"units": "1", "long_name": text})
            for name, (size, text) in dimensions(self.arrays()).items()
        }
        if "feature" in axes and "features" in self.about:
            axes["feature"] = ("feature", self.about["features"], {"long_name": "name"})
        tree["/"] = xarray.Dataset(coords=axes, attrs=self.attributes)
        return xarray.DataTree.from_dict(tree)

    def to_frame(self) -> Any:
        """Return all records as a pandas data frame, one row for each record.

        Returns
        -------
        pandas.DataFrame
            ``repeat``, and the columns of the history in their units. Padding of repeats that ended
            early is left out.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise InputError(
                "to_frame needs pandas, which is not installed: pip install pandas; without it, "
                "history['round'] is an array of shape (repeats, records)"
            ) from error
        return pandas.DataFrame(self._records())

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the rows of `to_frame` as a table for R, Excel and other programs.

        Numbers keep all their digits. For a private run, use ``released_alone().export(path)``
        before you give the table away.

        Parameters
        ----------
        path : path-like
            Path of a new file, which ends in ``.csv`` or ``.parquet``.

        Raises
        ------
        InputError
            For another ending, if a file is there, or if pyarrow is not installed and the table is
            to be Parquet.
        """
        ending = os.path.splitext(path)[1]
        if ending not in (".csv", ".parquet"):
            raise InputError(f"export writes .csv and .parquet, not '{path}': change the ending")
        if os.path.lexists(path):
            raise InputError(f"{path} is not replaced: remove it, or name another file")
        records = self._records()
        with atomic.replace(path) as temporary:
            if ending == ".csv":
                with open(temporary, "w", newline="", encoding="utf-8") as file:
                    rows = csv.writer(file, lineterminator="\n")
                    rows.writerow(records)
                    rows.writerows(zip(*(v.tolist() for v in records.values()), strict=True))
                return
            try:
                from pyarrow import parquet, table
            except ImportError as error:
                raise InputError(
                    "Parquet needs pyarrow, which is not installed: pip install pyarrow, or export "
                    "a .csv"
                ) from error
            parquet.write_table(table(records), temporary)

    def _repr_html_(self) -> str:
        """Return the last record of each repeat as a table, for notebooks."""
        rows = [[name, *self.last(name).tolist()] for name in self.columns]
        heads = ["last record", *(f"repeat {repeat}" for repeat in range(self.repeats))]
        lines = [f"<th>{'</th><th>'.join(heads)}</th>"]
        lines += [f"<td>{'</td><td>'.join(html.escape(str(v)) for v in row)}</td>" for row in rows]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{html.escape(repr(self))}</p><table>{table}</table>"

    def _records(self) -> dict[str, np.ndarray]:
        """Return the columns of all records, one repeat after the other, without padding."""
        there = self.columns["iteration"] >= 0
        repeat = np.broadcast_to(np.arange(self.repeats)[:, None], there.shape)
        columns = {"repeat": repeat, **self.columns}
        return {name: values[there] for name, values in columns.items()}

    @classmethod
    def _decode(cls, file: h5py.File) -> History:
        groups = {
            key: {name: data[()] for name, data in file[key].items()}
            for key in schema.LEADING
            if key in file
        }
        columns, stored = groups["history"], file["history"].items()
        if {array.ndim for array in columns.values()} != {2} or "iteration" not in columns:
            raise ValueError("its columns are not those of a history")
        about = json.loads(file.attrs["about"])
        if not all(isinstance(about.get(key, {}), dict) for key in _PARTS):
            raise ValueError("its provenance is not that of a history")
        units = {
            name: (str(data.attrs["units"]), str(data.attrs["long_name"])) for name, data in stored
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
            groups.get("clients", {}),
            client_iterates=groups.get("client_iterates", {}),
        )

    def _groups(self) -> dict[str, dict[str, np.ndarray]]:
        return {
            "history": self.columns,
            "clients": self.clients,
            "iterates": self.iterates,
            "client_iterates": self.client_iterates,
            "final": self.final,
            "reference": self.reference,
            "twin": self.twin,
        }


def dimensions(
    arrays: Iterable[tuple[str, str, np.ndarray, schema.Described]],
) -> dict[str, tuple[int, str]]:
    """Return the size and the long name of every dimension, by name."""
    found: dict[str, tuple[int, str]] = {}
    for _, name, array, described in arrays:
        for axis, size in zip(described.axes, array.shape, strict=True):
            known = schema.DIMENSIONS.get(axis.removesuffix(f"_{size}"))
            found.setdefault(axis, (size, known or f"number along an axis of {name}, from 0"))
    return found


def _plain(value: Any) -> np.ndarray:
    """Return an array with truth values as numbers, because HDF5 knows no truth values."""
    array = np.asarray(value)
    return array.astype(np.uint8) if array.dtype == bool else array


def save_seconds(history: History, path: str | os.PathLike[str]) -> None:
    """Write the CPU seconds of a cell as a table, because its history file holds no times.

    The table has a line for each record, and a column for each repeat.
    """
    seconds = np.empty((0, 0)) if history.seconds is None else history.seconds
    names = "\t".join(f"repeat {repeat}" for repeat in range(len(seconds)))
    with atomic.replace(path) as temporary:
        np.savetxt(temporary, seconds.T, "%.6f", "\t", header=names, comments="")


def read_seconds(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the CPU seconds of a cell that `save_seconds` wrote, shape (repeats, records).

    Raises
    ------
    HistoryError
        When the file is missing or damaged.
    """
    try:
        return np.loadtxt(path, delimiter="\t", skiprows=1, ndmin=2).T
    except (OSError, ValueError) as error:
        raise HistoryError(
            f"{path} has no CPU seconds ({error}): delete its history, and run again"
        ) from error


def units_of(
    metrics: Iterable[Metric], counts: Mapping[str, tuple[str, str]] | None = None
) -> dict[str, tuple[str, str]]:
    """Return units and descriptions of all columns; `counts` are the algorithm's own columns."""
    return COLUMNS | dict(counts or {}) | {m.name: (m.units, m.description) for m in metrics}


def _one(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of one run with a leading axis for its one repeat."""
    return {name: np.asarray(array)[None] for name, array in arrays.items()}


def _stack(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays whose first axes may differ in length, padding the shorter arrays."""
    length = max(len(array) for array in arrays)
    padding: float = -1 if arrays[0].dtype.kind in "iu" else np.nan
    stacked = np.full((len(arrays), length, *arrays[0].shape[1:]), padding, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked
