"""Write and read records of a run's histories; later runs are compared with these records.

The folder ``kept/records`` has one file for each paper. The first line of a file describes the run,
as in `KeptRun`. Each of the remaining lines describes the history of one cell (planned run), as in
`Kept`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from fedcore.errors import DataError
from fedcore.experiments.cell import Cell
from fedcore.files import atomic
from fedcore.history import History

FOLDER = "kept/records"  # of a checkout
DIGIT = 1e-3  # relative difference that leaves the third digit alone
FLOOR = float(np.sqrt(np.finfo(float).eps))  # rounding, as a share of a column's largest value
ZERO = 1000 * float(np.finfo(float).eps)  # rounding of a measure without unit, such as a sine
SAME, DIGITS, RANGE, DIFFERS = "same bytes", "three digits", "in range", "differs"


class Ends(NamedTuple):
    """Statistics of a history's column; a statistic that is not finite is None.

    The attribute `median` is the median of the repeats' last values. The attributes `low` and
    `high` are the smallest and the largest last value of all repeats and twins (second runs from a
    start that is changed by one rounding). `largest` is the largest absolute value in the column.
    """

    median: float | None
    low: float | None  # over repeats and their twins
    high: float | None
    largest: float | None  # absolute value in the whole column

    def agreement(self, new: Ends, zero: float = 0.0) -> str:
        """Return how well the kept statistics agree with `new`, the statistics of another run.

        The result is `DIGITS`, `RANGE` or `DIFFERS`. Differences up to `zero` count as rounding.
        """
        if self.median is None or new.median is None:
            return DIGITS if self.median is new.median else DIFFERS
        room = max(DIGIT * abs(self.median), FLOOR * (self.largest or 0.0), zero)
        if abs(new.median - self.median) <= room:
            return DIGITS
        low, high = self.low, self.high
        inside = low is not None and high is not None and low <= new.median <= high
        return RANGE if inside else DIFFERS


@dataclass(frozen=True)
class Kept:
    """Record of the history of one cell.

    Attributes
    ----------
    cell : str
        Path of the cell, ``<paper>/<experiment>/<algorithm>/<problem>-<variant>``.
    sha256, settings, code : str
        Checksum of the history's arrays, checksum of the cell's settings, and fingerprint of the
        cell's code.
    cpu, mb : float
        CPU seconds and MB of memory that the cell's job took.
    ends : dict of str to Ends
    """

    cell: str
    sha256: str
    settings: str
    code: str
    cpu: float
    mb: float
    ends: dict[str, Ends]


@dataclass(frozen=True)
class KeptRun:
    """Record of one paper's workflow run, with which later runs are compared.

    Attributes
    ----------
    commit, date : str
    machine, versions : dict of str to str
        CPU, BLAS, system and SIMD instructions from `machine.describe_arithmetic`, and package
        versions.
    seed : int
        Master seed.
    probe : float
        CPU seconds that `commands.probe.probe_speed` measured on the run's machine.
    problems : dict of str to float
        CPU seconds for making the data of each problem.
    items : dict of str to list of str
        Paths of the cells that an item's verdict depends on, keyed by the item's id.
    cells : dict of str to Kept
        Record of each cell's history, keyed by the cell's path.
    """

    commit: str
    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    seed: int
    probe: float
    problems: dict[str, float]
    items: dict[str, list[str]]
    cells: dict[str, Kept] = field(default_factory=dict)


def same_arithmetic(run: KeptRun, machine: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Return whether a rerun's histories must agree with those of a kept run in every byte.

    Bytes must agree if the BLAS, the system, the SIMD instructions and all versions except
    fedcore's are the same.
    """
    known = ("BLAS", "system", "SIMD")
    others = {name: version for name, version in run.versions.items() if name != "fedcore"}
    return all(run.machine.get(name) == machine.get(name) for name in known) and all(
        versions.get(name) == version for name, version in others.items()
    )


def settings_of(cell: Cell) -> str:
    """Return the SHA-256 of all settings on which a cell's history depends."""
    return hashlib.sha256(json.dumps(cell.spec(), sort_keys=True).encode()).hexdigest()


