"""Readers of users' tables, one for each file format."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from fedcore import sparse
from fedcore.errors import Advice, InputError
from fedcore.files import libsvm
from fedcore.user_tables import claimed_sizes, names
from fedcore.user_tables.columns import SHOWN
from fedcore.user_tables.dialect import Lines, Text, find_separator
from fedcore.user_tables.numbers import OTHER, Cells, number
from fedcore.user_tables.table import EMPTY_TABLE, Reading, Table, fault
from fedcore.words import counted


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
    """Return the table in a CSV file; find its separator, column names and numbers."""
    arrow, text = _arrow(path), Text(path, how)
    sign, width, lines = find_separator(path, text, how)
    text.require_closed(sign)
    first, named = _names(path, lines, width, how)
    top = lines[0][0] if named else text.skip
    ends = [first[width:], *(row[len(first) :] for _, row in lines if len(row) == width)]
    if not any(map(any, ends)):  # lines end with a separator, or those below the names
        first = [*first, *[""] * width][:width]
    columns, uneven, blank = _parsed(arrow, text, sign, len(first), top)
    few = 2 * sum(len(row) != len(first) for _, row in lines) < len(lines)
    if uneven and not (few and how.missing == "drop"):
        raise _uneven(path, text, sign, first, top, few)

    def place(row: int) -> str:
        even = (line for line, cells in text.rows(sign) if len(cells) == len(first) and line > top)
        return f"line {next(itertools.islice(even, row, None), row)}"

    labels = [cell or f"Unnamed: {i}" for i, cell in enumerate(first)] if named else range(width)
    table = Table(path, labels, columns, place=place)
    if text.skip and how.skip_lines:
        table.tell(f"{counted(text.skip, 'line')} at the top left out")
    if not named and how.header is None:
        table.tell(f"line {lines[0][0]} has numbers and no names", header=True)
    if sign != "," and not how.delimiter and len(first) > 1:
        other = {"delimiter": ","} if any(len(row) > 1 for _, row in text.sample(",")) else {}
        table.tell(f"{sign!r} separates the columns", **other)
    if uneven:
        table.tell(f"{counted(uneven, 'line')} with another number of cells left out")
    above = itertools.islice(io.BytesIO(text.data), text.skip, top)
    blank += sum(not line.decode().strip() and line not in (b"\n", b"\r\n") for line in above)
    if blank := blank + text.blank_lines():
        table.tell(f"{counted(blank, 'blank line')} left out")
    return _of_texts(table, how)


def _names(path: str, lines: Lines, width: int, how: Reading) -> tuple[list[str], bool]:
    """Return the first row, and whether the first row has the column names."""
    rows = [["" if cell in how.na else cell for cell in row] for _, row in lines]
    if len(rows) <= (how.header is not False):
        above = [counted(how.skip_lines, "skipped line")] * (how.skip_lines > 0)
        above += [f"'{' '.join(row):.40}'" for row in rows]
        if not above:
            raise fault(path, EMPTY_TABLE)
        says = f" has no numbers below {' and '.join(above)}"
        raise fault(path, says, ("add numbers, or leave the file out",))
    named, at = how.header, 0
    if named is None and (found := names.head(rows, width)) is not None:
        named, at = True, found
    elif named is None and not names.may_be_names(rows[0]):
        named = False
    line, first = lines[0]
    if at:
        skip = lines[at - 1][0]
        says = f", line {line}: '{' '.join(first):.40}' stands above the names in line {skip + 1}"
        ways = [("delete what is above, or, if all files have as much", {"skip_lines": skip})]
        raise fault(path, says, *ways, row=line - 1)
    if named is None:
        says = f"({', '.join(first[:3])}{', …' * (width > 3)}) may be names or numbers"
        ways = [("it has names", {"header": True}), ("none", {"header": False})]
        raise fault(path, f", line {line} {says}", *ways)
    return first, named


def _parsed(arrow: Any, text: Text, sign: str, width: int, top: int) -> tuple[list[Any], int, int]:
    """Return columns of texts, the number of lines with another width, and that of blank lines."""
    texts = {str(i): arrow.string() for i in range(width)}
    skipped = list[str]()

    def skip(row: Any) -> str:
        skipped.append(row.text)
        return "skip"

    columns = arrow.csv.read_csv(
        io.BytesIO(text.data),
        arrow.csv.ReadOptions(column_names=[*texts], skip_rows=top),
        arrow.csv.ParseOptions(delimiter=sign, newlines_in_values=True, invalid_row_handler=skip),
        arrow.csv.ConvertOptions(column_types=texts),
    ).columns
    uneven = sum(map(bool, map(str.strip, skipped)))
    return [*map(arrow.compute.utf8_trim_whitespace, columns)], uneven, len(skipped) - uneven


def _uneven(path: str, text: Text, sign: str, first: list[str], top: int, few: bool) -> Exception:
    width = len(first)
    odd = ((line, len(row)) for line, row in text.rows(sign) if line > top and len(row) != width)
    line, cells = next(odd, (top + 1, "another number of cells"))
    way = "give every line as many"
    if cells == width + 1 and not few:
        way = "name all columns: R does by write.csv, or write.table with col.names = NA"
    ways = [(way, {}), *[("leave it out", {"missing": "drop"})] * few]
    says = f", line {line}: {counted(cells, 'cell')}, and the first line has {width}"
    return fault(path, says, *ways, row=line)


def _of_texts(table: Table, how: Reading) -> Table:
    """Convert a table of texts to numbers; find out whether dot or comma is the decimal point."""
    labels, texts = table.names, table.x
    _, other = names.match([how.asked, labels])  # which another file may spell in its own way
    called = [other.get(name, name) for name in labels]
    at = [i for i, name in enumerate(called) if how.keeps(name) or name in how.apart]
    cells = Cells([texts[i] for i in at], how.decimal, how.na)
    own = [labels[i] for i in at]
    if cells.doubts.any():
        place, text = cells.longest(cells.doubts)
        column, row = divmod(place, len(texts[0]))
        reads = {point: f"{number(text, point):.15g}" for point in sorted(OTHER)}
        slip = "correct the cells, or go on if " * cells.shown[cells.point]
        ways = [(f"{slip}it is {value}", {"decimal": point}) for point, value in reads.items()
                if point == cells.point or not cells.shown[OTHER[point]]]  # fmt: skip
        where = f", {table.named(row)}, column '{own[column]}'"
        says = f"{where}: '{text}' is {' or '.join(reads.values())}"
        raise fault(table.path, says, *ways, row=row, column=own[column])
    apart = [called[i] in how.apart for i in at]
    for i, numbers in enumerate(cells.numbers()[: len(at)]):
        texts[at[i]] = cells.texts(i) if apart[i] else numbers
    for what in cells.told(own, apart):
        table.tell(what)
    return table


def _parquet(path: str, how: Reading) -> Table:
    file = _arrow(path).parquet.ParquetFile(path)
    claimed_sizes.require_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
    table = file.read()
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    return Table(path, table.column_names, table.columns, index=index)


def _npz(path: str, how: Reading) -> Table:
    heads = claimed_sizes.heads(Path(path))
    if {"format", "shape", "data"} <= heads.keys():  # as scipy.sparse.save_npz writes it
        matrix = scipy.sparse.load_npz(path)
        claimed_sizes.require_shape(path, *matrix.shape)
        return Table(path, range(matrix.shape[1]), sparse.checked(matrix, path).matrix)
    shapes = {name: shape for name, (shape, _) in heads.items()}
    able = [name for name, shape in shapes.items() if shape and all(shape) and name != "columns"]
    tables = [name for name in able if len(shapes[name]) == 2]
    chosen = [name for name in able if name == how.matrix] or tables
    if len(chosen) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
        says = f" holds {found}; a table has one matrix, a row per sample, and vectors beside it"
        ways = [(f"take '{name}'", {"matrix": name}) for name in tables or able][:SHOWN]
        raise fault(path, says, *ways)
    headed = how.header is not False and "columns" in heads
    beside = {name for name, shape in shapes.items()
              if shape == shapes[chosen[0]][:1] and (name != "columns" or not headed)}  # fmt: skip
    for name in [*chosen, *["columns"] * headed, *beside.intersection(how.apart)]:
        kinds, kind = ("biuf" if name in chosen else "biufSU"), heads[name][1]
        if kind.kind not in kinds:
            way = "save it anew with .astype(str)"
            if name in chosen:
                plain = kind.kind in "OSU"
                way = "save it anew with .astype(float)" if plain else "save numbers in its place"
            raise fault(path, f": '{name}' holds {kind.name}", (way,), column=name)
    loaded = np.load(path, allow_pickle=False)
    arrays = {"x": loaded} if isinstance(loaded, np.ndarray) else loaded
    x: Any = arrays[chosen[0]]
    x = x.reshape(len(x), -1)
    labels: Any = range(x.shape[1])
    if headed:
        labels = np.ravel(arrays["columns"]).astype(str).tolist()
        if len(labels) != x.shape[1]:
            says = f": 'columns' names {len(labels)} of {x.shape[1]} columns"
            raise fault(path, says, ("save it with all names, or without 'columns'",))
    vectors = {name: arrays[name] if name in how.apart or heads[name][1].kind in "SU" else None
               for name in beside}  # fmt: skip
    return Table(path, labels, x, vectors)


def _libsvm(path: str, how: Reading) -> Table:
    first = int(not how.zero_based)
    labels, queries, x, left_out = libsvm.table(Path(path), claimed_sizes.WIDEST, first)
    beside = {"label": labels, **({"qid": queries} if (queries != "").any() else {})}
    table = Table(path, range(first, x.shape[1] + first), x, beside, open_ended=True)
    if left_out:
        table.tell(f"{counted(left_out, 'line')} without a sample left out")
    return table


READERS: dict[str, Callable[[str, Reading], Table]] = {
    ".csv": _csv, ".tsv": _csv, ".txt": _csv, ".npz": _npz, ".npy": _npz,
    ".libsvm": _libsvm, ".svm": _libsvm, ".parquet": _parquet,
}  # fmt: skip
