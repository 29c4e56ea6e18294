"""Match a user's values to features, clients or rows by their labels.

Labels are the column names of a data frame, the index of a pandas object, or the keys of a mapping.
A pandas index 0, 1, 2, … counts as labels only if the features, clients or rows have the same
labels. Values without labels are matched by position.
An `InputError` is raised if labels do not match, a value is missing, or an object is no container
of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from fedcore.arrays import as_array, is_missing, kind_of, missing, numbers
from fedcore.errors import InputError
from fedcore.user_tables.columns import listed
from fedcore.user_tables.names import alike, clean
from fedcore.words import counted


class Features(NamedTuple):
    """Names and number of the clients' features.

    Attributes
    ----------
    names : list or None
        Names of the columns, if the clients are data frames.
    width : int
        Number of features.
    """

    names: list[Any] | None
    width: int


def column_names(matrix: Any) -> list[Any] | None:
    """Return a table's column names, changed by `clean`, or None for an object without names."""
    names = names_as_given(matrix)
    return None if names is None else as_they_look(names)


def names_as_given(matrix: Any) -> Any:
    """Return a data frame's or Arrow table's column names unchanged, or None for other objects."""
    if not hasattr(matrix, "__len__"):  # a query, as polars' LazyFrame
        return None
    names = getattr(matrix, "column_names", None)  # of Arrow, whose ``columns`` are values
    return names if isinstance(names, list) else getattr(matrix, "columns", None)


def row_labels(matrix: Any) -> list[Any] | None:
    """Return the index of a pandas object as a list, or None for an object without index."""
    index: Any = getattr(matrix, "index", None)
    return as_they_look(index.tolist()) if hasattr(index, "tolist") else None


def as_they_look(labels: Iterable[Any]) -> list[Any]:
    """Apply `clean` to the text labels, so that labels that look alike become equal."""
    return [clean(label) if isinstance(label, str) else label for label in labels]


def per_feature(given: Any, who: str, features: Features, *, axis: int = 0) -> np.ndarray:
    """Return a user's numbers for each feature, in the order of the features.

    Parameters
    ----------
    given : mapping, array-like or data frame
        Numbers; the columns or the index of a data frame name the features.
    who : str
        Name of `given` in messages.
    features : Features
        Names and number of the clients' features.
    axis : int
        Axis of the features in an array without labels.

    Returns
    -------
    ndarray
        Array of float64 with the features along its first axis. A single number becomes a
        0-dimensional array. The shape is not checked.

    Raises
    ------
    InputError
        If labels differ from the features' names, a value is missing, or `given` has no numbers.
    """
    values, rows, columns = _opened(given, who)
    wanted = range(features.width) if features.names is None else features.names
    if columns is not None:
        labels = (rows, columns)
        fits = [own is not None and Counter(own) == Counter(wanted) for own in labels]
        if not any(fits):
            noun, shown = ("columns", columns) if axis or rows is None else ("rows", rows)
            raise InputError(
                f"{who} is a table with the {noun} {listed(shown)}, and the features are "
                f"{listed(wanted)}: name its {noun} as the features, or give an array"
            )
        axis = axis if fits[axis] else 1 - axis
        rows = labels[axis]
    elif rows is not None:
        axis = 0
    if axis < values.ndim:
        values = np.moveaxis(values, axis, 0)
    if _say(rows, given, wanted):
        if (at := order_of(rows, wanted, who, "the clients' features have", "label")) is not None:
            values = values[at]
    found = numbers(values, who)
    if np.isnan(found).any():
        first = int(np.argwhere(np.isnan(found))[0][0]) if found.ndim else 0
        name = repr(wanted[first]) if len(found.shape[:1]) and len(found) == len(wanted) else first
        raise InputError(f"{who} has a missing value for the feature {name}: fill it in")
    return found


def per_client(
    given: Any, who: str, noun: str, names: Sequence[str] | None, count: int
) -> list[Any]:
    """Return a list of one value per client, in the order of the clients.

    Parameters
    ----------
    given : mapping, or iterable
        Mapping from the clients' names to values, or values in the order of the clients.
    who : str
        Name of `given` in messages.
    noun : str
        Word for the value of one client in messages.
    names : sequence of str or None
        Names of the clients, or None if they have no names.
    count : int
        Number of clients.

    Raises
    ------
    InputError
        If the number of values or their labels do not match the clients.
    """
    values = list(one_per_client(given, who, noun))
    own = as_they_look(given) if isinstance(given, Mapping) else row_labels(given)
    if own is not None and names is not None:
        own = [str(label) for label in own]
    wanted = range(count) if names is None else as_they_look(names)
    if _say(own, given, wanted):
        if (at := order_of(own, wanted, who, "the clients have", "name")) is not None:
            values = [values[i] for i in at]
    if len(values) != count:
        raise InputError(
            f"{who}: one {noun} is needed for each of {counted(count, 'client')}; got {len(values)}"
        )
    return values


