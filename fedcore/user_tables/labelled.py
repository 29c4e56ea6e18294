"""Match values that users give per feature, per client or per row by their labels.

Clients' columns and every argument go through here. Labels are the names of a frame's columns, the
index of pandas, and the keys of a mapping; an index that counts 0, 1, 2, … does not count as
labels. Values without labels are taken by position. Values whose labels do not match, objects that
lack a value, and objects that are no containers of values are refused.
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
    """The clients' features.

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
    """Return the names in `names_as_given`, each as it looks, or None."""
    names = names_as_given(matrix)
    return None if names is None else as_they_look(names)


def names_as_given(matrix: Any) -> Any:
    """Return the column names of a data frame or an Arrow table; None for other objects."""
    if not hasattr(matrix, "__len__"):  # a query, as polars' LazyFrame
        return None
    names = getattr(matrix, "column_names", None)  # of Arrow, whose ``columns`` are values
    return names if isinstance(names, list) else getattr(matrix, "columns", None)


def row_labels(matrix: Any) -> list[Any] | None:
    """Return the index of a pandas object; None for an object without index."""
    index: Any = getattr(matrix, "index", None)
    return as_they_look(index.tolist()) if hasattr(index, "tolist") else None


def as_they_look(labels: Iterable[Any]) -> list[Any]:
    """Return labels with texts cleaned by `clean`, so that texts that look alike are equal."""
    return [clean(label) if isinstance(label, str) else label for label in labels]


def per_feature(given: Any, who: str, features: Features, *, axis: int = 0) -> np.ndarray:
    """Return numbers per feature, in the order of the features.

    Parameters
    ----------
    given : mapping, array-like or data frame
        A frame has the features as its columns or as its index.
    who : str
        What messages call it.
    features : Features
    axis : int
        Axis of the features in an array without labels.

    Returns
    -------
    ndarray
        float64, with the features along the first axis; a single number as it is. Its shape is not
        checked.

    Raises
    ------
    InputError
        For labels that differ from the features' names, a missing value, and an object without
        numbers.
    """
    values, rows, columns = _opened(given, who)
    wanted = range(features.width) if features.names is None else features.names
    if columns is not None:
        labels = (rows, columns)
        fits = [own is not None and Counter(own) == Counter(wanted) for own in labels]
        if not any(fits):
            raise InputError(
                f"{who} is a table with the columns {listed(columns)}, and the features are "
                f"{listed(wanted)}: name its columns as the features, or give an array"
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
    """Return what is given for each client, in the order of the clients.

    Parameters
    ----------
    given : mapping, or iterable
        Values by the names of the clients, or in their order.
    who : str
        What messages call it.
    noun : str
        What messages call the value of one client.
    names : sequence of str or None
        Names of the clients, if they have any.
    count : int
        How many clients there are.

    Raises
    ------
    InputError
        When there is not one value for each client, by the clients' names or in their order.
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
    """Return an iterable of one thing per client, or the values of a mapping, as a sequence.

    Raises
    ------
    InputError
        For a string, a set, one matrix, or an object that is not iterable.
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
    """Return values per row of a matrix, in the order of its rows.

    Parameters
    ----------
    given : mapping, array-like or Series
    who : str
        What messages call it.
    count : int
        How many rows there are.
    rows : sequence, optional
        Labels of the rows; by default their numbers. By default, labels of `given` that are other
        whole numbers are ignored, because they may be what is left of an index after rows were
        dropped.
    has : str
        Verb that follows `who` in messages, such as "has".

    Returns
    -------
    ndarray of shape (count,)

    Raises
    ------
    InputError
        For labels that differ from the rows' names, a missing value, another number of values, and
        an object that is no vector.
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
            f"{who} {has} {values[first]} at row {first}, a missing value: every row needs one"
        )
    return values


def _say(own: list[Any] | None, given: Any, wanted: Sequence[Any]) -> TypeGuard[list[Any]]:
    """Whether labels have a meaning: an index 0, 1, 2, … has one only if `wanted` equals it."""
    if own is None:
        return False
    counts = list(own) == list(range(len(own)))
    return isinstance(given, Mapping) or not counts or Counter(own) == Counter(wanted)


def order_of(
    own: Sequence[Any], wanted: Sequence[Any], who: str, whose: str, noun: str
) -> list[int] | None:
    """Return the places in `own` of the labels `wanted`; None if `own` has them in this order.

    `wanted` is a range of numbers if there are no labels.

    Raises
    ------
    InputError
        When `own` does not have every wanted label exactly once, or has other labels.
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
    """Return the values of an object, and the labels of its rows and of its columns."""
    if isinstance(given, Mapping):
        return as_array(list(given.values()), who), as_they_look(given), None
    return as_array(given, who), row_labels(given), column_names(given)
