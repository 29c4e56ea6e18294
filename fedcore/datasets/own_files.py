"""Tables of one's own: CSV, Parquet, NPZ, NPY and LIBSVM, by one rule for all.

Each format is read as a `Table` of columns with labels, and the same checks make it one of numbers:
one matrix of numbers, and columns that are kept apart, such as labels. `fedcore.problems.columns`
says what is a number and what is missing, for files as for data frames. Nothing is dropped or
filled in silently: what is guessed stands in `Table.guesses`, and an option says otherwise. CSV and
Parquet are read by pyarrow, in the extra ``files``. LIBSVM files and NPZ files of
`scipy.sparse.save_npz` give sparse matrices.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import shlex
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse
from scipy.sparse import issparse

from fedcore import sparse
from fedcore.datasets import bounded, headers
from fedcore.datasets.formats import libsvm
from fedcore.errors import Advice, DataError, FedcoreError, InputError, TableError, nearest
from fedcore.problems.columns import (
    OTHER,
    SAMPLE,
    SHOWN,
    UNNAMED,
    Unfit,
    absent,
    as_values,
    bad_cells,
    counts_rows,
    examined,
    identifies,
    listed,
    missing,
    number,
    parsed,
    refusal,
)
from fedcore.validation import check_annotated, one_of
from fedcore.words import counted

SEPARATORS = "\t;|, "
BLANKS = re.compile(r"^ +|(?<= ) +| +(?=[\r\n]*$)")  # that separate nothing
# How texts are written, by the first two bytes; else in UTF-8.
CODINGS = (rb"\xff\xfe|\xfe\xff", "utf-16"), (rb".\0", "utf-16-le"), (rb"\0.", "utf-16-be")
SPREAD = 5  # values that show how far a column goes
MANY = 1000  # names that are compared with a misspelt one
UNREADABLE = (OSError, ValueError, TypeError, EOFError, RuntimeError, csv.Error, zlib.error,
              zipfile.BadZipFile)  # fmt: skip
EMPTY_TABLE = " has no numbers, it is empty: leave it out"


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
        Whether the first line of a CSV file has the names, guessed without it; whether those that
        an NPZ file has are taken.
    delimiter : str, optional
        What separates the columns of all CSV files; found in each without it.
    decimal : {'.', ','}, optional
        The decimal point of CSV files, where the other sign separates thousands; found in each
        without it, and in one that has no other.
    na : collection of str
        Texts that stand for a missing value in a CSV file, beside those of `headers.EMPTY`, and
        numbers that do in any table.
    matrix : str, optional
        The array of NPZ files that is the matrix, where they have several.
    zero_based : bool
        Whether the columns of LIBSVM files are numbered from 0.
    """

    apart: Sequence[str] = ()
    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    missing: Annotated[str, one_of(("refuse", "drop"))] | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: Annotated[str, one_of((".", ","))] | None = None
    na: Sequence[str] = ()
    matrix: str | None = None
    zero_based: bool = False

    def __post_init__(self) -> None:
        for name in ("apart", "columns", "without", "na"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
        check_annotated(Reading, vars(self))

    def keeps(self, name: str) -> bool:
        """Whether a column is wanted as a feature."""
        wanted = self.columns is None or name in self.columns
        return wanted and name not in self.without and name not in self.apart


@dataclass
class Table:
    """A file's numbers.

    Attributes
    ----------
    path : str
    labels : list of str, or range
        Names of the columns of `x`; their numbers, if the file has no names.
    x : ndarray or scipy.sparse.csr_array of shape (rows, columns), float64 or float32
        A list of columns, until they are known to be numbers.
    apart : dict of str to ndarray of shape (rows,)
        The columns that were asked for apart; of a CSV file as text. At first vectors beside the
        matrix, None for one that nobody has asked for.
    guesses : list of Advice
        What was taken for granted, and the option that says otherwise.
    index : collection of str
        Columns that pandas has for its index.
    place : callable or None
        Says where a row of the file is; by default by its number.
    open_ended : bool
        Whether further columns hold zeros alone, as in a LIBSVM file.
    """

    path: str
    labels: Any
    x: Any
    apart: dict[str, Any] = field(default_factory=dict)
    guesses: list[Advice] = field(default_factory=list)
    index: Collection[str] = ()
    place: Callable[[int], str] | None = None
    open_ended: bool = False

    @property
    def names(self) -> list[str]:
        """The labels as text."""
        return [*map(str, self.labels)]

    @property
    def bare(self) -> bool:
        """Whether the columns have no names."""
        return not isinstance(next(iter(self.labels), ""), str)

    def known(self, names: Iterable[str]) -> list[Any]:
        """Return the labels of those names that are columns."""
        if self.bare:
            return [int(n) for n in names if re.fullmatch(r"\d{1,18}", n) and int(n) in self.labels]
        return [*filter({*self.labels}.__contains__, names)]

    def columns(self, labels: Sequence[Any]) -> Any:
        """Return the columns with these labels."""
        if labels == self.labels:
            return self.x
        at = {label: i for i, label in enumerate(self.labels)}
        if isinstance(self.x, list):
            return [self.x[at[label]] for label in labels]
        return self.x[:, [at[label] for label in labels]]

    def column(self, name: str) -> np.ndarray:
        """Return one of the columns, or a vector beside them."""
        cells = self.apart[name] if name in self.apart else self.columns(self.known([name]))
        return as_values(cells[0] if isinstance(cells, list) else cells)

    def where(self, row: int) -> str:
        """Return in words where a row is."""
        return f"{self.path}, {self.named(row)}"

    def named(self, row: int) -> str:
        """Return what a row is called in its file."""
        return self.place(row) if self.place else f"row {row}"

    def holes(self) -> dict[str, np.ndarray]:
        """Return where each column has no number, and each one apart no value."""
        dense = {} if issparse(self.x) else zip(self.names, ~np.isfinite(self.x).T, strict=True)
        return {**dict(dense), **{name: missing(values) for name, values in self.apart.items()}}

    def incomplete(self) -> np.ndarray:
        """Return which rows lack a value."""
        return np.logical_or.reduce([np.zeros(self.x.shape[0], bool), *self.holes().values()])


def readable(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a path is that of a table."""
    return Path(path).suffix.lower() in READERS


def read(path: str | os.PathLike[str], **how: Any) -> Table:
    """Read a table.

    Parameters
    ----------
    path : path-like
        A CSV file (separated by commas, semicolons, bars or tabs, with or without names), a
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


def together(paths: Sequence[str | os.PathLike[str]], **options: Any) -> list[Table]:
    """Read tables with their columns in the order of the first; parameters and errors of `read`.

    Raises
    ------
    TableError
        Also when only some files have a column.
    InputError
        Also when a file comes twice, whose rows would count twice.
    """
    how = Reading(**options)
    for path, times in Counter(map(os.path.realpath, paths)).items():
        if times > 1:
            raise InputError(f"{path} is given twice, and each file is one client: drop it")
    tables = [_read(os.fspath(path), how) for path in paths]
    match_names(tables)
    _widen(tables)
    _require_asked(tables, how)
    unfit = _select(tables, how)
    lacking = [table.incomplete() for table in tables]
    if how.missing == "drop" and not any(rows.all() for rows in lacking):
        unfit = [one for one in unfit if one.kind != "missing"]
    if unfit:
        raise _refusal(unfit, tables, how)
    for table, rows in zip(tables, lacking, strict=True):
        if rows.any():
            told = f"{table.path}: {rows.sum()} of {len(rows)} rows lack a value and are left out"
            table.guesses.append(Advice(told))
            table.x = table.x[~rows]
            table.apart = {name: values[~rows] for name, values in table.apart.items()}
    tables[0].guesses[:0] = _doubts(tables, how)
    return tables


def _read(path: str, how: Reading) -> Table:
    if Path(path).is_dir():
        inside = Counter(p.suffix for p in Path(path).iterdir() if readable(p))
        files = f"{path}/*{inside.most_common(1)[0][0]}" if inside else "it has no table"
        raise InputError(f"{path} is a folder: name files, {files}")
    if not readable(path):
        known = ", ".join(sorted(READERS))
        raise InputError(f"{path}: such an ending has no table: save it as CSV, or one of {known}")
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}: check its name", file=path)
    try:
        return READERS[Path(path).suffix.lower()](path, how)
    except FedcoreError as error:  # some are ValueErrors, too
        error.file = path
        raise
    except UNREADABLE as error:
        says, ways = f"{path} cannot be read: {error}", list[Advice]()
        if isinstance(error, UnicodeDecodeError):
            says = f"{path} is no text in UTF-8 ({error.reason})"
            new = "{}-utf8{}".format(*os.path.splitext(path))
            odd = re.search(rb"[\x81\x8d\x8f\x90\x9d]", Path(path).read_bytes())  # none of Windows
            coding = "latin1" if odd else "cp1252"  # else the same, but for quotes, dashes and €
            call = f"iconv -f {coding} -t utf-8 {shlex.quote(path)} > {shlex.quote(new)}"
            ways = [Advice("save it as UTF-8, such as by", call=call)]
        raise DataError(says, file=path, advice=ways) from error


def match_names(tables: Sequence[Table]) -> None:
    """Give columns the name in an earlier table, where only case and blanks differ."""
    known: dict[str, str] = {}
    for table in tables:
        if table.bare:
            continue
        short, own = ["".join(name.split()).casefold() for name in table.labels], table.labels
        times = Counter(short)
        table.labels = [known.setdefault(low, name) if times[low] == 1 else name
                        for low, name in zip(short, own, strict=True)]  # fmt: skip
        both = zip(own, table.labels, strict=True)
        if other := [f"{old!r} as {new!r}" for old, new in both if old != new]:
            says = f"{table.path}: takes {', '.join(other)} of another file"
            table.guesses.append(Advice(says))


def _widen(tables: Sequence[Table]) -> None:
    """Give open-ended tables the columns of the widest, if they follow their own."""
    widest = max((table.labels for table in tables if table.bare), key=len, default=range(0))
    for table in tables:
        if table.open_ended and widest[: len(table.labels)] == table.labels:
            table.x.resize(table.x.shape[0], len(widest))
            table.labels = widest


def _require_asked(tables: Sequence[Table], how: Reading) -> None:
    """Require that every file has the columns to take, and some file those to leave out."""
    asked = [*how.apart, *(how.columns or ()), *how.without]
    have = [{*map(str, table.known(asked)), *table.apart} for table in tables]
    for name in asked:
        lack = [table for table, own in zip(tables, have, strict=True) if name not in own]
        if len(lack) > (len(tables) - 1) * (name in how.without):
            known = [*map(str, lack[0].labels[:MANY]), *lack[0].apart]
            says = f" has no column '{name}': {nearest(name, known)}"
            raise _fault(lack[0].path, says, column=name)


def _counting(table: Table, how: Reading) -> list[str]:
    """Return the columns that count the rows, and tell of them."""
    if how.columns is not None or table.bare:
        return []
    columns = table.x if isinstance(table.x, list) else table.x.T
    kept = {name: column for name, column in zip(table.labels, columns, strict=True)
            if how.keeps(name)}  # fmt: skip
    found: list[str] = []
    for i, (name, column) in enumerate(kept.items()):
        found += [name] * (name in table.index or counts_rows(name, column, i == len(found)))
    void = {name for name in found if not np.isfinite(parsed(kept[name])).any()}
    if found:
        what = f"{listed(found)} is no measurement and is left out of all files"
        option = {"columns": [*filter(lambda name: name not in void, kept)]}
        table.guesses.append(_guess(table.path, what, **option if len(void) < len(found) else {}))
    return found


def _select(tables: Sequence[Table], how: Reading) -> list[Unfit]:
    """Leave the features in all tables, in one order, and return what is none."""
    counting = {name for table in tables for name in _counting(table, how)}
    wanted = []
    for table in tables:
        labels = table.labels if how.columns is None else table.known(dict.fromkeys(how.columns))
        left = {*table.known([*how.without, *how.apart, *counting])}
        wanted.append([label for label in labels if label not in left] if left else labels)
    bare = {table.bare: (table, labels) for table, labels in zip(tables, wanted, strict=True)}
    if len(bare) > 1:
        (table, labels), (other, names) = bare[True], bare[False]
        chosen = {f.name: value for f in fields(Reading) if f.name not in ("columns", "without")
                and (value := getattr(how, f.name)) not in (f.default, [])}  # fmt: skip
        options = "".join(f", {name}={value!r}" for name, value in chosen.items())
        x = "table.x" + ".toarray()" * issparse(table.x)
        what = "give it the same, as the first line of a CSV file or as a vector `columns`"
        call = (
            f"import numpy; from fedcore.datasets import own_files; "
            f"table = own_files.read({table.path!r}{options}); "
            f"numpy.savez({_new(table.path, 'named.npz')}, x={x}, columns={names!r}, **table.apart)"
        )
        says = f" has no names of its columns, and {other.path} has ({', '.join(names[:1])}, …)"
        raise _fault(table.path, says, (what, {}, call * (len(names) == len(labels))))
    unfit = list[Unfit]()
    if any(labels != wanted[0] for labels in wanted):
        at = {label: i for i, label in enumerate(wanted[0])}
        wanted = [sorted(own, key=lambda label: at.get(label, len(at))) for own in wanted]
        lists = {t.path: [*map(str, own)] for t, own in zip(tables, wanted, strict=True)}
        unfit = absent(lists)
    for table, labels in zip(tables, wanted, strict=True):
        unfit += _take(table, labels, how)
    return unfit


def _take(table: Table, labels: Sequence[Any], how: Reading) -> list[Unfit]:
    """Leave the columns with these labels in a table, and return what is no feature."""
    path, own = table.path, table.labels
    apart = {name: table.column(name) for name in how.apart}
    na = [*filter(np.isfinite, map(number, how.na))]
    x, unfit = examined(map(str, labels), table.columns(labels), path, table.where, na)
    if 0 in x.shape:
        left = own and not labels
        raise _fault(path, ": no numbers are left: take more of it" if left else EMPTY_TABLE)
    if not table.bare:
        times = Counter(own)
        unfit += [Unfit(path, name, "twice", f"{times[name]} columns of {path}")
                  for name in (*labels, *how.apart) if times[name] > 1]  # fmt: skip
        unfit += [Unfit(path, name, "unnamed", f"without a name in {path}") for name in labels
                  if UNNAMED.fullmatch(name.strip()) and how.columns is None]  # fmt: skip
    for name, values in apart.items():
        unfit += bad_cells(path, name, "missing", missing(values), None, table.where)
    x = x if x.dtype == np.float32 else x.astype(np.float64, copy=False)
    table.labels, table.x, table.apart = labels, x, apart
    return unfit


def _refusal(unfit: Sequence[Unfit], tables: Sequence[Table], how: Reading) -> TableError:
    """Return the error that names all columns that are no features, and how to go on.

    Columns are left out that rows cannot mend, and rows that lack a value in one of the others.
    """
    left = dict.fromkeys(one.column for one in unfit if one.kind != "missing" and not one.marks)
    for table in tables:
        holes = {name: bad for name, bad in table.holes().items() if name not in left}
        while holes:  # more than half of the rows are too much for one column, all for several
            most = max(holes, key=lambda name: holes[name].mean())
            much = how.missing is None and most not in how.apart and holes[most].mean() > 0.5
            if not much and not np.logical_or.reduce([*holes.values()]).all():
                break
            left[most] = None
            del holes[most]
    kept = [name for name in tables[0].names if name not in left]
    marks = dict.fromkeys(m for one in unfit if one.column not in left for m in one.marks)
    rows = any(one.column not in left for one in unfit)
    few = how.columns is None and len(kept) < len(left)
    options = {"columns": kept * few, "without": [*how.without, *left] * (left != {} and not few),
               "na": [*how.na, *marks] * bool(marks), "missing": "drop" * rows}  # fmt: skip
    what = [counted(len(left), "column")] * bool(left) + ["rows that lack a value"] * rows
    says = f"{'correct the cells, or ' * bool(marks)}leave out {' and '.join(what)}"
    way = Advice(says, {name: value for name, value in options.items() if value})
    if not kept:
        way = Advice("no column is left: give files that have columns of numbers in common")
    fixed = not left.keys().isdisjoint(how.apart)
    return refusal(unfit, file=unfit[0].file, advice=[way] * (not fixed))


def _doubts(tables: Sequence[Table], how: Reading) -> list[Advice]:
    """Return what all tables together leave in doubt."""
    path, told = tables[0].path, list[Advice]()
    if len(tables) > 1 and not isinstance(tables[0].labels, list):
        told.append(Advice(f"{path} and the others have no names: columns are matched by position"))
    if any(issparse(table.x) for table in tables):
        return told
    each = {name: [table.x[:, i] for table in tables] for i, name in enumerate(tables[0].names)}
    if numbered := [name for name, parts in each.items() if all(map(identifies, parts))]:
        what = f"{listed(numbered)} may be ids or dates, and is taken as measured"
        told += [_guess(path, what, without=[*how.without, *numbered])] * (how.columns is None)
    ends = {name: _far_end(np.concatenate(parts)) for name, parts in each.items()}
    if far := {name: end for name, end in ends.items() if np.isfinite(end)}:
        values = [*dict.fromkeys(f"{end:.15g}" for end in far.values())]
        what = f"{', '.join(values)} in {listed([*far])} is far from all other values, and is taken"
        files = [table.path for i, table in enumerate(tables)
                 if any(end in each[name][i] for name, end in far.items())]  # fmt: skip
        options = {"na": [*how.na, *values], "missing": "drop"}
        told.append(_guess(", ".join(files), f"{what} as measured", **options))
    return told


def _far_end(values: np.ndarray) -> float:
    """Return the smallest or largest value if it occurs again, far from all others; else NaN."""
    values, times = np.unique(values[np.isfinite(values)], return_counts=True)
    for end, others in ((0, values[1:]), (-1, values[:-1])) if len(values) > SPREAD else ():
        far = abs(others[end] - values[end]) > np.ptp(np.quantile(others, [0.1, 0.9]))
        if far and 1 < times[end] < times.sum() / 2:
            return float(values[end])
    return np.nan


def _guess(path: str, what: str, **option: Any) -> Advice:
    return Advice(f"{path}: {what}{', unless told otherwise' * bool(option)}", option)


def _fault(path: str, says: str, *ways: tuple[Any, ...], **more: Any) -> TableError:
    advice = [Advice(*way) for way in ways]
    return TableError(f"{path}{says}", file=path, advice=advice, **more)


def _new(path: str, ending: str) -> str:
    """Return the path of a new file beside this one, as Python reads it."""
    return repr(f"{Path(path).with_suffix('')}-{ending}")


def _arrow(path: str) -> Any:
    try:
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        says = f"{path} is read by pyarrow, which is not installed"
        raise InputError(says, advice=[Advice("", call="pip install pyarrow")]) from error
    return pyarrow


def _csv(path: str, how: Reading) -> Table:
    """Read a CSV file."""
    arrow, skipped = _arrow(path), list[str]()
    with open(path, "rb") as raw:
        head = raw.read(2)
    coding = next((name for form, name in CODINGS if re.fullmatch(form, head)), "utf-8-sig")

    def lines(sign: str) -> Iterator[str]:
        with open(path, encoding=coding, newline="") as file:
            yield from (BLANKS.sub("", line) for line in file) if sign == " " else file

    def rows(sign: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not blank, with the numbers of the lines that end them."""
        reader = csv.reader(lines(sign), delimiter=sign)
        for row in reader:
            blank = len(row) < 2 and row != [""] and not "".join(row).strip()
            if not blank and not row[0].startswith("sep="):  # as Excel writes it
                yield reader.line_num, [cell.strip() for cell in row]

    def place(row: int) -> str:
        even = (line for line, cells in rows(sign) if len(cells) == width and line > top)
        return f"line {next(itertools.islice(even, row, None))}"

    def skip(row: Any) -> str:
        skipped.append(row.text)
        return "skip"

    asked = how.delimiter and how.delimiter.replace("\\t", "\t")  # as a shell gives it
    samples = {
        sign: [*itertools.islice(rows(sign), SAMPLE)] for sign in [*SEPARATORS, asked] if sign
    }
    fits = {sign: headers.fit([row for _, row in lines], sign) for sign, lines in samples.items()}
    best = max(SEPARATORS, key=lambda sign: fits[sign][0])
    sign = asked or best
    if not fits[sign][0] and fits[best][0] > 1 and how.decimal != best:
        says = f", line 1: {best!r} separates the columns, and not {sign!r}"
        raise _fault(path, says, ("", {"delimiter": None}), row=0)
    joined = [",".join(row) for _, row in samples[","]] if sign == "," != asked else []
    if joined and fits[","][1] == 2 and np.isfinite([*map(number, joined)]).all():
        ways = [("two", {"delimiter": ","}), ("one", {"delimiter": ";", "decimal": ","})]
        raise _fault(path, f", line 1: '{joined[0]}' is two numbers or one", *ways)
    (at, first), *below = samples[sign] or [(0, [])]
    if sign != "," and {len(row) for _, row in below} == {len(first) + 1}:  # "1,5" may be one
        one, two = (np.array([*map(number, row)]) for row in (first, below[0][1]))
        names = len(first) > 1 and np.isinf(one).all() and np.isfinite(two).any()  # no title
        if names and any(row[-1] for _, row in below):
            samples[sign][0] = at, ["", *first]  # R leaves out the name of the rows' names
    sample = [["" if cell in how.na else cell for cell in row] for _, row in samples[sign]]
    width, named = fits[sign][1], how.header
    above = headers.head(sample, width) if sample and named is None else 0
    guessed = above is None and not headers.may_be_names(sample[0])
    if guessed:
        above, named = 0, False
    if above is None:
        says = f", line 1 ({', '.join(sample[0][:3])}{', …' * (width > 3)}) may be names or numbers"
        raise _fault(path, says, ("it has names", {"header": True}), ("none", {"header": False}))
    named = named is not False
    if len(sample) <= above + named:
        raise _fault(path, EMPTY_TABLE)
    top, first = samples[sign][above]
    ends = [first[width:], *(row[len(first) :] for row in sample[above:] if len(row) == width)]
    if not any(map(any, ends)):  # lines end with a separator, or those below the names
        first = [*first, *[""] * width][:width]
    width, top = len(first), top - (not named)
    texts, blanks = {str(i): arrow.string() for i in range(width)}, sign == " "
    columns = arrow.csv.read_csv(
        io.BytesIO("".join(lines(sign)).encode()) if blanks else path,
        arrow.csv.ReadOptions(column_names=[*texts], skip_rows=top,
                              encoding="utf-8" if blanks else coding),
        arrow.csv.ParseOptions(delimiter=sign, newlines_in_values=True,
                               invalid_row_handler=skip),
        arrow.csv.ConvertOptions(column_types=texts),
    ).columns  # fmt: skip
    skipped = [*filter(str.strip, skipped)]
    few = 2 * sum(len(row) != width for row in sample[above:]) < len(sample)
    if skipped and not (few and how.missing == "drop"):
        line, row = next((n, row) for n, row in rows(sign) if n > top and len(row) != width)
        says = f", line {line}: {counted(len(row), 'cell')}, and the first line has {width}"
        drop = [("leave it out", {"missing": "drop"})] * few
        raise _fault(path, says, ("give every line as many",), *drop, row=line)
    left_out = f"{counted(len(skipped), 'line')} with another number of cells left out"
    table = f"the table begins in line {top}, below '{' '.join(sample[0]):.40}'"
    other = {"delimiter": ","} if fits[","][0] else {}
    guesses = [_guess(path, what, **option) for what, option, seen in (
        (table, {"header": True}, above),
        ("line 1 has numbers and no names", {"header": True}, guessed),
        (f"{sign!r} separates the columns", other, not asked and sign != "," and width > 1),
        (left_out, {}, skipped),
    ) if seen]  # fmt: skip
    labels = [cell or f"Unnamed: {i}" for i, cell in enumerate(first)] if named else range(width)
    columns = [*map(arrow.compute.utf8_trim_whitespace, columns)]
    return _of_texts(Table(path, labels, columns, guesses=guesses, place=place), how)


def _of_texts(table: Table, how: Reading) -> Table:
    """Return a table of texts with numbers, by the decimal point that it shows."""
    names, texts = table.names, table.x
    at = [i for i, name in enumerate(names) if how.keeps(name) or name in how.apart]
    cells = headers.Cells([texts[i] for i in at], how.decimal, how.na)
    if cells.doubts.any():
        place, text = cells.longest(cells.doubts)
        column, row = divmod(place, len(texts[0]))
        reads = {point: f"{number(text, point):.15g}" for point in sorted(OTHER)}
        slip = "correct the cells, or go on if " * cells.shown[cells.point]
        ways = [(f"{slip}it is {value}", {"decimal": point}) for point, value in reads.items()
                if point == cells.point or not cells.shown[OTHER[point]]]  # fmt: skip
        where = f"{table.named(row)}, column '{names[at[column]]}'"
        says = f", {where}: '{text}' is {' or '.join(reads.values())}"
        raise _fault(table.path, says, *ways, row=row, column=names[at[column]])
    for i, numbers in enumerate(cells.numbers()[: len(at)]):
        texts[at[i]] = cells.texts(i) if names[at[i]] in how.apart else numbers
    if cells.odd.any():
        _, text = cells.longest(cells.odd)
        says = f"{table.path}: '{text}' is read as {number(text, cells.point):.15g}"
        table.guesses.append(Advice(says))
    return table


def _parquet(path: str, how: Reading) -> Table:
    file = _arrow(path).parquet.ParquetFile(path)
    bounded.require_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
    table = file.read()
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    return Table(path, table.column_names, table.columns, index=index)


def _npz(path: str, how: Reading) -> Table:
    heads = bounded.heads(Path(path))
    if {"format", "shape", "data"} <= heads.keys():  # as scipy.sparse.save_npz writes it
        matrix = scipy.sparse.load_npz(path)
        bounded.require_shape(path, *matrix.shape)
        return Table(path, range(matrix.shape[1]), sparse.checked(matrix, path).matrix)
    shapes = {name: shape for name, (shape, _) in heads.items()}
    able = [name for name, shape in shapes.items() if shape and all(shape) and name != "columns"]
    tables = [name for name in able if len(shapes[name]) == 2]
    chosen = [name for name in able if name == how.matrix] or tables
    if len(chosen) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
        says = f" holds {found}, and a table has one matrix, a row a sample, and vectors beside it"
        ways = [(f"take '{name}'", {"matrix": name}) for name in tables or able][:SHOWN]
        raise _fault(path, says, *ways)
    objects = any(kind.hasobject for _, kind in heads.values())
    trusted, pickled = "if you trust the file, " * objects, ", allow_pickle=True" * objects
    load = f"numpy.load({path!r}{pickled})"
    load = f"dict({load})" if zipfile.is_zipfile(path) else f"{{'x': {load}}}"
    load = f"import numpy; arrays = {load}; "
    names = how.header is not False and "columns" in heads
    beside = {name for name, shape in shapes.items()
              if shape == shapes[chosen[0]][:1] and (name != "columns" or not names)}  # fmt: skip
    taken = {*chosen, *["columns"] * names, *beside.intersection(how.apart)}
    if wrong := [name for name in heads if name in taken and heads[name][1].kind not in "biufSU"]:
        name, kind = wrong[0], heads[wrong[0]][1]

        def anew(name: str) -> str:
            array, kind = f"arrays[{name!r}]", heads[name][1].kind
            rows = f"numpy.array({array}.tolist())" if kind == "O" else array  # may be lists
            return f"{array} = {rows}.{'real' if kind == 'c' else 'astype(str)'}; "

        call = f"{load}{''.join(map(anew, wrong))}numpy.savez({_new(path, 'anew.npz')}, **arrays)"
        what = f"{trusted}save it anew"
        raise _fault(path, f": '{name}' holds {kind.name}", (what, {}, call), column=name)
    loaded = np.load(path, allow_pickle=False)
    arrays = {"x": loaded} if isinstance(loaded, np.ndarray) else loaded
    x: Any = arrays[chosen[0]]
    x = x.reshape(len(x), -1)
    labels: Any = range(x.shape[1])
    if names:
        labels = np.ravel(arrays["columns"]).astype(str).tolist()
        if len(labels) != x.shape[1]:
            says = f": 'columns' names {len(labels)} of {x.shape[1]} columns"
            # The option would leave out the names of all files.
            call = f"{load}del arrays['columns']; numpy.savez({_new(path, 'bare.npz')}, **arrays)"
            raise _fault(path, says, (f"{trusted}save it without names", {}, call))
    vectors = {name: arrays[name] if name in how.apart else None for name in beside}
    if x.dtype.kind in "SU":
        x = [_arrow(path).chunked_array([column]) for column in np.strings.strip(x.astype(str)).T]
    table = Table(path, labels, x, vectors)
    return _of_texts(table, how) if isinstance(x, list) else table


def _libsvm(path: str, how: Reading) -> Table:
    x, beside = libsvm.parse_sparse(Path(path), zero_based=how.zero_based)
    labels = range(not how.zero_based, x.shape[1] + (not how.zero_based))
    return Table(path, labels, x, beside, open_ended=True)


READERS: dict[str, Callable[[str, Reading], Table]] = {
    ".csv": _csv, ".tsv": _csv, ".txt": _csv, ".npz": _npz, ".npy": _npz,
    ".libsvm": _libsvm, ".svm": _libsvm, ".parquet": _parquet,
}  # fmt: skip