def one_per_client(values: Any, who: str, noun: str) -> Sequence[Any]:
    """Return the values of an iterable or of a mapping, one per client, as a sequence.

    Raises
    ------
    InputError
        If `values` is a string, a set, a single matrix, or not iterable.
    """
    values = values.item() if getattr(values, "ndim", None) == 0 else values
    if isinstance(values, Mapping):
        return list(values.values())
    single = hasattr(values, "toarray") or column_names(values) is not None
    if single or isinstance(values, str | bytes | Set) or not isinstance(values, Iterable):
        raise InputError(
            f"{who} must be a list with one {noun} per client, or a mapping from the clients' "
            f"names, got {kind_of(values)}"
        )
    return values if isinstance(values, Sequence) else list(values)


def per_row(
    given: Any, who: str, count: int, rows: Sequence[Any] | None = None, has: str = "has"
) -> np.ndarray:
    """Return one value per row of a matrix, in the order of its rows.

    Parameters
    ----------
    given : mapping, array-like or Series
    who : str
        Name of `given` in messages.
    count : int
        Number of rows of the matrix.
    rows : sequence, optional
        Labels of the rows (default: their numbers). Without `rows`, `given` may have other whole
        numbers as labels, which are ignored, because an index has gaps after rows were dropped.
    has : str
        Verb that follows `who` in messages, such as "has".

    Returns
    -------
    ndarray of shape (count,)

    Raises
    ------
    InputError
        If labels differ from the rows' labels, a value is missing, the number of values is wrong,
        or `given` is no vector.
    """
    values, own, columns = _opened(given, who)
    if columns is not None or values.shape != (count,):
        raise InputError(
            f"{who} {has} shape {values.shape}, and the matrix has {counted(count, 'row')}: give "
            "one value per row"
        )
    wanted = range(count) if rows is None else rows
    if _say(own, given, wanted) and own != list(wanted):  # labels may occur twice in both
        rest = rows is None and all(isinstance(label, int) for label in own)
        if not (rest and {*own} != {*wanted}):
            if (at := order_of(own, wanted, who, "the rows have", "label")) is not None:
                values = values[at]
    if (lacking := missing(values)).any():
        first = int(lacking.argmax())
        raise InputError(
            f"{who} {has} {values[first]} at row {first}, a missing value: every row needs a value"
        )
    return values


def _say(own: list[Any] | None, given: Any, wanted: Sequence[Any]) -> TypeGuard[list[Any]]:
    """Return whether the labels `own` mean more than row numbers.

    A pandas index 0, 1, 2, … means more than row numbers only if `wanted` has the same labels.
    """
    if own is None:
        return False
    counts = list(own) == list(range(len(own)))
    return isinstance(given, Mapping) or not counts or Counter(own) == Counter(wanted)


def order_of(
    own: Sequence[Any], wanted: Sequence[Any], who: str, whose: str, noun: str
) -> list[int] | None:
    """Return the positions in `own` of the labels `wanted`, or None if the order is the same.

    `wanted` is a range of numbers if the clients, features or rows have no labels.

    Raises
    ------
    InputError
        If `own` does not have every wanted label exactly once, or has other labels.
    """
    if any(map(is_missing, own)):
        raise InputError(f"{who} has a {noun} that is missing: name it")
    if len({*own}) < len(own):
        name, times = Counter(own).most_common(1)[0]
        at = ", ".join(str(i) for i, label in enumerate(own) if label == name)
        says = f"{who} has {times} {noun}s named {name!r}, at positions {at}"
        raise InputError(f"{says}: rename all but one", client=who, column=name)
    if list(own) == list(wanted):
        return None
    if isinstance(wanted, range) and {*own} != {*wanted}:
        raise InputError(
            f"{who} has the {noun}s {listed(own)}, and {whose} none: give both with {noun}s, or "
            f"both in one order without {noun}s",
            client=who,
        )
    places, known = {name: i for i, name in enumerate(own)}, set(wanted)
    for name in wanted:
        if name not in places:
            close = alike(name, (label for label in own if label not in known))
            hint = "".join(f"; is it {label!r}?" for label in close)
            raise InputError(
                f"{who} has no {noun} {name!r}, which {whose}{hint}", column=name, client=who
            )
    for name in own:
        if name not in known:
            says = f"{who} has a {noun} {name!r}, which {whose} not: leave it out"
            raise InputError(says, column=name, client=who)
    return [places[name] for name in wanted]


def _opened(given: Any, who: str) -> tuple[np.ndarray, list[Any] | None, list[Any] | None]:
    """Return the values, the row labels and the column labels of an object."""
    if isinstance(given, Mapping):
        return as_array(list(given.values()), who), as_they_look(given), None
    return as_array(given, who), row_labels(given), column_names(given)
