"""Tables of one's own: CSV, NPZ, NPY, LIBSVM and, where pyarrow is installed, Parquet.

A table is one matrix of numbers with a name for every column, and columns that are kept apart:
whose each row is, or its label. Nothing is dropped or filled in silently. LIBSVM files and NPZ
files of `scipy.sparse.save_npz` give sparse matrices.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import os
import shlex
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from fedcore import sparse
from fedcore.datasets.formats import libsvm
from fedcore.errors import DataError, FedcoreError, InputError, nearest
from fedcore.words import counted

SEPARATORS = ",;\t"
MISSING = {"na", "n/a", "nan", "null", "none", "inf", "-inf", "infinity", "-infinity"}


@dataclass(frozen=True)
class Table:
    """A file's numbers.

    Attributes
    ----------
    path : str
    names : list of str
        Names of the columns of `x`; their numbers from 0, if the file has no names.
    x : ndarray or scipy.sparse.csr_array of shape (rows, columns), float64 or float32
    apart : dict of str to ndarray of shape (rows,)
        The columns that were asked for apart; of a CSV file as text.
    open_ended : bool
        Whether further columns hold zeros alone, as in a LIBSVM file.
    """

    path: str
    names: list[str]
    x: Any
    apart: dict[str, np.ndarray]
    open_ended: bool = False


def readable(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a path is that of a table."""
    return Path(path).suffix.lower() in READERS


