"""Records of repeated runs of one algorithm on one problem, and their HDF5 file.

A cell of an experiment combines one algorithm with one problem (client data with the exact answer).
The runs of a cell are called repeats. A run makes one record, a row of numbers, for each iterate.
The history file of a cell has these groups:

- ``/history/<column>``, of shape (repeat, record), contains iteration, round, traffic, metrics and,
  in a private run, epsilon.
- ``/clients/<metric>``, of shape (repeat, record, client), contains one value of the metric for
  each client.
- ``/iterates/<name>``, of shape (repeat, snapshot, …), contains the iterates that
  `fedcore.snapshots` kept.
- ``/client_iterates/<name>``, of shape (snapshot, client, …), contains the clients' arrays in the
  first repeat.
- ``/final/<name>``, of shape (repeat, …), contains the arrays that the algorithm returned.
- ``/reference/<name>`` contains the problem's exact answer.
- ``/twin/<column>``, of shape (repeat, record), contains the columns of each repeat's twin. A twin
  is a second run from a starting matrix changed by one rounding (`fedcore.experiments.twins`).

The root of the file has an HDF5 dimension scale for each dimension, and attributes that describe
the origin of the numbers. Every data set has the attributes ``units`` and ``long_name``, and
``_FillValue`` if values may be missing (`fedcore.files.history_schema`). The file ends with a
checksum (`fedcore.files.hdf5`). In a private run, the attribute ``privacy`` of a data set
(``released`` or ``not released``) says whether the privacy guarantee covers the data set. The
guarantee does not cover metrics, because metrics are exact functions of the data. The file contains
no run times. Equal runs write equal bytes if commit, CPU type, BLAS, number of BLAS threads and
library versions are equal.
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


@dataclass(eq=False)
class History(Mapping[str, np.ndarray]):
    """Records of repeated runs of one algorithm on one problem, or of one `fedcore.run`.

    Each parameter is also an attribute. ``history[name]`` is a column of recorded numbers, and
    ``name in history``, ``list(history)`` and ``len(history)`` treat the history as a mapping of
    its columns.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (repeats, records)
        Recorded columns. Shorter repeats are padded with −1 in integer columns and with NaN in all
        other columns.
    final : dict of str to ndarray of shape (repeats, …)
        Arrays that the algorithm returned.
    iterates : dict of str to ndarray
        Stored iterates. ``iteration`` and ``record_number`` have shape (repeats, snapshots).
        ``shared`` is the server's matrix, of shape (repeats, snapshots, d, r), or the p parameters
        of the server's network, of shape (repeats, snapshots, p). The arrays may have fewer repeats
        than `columns`, because `fedcore.snapshots` limits their size. The entry
        ``about["iterates"]["left_out"]`` counts the repeats, snapshots and clients that were left
        out.
    reference : dict of str to ndarray
        Arrays of the exact answer, as far as known, such as the singular values of the samples.
    about : dict
        Provenance: paper, experiment, algorithm, cell, parameters, data, seeds, versions, code.
    units : dict of str to (str, str)
        Units and description of each column.
    released : frozenset of str or None
        Columns that the privacy guarantee of a private run covers, or None for a run without
        privacy. All other columns are exact functions of the data.
    twin : dict of str to ndarray of shape (repeats, records)
        Columns of second runs from a start changed by one rounding, or an empty dict.
    clients : dict of str to ndarray of shape (repeats, records, n_clients)
        For metrics that are means over the clients, the value of each client, padded with NaN.
    seconds : ndarray of shape (repeats, records), optional
        CPU seconds of a run until each record, without the time of recording. The function
        `save_seconds` writes them to a separate table.
    client_iterates : dict of str to ndarray
        The clients' arrays in the first repeat. ``iteration`` and ``record_number`` have shape
        (snapshots,), and each other array has shape (snapshots, clients, …). The size limit of
        `fedcore.snapshots` may leave out clients.

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
        """Return the algorithm, the problem, the size and the column names in one line."""
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
        """Return the history of one run; the history has one repeat.

        Parameters
        ----------
        recorder : Recorder
            Records of the run.
        final : mapping of str to object
            Results of the algorithm; the history keeps only the arrays among them.
        units : mapping of str to (str, str)
            Units and description of each column, by the column's name, as `units_of` returns them.
        reference : mapping of str to ndarray, optional
        about : mapping, optional
            Attributes `reference` and `about` of the history.
        twin : Recorder, optional
            Records of a second run from a start changed by one rounding.
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
        """Join the histories of a cell's single runs into one history.

        A cell is an algorithm with fixed parameters on one problem.

        Parameters
        ----------
        repeats : sequence of History
        about : mapping
            Provenance that all repeats have in common.
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
        """Return the column `name`, an array of shape (repeats, records)."""
        if name not in self.columns:
            raise InputError(f"this history has no column '{name}': it has {sorted(self.columns)}")
        return self.columns[name]

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the column `name`, or `default` if there is no such column.

        Parameters
        ----------
        name : str
            Name of the column.
        default : object, optional
            Value to return if the history has no such column.
        """
        return self[name] if name in self.columns else default

    def last(self, name: str) -> np.ndarray:
        """Return the last recorded value of a column in each repeat.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        ndarray of shape (repeats,)
        """
        lengths = (self.columns["iteration"] >= 0).sum(axis=1)
        column = History.__getitem__(self, name)  # with all repeats, also of one run
        return column[np.arange(len(lengths)), lengths - 1]

    @property
    def twins(self) -> History | None:
        """Return a history of the second runs, made from `twin`, or None if `twin` is empty."""
        if not self.twin:
            return None
        released = None if self.released is None else frozenset[str]()
        return History(
            self.twin, reference=self.reference, about=self.about, units=self.units,
            released=released,
        )  # fmt: skip

    @property
    def protected(self) -> list[str]:
        """Return the keys of ``about["problem"]`` whose values a private run must keep secret."""
        if self.released is None:
            raise InputError("this history is not of a private run, so no guarantee protects it")
        facts, relation = self.about["problem"], self.about["privacy"]["neighbours"]
        fixed = set() if relation == "add_or_remove_one" else {"n_samples"}
        return sorted(facts.keys() - _PUBLIC - fixed)

    def released_alone(self) -> History:
        """Return a copy of a private run's history that has only public facts and released values.

        Returns
        -------
        History
            The entry ``about["privacy"]["left_out"]`` names the columns that were left out.

        Raises
        ------
        InputError
            Raised if the run was not private.
        """
        protected = self.protected
        kept: dict[str, Any] = {
            group: {k: v for k, v in arrays.items() if self._mark(group, k) == "released"}
            for group, arrays in self._groups().items()
        }
        columns, problem = kept.pop("history"), self.about["problem"]
        about = {
            **self.about,
            "problem": {k: v for k, v in problem.items() if k not in protected},
            "privacy": self.about["privacy"] | {"left_out": sorted(self.columns.keys() - columns)},
        }
        return replace(self, columns=columns, about=about, seconds=None, **kept)

    @property
    def repeats(self) -> int:
        """Return the number of repeats."""
        return len(self.columns["iteration"])

    @property
    def copies(self) -> list[int]:
        """Return the indices of repeats that have the columns and final arrays of an earlier one.

        The list omits repeats whose final arrays contain NaN or infinity, because such runs end
        early and may be equal by chance.
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
        """Write the history to an HDF5 file, whole or not at all.

        The bytes of the file depend only on the history and on the version of HDF5.

        Parameters
        ----------
        path : path-like
        force : bool, default=False
            If true, replace even links, write-protected files and files that fedcore did not write.
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
        """Return the attributes of the HDF5 file's root, such as title and source."""
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
        """Yield the group, name, values and description of every data set.

        If two data sets have different sizes in the same dimension, the later data set gets a new
        dimension. The name of the new dimension ends in its size.
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
        """Return ``released`` or ``not released`` for a private run's data set, or None.

        The result is None for runs without privacy, and for final arrays other than ``basis``.
        """
        if self.released is None or (group == "final" and name != "basis"):
            return None
        column = group == "history" and name in self.released
        return "released" if column or f"{group}/{name}" in _RELEASED else NOT_RELEASED

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read a history from its HDF5 file and verify the file's checksum.

        Parameters
        ----------
        path : str or path-like
            Path of the HDF5 file.

        Raises
        ------
        HistoryError
            Raised if the file is missing, truncated or damaged, or is not a history. Raised if the
            file has a schema version other than the present one.
        """

        def decode(file: h5py.File) -> History:
            if "history" not in file:
                raise ValueError("it holds no columns")
            version = int(file.attrs["schema"])
            if version != schema.VERSION:
                raise HistoryError(
                    f"{path} has schema {version}, but this version reads {schema.VERSION}: run "
                    "the history's cell again, or read the file with the fedcore that wrote it"
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
        """Plot the metrics against rounds or another column of the ledger.

        Each line is the median over the repeats. The band around a line reaches from the smallest
        to the largest value of the repeats.

        Parameters
        ----------
        path : path-like, optional
            Path of the figure, saved as PNG and as PDF; the ending .png or .pdf is optional.
        against : str or sequence of str, optional
            Columns on the x-axis: ``round``, ``bytes_up``, ``bytes_down``, ``epsilon`` or
            ``iteration``.
        metrics : str or sequence of str, optional
            Metrics to plot. By default, all metrics are plotted.

        Raises
        ------
        InputError
            Raised if a column or metric is unknown, or if the history has no metrics.
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
        """Return the tree that xarray's ``open_datatree`` reads from the history's HDF5 file.

        Returns
        -------
        xarray.DataTree
            Tree with named dimensions and a group for each part of the history, such as ``final``.
            Missing values are NaN. The coordinate ``feature`` contains the features' names if they
            are known.

        Raises
        ------
        InputError
            Raised if xarray is not installed.
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
        """Return all records as a pandas data frame, with one row for each record.

        Returns
        -------
        pandas.DataFrame
            Data frame with the column ``repeat`` and the columns of the history, without padding.

        Raises
        ------
        InputError
            Raised if pandas is not installed.
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
        """Write all records, the rows of `to_frame`, as a table for R, Excel and other programs.

        Numbers keep all their digits. To share the table of a private run, write it by
        ``released_alone().export(path)``.

        Parameters
        ----------
        path : path-like
            Path of a new file with the extension ``.csv`` or ``.parquet``.

        Raises
        ------
        InputError
            Raised if the extension is neither ``.csv`` nor ``.parquet``, or if the path already
            exists. Raised for ``.parquet`` if pyarrow is not installed.
        """
        ending = os.path.splitext(path)[1]
        if ending not in (".csv", ".parquet"):
            raise InputError(f"export writes .csv and .parquet, not '{path}': change the ending")
        if os.path.lexists(path):
            raise InputError(f"{path} exists and is not replaced: remove it, or name another file")
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
        """Return the last record of each repeat as an HTML table for notebooks."""
        rows = [[name, *self.last(name).tolist()] for name in self.columns]
        heads = ["last record", *(f"repeat {repeat}" for repeat in range(self.repeats))]
        lines = [f"<th>{'</th><th>'.join(heads)}</th>"]
        lines += [f"<td>{'</td><td>'.join(html.escape(str(v)) for v in row)}</td>" for row in rows]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{html.escape(repr(self))}</p><table>{table}</table>"

    def _records(self) -> dict[str, np.ndarray]:
        """Return the columns of all repeats, concatenated without padding."""
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
    """Return a mapping from the name of every dimension to its size and its long name."""
    found: dict[str, tuple[int, str]] = {}
    for _, name, array, described in arrays:
        for axis, size in zip(described.axes, array.shape, strict=True):
            known = schema.DIMENSIONS.get(axis.removesuffix(f"_{size}"))
            found.setdefault(axis, (size, known or f"number along an axis of {name}, from 0"))
    return found


def _plain(value: Any) -> np.ndarray:
    """Return an array with booleans converted to integers, because HDF5 has no booleans."""
    array = np.asarray(value)
    return array.astype(np.uint8) if array.dtype == bool else array


def save_seconds(history: History, path: str | os.PathLike[str]) -> None:
    """Write the runs' CPU seconds to a separate table, because the history file has no times.

    The table has a line for each record and a column for each repeat.
    """
    seconds = np.empty((0, 0)) if history.seconds is None else history.seconds
    names = "\t".join(f"repeat {repeat}" for repeat in range(len(seconds)))
    with atomic.replace(path) as temporary:
        np.savetxt(temporary, seconds.T, "%.6f", "\t", header=names, comments="")


def read_seconds(path: str | os.PathLike[str]) -> np.ndarray:
    """Read the CPU seconds that `save_seconds` wrote, as an array of shape (repeats, records).

    Raises
    ------
    HistoryError
        Raised if the file is missing or damaged.
    """
    try:
        return np.loadtxt(path, delimiter="\t", skiprows=1, ndmin=2).T
    except (OSError, ValueError) as error:
        raise HistoryError(
            f"{path} has no CPU seconds ({error}): delete the history beside it, and run again"
        ) from error


def units_of(
    metrics: Iterable[Metric], counts: Mapping[str, tuple[str, str]] | None = None
) -> dict[str, tuple[str, str]]:
    """Return (units, description) by column name, for `COLUMNS`, `counts` and `metrics`."""
    return COLUMNS | dict(counts or {}) | {m.name: (m.units, m.description) for m in metrics}


def _one(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of one run with a new leading axis of length 1 for the repeats."""
    return {name: np.asarray(array)[None] for name, array in arrays.items()}


def _stack(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays whose first axes may differ in length; pad them with −1 (integers) or NaN."""
    length = max(len(array) for array in arrays)
    padding: float = -1 if arrays[0].dtype.kind in "iu" else np.nan
    stacked = np.full((len(arrays), length, *arrays[0].shape[1:]), padding, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked
