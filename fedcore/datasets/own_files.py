"""Tables of one's own: CSV, Parquet, NPZ, NPY and LIBSVM, by one rule for all.

A table is one matrix of numbers with a name for every column, and columns that are kept apart:
whose each row is, or its label. `fedcore.problems.columns` says what is a number and what is
missing, for files as for data frames. Nothing is dropped or filled in silently: what is guessed
stands in `Table.guesses`, and an option says otherwise. CSV and Parquet are read by pyarrow, in the
extra ``files``. LIBSVM files and NPZ files of `scipy.sparse.save_npz` give sparse matrices.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from fedcore import sparse
from fedcore.datasets import bounded
from fedcore.datasets.formats import libsvm
from fedcore.datasets.headers import EMPTY, is_named
from fedcore.errors import Advice, DataError, FedcoreError, InputError, TableError, nearest
from fedcore.problems.columns import UNNAMED, Unfit, as_array, counts_rows, examined, missing
from fedcore.words import counted

SEPARATORS = "\t;,"
SAMPLE = 200  # rows that a guess looks at
SHOWN = 8  # columns that a sentence names
MANY = 1000  # names that are compared with a misspelt one
PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
EMPTY_TABLE = " has no numbers: leave it out"
COMMA = r"^[+-]?\d*,\d+([eE][+-]?\d+)?$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,500 may be as well one and a half


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
        return str(name).isdecimal() and bool((self.numbers == int(str(name)[:18])).any())

    def index(self, name: str, *_: Any) -> int:
        """Return the place of a name that is there."""
        return int((self.numbers == int(name)).argmax())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbered) and np.array_equal(self.numbers, other.numbers)


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
    missing : {'refuse', 'drop'}, optional
        Whether a row with a missing value is refused, or left out; refused without it.
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
    missing: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    zero_based: bool = False

    def __post_init__(self) -> None:
        for name in ("apart", "columns", "without"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
        for name, known, says in (
            ("missing", "refuse|drop", "refuse or drop"),
            ("decimal", "[.,]", "a point or a comma"),
            ("delimiter", r"\\t|[\t -!#-~]", "one character of ASCII, and no quotation mark"),
        ):
            one = getattr(self, name)
            if one is not None and not re.fullmatch(known, one):
                raise InputError(f"{name} must be {says}, got {one!r}")

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
    guesses: Sequence[Advice] = ()
    _every: Sequence[Sequence[str]] = ()  # names of all columns of the file, and of vectors
    _unfit: Sequence[Unfit] = ()
    _counting: Collection[str] = ()  # columns that count rows

    def _take(self, at: Any, **changed: Any) -> Table:
        return replace(self, names=_picked(self.names, at), x=self.x[:, at], **changed)


def _picked(names: Any, at: Any) -> Any:
    return names[at] if isinstance(names, Numbered) else [names[i] for i in at]


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
    if not readable(path):
        known = ", ".join(sorted(READERS))
        raise InputError(f"{path}: its ending is that of no table: save it as one of {known}")
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}: check its name")
    try:
        return READERS[Path(path).suffix.lower()](path, how)
    except FedcoreError:  # some are ValueErrors, too
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8 ({error.reason}): save it as UTF-8") from error
    except (OSError, ValueError, zipfile.BadZipFile, csv.Error, EOFError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def aligned(tables: Sequence[Table], how: Reading | None = None) -> list[Table]:
    """Return the tables with their columns in the order of the first.

    Raises
    ------
    TableError
        When columns are no features, or only some tables have them; the message names all.
    InputError
        When a file comes twice, whose rows would count twice.
    """
    how = how or Reading()
    path, times = Counter(os.path.realpath(table.path) for table in tables).most_common(1)[0]
    _require_asked(tables, how)
    for table in tables:
        if times > 1 and path == os.path.realpath(table.path):
            raise InputError(f"{table.path} is given twice, and each file is one client: drop it")
        if 0 in table.x.shape:
            raise _fault(table.path, EMPTY_TABLE)
    widest = max((table.names for table in tables), key=len)
    counting = {name for table in tables for name in table._counting}
    tables = [_widened(table, widest) if table.open_ended else table for table in tables]
    tables = [_without_counts(table, counting) for table in tables]
    unfit = [one for table in tables for one in table._unfit
             if (one.kind, how.missing) != ("missing", "drop")]  # fmt: skip
    unfit += _absent(tables)
    if unfit:
        raise _refusal(unfit, tables[0].names, how)
    names = tables[0].names
    if how.columns is not None:
        names = [*dict.fromkeys(filter(how.keeps, how.columns))]
    for i, table in enumerate(tables):
        if table.names != names:
            at = {name: i for i, name in enumerate(table.names)}
            tables[i] = table._take([at[name] for name in names])
    return [_dropped(table) for table in tables] if how.missing == "drop" else tables


def _require_asked(tables: Sequence[Table], how: Reading) -> None:
    """Require that every file has the columns to take, and some file those to leave out."""
    for name in (*how.apart, *(how.columns or ()), *how.without):
        features = name in (how.columns or ())
        lack = [t for t in tables if not any(name in n for n in t._every[: 2 - features])]
        if lack and (len(lack) == len(tables) or name not in how.without):
            known = itertools.chain(*(names[:MANY] for names in lack[0]._every))
            says = f" has no column '{name}': {nearest(name, known)}"
            raise _fault(lack[0].path, says, column=name)


def _widened(table: Table, names: Any) -> Table:
    """Return an open-ended table with more columns, if they follow its own."""
    if not isinstance(names, Numbered) or names[: len(table.names)] != table.names:
        return table
    x = scipy.sparse.csr_array(table.x)
    x.resize(x.shape[0], len(names))
    return replace(table, names=names, x=x)


def _without_counts(table: Table, counting: Collection[str]) -> Table:
    """Leave out columns that count rows, in this file or another."""
    found = [name for name in counting if name in table.names]
    if not found:
        return table
    what = f"{', '.join(map(repr, found))} is no measurement and is left out"
    return table._take(
        [i for i, name in enumerate(table.names) if name not in counting],
        guesses=(*table.guesses, _guess(table.path, what, columns=[*table.names])),
        _unfit=[one for one in table._unfit if one.column not in counting],
    )  # fmt: skip


def _absent(tables: Sequence[Table]) -> list[Unfit]:
    """Return the columns that only some of the tables have."""
    if all(table.names == tables[0].names for table in tables):
        return []
    kinds = {isinstance(table.names, Numbered): table for table in tables[::-1]}
    if len(kinds) > 1:
        raise _fault(
            kinds[True].path, f" has no names of its columns, and {kinds[False].path} has "
            f"({kinds[False].names[0]}, …): give it the same ones, as the first line of a CSV file "
            "or as a vector `columns` in an NPZ file",
        )  # fmt: skip
    every, found = dict.fromkeys(itertools.chain(*(table.names for table in tables))), []
    for table in tables:
        own = {*table.names}
        alike = {name.casefold(): f", which has '{name}'" for name in own}
        for name in every:
            if name not in own:
                what = f"not in {table.path}{alike.get(name.casefold(), '')}"
                found.append(Unfit(table.path, name, "absent", what))
    return found


def _refusal(unfit: Sequence[Unfit], names: Sequence[str], how: Reading) -> TableError:
    """Return the error that names all columns that are no features, and how to go on."""
    columns: dict[str, dict[Any, str]] = {}  # what is wrong: all that is missing, or one of a kind
    for one in unfit:
        each = one.file if one.kind in ("missing", "absent") else ""
        columns.setdefault(one.column, {}).setdefault((one.kind, each), one.what)
    told = [f"'{name}' ({', '.join(what.values())})" for name, what in columns.items()]
    more = [f"and {len(told) - SHOWN} more"] * (len(told) > SHOWN)
    lasting = [*dict.fromkeys(one.column for one in unfit if one.kind != "missing")]

    def leaving(left: Collection[str]) -> dict[str, Any]:
        kept = [name for name in names if name not in left]
        if how.columns is None and 0 < len(kept) < len(left):
            return {"columns": kept}
        return {"without": [*how.without, *left]} if left or how.without else {}

    them = "it" if len(columns) == 1 else "them"
    ways = [Advice(f"leave {them} out", leaving(columns))]
    if len(lasting) < len(columns):
        rows = leaving(lasting) | {"missing": "drop"}
        ways.append(Advice("leave out rows with missing values", rows))
    return TableError(
        f"{counted(len(columns), 'column')} cannot be features: {', '.join(told[:SHOWN] + more)}",
        file=unfit[0].file, row=unfit[0].row, column=unfit[0].column, advice=ways, parts=unfit,
    )  # fmt: skip


def _dropped(table: Table) -> Table:
    """Return a table without the rows that lack a value."""
    lacks = np.zeros((table.x.shape[0], 1), bool)
    if not scipy.sparse.issparse(table.x):
        lacks = np.isnan(table.x)
    lacking = np.logical_or.reduce([lacks.any(axis=1), *map(missing, table.apart.values())])
    if lacking.all():
        most = ", ".join(_picked(table.names, lacks.mean(axis=0).argsort()[:-4:-1]))
        raise _fault(table.path, f": each row lacks a value, most in {most}: leave columns out")
    told = f"{table.path}: {lacking.sum()} of {len(lacking)} rows lack a value and are left out"
    return replace(
        table, x=table.x[~lacking], apart={k: v[~lacking] for k, v in table.apart.items()},
        guesses=(*table.guesses, *[Advice(told)] * bool(lacking.any())),
    )  # fmt: skip


def _guess(path: str, what: str, **option: Any) -> Advice:
    return Advice(f"{path}: {what}, unless told otherwise", option)


def _fault(path: str, says: str, option: str = "", **more: Any) -> TableError:
    """Return an error of a file; where an option says more, with what its values say."""
    ways = [Advice(words, {option: value}) for words, value in more.items() if option]
    return TableError(f"{path}{says}", file=path, advice=ways, **({} if option else more))


def _arrow(path: str) -> Any:
    try:
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"{path} is read by pyarrow, which is not installed",
            advice=[Advice("", call="pip install pyarrow")],
        ) from error
    return pyarrow


def _csv(path: str, how: Reading) -> Table:
    arrow, guesses = _arrow(path), []
    with open(path, encoding="utf-8-sig", newline="") as file:
        told = re.fullmatch(r'"?sep=(.)"?\s*', file.readline())  # as Excel writes it
    given = how.delimiter and how.delimiter.replace("\\t", "\t")  # as a shell gives it
    skip, signs = int(bool(told)), given or (told[1] if told else SEPARATORS)

    def rows(sign: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not blank, with the numbers of the lines that end them."""
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(itertools.islice(file, skip, None), delimiter=sign)
            for row in reader:
                if len(row) > 1 or row == [""] or "".join(row).strip():
                    yield reader.line_num + skip, row

    def fit(sign: str) -> tuple[bool, int]:
        widths = [len(row) for row in samples[sign]]
        return len({*widths}) == 1 < widths[0], widths[0]

    samples = {sign: [row for _, row in itertools.islice(rows(sign), SAMPLE)] for sign in signs}
    if not all(samples.values()):
        raise _fault(path, EMPTY_TABLE)
    sign = max(signs, key=fit)
    first, width = samples[sign][0], len(samples[sign][0])
    if len(signs) > 1 and sign != "," and width > 1:
        guesses.append(_guess(path, f"{sign!r} separates the columns", delimiter=","))
    if (named := is_named(samples[sign]) if how.header is None else how.header) is None:
        says = f", line 1 ({', '.join(first[:3])}{', …' * (width > 3)}) may be names or numbers"
        raise _fault(path, says, "header", **{"it has names": True, "none": False})
    if not named and how.header is None:
        guesses.append(_guess(path, "line 1 has numbers and no names", header=True))
    places = [*map(str, range(width))]
    try:
        table = arrow.csv.read_csv(
            path,
            arrow.csv.ReadOptions(column_names=places, skip_rows=skip),
            arrow.csv.ParseOptions(
                delimiter=sign, newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            arrow.csv.ConvertOptions(column_types=dict.fromkeys(places, arrow.string())),
        )  # fmt: skip
    except arrow.ArrowInvalid:
        for line, row in rows(sign):
            if len(row) != width:
                says = f", line {line}: {counted(len(row), 'cell')}, and the first line has {width}"
                raise _fault(path, f"{says}: give every line as many", row=line) from None
        raise
    names: Any = [cell.strip() or f"Unnamed: {i}" for i, cell in enumerate(first)]
    names = names if named else Numbered(range(width))
    return _table(
        path, names, _numbers(path, names, table.slice(named).columns, how, guesses), how,
        place=lambda row: f"line {[*itertools.islice(rows(sign), row + named + 1)][-1][0]}",
        guesses=guesses,
    )  # fmt: skip


def _numbers(
    path: str, names: Sequence[str], columns: list[Any], how: Reading, guesses: list[Advice]
) -> list[Any]:
    """Return columns of text as numbers, where cells are some; as text where kept apart."""
    arrow = _arrow(path)
    of, like = arrow.compute, arrow.compute.match_substring_regex
    texts = {}
    for i, name in enumerate(names):
        wanted = how.keeps(name)
        columns[i] = text = _cast(columns[i], "double") if wanted else columns[i]
        if arrow.types.is_string(text.type):
            columns[i] = text = of.utf8_trim_whitespace(text)
            if wanted:
                texts[i] = of.if_else(of.is_in(text, arrow.array(EMPTY)), None, text)
    commas = [c for text in texts.values() for c in text.filter(like(text, COMMA)).to_pylist()]
    comma = how.decimal == "," or (how.decimal is None and bool(commas))
    if comma and how.decimal is None:
        if all(re.fullmatch(THOUSANDS, cell) for cell in commas):
            says = f": the comma in '{commas[0]}' may be a decimal point or none"
            raise _fault(path, says, "decimal", **{"it is one": ",", "none": "."})
        guesses.append(_guess(path, "commas are decimal points", decimal="."))
    for i, text in texts.items():
        text = of.replace_substring(text, ",", ".") if comma else text
        columns[i] = text = _cast(text, "double", "bool")
        if arrow.types.is_string(text.type):
            cells = zip(text.to_pylist(), like(text, PLAIN).to_pylist(), strict=True)
            columns[i] = np.array([float(cell) if fits else cell for cell, fits in cells], object)
    return columns


def _cast(column: Any, *kinds: str) -> Any:
    """Return a column of text as the first of these types that fits all cells, or as it is."""
    for kind in kinds:
        with suppress(ValueError):
            return column.cast(kind)
    return column


def _parquet(path: str, how: Reading) -> Table:
    file = _arrow(path).parquet.ParquetFile(path)
    bounded.require_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
    table = file.read()
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    return _table(path, table.column_names, table.columns, how, index=index)


def _table(
    path: str, names: Any, columns: Any, how: Reading, *, index: Sequence[Any] = (),
    vectors: Mapping[str, Any] | None = None, place: Callable[[int], str] = "row {}".format,
    **more: Any,
) -> Table:  # fmt: skip
    """Return the table of a matrix or of a list of columns, and of vectors beside it.

    `index` has names of pandas' index; `place` says where a row is.
    """
    beside, bare, listed = vectors or {}, isinstance(names, Numbered), isinstance(columns, list)
    twice = [] if bare else [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _fault(path, f" has two columns '{twice[0]}': rename one", column=twice[0])
    kept, apart = np.full(len(names), how.columns is None), {}
    for name in (*(how.columns or ()), *how.without, *how.apart):
        if name in names:
            kept[names.index(name)] = how.keeps(name)
    for name in how.apart:
        if name in beside:
            apart[name] = beside[name]
        elif name in names:
            i = names.index(name)
            column = columns[i] if listed else columns[:, [i]]
            apart[name] = as_array(column.toarray() if scipy.sparse.issparse(column) else column)
    at = np.flatnonzero(kept)
    own = names if kept.all() else _picked(names, at)
    x, unfit = columns if listed or kept.all() else columns[:, at], list[Unfit]()
    if listed or not (scipy.sparse.issparse(x) or np.isfinite(x).all()):
        parts = [columns[i] for i in at] if listed else x.T
        x, unfit = examined(own, parts, path, lambda row: f"{path}, {place(row)}")
    counting: set[str] = set()
    if how.columns is None and not bare:
        texts = {one.column for one in unfit if one.kind == "text"}
        for i, name in enumerate(own):
            values = None if name in texts else x[:, i]
            if name in index or counts_rows(name, values, at[i] == len(counting)):
                counting.add(name)
            elif UNNAMED.fullmatch(name.strip()):
                says = f"without a name in {path}, column {at[i] + 1}"
                unfit.append(Unfit(path, name, "unnamed", says))
        counting = set() if counting >= {*own} - texts else counting
    x = x if x.dtype == np.float32 else x.astype(np.float64, copy=False)
    return Table(
        path, own, x, apart, _every=(names, [*beside]), _unfit=unfit, _counting=counting, **more
    )


def _npz(path: str, how: Reading) -> Table:
    try:
        heads = bounded.heads(Path(path))
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: it is cut off or holds no arrays of numbers; write it anew by "
            "numpy.savez"
        ) from error

    def array(name: str, numbers: bool = False) -> np.ndarray:
        kind = heads[name][1]
        if kind.hasobject or (numbers and kind.kind not in "biuf"):
            to = "real" if kind.kind == "c" else f"astype({'float' if numbers else 'str'})"
            save = Advice("", call=f"save {name}.{to}")
            says = f"{path}: '{name}' holds {kind.name}"
            raise TableError(says, file=path, column=name, advice=[save])
        loaded = np.load(path, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else loaded[name]

    if {"format", "shape", "data"} <= heads.keys():  # as scipy.sparse.save_npz writes it
        shape = array("shape")
        if shape.dtype.kind not in "iu" or shape.shape != (2,) or shape.min() < 0:
            raise DataError(f"{path} is no sparse matrix: its shape is {shape.tolist()}")
        bounded.require_shape(path, *shape.tolist())
        x = sparse.checked(scipy.sparse.load_npz(path), path).matrix
        return _table(path, Numbered(range(x.shape[1])), x, how)
    matrices = [name for name, (shape, _) in heads.items() if len(shape) == 2]
    if len(matrices) != 1:
        found = ", ".join(f"{name} {shape}" for name, (shape, _) in heads.items())
        raise DataError(
            f"{path} holds {found or 'nothing'}: save one matrix, a row a sample, and beside it "
            "vectors alone, such as labels"
        )
    x = array(matrices[0], numbers=True)
    names: Any = Numbered(range(x.shape[1]))
    if "columns" in heads:
        given = array("columns")
        if given.shape != x.shape[1:]:
            raise DataError(f"{path}: 'columns' names {given.size} of {x.shape[1]} columns")
        names = [n.decode() if isinstance(n, bytes) else str(n) for n in given.tolist()]
    vectors = {name: array(name) if name in how.apart else None
               for name, (shape, _) in heads.items()
               if shape == x.shape[:1] and name != "columns"}  # fmt: skip
    return _table(path, names, x, how, vectors=vectors)


def _libsvm(path: str, how: Reading) -> Table:
    x, vectors = libsvm.parse_sparse(Path(path), zero_based=how.zero_based)
    numbers = np.arange(x.shape[1]) + (not how.zero_based)
    return _table(path, Numbered(numbers), x, how, vectors=vectors, open_ended=True)


READERS: dict[str, Callable[[str, Reading], Table]] = {
    ".csv": _csv, ".tsv": _csv, ".txt": _csv, ".npz": _npz, ".npy": _npz,
    ".libsvm": _libsvm, ".svm": _libsvm, ".parquet": _parquet,
}  # fmt: skip