def read(
    path: str | os.PathLike[str], *, apart: Collection[str] = (), without: Collection[str] = ()
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : path-like
        A CSV file (separated by commas, semicolons or tabs, with or without a line of names), an
        NPZ or NPY file with one matrix, an NPZ file of `scipy.sparse.save_npz`, a LIBSVM file (its
        labels are the column ``label``, its columns have their numbers from 1 as names), or a
        Parquet file. A first line of a CSV file that may be names or numbers is refused, such as
        one that counts its columns or holds years, see `may_be_names`; any other line of numbers
        is numbers.
    apart : collection of str
        Columns to keep apart from the matrix. In an NPZ file these are vectors beside the matrix.
    without : collection of str
        Columns to leave out.

    Raises
    ------
    DataError
        When the file cannot be read or is no table, or a cell is no finite number; the message
        names the cell.
    InputError
        When the ending is unknown, there is no such column, or Parquet's reader is not installed.
    """
    name = os.fspath(path)
    reader = READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise InputError(
            f"{name}: its ending is that of no table: save it as one of "
            f"{', '.join(sorted(READERS))}"
        )
    if not Path(path).is_file():
        raise DataError(f"there is no file {name}")
    try:
        table = reader(name, apart, without)
    except FedcoreError:  # some are ValueErrors, too
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no text in UTF-8 ({error.reason}): save it as UTF-8") from error
    except (OSError, ValueError, zipfile.BadZipFile, csv.Error, EOFError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    if 0 in table.x.shape:
        raise DataError(f"{name} has no numbers (shape {table.x.shape}): leave it out")
    return table


def aligned(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with their columns in the order of the first.

    Raises
    ------
    InputError
        When a table lacks a column of the first, or has one more; the message names both files.
        Also when a file comes twice, whose rows would count twice.
    """
    seen: set[str] = set()
    for table in tables:
        if (place := os.path.realpath(table.path)) in seen:
            raise InputError(f"{table.path} is given twice, and each file is one client: drop it")
        seen.add(place)
    widest = max(tables, key=lambda table: len(table.names))
    tables = [_widened(table, widest) if table.open_ended else table for table in tables]
    first, found = tables[0], []
    for table in tables:
        for one, other in ((first, table), (table, first)):
            there = set(other.names)
            lacking = [column for column in one.names if column not in there]
            if lacking:
                _require_names(one, other)
                raise InputError(
                    f"{other.path} has no column '{lacking[0]}', and {one.path} has: give the same "
                    f"columns to all, or leave it out ({_without(lacking[0])})"
                )
        places = {name: i for i, name in enumerate(table.names)}
        order = [places[column] for column in first.names]
        x = table.x if table.names == first.names else table.x[:, order]
        found.append(Table(table.path, first.names, x, table.apart))
    return found


def _require_names(one: Table, other: Table) -> None:
    """Refuse a table without names of columns beside one that has them."""
    bare = [table.names == [str(i) for i in range(len(table.names))] for table in (one, other)]
    if sum(bare) == 1:
        without, named = (one, other) if bare[0] else (other, one)
        raise InputError(
            f"{without.path} has no names of its columns, and {named.path} has ({named.names[0]}, "
            "…): give it the same ones, as the first line of a CSV file or as a vector `columns` "
            "in an NPZ file"
        )


def _widened(table: Table, widest: Table) -> Table:
    """Return an open-ended table with all columns of the widest one that end its own."""
    own = len(table.names)
    if widest.names[:own] != table.names:
        return table
    x = scipy.sparse.csr_array(table.x)
    x.resize(x.shape[0], len(widest.names))
    return dataclasses.replace(table, names=widest.names, x=x)


def _csv(path: str, apart: Collection[str], without: Collection[str]) -> Table:
    with open(path, encoding="utf-8-sig", newline="") as file:
        line = file.readline()
    separator = max(SEPARATORS, key=line.count)
    rows = _rows(path, separator)
    _, first = next(rows, (0, []))
    named = not all(map(_is_number, first))
    names = [cell.strip() for cell in first] if named else [str(i) for i in range(len(first))]
    if "" in names and "" not in {*apart, *without}:
        raise DataError(
            f"{path}, line 1: column {names.index('') + 1} has no name, such as the index that "
            "pandas writes: name it there, or leave it out (--without '')"
        )
    if not named:
        _require_numbers(path, [cell.strip() for cell in first])
    kept = _kept(path, names, apart, without)
    whole = len(kept) == len(names)
    if not first or (named and next(rows, None) is None):
        raise DataError(f"{path} has no numbers: leave it out")
    try:
        x = np.loadtxt(
            path, delimiter=separator, skiprows=int(named), usecols=None if whole else kept,
            quotechar='"', comments=None, ndmin=2, encoding="utf-8-sig",
        )  # fmt: skip
    except ValueError as error:
        _find_wrong_cell(path, separator, named, names, kept, error)
    if x.shape[1] != len(kept):  # every row has as many cells as the others, and not as names
        _find_wrong_cell(path, separator, named, names, kept, ValueError("wrong width"))
    if not np.isfinite(x).all():
        _find_wrong_cell(path, separator, named, names, kept, ValueError("not finite"))
    texts: dict[str, list[str]] = {name: [] for name in apart}
    if not whole:  # NumPy has looked at the kept cells only
        for number, row in itertools.islice(_rows(path, separator), int(named), None):
            _require_width(path, number, row, names)
            for name, cells in texts.items():
                cells.append(row[names.index(name)].strip())
    held = {name: np.array(cells) for name, cells in texts.items()}
    return Table(path, [names[i] for i in kept], x, held)


def _rows(path: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not empty, with the numbers of their lines."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        for row in reader:
            if row:
                yield reader.line_num, row


def _require_width(path: str, number: int, row: list[str], names: list[str]) -> None:
    if len(row) != len(names):
        raise DataError(
            f"{path}, line {number}: {counted(len(row), 'cell')}, and the first line has "
            f"{len(names)}: give every line as many"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_numbers(path: str, first: list[str]) -> None:
    """Refuse a first line of numbers that may be names."""
    if may_be_names(first):
        shown = first if len(first) < 5 else [*first[:3], "…"]
        raise DataError(
            f"{path}, line 1 ({', '.join(shown)}) may be names or numbers: give names a letter "
            f"(c{first[0]}), or write the first number with a point ({first[0]}.0)"
        )


def may_be_names(first: Sequence[str]) -> bool:
    """Whether a first line of numbers may be names: whole numbers with one step, such as years.

    Of two columns the step must be 1, as any two numbers have one. A single column is named 0 by
    pandas, and by nobody else: what begins with another number is numbers.

    Examples
    --------
    >>> lines = "0,1,2", "2019,2020", "2010,2005,2000", "0", "1", "3,1", "2019.0,2020,2021"
    >>> [may_be_names(line.split(",")) for line in lines]
    [True, True, True, True, False, False, False]
    """
    if not all(cell.isascii() and cell.isdigit() and cell == str(int(cell)) for cell in first):
        return False
    if len(first) < 2:
        return list(first) == ["0"]
    steps = {int(after) - int(before) for before, after in itertools.pairwise(first)}
    return steps == {1} or (len(first) > 2 and len(steps) == 1 and steps != {0})


def _find_wrong_cell(
    path: str, separator: str, named: bool, names: list[str], kept: list[int], error: ValueError
) -> NoReturn:
    """Raise an error that names the first cell that is no finite number."""
    for number, row in itertools.islice(_rows(path, separator), int(named), None):
        _require_width(path, number, row, names)
        for i in kept:
            if not _is_number(row[i]) or not np.isfinite(float(row[i])):
                raise DataError(
                    f"{path}, line {number}, column '{names[i]}': {_wrong(row[i], names[i])}"
                ) from error
    raise DataError(f"{path} cannot be read: {error}") from error


def _wrong(cell: str, name: str) -> str:
    """Return what is wrong with a cell, and what to do."""
    without = f"leave the column out ({_without(name)})"
    if not cell.strip():
        return f"the cell is empty: fill it in, or {without}"
    what = f"'{cell}' is no finite number"
    if not _is_number(cell) and _is_number(cell.replace(",", "")):
        return f"{what}: write decimals with a point, and thousands without a comma"
    if len(cell.split()) > 1 and all(map(_is_number, cell.split())):
        return f"{what}: separate columns by commas, semicolons or tabs"
    if any(map(str.isalpha, cell)) and cell.strip().lower() not in MISSING:
        whose = "name the column if it says whose a row is, or its label"
        return f"{what}: {without}, or {whose} (--by, --labels)"
    return f"{what}: fill it in, or {without}"


def _without(name: str) -> str:
    return f"--without {shlex.quote(name)}"


def _libsvm(path: str, apart: Collection[str], without: Collection[str]) -> Table:
    x, labels = libsvm.parse_sparse(Path(path))
    names = [str(i) for i in range(1, x.shape[1] + 1)]
    table = _of_arrays(path, names, x, {"label": labels}, apart, without)
    return dataclasses.replace(table, open_ended=True)


def _npz(path: str, apart: Collection[str], without: Collection[str]) -> Table:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"x": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: it is cut off or holds no arrays of numbers; write it anew by "
            "numpy.savez"
        ) from error
    if {"format", "shape", "data"} <= arrays.keys():  # as scipy.sparse.save_npz writes it
        x = sparse.checked(scipy.sparse.load_npz(path), path).matrix
        return _of_arrays(path, [str(i) for i in range(x.shape[1])], x, {}, apart, without)
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise DataError(
            f"{path} holds {found or 'nothing'}: save one matrix, a row a sample, and beside it "
            "vectors alone, such as labels"
        )
    x = arrays[matrices[0]]
    columns = arrays.get("columns", np.arange(x.shape[1]))
    if columns.shape != (x.shape[1],):
        raise DataError(f"{path}: 'columns' names {columns.size} of {x.shape[1]} columns")
    vectors = {k: v for k, v in arrays.items() if v.shape == (len(x),) and k != "columns"}
    return _of_arrays(path, [str(c) for c in columns], x, vectors, apart, without)


def _parquet(path: str, apart: Collection[str], without: Collection[str]) -> Table:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"{path}: Parquet is read by pyarrow, which is not installed: pip install pyarrow"
        ) from error
    table = pyarrow.parquet.read_table(path)
    arrays = {name: table[name].to_numpy() for name in table.column_names}
    matrix = [name for name in arrays if name not in {*apart, *without}]
    _kept(path, list(arrays), apart, without)
    for name in matrix:
        if arrays[name].dtype.kind not in "biuf":
            raise DataError(
                f"{path}, column '{name}' holds no numbers ({arrays[name].dtype}): leave it out "
                f"({_without(name)})"
            )
    x = np.column_stack([arrays[name] for name in matrix]) if matrix else np.empty((0, 0))
    vectors = {name: arrays[name] for name in apart}
    return _of_arrays(path, matrix, x, vectors, apart, ())


def _column(x: Any, number: int) -> np.ndarray:
    column = x[:, [number]]
    return (column.toarray() if scipy.sparse.issparse(column) else column).ravel()


def _of_arrays(
    path: str, names: list[str], x: Any, vectors: dict[str, np.ndarray],
    apart: Collection[str], without: Collection[str],
) -> Table:  # fmt: skip
    """Return the table of a matrix with named columns and of vectors beside it."""
    inside = [name for name in apart if name not in vectors]
    kept = _kept(path, [*names, *vectors], [*inside], without)
    kept = [i for i in kept if i < len(names)]
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: its matrix holds no numbers ({x.dtype})")
    held = {name: vectors.get(name) for name in apart}
    apart_of = {
        name: _column(x, names.index(name)) if vector is None else vector
        for name, vector in held.items()
    }
    values = x[:, kept] if len(kept) < len(names) else x
    values = values if values.dtype == np.float32 else values.astype(np.float64)
    if scipy.sparse.issparse(values):  # `parse_sparse` and `checked` have looked at the numbers
        return Table(path, [names[i] for i in kept], values, apart_of)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise DataError(
            f"{path}, row {row}, column '{names[kept[column]]}': {values[row, column]} is no "
            f"finite number: fill it in, or leave the column out ({_without(names[kept[column]])})"
        )
    return Table(path, [names[i] for i in kept], values, apart_of)


def _kept(
    path: str, names: list[str], apart: Collection[str], without: Collection[str]
) -> list[int]:
    """Return the numbers of the columns that make the matrix, once all names are known."""
    double = [name for name, times in Counter(names).items() if times > 1]
    if double:
        raise DataError(f"{path} has two columns '{min(double)}': rename one")
    for name in (*apart, *without):
        if name not in names:
            raise InputError(f"{path} has no column '{name}': {nearest(name, names)}")
    left = {*apart, *without}
    return [i for i, name in enumerate(names) if name not in left]


READERS: dict[str, Callable[[str, Collection[str], Collection[str]], Table]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".txt": _csv,
    ".npz": _npz,
    ".npy": _npz,
    ".libsvm": _libsvm,
    ".svm": _libsvm,
    ".parquet": _parquet,
}
