"""Read tables from several files as matrices with the same columns in the same order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fedcore.arrays import missing
from fedcore.errors import Advice, DataError, FedcoreError, InputError, TableError, nearest
from fedcore.user_tables import doubts, names
from fedcore.user_tables.columns import (
    Unfit,
    bad_cells,
    examined,
    listed,
    parsed,
    refusal,
)
from fedcore.user_tables.numbers import number
from fedcore.user_tables.readers import READERS
from fedcore.user_tables.table import EMPTY_TABLE, Reading, Table, fault
from fedcore.words import counted

__all__ = ["READERS", "Reading", "Table", "read", "readable", "together"]


def readable(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the ending of a table format that can be read."""
    return Path(path).suffix.lower() in READERS


def read(path: str | os.PathLike[str], **how: Any) -> Table:
    """Read a table from one file.

    Parameters
    ----------
    path : path-like
        Path of a CSV, Parquet, NPZ, NPY or LIBSVM file. Commas, semicolons, bars or tabs separate
        the columns of a CSV file. A CSV file may lack column names. An NPZ file holds arrays, or
        one sparse matrix that `scipy.sparse.save_npz` wrote. The labels of a LIBSVM file become the
        column ``label``, and its query numbers become the column ``qid``. The features of a LIBSVM
        file are named by their numbers.
    **how : object
        Parameters of `Reading`.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If columns cannot be used as features. The error names all such columns.
    DataError
        If the file cannot be read or is no table.
    InputError
        If the ending is unknown, a requested column does not exist, or the package that reads the
        format is not installed.
    """
    return together([path], **how)[0]


def together(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Any
) -> list[Table]:
    """Read several tables, and give all of them the column order of the first table.

    Parameters
    ----------
    paths : path-like or iterable of path-like
    **options : object
        Parameters of `Reading`.

    Returns
    -------
    list of Table

    Raises
    ------
    TableError
        If `read` would raise a TableError, or if only some of the files have a column.
    InputError
        If `read` would raise an InputError, if no file is given, or if a file is given twice.
    """
    how = Reading(**options)
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    paths = list(paths)
    if not paths:
        raise InputError("no file is given: name at least one")
    for path, times in Counter(map(os.path.realpath, paths)).items():
        if times > 1:
            raise InputError(f"{path} is given twice: name each file once")
    tables = [_read(os.fspath(path), how) for path in paths]
    _match_names(tables)
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
            table.tell(f"{rows.sum()} of {len(rows)} rows lack a value and are left out")
            table.x = table.x[~rows]
            table.left_out = {name: values[rows] for name, values in table.apart.items()}
            table.apart = {name: values[~rows] for name, values in table.apart.items()}
    _tell_doubts(tables, how)
    return tables


def _read(path: str, how: Reading) -> Table:
    if not path:
        raise InputError("a file has an empty name: name it, or leave it out")
    if Path(path).is_dir():
        inside = Counter(p.suffix for p in Path(path).iterdir() if readable(p))
        files = f"{path}/*{inside.most_common(1)[0][0]}" if inside else "this folder has none"
        raise InputError(f"{path} is a folder: name table files instead ({files})")
    if not readable(path):
        known = ", ".join(sorted(READERS))
        raise InputError(f"{path} has an unknown ending: save it as CSV, or as one of {known}")
    if not Path(path).exists():
        raise DataError(f"there is no file {path}: check its name", file=path)
    if not Path(path).is_file():
        raise DataError(f"{path} is a pipe or device: write its contents to a file", file=path)
    try:
        return READERS[Path(path).suffix.lower()](path, how)
    except FedcoreError as error:  # of what reads names and numbers
        error.file = path
        raise
    except Exception as error:  # parsers raise what they like of a damaged file
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(f"{path} cannot be read ({reason}): write it anew", file=path) from error


def _match_names(tables: Sequence[Table]) -> None:
    """Use an earlier table's spelling for column names that differ only by case and blanks."""
    named = [table for table in tables if not table.bare]
    matched = names.match(table.labels for table in named)
    for table, other in zip(named, matched, strict=True):
        table.labels = [other.get(name, name) for name in table.labels]
        if other:
            takes = ", ".join(f"{old!r} as {new!r}" for old, new in other.items())
            table.tell(f"takes {takes} of another file")


def _widen(tables: Sequence[Table]) -> None:
    """Append columns of zeros to LIBSVM tables, up to the width of the widest table.

    A LIBSVM table stays as it is if its columns count from another start (0 or 1) than the widest
    table's.
    """
    widest = max((table.labels for table in tables if table.bare), key=len, default=range(0))
    for table in tables:
        if table.open_ended and widest[: len(table.labels)] == table.labels:
            table.x.resize(table.x.shape[0], len(widest))
            table.labels = widest


def _require_asked(tables: Sequence[Table], how: Reading) -> None:
    """Raise `TableError` if a file lacks a requested column, or all lack a column to leave out."""
    have = [{*map(str, table.known(how.asked)), *table.apart} for table in tables]
    for name in how.asked:
        lack = [table for table, own in zip(tables, have, strict=True) if name not in own]
        if len(lack) > (len(tables) - 1) * (name in how.without):
            known = [*map(str, lack[0].labels[: names.MANY]), *lack[0].apart]
            says = f" has no column '{name}': {nearest(name, known)}"
            raise fault(lack[0].path, says, column=name)


