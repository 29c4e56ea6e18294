"""Data frames of pandas and polars, and tables of Arrow, by the rules of `columns`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import Advice, ColumnWarning, warn
from fedcore.problems.columns import (
    COUNTING,
    MINUS,
    OTHER,
    SHOWN,
    SPACES,
    UNNAMED,
    Unfit,
    absent,
    as_values,
    counts_rows,
    examined,
    identifies,
    is_missing,
    listed,
    number,
    refusal,
)
from fedcore.problems.labelled import column_names, require_distinct
from fedcore.words import for_each, row

Marks = Mapping[Any, Sequence[Any]]  # cells that are no number, by column
Signs = Sequence[tuple[str, str]]  # signs in numbers, and what to put for them


def _mend_pandas(texts: Marks, others: Marks, signs: Signs) -> str:
    """Return the call that makes marks missing values, and texts numbers."""
    marks = _listed(itertools.chain(*texts.values(), *others.values()))
    replaced = f".replace({marks}, float('nan'))" * (marks != "[]")
    for sign, other in signs:
        replaced += f".replace({f'[{sign}]'!r}, {other!r}, regex=True)"
    return replaced + ".astype(float)" * bool(texts)


def _mend_polars(texts: Marks, others: Marks, signs: Signs) -> str:
    """Return the call that makes marks missing values, and texts numbers."""
    calls = "".join(f".str.replace_all({a!r}, {b!r}, literal=True)" for a, b in signs)
    made = ""
    for columns, then in ((others, ""), (texts, f".str.strip_chars(){calls}.cast(float)")):
        marks = _listed(itertools.chain(*columns.values()))
        replaced = f".replace({marks}, None)" * (marks != "[]")
        if columns and replaced + then:
            made += f".with_columns(frame[c]{replaced}{then} for c in {[*columns]!r})"
    return made


class Calls(NamedTuple):
    """What to call on the frames of a library.

    Attributes
    ----------
    columns : callable
        Returns the columns of a frame.
    drop, rows : str
        Calls that leave out columns, and rows that lack a value.
    mend : callable, optional
        Returns the call that makes marks missing values, and texts numbers.
    pandas : str
        Call that makes a frame of pandas of it, before `mend`.
    """

    columns: Callable[[Any], list[Any]]
    drop: str
    rows: str
    mend: Callable[[Marks, Marks, Signs], str] | None = None
    pandas: str = ""


NONE_LEFT = Advice("no column is left: give frames that have columns of numbers in common")
# By an attribute of a library's frames.
FRAMES = {
    "iloc": Calls(lambda frame: [c for _, c in frame.items()], ".drop(columns={})", ".dropna()",
                  _mend_pandas),
    "get_columns": Calls(lambda frame: frame.get_columns(), ".drop({})",
                         ".fill_nan(None).drop_nulls()", _mend_polars),
    "column_names": Calls(lambda frame: frame.columns, ".drop_columns({})", ".drop_null()",
                          _mend_pandas, ".to_pandas()"),
    "__array__": Calls(lambda frame: [*np.asarray(frame).T], ".drop(columns={})", ".dropna()"),
}  # fmt: skip


def of_frame(frame: Any, names: Sequence[Any], who: str) -> np.ndarray:
    """Return the numbers of a data frame of pandas or polars, or of a table of Arrow.

    Raises
    ------
    TableError
        When a column is none of numbers, lacks values or is the index that pandas has written; it
        names all of them.
    """
    calls = _calls(frame)
    # NumPy would have pandas change the process's warnings.
    columns: Any = frame.to_numpy() if hasattr(frame, "iloc") else np.empty(0, object)
    if columns.dtype.kind not in "biuf":
        columns = calls.columns(frame)
    each = [*zip(names, columns if isinstance(columns, list) else columns.T, strict=True)]
    unfit = [Unfit(who, name, "index", "numbers the rows") for i, (name, column) in enumerate(each)
             if str(name).casefold() not in COUNTING
             and counts_rows(name, column, i == 0)]  # fmt: skip
    matrix, wrong = examined(names, columns, who, lambda i: f"row {row(who, i)}")
    if unfit := unfit + wrong:
        whole = {one.column for one in unfit if one.kind == "index"}
        cells = {one.column: _cells(column) for one in wrong for name, column in each
                 if name == one.column and name not in whole}  # fmt: skip
        left = [*dict.fromkeys(one.column for one in unfit if one.kind != "missing")]
        lacks = any(one.kind == "missing" and one.column not in left for one in unfit)
        drop = f"frame{calls.drop.format(left) * bool(left)}{calls.rows * lacks}"
        what = " and ".join(["columns"] * bool(left) + ["rows that lack a value"] * lacks)
        ways = _mends(calls, cells, unfit)
        if len(left) < len(each):
            ways.append(Advice(f"leave out {what}", call=drop))
        raise refusal(unfit, f"{who}: ", client=who, advice=ways or [NONE_LEFT])
    return matrix


def require_same(frames: Mapping[str, Any]) -> None:
    """Require that all frames have the same columns, in any order.

    Parameters
    ----------
    frames : mapping
        By what messages call the clients. Where one has no names of columns, nothing is required.

    Raises
    ------
    TableError
        It names all columns that only some have.
    """
    for who, frame in frames.items():
        require_distinct(frame, who)
    lists = {who: column_names(frame) for who, frame in frames.items()}
    known = {who: names for who, names in lists.items() if names is not None}
    if len(known) == len(lists) and not any(map(is_missing, itertools.chain(*known.values()))):
        if unfit := absent(known):
            lacking = {one.column for one in unfit}
            common = [name for name in known[next(iter(known))] if name not in lacking]
            call = for_each(_taken(frames.values(), common))
            way = Advice("give what all have", call=call) if common else NONE_LEFT
            raise refusal(unfit, client=unfit[0].file, advice=[way])


def require_names(frame: Any, who: str, names: Sequence[Any], whose: str) -> None:
    """Require that a frame has columns of these names, in any order.

    Raises
    ------
    TableError
        It names all columns that are too many or not there.
    """
    if unfit := absent({who: column_names(frame) or (), whose: names}):
        way = Advice("give all columns of the fit")
        if all(one.file == whose for one in unfit):
            way = Advice("give these columns alone", call=_taken([frame], names))
        raise refusal(unfit, f"{who}: ", client=who, advice=[way])


def _taken(frames: Iterable[Any], names: Sequence[Any]) -> str:
    """Return the call that takes columns of a frame, whichever of these it is."""
    calls = f"frame[{names!r}]", f"frame.select({names!r})"
    arrow = {hasattr(frame, "column_names") for frame in frames}
    return (
        calls[arrow.pop()] if len(arrow) == 1
        else f"{calls[1]} if hasattr(frame, 'select') else {calls[0]}"
    )  # fmt: skip


def tell(frame: Any, names: Sequence[Any], matrices: Sequence[Any]) -> None:
    """Warn of columns that may be row numbers of their writer, ids or dates.

    Parameters
    ----------
    frame : data frame
        That of the first client.
    names : sequence
        Of the columns.
    matrices : sequence of ndarray
        The numbers of all clients.
    """
    told = [
        name for i, name in enumerate(names)
        if UNNAMED.fullmatch(str(name).strip())
        or any(counts_rows(name, x[:, i], i == 0) for x in matrices)
        or all(identifies(x[:, i]) for x in matrices)
    ]  # fmt: skip
    if told:
        says = f"{listed(told)} may be row numbers, ids or dates, and count as measured"
        call = for_each(f"frame{_calls(frame).drop.format(told)}")
        warn(ColumnWarning(says, told, [Advice("to leave them out, give", call=call)]))


def _calls(frame: Any) -> Calls:
    return next(calls for form, calls in FRAMES.items() if hasattr(frame, form))


def _cells(column: Any) -> list[Any]:
    """Return what a column holds, without missing values; nothing of one that holds codes."""
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    coded = kind.lower().startswith(("categor", "dictionary", "enum"))
    return [] if coded else [v for v in as_values(column).tolist() if not is_missing(v)]


def _value(cell: Any, point: str) -> float:
    """Return the number that a cell stands for; infinity or NaN for none."""
    if isinstance(cell, str):
        return number(cell, point)
    return float(cell) if isinstance(cell, Real | Decimal | np.bool_) else np.inf


def _mends(calls: Calls, cells: Mapping[Any, list[Any]], unfit: Sequence[Unfit]) -> list[Advice]:
    """Return what makes numbers of the columns, for each sign that may be their decimal point."""
    each = {point: _marks(cells, point) for point in OTHER} if calls.mend else {}
    most, ways = max(map(len, each.values()), default=0), list[Advice]()
    for point, marks in each.items():
        texts = [name for name in marks if any(isinstance(cell, str) for cell in cells[name])]
        kept = "".join(c for name in texts for c in cells[name]
                       if isinstance(c, str) and c not in marks[name])  # fmt: skip
        signs = [(sign, plain) for sign, plain in (
            *((sign, "") for sign in OTHER[point] + SPACES[1:-1]), (MINUS, "-"), (",", ".")
        ) if sign in kept and (plain != "." or point == ",")]  # fmt: skip
        shown = point == "." or {*kept} & {*OTHER}
        if len(marks) == most and (texts or any(marks.values())) and shown:
            ways.append(_mended(calls, marks, texts, point, signs, unfit))
    return ways


def _marks(cells: Mapping[Any, list[Any]], point: str) -> Marks:
    """Return the cells that are no number with this decimal point, of columns that have few."""
    found = {}
    for name, own in cells.items():
        bad = [cell for cell in own if not np.isfinite(_value(cell, point))]
        if all(isinstance(cell, str | float) for cell in bad) and 2 * len(bad) <= len(own):
            marks = [*dict.fromkeys(bad)]
            other = any(np.isfinite(_value(mark, OTHER[point])) for mark in marks)
            if own and len(marks) <= SHOWN and not other:
                found[name] = marks
    return found


def _mended(
    calls: Calls, marks: Marks, texts: Sequence[Any], point: str, signs: Signs,
    unfit: Sequence[Unfit],
) -> Advice:  # fmt: skip
    """Return the call that makes numbers of the columns of `marks`, and leaves out the others."""
    assert calls.mend is not None
    left = [*dict.fromkeys(one.column for one in unfit if one.column not in marks)]
    lacks = any(marks.values()) or any(o.kind == "missing" and o.column in marks for o in unfit)
    others = {name: own for name, own in marks.items() if own and name not in texts}
    made = calls.mend({name: marks[name] for name in texts}, others, signs)
    rows = (FRAMES["iloc"] if calls.pandas else calls).rows * lacks
    drop = calls.drop.format(left) * bool(left)
    what = ["leave out columns"] * bool(left)
    what += [f"take '{point}' for the decimal point"] * any(sign[0] == "," for sign in signs)
    what += ["leave out rows that lack a number"] * lacks
    return Advice(" and ".join(what) or "read texts as numbers",
                  call=f"frame{drop}{calls.pandas}{made}{rows}")  # fmt: skip


def _listed(marks: Iterable[Any]) -> str:
    """Return a list of texts and infinities as Python reads it."""
    every = dict.fromkeys(repr(m) if isinstance(m, str) else f"float('{m}')" for m in marks)
    return f"[{', '.join(every)}]"