def arrays_sha256(path: Path) -> str:
    """Return one SHA-256 of the names, types, shapes and bytes of all arrays in an HDF5 file."""
    total = hashlib.sha256()
    names: list[str] = []
    with h5py.File(path) as file:
        file.visit(names.append)
        for name in sorted(names):
            item = file[name]
            if isinstance(item, h5py.Dataset):
                array = np.asarray(item[()])
                total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
                total.update(array.tobytes())
    return total.hexdigest()


def ends_of(history: History) -> dict[str, Ends]:
    """Return the statistics (`Ends`) of each column of a history."""
    twins, found = history.twins, {}
    for name, column in history.columns.items():
        lasts = both = history.last(name).astype(float)
        if twins is not None and name in twins.columns:  # their distance is not theirs
            both = np.append(lasts, twins.last(name).astype(float))
        known, whole = both[np.isfinite(both)], column[np.isfinite(column)].astype(float)
        numbers = (
            np.median(lasts),
            known.min(initial=math.inf),
            known.max(initial=-math.inf),
            np.abs(whole).max(initial=-math.inf),
        )
        found[name] = Ends(*(_short(float(number)) for number in numbers))
    return found


def _short(number: float) -> float | None:
    return float(f"{number:.6g}") if math.isfinite(number) else None


def compared(kept: Kept, path: Path, same: bool) -> tuple[str, list[dict[str, Any]]]:
    """Return how well a history agrees with its record, and a row for each column that differs.

    The agreement is `SAME`, `DIGITS`, `RANGE` or `DIFFERS`.

    Parameters
    ----------
    kept : Kept
    path : path
        File of the rerun's history.
    same : bool
        Whether any difference between the arrays' bytes counts as a disagreement.
    """
    history, none = History.load(path), Ends(None, None, None, None)
    new = ends_of(history)
    same_bytes = arrays_sha256(path) == kept.sha256
    if same_bytes and new == kept.ends:
        return SAME, []
    others = []
    for name in kept.ends | new:
        was, now = kept.ends.get(name, none), new.get(name, none)
        unit, _ = history.units.get(name, ("", ""))
        word = was.agreement(now, ZERO if unit == "1" else 0.0)
        if word != DIGITS:
            row = {"cell": kept.cell, "column": name, "kept": was.median, "here": now.median}
            others.append(row | {"kept smallest": was.low, "kept largest": was.high, "so": word})
    # The same bytes with other ends: one of the two was altered in the record.
    if same or same_bytes or any(row["so"] == DIFFERS for row in others):
        return DIFFERS, others
    return (RANGE if others else DIGITS), others


def write(path: Path, run: KeptRun) -> None:
    """Write the record of a run, with one line for the run and one for each history."""
    head = {name: value for name, value in asdict(run).items() if name != "cells"}
    place = {cell: i for i, cell in enumerate(run.cells)}
    head["items"] = {name: [place[cell] for cell in cells] for name, cells in run.items.items()}
    lines = [head, *(asdict(kept) for kept in run.cells.values())]
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic.replace(path) as draft:
        draft.write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
        )


def read(path: Path) -> KeptRun:
    """Read a record that `write` has written.

    Raises
    ------
    DataError
        If the file is missing or damaged.
    """
    try:
        head, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        kept = [
            Kept(**line | {"ends": {k: Ends(*v) for k, v in line["ends"].items()}})
            for line in lines
        ]
        head["items"] = {
            name: [kept[place].cell for place in places] for name, places in head["items"].items()
        }
        return KeptRun(**head, cells={one.cell: one for one in kept})
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise DataError(
            f"{path} is not a record ({error}): restore it from git, or run the paper and then "
            "python tools/kept_records.py"
        ) from error


def read_all(folder: Path, papers: Iterable[str]) -> dict[str, KeptRun]:
    """Return the record of each paper that has one, keyed by the paper's name."""
    return {
        paper: read(folder / f"{paper}.jsonl")
        for paper in papers
        if (folder / f"{paper}.jsonl").is_file()
    }
