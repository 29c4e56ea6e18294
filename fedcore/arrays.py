"""Turn the numbers that users give, in containers of any library, into checked arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fedcore import sparse, words
from fedcore.errors import Advice, InputError
from fedcore.sparse import SparseRows
from fedcore.words import counted

FLOATS = np.dtype(np.float32), np.dtype(np.float64)


def as_array(given: Any, who: str) -> np.ndarray:
    """Return a container's values as a NumPy array.

    Raises
    ------
    InputError
        If the object is no container of plain values (but text, a set, a generator or records, for
        example), or if an array would lose its sparsity, masks or labels.
    """
    if np.ma.is_masked(given):
        raise InputError(f"{who} has masked values: fill them with .filled(value), or drop them")
    if hasattr(given, "toarray"):
        raise InputError(f"{who} must be dense, got {kind_of(given)}: give .toarray() of it")
    if hasattr(given, "coords") and hasattr(given, "to_pandas"):
        raise InputError(
            f"{who} is {kind_of(given)}, with labels of its own: give .to_pandas() of it"
        )
    if isinstance(given, str | bytes | bytearray | Set | Iterator | Mapping):
        raise InputError(f"{who} must be a list or an array, got {kind_of(given)}")
    lacking = False
    if isinstance(given, Sequence):
        for i, part in enumerate(given):
            if isinstance(part, float | int | str) and part == part:
                continue  # what most lists hold
            if hasattr(getattr(part, "index", None), "tolist") or isinstance(part, Mapping):
                raise InputError(
                    f"{who}[{i}] is {kind_of(part)} in a list: give one data frame for all"
                )
            lacking = lacking or is_missing(part)
    try:
        # NumPy would have pandas change the process's warnings, for a moment. Arrow's own refuses
        # what it has to copy.
        own = hasattr(given, "to_numpy") and not hasattr(given, "to_pylist")
        values = np.empty(len(given), object) if lacking else given.to_numpy() if own else given
        values = np.asarray(values)
        if lacking:  # as text, NumPy would take a missing value for one
            values[:] = given
    except Exception as error:  # other libraries' containers raise what they like
        said = str(error).partition("\n")[0]
        raise InputError(
            f"{who} must be a list or an array, and none can be made of {kind_of(given)}: {said}"
        ) from error
    if values.dtype.names or (values.dtype == object and values.ndim == 0):
        raise InputError(f"{who} must be a list or an array, got {kind_of(given)}")
    return values


def floats(given: Any, who: str) -> np.ndarray:
    """Return the numbers in any container as float64, in the order in which they stand.

    Raises
    ------
    InputError
        As in `as_array` and `numbers`.
    """
    return numbers(as_array(given, who), who)


def numbers(values: np.ndarray, who: str) -> np.ndarray:
    """Return values as float64, missing ones as NaN.

    Raises
    ------
    InputError
        When they are no numbers.
    """
    if values.dtype == object:
        parts = values.ravel().tolist()
        plain = [np.nan if is_missing(part) else part for part in parts]
        if all(isinstance(part, Real | Decimal | np.bool_) for part in plain):
            try:
                return np.array([float(part) for part in plain]).reshape(values.shape)
            except OverflowError as error:
                raise InputError(f"{who} must hold numbers: {error}") from error
        wrong = next(p for p in plain if not isinstance(p, Real | Decimal | np.bool_))
        raise InputError(f"{who} must hold numbers, and has {kind_of(wrong)}")
    if values.dtype.kind not in "biuf":
        raise InputError(f"{who} must hold numbers, and has {values.dtype}")
    return values.astype(np.float64)


def missing(values: np.ndarray) -> np.ndarray:
    """Return where an array of any type lacks a value: None, NaN, NaT, NA or an empty text."""
    if values.dtype.kind in "biufcmM":
        return np.isnan(values)
    return np.array([_lacks(value) for value in values.tolist()], bool)


def _lacks(value: Any) -> bool:
    return not value.strip() if isinstance(value, str | bytes) else is_missing(value)


def is_missing(value: Any) -> bool:
    """Whether an object is some library's mark of a missing value."""
    if value is None or value is np.ma.masked or np.ma.is_masked(value):
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # pandas' NA has no truth, Decimal's sNaN no equal
        return True
    except ValueError:  # an array
        return False


def kind_of(value: Any) -> str:
    """Return what messages call an object: its class and package, or a text itself."""
    if isinstance(value, str):
        return f"the text {value!r}"
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    return kind.__name__ if module == "builtins" else f"{kind.__name__} of {module}"


def check_matrices(clients: Sequence[Any]) -> list[Any]:
    """Check one matrix per client, dense or sparse, of the same features in the same order.

    Returns
    -------
    list of ndarray, or list of SparseRows, of shape (n_i, d)
        float64 (float32 stays float32), C-contiguous; copied only if necessary.

    Raises
    ------
    InputError
        When there is no client, or a client is unfit or has names of columns. Only
        `fedcore.user_tables.matrices.check_clients` matches names.
    """
    checked: list[Any] = []
    for i, client in enumerate(clients):
        checked.append(_check_unnamed(client, i))
        require_same_form(checked)
    if not checked:
        raise InputError("there are no clients: a federation needs at least one")
    return checked


