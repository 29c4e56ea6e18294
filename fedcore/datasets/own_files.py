"""Tables of one's own: CSV, Parquet, NPZ, NPY and LIBSVM, by one rule for all.

A table is one matrix of numbers with a name for every column, and columns that are kept apart:
whose each row is, or its label. `fedcore.problems.columns` says what is a number and what is
missing, for files as for data frames. Nothing is dropped or filled in silently: what is guessed
stands in `Table.guesses`, and an option says otherwise. CSV is read by pandas and Parquet by
pyarrow, both in the extra ``files``. LIBSVM files and NPZ files of `scipy.sparse.save_npz` give
sparse matrices.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fedcore import sparse
from fedcore.datasets import bounded
from fedcore.datasets.formats import libsvm
from fedcore.datasets.headers import EMPTY, is_named
from fedcore.errors import Advice, DataError, FedcoreError, InputError, TableError, nearest
from fedcore.problems.columns import counts_rows, missing, parsed
from fedcore.words import counted

SEPARATORS = "\t;,"
SAMPLE = 200  # lines that a guess looks at
SHOWN = 8  # columns that a sentence names
MANY = 1000  # names that are compared with a misspelt one
COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,500 may be as well one and a half


class Unfit(NamedTuple):
    """Why a column of a file is no feature: cells that are none, or the file has no such column.

    Attributes
    ----------
    file, column : str
    kind : {'text', 'infinite', 'missing', 'absent', 'unnamed'}
    what : str
        The same in words.
    cells : int
        How many cells.
    row : int
        The first of them, from 0.
    """

    file: str
    column: str
    kind: str
    what: str
    cells: int = 0
    row: int = 0


class Numbered(Sequence[str]):
    """Names of columns that have numbers alone; a name is made when it is looked at."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.asarray(numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at: Any) -> Any:
        found = self.numbers[at]
        return Numbered(found) if np.ndim(found) else str(found)

    def __contains__(self, name: object) -> bool:
        text = str(name)
        return text.isdecimal() and len(text) < 10 and bool((self.numbers == int(text)).any())

    def index(self, name: str, *_: Any) -> int:
        """Return the place of a name that is there."""
        return int((self.numbers == int(name)).argmax())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Numbered):
            return np.array_equal(self.numbers, other.numbers)
        return isinstance(other, Sequence) and list(self) == list(other)


@dataclass(frozen=True)
class Reading:
    """How tables are read.

    Attributes
    ----------
    apart : collection of str
        Columns to keep apart from the matrix. In an NPZ file these are vectors beside the matrix.
    columns : collection of str
        Features to take; all without it.
    without : collection of str
        Columns to leave out of all files that have them.
    missing : {'refuse', 'drop'}
        Whether a row with a missing value is refused, or left out.
    header : bool, optional
        Whether the first line of a CSV file has the names; guessed without it.
    delimiter : str, optional
        What separates the columns of a CSV file; guessed without it.
    decimal : {'.', ','}, optional
        Whether a comma in a number of a CSV file is its decimal point; guessed without it.
    zero_based : bool
        Whether the columns of LIBSVM files are numbered from 0.
    """

    apart: Sequence[str] = ()
    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    missing: str = "refuse"
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    zero_based: bool = False

    def __post_init__(self) -> None:
        for name in ("apart", "columns", "without"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
        if self.missing not in ("refuse", "drop"):
            raise InputError(f"missing must be refuse or drop, got {self.missing!r}")
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.delimiter is not None and not re.fullmatch(r'[^"\r\n]', self.delimiter):
            raise InputError(f"delimiter must be one character, got {self.delimiter!r}")

    def keeps(self, name: str) -> bool:
        """Whether a column is wanted as a feature."""
        wanted = self.columns is None or name in self.columns
        return wanted and name not in self.without and name not in self.apart


@dataclass(frozen=True)
class Table:
    """A file's numbers.

    Attributes
    ----------
    path : str
    names : sequence of str
        Names of the columns of `x`; their numbers from 0, if the file has no names.
    x : ndarray or scipy.sparse.csr_array of shape (rows, columns), float64 or float32
    apart : dict of str to ndarray of shape (rows,)
        The columns that were asked for apart; of a CSV file as text.
    open_ended : bool
        Whether further columns hold zeros alone, as in a LIBSVM file.
    guesses : tuple of Advice
        What was taken for granted, and the option that says otherwise.
    """

    path: str
    names: Sequence[str]
    x: Any
    apart: dict[str, np.ndarray] = field(default_factory=dict)
    open_ended: bool = False
    guesses: tuple[Advice, ...] = ()
    _every: Sequence[str] = ()  # all columns of the file, but those of `names`
    _unfit: Sequence[Unfit] = ()
    _counting: Collection[str] = ()  # columns that count rows

    def _has(self, name: str, feature: bool) -> bool:
        """Whether there is such a column, which may be a feature."""
        others = [one.column for one in self._unfit] if feature else self._every
        return name in self.names or name in self.apart or name in others

    def _columns(self) -> list[str]:
        """Names of all columns that are wanted."""
        return [*dict.fromkeys([*self.names, *(one.column for one in self._unfit)])]

    def _take(self, kept: Any, **changed: Any) -> Table:
        names: Any = self.names
        names = names[kept] if isinstance(names, Numbered) else [names[i] for i in kept]
        return replace(self, names=names, x=self.x[:, kept], **changed)


def readable(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a path is that of a table."""
    return Path(path).suffix.lower() in READERS


def read(path: str | os.PathLike[str], **how: Any) -> Table:
    """Read a table.

    Parameters
    ----------
    path : path-like
        A CSV file (separated by commas, semicolons or tabs, with or without a line of names), a
        Parquet file, an NPZ or NPY file with one matrix, an NPZ file of `scipy.sparse.save_npz`, or
        a LIBSVM file (its labels are the column ``label``, its queries ``qid``, its columns have
        their numbers as names).
    how : parameters of `Reading`

    Raises
    ------
    TableError
        When columns are no features; it names all of them.
    DataError
        When the file cannot be read or is no table.
    InputError
        When the ending is unknown, there is no such column, or what reads it is not installed.
    """
    return together([path], **how)[0]


def together(paths: Sequence[str | os.PathLike[str]], **how: Any) -> list[Table]:
    """Read tables with their columns in the order of the first; parameters and errors of `read`.

    Raises
    ------
    TableError
        Also when only some files have a column.
    """
    reading = Reading(**how)
    return aligned([_read(os.fspath(path), reading) for path in paths], reading)


def _read(path: str, how: Reading) -> Table:
    reader = READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: its ending is that of no table: save it as one of "
            f"{', '.join(sorted(READERS))}"
        )
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}")
    try:
        table = reader(path, how)
    except FedcoreError:  # some are ValueErrors, too
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8 ({error.reason}): save it as UTF-8") from error
    except (OSError, ValueError, zipfile.BadZipFile, csv.Error, EOFError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return table


def aligned(tables: Sequence[Table], how: Reading | None = None) -> list[Table]:
    """Return the tables with their columns in the order of the first.

    Raises
    ------
    TableError
        When columns are no features, or only some tables have them; the message names all.
    InputError
        When a file comes twice, whose rows would count twice.
    """
    how, seen = how or Reading(), set()
    for table in tables:
        if (place := os.path.realpath(table.path)) in seen:
            raise InputError(f"{table.path} is given twice, and each file is one client: drop it")
        seen.add(place)
    _require_asked(tables, how)
    for table in tables:
        if 0 in table.x.shape and not table._unfit:
            raise TableError(f"{table.path} has no numbers: leave it out", file=table.path)
    widest = max(tables, key=lambda table: len(table.names))
    tables = [_widened(table, widest) if table.open_ended else table for table in tables]
    counting = {name for table in tables for name in table._counting}
    tables = [_without_counts(table, counting) if counting else table for table in tables]
    unfit = [one for table in tables for one in table._unfit]
    unfit = [one for one in unfit if (one.kind, how.missing) != ("missing", "drop")]
    unfit += _absent(tables)
    if unfit:
        raise _refusal(unfit, tables[0], how)
    names: Any = tables[0].names
    if how.columns is not None:
        names = [*dict.fromkeys(filter(how.keeps, how.columns))]
    places = [
        None if table.names == names else {name: i for i, name in enumerate(table.names)}
        for table in tables
    ]
    tables = [
        table if at is None else table._take([at[name] for name in names])
        for at, table in zip(places, tables, strict=True)
    ]
    return [_dropped(table, how) for table in tables] if how.missing == "drop" else tables


def _require_asked(tables: Sequence[Table], how: Reading) -> None:
    """Require that every file has the columns to take, and some file those to leave out."""
    for name in (*how.apart, *(how.columns or ()), *how.without):
        features = name in (how.columns or ())
        lack = [t for t in tables if not t._has(name, features)]
        if lack and (len(lack) == len(tables) or name not in how.without):
            known = [*lack[0].names[:MANY], *lack[0]._every]
            raise TableError(
                f"{lack[0].path} has no column '{name}': {nearest(name, known)}",
                file=lack[0].path, column=name,
            )  # fmt: skip


def _widened(table: Table, widest: Table) -> Table:
    """Return an open-ended table with all columns of the widest one that end its own."""
    own, names = len(table.names), widest.names
    if not isinstance(names, Numbered) or names[:own] != table.names:
        return table
    x = scipy.sparse.csr_array(table.x)
    x.resize(x.shape[0], len(names))
    return replace(table, names=names, x=x)


def _without_counts(table: Table, counting: set[str]) -> Table:
    """Leave out columns that count rows, in this file or another."""
    every = table._columns()
    found = [name for name in every if name in counting]
    what = f"{', '.join(map(repr, found))} is no measurement and is left out"
    guess = [_guess(table.path, what, columns=every)] * bool(found)
    kept = [i for i, name in enumerate(table.names) if name not in counting]
    return table._take(
        kept, guesses=(*table.guesses, *guess),
        _unfit=[one for one in table._unfit if one.column not in counting],
    )  # fmt: skip


def _absent(tables: Sequence[Table]) -> list[Unfit]:
    """Return the columns that only some of the tables have."""
    if all(t.names == tables[0].names and not t._unfit for t in tables):
        return []
    bare = [isinstance(t.names, Numbered) for t in tables]
    if any(bare) and not all(bare):
        path, other = tables[bare.index(True)].path, tables[bare.index(False)]
        raise TableError(
            f"{path} has no names of its columns, and {other.path} has ({other._columns()[0]}, …): "
            "give it the same ones, as the first line of a CSV file or as a vector `columns` in an "
            "NPZ file", file=path,
        )  # fmt: skip
    owned = [dict.fromkeys(table._columns()) for table in tables]
    found = []
    for table, own in zip(tables, owned, strict=True):
        alike = {name.casefold(): f", which has '{name}'" for name in own}
        for name in dict.fromkeys(itertools.chain(*owned)):
            if name not in own:
                what = f"not in {table.path}{alike.get(name.casefold(), '')}"
                found.append(Unfit(table.path, name, "absent", what))
    return found


def _reasons(ones: Sequence[Unfit]) -> str:
    """Return what is wrong with a column: all that is missing, and else the first of each kind."""
    kinds = [one.kind for one in ones]
    shown = [one.what for i, one in enumerate(ones)
             if one.kind in ("missing", "absent") or one.kind not in kinds[:i]]  # fmt: skip
    more = len(ones) - len(shown)
    return ", ".join([*shown, *[f"and so in {counted(more, 'more file')}"] * bool(more)])


def _refusal(unfit: Sequence[Unfit], table: Table, how: Reading) -> TableError:
    """Return the error that names all columns that are no features, and how to go on."""
    columns: dict[str, list[Unfit]] = {}
    for one in unfit:
        columns.setdefault(one.column, []).append(one)
    told = [f"'{name}' ({_reasons(ones)})" for name, ones in columns.items()]
    more = [f"and {len(told) - SHOWN} more"] * (len(told) > SHOWN)
    lasting = [n for n, ones in columns.items() if any(one.kind != "missing" for one in ones)]
    them = "it" if len(columns) == 1 else "them"

    def leaving(names: Collection[str]) -> dict[str, Any]:
        kept = [name for name in table.names if name not in names]
        if how.columns is None and 0 < len(kept) < len(names):
            return {"columns": kept}
        return {"without": [*how.without, *names]} if names or how.without else {}

    ways = [Advice(f"leave {them} out", leaving(columns))]
    if len(lasting) < len(columns):
        rows = leaving(lasting) | {"missing": "drop"}
        ways.append(Advice("leave out rows with missing values", rows))
    return TableError(
        f"{counted(len(columns), 'column')} cannot be features: {', '.join(told[:SHOWN] + more)}",
        file=unfit[0].file, row=unfit[0].row, column=unfit[0].column, advice=ways, parts=unfit,
    )  # fmt: skip


def _dropped(table: Table, how: Reading) -> Table:
    """Return a table without the rows that lack a value."""
    lacking = np.zeros(table.x.shape[0], bool)
    if not scipy.sparse.issparse(table.x):
        lacking = np.isnan(table.x).any(axis=1)
    for values in table.apart.values():
        lacking = lacking | missing(values)
    if lacking.all():
        most = [] if scipy.sparse.issparse(table.x) else np.isnan(table.x).any(axis=0)
        names = [*how.without, *(n for n, one in zip(table.names, most, strict=False) if one)]
        ways = [Advice("leave out what lacks them", {"without": names})] * bool(any(most))
        raise TableError(f"{table.path}: each row lacks a value", file=table.path, advice=ways)
    told = f"{table.path}: {lacking.sum()} of {len(lacking)} rows lack a value and are left out"
    return replace(
        table, x=table.x[~lacking], apart={k: v[~lacking] for k, v in table.apart.items()},
        guesses=(*table.guesses, *[Advice(told)] * bool(lacking.any())),
    )  # fmt: skip


def _guess(path: str, what: str, **option: Any) -> Advice:
    return Advice(f"{path}: {what}, unless told otherwise", option)


def _extra(module: str, path: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{path}: CSV is read by pandas and Parquet by pyarrow; {module} is not installed",
            advice=[Advice("", call="pip install pandas pyarrow")],
        ) from error


def _csv(path: str, how: Reading) -> Table:
    pandas = _extra("pandas", path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = list(itertools.islice(file, SAMPLE))
    told = re.fullmatch(r'"?sep=(.)"?\s*', lines[0]) if lines else None  # as Excel writes it
    lines, skip, guesses = lines[bool(told) :], int(bool(told)), []
    sign = how.delimiter or (told[1] if told else max(SEPARATORS, key=lambda s: _fit(lines, s)))
    rows = _cells(lines, sign)
    if not rows:
        raise TableError(f"{path} has no numbers: leave it out", file=path)
    width = len(rows[0])
    if not (how.delimiter or told or sign == ",") and width > 1:
        guesses.append(_guess(path, f"{sign!r} separates the columns", delimiter=","))
    named = is_named(rows) if how.header is None else how.header
    if named is None:
        shown = rows[0] if width < 5 else [*rows[0][:3], "…"]
        ways = [Advice("it has names", {"header": True}), Advice("none", {"header": False})]
        says = f"{path}, line 1 ({', '.join(shown)}) may be names or numbers"
        raise TableError(says, file=path, row=0, advice=ways)
    if not named and how.header is None:
        guesses.append(_guess(path, "line 1 has numbers and no names", header=True))
    names: Any = Numbered(range(width))
    if named:
        names = [cell.strip() for cell in rows[0]]
        names = [n or f"Unnamed: {i}" * ("" in names[:i]) for i, n in enumerate(names)]
        _require_distinct(path, names)
    apart = {i for i, name in enumerate(names) if name in how.apart}
    numbers = _lines(path, sign, skip, width)
    frame = pandas.read_csv(
        path, sep=sign, header=0 if named else None, names=range(width), low_memory=False,
        index_col=False, encoding="utf-8-sig", skiprows=skip, keep_default_na=False,
        na_values={i: [""] if i in apart else EMPTY for i in range(width)},
        skipinitialspace=True, dtype=dict.fromkeys(apart, str),
    )  # fmt: skip
    columns = {i: frame[i] for i, name in enumerate(names) if i in apart or how.keeps(name)}
    texts = {i: c for i, c in columns.items() if i not in apart and c.dtype.kind not in "biuf"}
    comma = _decimal(path, texts.values(), how, guesses)
    for i, text in texts.items():
        plain = text.map(lambda cell: _plain(cell, comma))
        known = pandas.to_numeric(plain, errors="coerce")
        columns[i] = plain.astype(object).where(known.isna(), known)
    for i in apart:
        columns[i] = columns[i].fillna("").str.strip()

    def where(row: int) -> str:
        return f"line {numbers[row + named]}"

    return _of_columns(path, names, columns, how, guesses=guesses, where=where)


def _cells(lines: Iterable[str], sign: str) -> list[list[str]]:
    return [row for row in csv.reader(lines, delimiter=sign) if any(map(str.strip, row))]


def _fit(lines: Sequence[str], sign: str) -> tuple[bool, int]:
    """Return whether a separator gives every line as many cells, two or more, and how many."""
    widths = [len(row) for row in _cells(lines, sign)] or [1]
    return len(set(widths)) == 1 and widths[0] > 1, widths[0]


def _lines(path: str, sign: str, skip: int, width: int) -> list[int]:
    """Return the numbers of the lines that end a row; refuse a row of another width."""
    numbers = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(itertools.islice(file, skip, None), delimiter=sign)
        for row in reader:
            if len(row) < 2 and not "".join(row).strip():
                continue
            numbers.append(reader.line_num + skip)
            if len(row) != width:
                raise TableError(
                    f"{path}, line {numbers[-1]}: {counted(len(row), 'cell')}, and the first line "
                    f"has {width}: give every line as many", file=path, row=numbers[-1],
                )  # fmt: skip
    return numbers


def _plain(cell: Any, comma: bool) -> Any:
    """Return a text as pandas reads numbers."""
    if not isinstance(cell, str):
        return cell
    found = (cell.replace(",", ".") if comma else cell).strip()
    return None if found in EMPTY else found


def _decimal(path: str, texts: Iterable[Any], how: Reading, guesses: list[Advice]) -> bool:
    """Return whether commas in cells are decimal points."""
    cells = [c for t in texts for c in t.tolist() if isinstance(c, str) and COMMA.fullmatch(c)]
    if not cells or how.decimal is not None:
        return how.decimal == ","
    if all(map(THOUSANDS.fullmatch, cells)):
        says = f"{path}: the comma in '{cells[0]}' may be a decimal point or none"
        ways = [Advice("it is one", {"decimal": ","}), Advice("none", {"decimal": "."})]
        raise TableError(says, file=path, advice=ways)
    guesses.append(_guess(path, "commas are decimal points", decimal="."))
    return True


def _require_distinct(path: str, names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            says = f"{path} has two columns '{name}': rename one"
            raise TableError(says, file=path, column=name)


def _parquet(path: str, how: Reading) -> Table:
    file = _extra("pyarrow.parquet", path).ParquetFile(path)
    bounded.require_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
    table = file.read()
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    _require_distinct(path, table.column_names)
    return _of_columns(path, table.column_names, dict(enumerate(table.columns)), how, index=index)


def _of_columns(
    path: str, names: Sequence[str], columns: Mapping[int, Any], how: Reading, *,
    index: Sequence[Any] = (), guesses: Sequence[Advice] = (),
    where: Callable[[int], str] = "row {}".format,
) -> Table:  # fmt: skip
    """Return the table of columns by their places; `index` are those of pandas' index."""
    apart: dict[str, np.ndarray] = {}
    found, unfit = {}, []
    counting: set[str] = set()
    for i, column in columns.items():
        if (name := names[i]) in how.apart:
            apart[name] = column.to_numpy() if hasattr(column, "to_numpy") else column
        if not how.keeps(name):
            continue
        values, wrong = parsed(column)
        numbers = None if wrong.any() else values
        if name in index or counts_rows(name, numbers, i == len(counting)):
            counting.add(name)
        elif not name:
            unfit.append(Unfit(path, name, "unnamed", f"without a name in {path}, column {i + 1}"))
        bads = {"text": wrong, "infinite": np.isinf(values), "missing": np.isnan(values) & ~wrong}
        for kind, bad in bads.items():
            if bad.any():
                row = int(bad.argmax())
                cell = (
                    "missing" if kind == "missing" else f"no finite number, '{column[row]!s:.20}'"
                )
                what = f"{bad.sum()} of {len(bad)} {cell} in {path}, {where(row)}"
                unfit.append(Unfit(path, name, kind, what, int(bad.sum()), row))
        if numbers is not None:
            found[i] = numbers
    if how.columns is not None or not {names[i] for i in found} - counting:
        counting = set()
    x = np.column_stack([*found.values()]) if found else np.empty((0, 0))
    x = x if x.dtype == np.float32 else x.astype(np.float64, copy=False)
    own: Any = names[[*found]] if isinstance(names, Numbered) else [names[i] for i in found]
    return Table(
        path, own, x, apart, guesses=tuple(guesses), _every=names, _unfit=unfit, _counting=counting
    )


def _of_matrix(
    path: str, names: Any, x: Any, vectors: Mapping[str, np.ndarray], how: Reading,
    open_ended: bool = False,
) -> Table:  # fmt: skip
    """Return the table of a matrix and of vectors beside it."""
    every = [*names, *vectors] if not isinstance(names, Numbered) else names
    if not scipy.sparse.issparse(x) and (every is not names or not np.isfinite(x).all()):
        every = [*names, *vectors]
        beside = {every.index(name): v for name, v in vectors.items() if name in how.apart}
        return _of_columns(path, every, {**dict(enumerate(x.T)), **beside}, how)
    kept = np.full(len(names), how.columns is None)
    asked = [n for n in (*(how.columns or ()), *how.apart, *how.without) if n in names]
    for name in asked:
        kept[names.index(name)] = how.keeps(name)
    apart = {name: vectors[name] for name in how.apart if name in vectors}
    for name in {*how.apart} & {*asked}:
        column = x[:, [names.index(name)]]
        apart[name] = (column.toarray() if scipy.sparse.issparse(column) else column).ravel()
    x = x if x.dtype == np.float32 else x.astype(np.float64)
    table = Table(path, names, x, apart, open_ended, _every=[*vectors, *asked])
    return table if kept.all() else table._take(np.flatnonzero(kept))


def _npz(path: str, how: Reading) -> Table:
    try:
        heads = bounded.heads(Path(path))
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: it is cut off or holds no arrays of numbers; write it anew by "
            "numpy.savez"
        ) from error
    sparse_parts = {"format", "shape", "data"} <= heads.keys()  # as scipy.sparse.save_npz writes it
    matrices = [name for name, (shape, _) in heads.items() if len(shape) == 2]
    if not sparse_parts and len(matrices) != 1:
        found = ", ".join(f"{name} {shape}" for name, (shape, _) in heads.items())
        raise DataError(
            f"{path} holds {found or 'nothing'}: save one matrix, a row a sample, and beside it "
            "vectors alone, such as labels"
        )

    def array(name: str, numbers: bool = False) -> np.ndarray:
        kind = heads[name][1]
        if kind.hasobject or (numbers and kind.kind not in "biuf"):
            to = "real" if kind.kind == "c" else f"astype({'float' if numbers else 'str'})"
            call = f"save {name}.{to}"
            says, advice = f"{path}: '{name}' holds {kind.name}", [Advice("", call=call)]
            raise TableError(says, file=path, column=name, advice=advice)
        loaded = np.load(path, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else loaded[name]

    if sparse_parts:
        shape = array("shape")
        if shape.dtype.kind not in "iu" or shape.shape != (2,) or shape.min() < 0:
            raise DataError(f"{path} is no sparse matrix: its shape is {shape.tolist()}")
        bounded.require_shape(path, *shape.tolist())
        x = sparse.checked(scipy.sparse.load_npz(path), path).matrix
        return _of_matrix(path, Numbered(np.arange(x.shape[1])), x, {}, how)
    x, (rows, width) = array(matrices[0], numbers=True), heads[matrices[0]][0]
    vectors = [k for k, (shape, _) in heads.items() if shape == (rows,) and k != "columns"]
    names: Any = Numbered(np.arange(width))
    if "columns" in heads:
        given = array("columns")
        if given.shape != (width,):
            raise DataError(f"{path}: 'columns' names {given.size} of {width} columns")
        names = [n.decode() if isinstance(n, bytes) else str(n) for n in given.tolist()]
        _require_distinct(path, names)
    held = {name: array(name) if name in how.apart else np.empty(0) for name in vectors}
    return _of_matrix(path, names, x, held, how)


def _libsvm(path: str, how: Reading) -> Table:
    x, vectors = libsvm.parse_sparse(Path(path), zero_based=how.zero_based)
    numbers = np.arange(x.shape[1]) + (not how.zero_based)
    return _of_matrix(path, Numbered(numbers), x, vectors, how, open_ended=True)


READERS: dict[str, Callable[[str, Reading], Table]] = {
    ".csv": _csv, ".tsv": _csv, ".txt": _csv, ".npz": _npz, ".npy": _npz,
    ".libsvm": _libsvm, ".svm": _libsvm, ".parquet": _parquet,
}  # fmt: skip
