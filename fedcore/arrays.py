"""Turn users' lists and arrays, from any library, into checked NumPy arrays."""

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
    """Return the values of a list or array of any library as a NumPy array.

    Raises
    ------
    InputError
        Raised for an object that is not a list or array, such as a string, a set or a generator.
        Raised also for sparse, masked or labelled data, because a NumPy array would lose the zeros'
        positions, the mask or the labels.
    """
    if np.ma.is_masked(given):
        raise InputError(f"{who} has masked values: fill them with .filled(value), or drop them")
    if hasattr(given, "toarray"):
        raise InputError(f"{who} must be dense, got {kind_of(given)}: call .toarray() on it")
    if hasattr(given, "coords") and hasattr(given, "to_pandas"):
        raise InputError(
            f"{who} is {kind_of(given)}, with labels of its own: call .to_pandas() on it"
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
            f"{who} must be a list or an array, but {kind_of(given)} cannot be made one: {said}"
        ) from error
    if values.dtype.names or (values.dtype == object and values.ndim == 0):
        raise InputError(f"{who} must be a list or an array, got {kind_of(given)}")
    return values


def floats(given: Any, who: str) -> np.ndarray:
    """Return the numbers in a list or array of any library as a float64 array.

    Raises
    ------
    InputError
        Raised for the objects that `as_array` or `numbers` refuses.
    """
    return numbers(as_array(given, who), who)


def numbers(values: np.ndarray, who: str) -> np.ndarray:
    """Return an array's values as float64, with NaN for missing values.

    Raises
    ------
    InputError
        Raised if a value is neither a number nor missing.
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
        raise InputError(f"{who} must hold numbers, but has {kind_of(wrong)}")
    if values.dtype.kind not in "biuf":
        raise InputError(f"{who} must hold numbers, but has {values.dtype}")
    return values.astype(np.float64)


def missing(values: np.ndarray) -> np.ndarray:
    """Return a mask of the missing values (None, NaN, NaT, NA or empty text) of an array."""
    if values.dtype.kind in "biufcmM":
        return np.isnan(values)
    return np.array([_lacks(value) for value in values.tolist()], bool)


def _lacks(value: Any) -> bool:
    return not value.strip() if isinstance(value, str | bytes) else is_missing(value)


def is_missing(value: Any) -> bool:
    """Return whether an object marks a missing value, such as None, NaN or pandas' NA."""
    if value is None or value is np.ma.masked or np.ma.is_masked(value):
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # pandas' NA has no truth, Decimal's sNaN no equal
        return True
    except ValueError:  # an array
        return False


def kind_of(value: Any) -> str:
    """Describe a value for error messages: a string by its text, another object by its class."""
    if isinstance(value, str):
        return f"the text {value!r}"
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    return kind.__name__ if module == "builtins" else f"{kind.__name__} of {module}"


def check_matrices(clients: Sequence[Any]) -> list[Any]:
    """Check one dense or sparse matrix per client, and require equal numbers of features.

    Returns
    -------
    list of ndarray, or list of SparseRows, of shape (n_i, d)
        C-contiguous matrices of type float64 (float32 stays float32), copied only if necessary.

    Raises
    ------
    InputError
        Raised if there is no client, or if a matrix is not a finite 2-D array. Raised if matrices
        differ in width, or if only some are sparse. Raised if columns have names;
        `fedcore.user_tables.matrices.check_clients` matches columns by name.
    """
    checked: list[Any] = []
    for i, client in enumerate(clients):
        checked.append(_check_unnamed(client, i))
        require_same_form(checked)
    if not checked:
        raise InputError("there are no clients: a federation needs at least one")
    return checked


def check_each(clients: Iterable[Any]) -> Iterator[np.ndarray]:
    """Check the clients' dense matrices as `check_matrices` does, and yield them one by one.

    Raises
    ------
    InputError
        Raised for a sparse matrix, and for all clients that `check_matrices` refuses.
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
            f"{words.client(i)} has named columns, which are not matched here: give "
            "check_clients(clients), from fedcore.user_tables.matrices, instead of clients"
        )
    return check_array(client, words.client(i))


def check_labels_of(values: np.ndarray, who: str, dtype: Any) -> np.ndarray:
    """Return one client's labels as an array of type `dtype`.

    Raises
    ------
    InputError
        Raised if a label is not a finite number.
    """
    y = numbers(values, f"the labels of {who}")
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        place = words.row(who, row)
        raise InputError(
            f"the labels of {who} have {y[row]} at row {place}: give every sample a finite label"
        )
    return y.astype(dtype)


def check_array(matrix: Any, who: str, order: Sequence[int] | None = None) -> Any:
    """Check one matrix and return it as a float array or `SparseRows`; ignore its column names.

    Error messages call the matrix `who`. If `order` is given and the matrix is dense, the result
    has the columns with these numbers, in this order.
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
            "required. Drop it or give it data"
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
        raise InputError(f"{who} has {wrong} at {at}: drop this row or replace the value")
    return np.ascontiguousarray(data)


def is_checked(matrix: Any) -> bool:
    """Return True if a fast test proves that `check_array` would not change the matrix."""
    if type(matrix) is not np.ndarray or matrix.ndim != 2 or not matrix.size:
        return False
    fits = matrix.dtype in FLOATS and matrix.flags.c_contiguous
    return bool(fits and np.isfinite(matrix.sum()))  # an overflow of the sum is looked at later


def require_same_form(checked: Sequence[Any]) -> None:
    """Require that the last matrix is as wide as the first, and is sparse only if the first is."""
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
        raise InputError(
            f"{words.client(i)} has {own}, but {words.client(0)} has {n_features}: give all "
            "clients the same features"
        )


def require_no_path(value: Any, who: str) -> None:
    """Refuse a path in place of a matrix; the error shows how to read the file."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        call = f"from fedcore.user_tables import own_files; matrix = own_files.read({path!r}).x"
        read = Advice("read the file", call=call)
        raise InputError(f"{who} must be a matrix, got a text or a path", advice=[read])


def _require_present(client: Any, who: str) -> None:
    if client is None:
        raise InputError(f"{who} is None; leave it out or give it a matrix")
    require_no_path(client, who)