def _counting(table: Table, how: Reading) -> list[str]:
    """Return the columns that only number the rows, and record them in the table's guesses."""
    if how.columns is not None or table.bare:
        return []
    columns = table.x if isinstance(table.x, list) else table.x.T
    kept = {name: column for name, column in zip(table.labels, columns, strict=True)
            if how.keeps(name)}  # fmt: skip
    found: list[str] = []
    for i, (name, column) in enumerate(kept.items()):
        found += [name] * (name in table.index or names.counts_rows(name, column, i == len(found)))
    void = {name for name in found if not np.isfinite(parsed(kept[name])).any()}
    if found:
        what = f"{listed(found)} is no measurement and is left out of all files"
        option = {"columns": [*filter(lambda name: name not in void, kept)]}
        table.tell(what, **option if len(void) < len(found) else {})
    return found


def _select(tables: Sequence[Table], how: Reading) -> list[Unfit]:
    """Put all features into the first table's order; return an `Unfit` for each unusable column."""
    counting = {name for table in tables for name in _counting(table, how)}
    wanted = []
    for table in tables:
        labels = table.labels if how.columns is None else table.known(dict.fromkeys(how.columns))
        left = {*table.known([*how.without, *how.apart, *counting])}
        wanted.append([label for label in labels if label not in left] if left else labels)
    bare = {table.bare: (table, labels) for table, labels in zip(tables, wanted, strict=True)}
    if len(bare) > 1:
        table, (other, own) = bare[True][0], bare[False]
        says = f" has no names of its columns, and {other.path} has ({', '.join(own[:1])}, …)"
        what = "give it the same, as the first line of a CSV file or as a vector `columns`"
        raise fault(table.path, says, (what,))
    unfit = list[Unfit]()
    if any(labels != wanted[0] for labels in wanted):
        at = {label: i for i, label in enumerate(wanted[0])}
        wanted = [sorted(own, key=lambda label: at.get(label, len(at))) for own in wanted]
        lists = {t.path: [*map(str, own)] for t, own in zip(tables, wanted, strict=True)}
        unfit = names.absent(lists)
    for table, labels in zip(tables, wanted, strict=True):
        unfit += _take(table, labels, how)
    return unfit


def _take(table: Table, labels: Sequence[Any], how: Reading) -> list[Unfit]:
    """Keep only the columns `labels` of a table; return an `Unfit` for each unusable column."""
    path, own = table.path, table.labels
    texts = {name: values for name, values in table.apart.items() if values is not None}
    if isinstance(table.x, list):
        texts |= {name: values for name, values in zip(own, table.x, strict=True)
                  if name not in labels}  # fmt: skip
    for name, values in texts.items():
        for row, cell in doubts.summarised(values):
            table.tell(f"{table.named(row)}, '{cell}' in '{name}', is taken as a sample")
    apart = {name: table.column(name) for name in how.apart}
    na = [*filter(np.isfinite, map(number, how.na))]
    x, unfit = examined(map(str, labels), table.columns(labels), path, table.where, na)
    if 0 in x.shape:
        left = own and not labels
        raise fault(path, ": no feature column is left: take more columns" if left else EMPTY_TABLE)
    if not table.bare:
        times = Counter(own)
        unfit += [Unfit(path, name, "twice", f"{times[name]} columns of {path}")
                  for name in (*labels, *how.apart) if times[name] > 1]  # fmt: skip
        unfit += [Unfit(path, name, "unnamed", f"without a name in {path}") for name in labels
                  if names.UNNAMED.fullmatch(name) and how.columns is None]  # fmt: skip
    for name, values in apart.items():
        unfit += bad_cells(path, name, "missing", missing(values), None, table.where)
    x = x if x.dtype == np.float32 else x.astype(np.float64, copy=False)
    table.labels, table.x, table.apart = labels, x, apart
    return unfit


def _refusal(unfit: Sequence[Unfit], tables: Sequence[Table], how: Reading) -> TableError:
    """Return an error that names all unusable columns and advises the user how to go on.

    The advice says which columns to leave out, and whether to drop the rows that lack a value in
    the other columns.
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
    without = [*how.without, *left] * (left != {} and not few)
    options: dict[str, Any] = {
        "columns": kept * few, "without": without, "na": [*how.na, *marks] * bool(marks),
        "missing": "drop" * rows,
    }  # fmt: skip
    what = [counted(len(left), "column")] * bool(left) + ["rows that lack a value"] * rows
    says = f"{'correct the cells, or ' * bool(marks)}leave out {' and '.join(what)}"
    way = Advice(says, {name: value for name, value in options.items() if value})
    if not kept:
        way = Advice("no column is left: give files that have columns of numbers in common")
    elif not "".join([*options["columns"], *without]).isprintable():
        way = Advice("give these columns names that can be typed")
    meant = [Advice(f"rename {one.meant!r} in {one.file} to {one.column!r}")
             for one in unfit if one.meant is not None]  # fmt: skip
    fixed = not left.keys().isdisjoint(how.apart)
    return refusal(unfit, file=unfit[0].file, advice=[*meant[:1], *[way] * (not fixed)])


def _tell_doubts(tables: Sequence[Table], how: Reading) -> None:
    """Find columns and rows of doubtful meaning in all tables, and record them as guesses."""
    if len(tables) > 1 and not isinstance(tables[0].labels, list):
        tables[0].tell("it and the others have no names: columns are matched by position")
    if any(issparse(table.x) for table in tables):
        return
    for doubt in doubts.find(tables[0].names, [table.x for table in tables]):
        first, *others = (tables[i] for i in doubt.tables)
        option: dict[str, Any] = {}
        if doubt.values:
            option = {"na": [*dict.fromkeys([*how.na, *doubt.values])], "missing": "drop"}
        elif doubt.columns:
            option = {"without": [*how.without, *doubt.columns]}
        if doubt.values or not doubt.columns or how.columns is None:
            first.tell(doubt.what, *(table.path for table in others), **option)