def check_each(clients: Iterable[Any]) -> Iterator[np.ndarray]:
    """Yield dense matrices that come one after the other, checked as `check_matrices` does.

    Raises
    ------
    InputError
        As `check_matrices`, and for a sparse matrix.
    """
    width = 0
    for i, client in enumerate(clients):
        matrix = _check_unnamed(client, i)
        if isinstance(matrix, SparseRows):
            sparse.refuse("a problem file")
        width = width or matrix.shape[1]
        require_width(matrix, i, width)
        yield matrix
    if not width:
        check_matrices([])  # says that one is needed


def _check_unnamed(client: Any, i: int) -> Any:
    if hasattr(client, "columns") or hasattr(client, "column_names"):
        raise InputError(
            f"{words.client(i)} has named columns, and nothing matches them here: give "
            "check_clients(clients), of fedcore.user_tables.matrices"
        )
    return check_array(client, words.client(i))


def check_labels_of(values: np.ndarray, who: str, dtype: Any) -> np.ndarray:
    """Return the labels of one client, one for each sample, in the precision of its samples.

    Raises
    ------
    InputError
        When they are no finite numbers.
    """
    y = numbers(values, f"the labels of {who}")
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise InputError(f"the labels of {who} have {y[row]} at row {row}")
    return y.astype(dtype)


def check_array(matrix: Any, who: str, order: Sequence[int] | None = None) -> Any:
    """Check one matrix without names and return it as `check_matrices` does.

    Messages call the matrix `who`. `order` has the numbers of the columns in the order in which the
    result is to have them; a sparse matrix keeps its own order.
    """
    _require_present(matrix, who)
    if hasattr(matrix, "toarray") or isinstance(matrix, SparseRows):
        return sparse.checked(matrix, who)
    data = as_array(matrix, who)
    if data.ndim != 2:
        raise InputError(
            f"{who}: expected a 2-D (samples, features) array, got {data.ndim}-D. Reshape your "
            "data: one row for each sample"
        )
    if 0 in data.shape:
        lacking = "sample" if data.shape[0] == 0 else "feature"
        raise InputError(
            f"{who} is empty and has 0 {lacking}(s) (shape={data.shape}) while a minimum of 1 is "
            "required. Drop it or give it samples"
        )
    if data.dtype.kind == "c":
        raise InputError(f"{who} is of {data.dtype}. Complex data not supported: give real numbers")
    if data.dtype.kind not in "biuf":
        data = numbers(data, who)
    if order is not None:
        data = data[:, order]
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        row, column = np.argwhere(~np.isfinite(data))[0]
        at = f"row {words.row(who, row)}, {words.feature(column)}"
        wrong = str(data[row, column]).replace("nan", "NaN")
        raise InputError(f"{who} has {wrong} at {at}")
    return np.ascontiguousarray(data)


def is_checked(matrix: Any) -> bool:
    """Whether `check_array` would return this matrix itself; then no error can need names."""
    if type(matrix) is not np.ndarray or matrix.ndim != 2 or not matrix.size:
        return False
    fits = matrix.dtype in FLOATS and matrix.flags.c_contiguous
    return bool(fits and np.isfinite(matrix.sum()))  # an overflow of the sum is looked at later


def require_same_form(checked: Sequence[Any]) -> None:
    """Require that the last client is as wide as the first, and sparse or dense as the first is."""
    first, last, i = checked[0], checked[-1], len(checked) - 1
    if isinstance(first, SparseRows) != isinstance(last, SparseRows):
        forms = ["sparse" if isinstance(m, SparseRows) else "dense" for m in (last, first)]
        raise InputError(
            f"{words.client(i)} is {forms[0]} and {words.client(0)} is {forms[1]}: make all "
            "sparse, by scipy.sparse.csr_array, or all dense, by .toarray()"
        )
    require_width(last, i, first.shape[1])


def require_width(matrix: Any, i: int, n_features: int) -> None:
    """Require that client `i` has as many features as client 0."""
    if matrix.shape[1] != n_features:
        own = counted(matrix.shape[1], "feature")
        raise InputError(f"{words.client(i)} has {own}, {words.client(0)} has {n_features}")


def require_no_path(value: Any, who: str) -> None:
    """Refuse the path of a file, and say which function reads such files."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        call = f"from fedcore.user_tables import own_files; matrix = own_files.read({path!r}).x"
        read = Advice("read it", call=call)
        raise InputError(f"{who} is a text and no matrix; if it is a path", advice=[read])


def _require_present(client: Any, who: str) -> None:
    if client is None:
        raise InputError(f"{who} is None; leave it out or give it a matrix")
    require_no_path(client, who)
