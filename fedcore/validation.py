"""Checks of hyper-parameters; each raises an `InputError` of one sentence that names the value."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_type_hints

import numpy as np

from fedcore.errors import InputError, nearest

Given = ParamSpec("Given")
Value = TypeVar("Value")


def require_at_least(minimum: int, **values: Any) -> None:
    """Require whole numbers of at least `minimum`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
            raise InputError(f"{name} must be a whole number of at least {minimum}, got {value!r}")


def require_positive(**values: Any) -> None:
    """Require finite numbers above zero."""
    for name, value in values.items():
        if not _is_finite(value) or value <= 0:
            raise InputError(f"{name} must be a finite number above 0, got {value!r}")


def require_non_negative(**values: Any) -> None:
    """Require finite numbers of zero or more."""
    for name, value in values.items():
        if not _is_finite(value) or value < 0:
            raise InputError(f"{name} must be a finite number of 0 or more, got {value!r}")


def require_one_of(known: Collection[str], **values: Any) -> None:
    """Require one of the names in `known`."""
    for name, value in values.items():
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{name} = {value!r} is unknown: {nearest(str(value), known)}")


def require_flag(**values: Any) -> None:
    """Require True or False; the word "false" of a command line would count as true."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{name} must be true or false, got {value!r}")


def check_annotated(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Run the checks that a function's annotations carry on those of its arguments in `values`.

    An annotation ``Annotated[kind, check]`` declares ``check(value, name)``, which raises an
    `InputError` or `ConfigError` that names the argument.
    """
    hints = get_type_hints(function, include_extras=True)
    for name in values.keys() & hints.keys():
        for check in getattr(hints[name], "__metadata__", ()):
            check(values[name], name)


def checked(function: Callable[Given, Value]) -> Callable[Given, Value]:
    """Decorate a function so that every call runs the checks of its annotations first."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Given.args, **keywords: Given.kwargs) -> Value:
        check_annotated(function, signature.bind(*args, **keywords).arguments)
        return function(*args, **keywords)

    return call


def as_floats(value: Any, name: str) -> np.ndarray:
    """Return `value` as a float64 array, or raise an `InputError` that names it."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers: {error}") from error


def require_rank(n_components: int, n_samples: int, n_features: int) -> None:
    """Require that a matrix of this size can have rank `n_components`."""
    if n_components > min(n_samples, n_features):
        raise InputError(
            f"n_components = {n_components} is larger than min(n_samples, n_features) = "
            f"{min(n_samples, n_features)}"
        )


def require_start(start: np.ndarray, n_features: int, n_components: int) -> None:
    """Require a finite, full-rank starting matrix of shape (n_features, n_components)."""
    if start.shape != (n_features, n_components):
        raise InputError(f"start has shape {start.shape}, expected ({n_features}, {n_components})")
    if not np.isfinite(start).all():
        raise InputError("start contains NaN or infinity")
    if np.linalg.matrix_rank(start) < n_components:
        raise InputError(f"start has rank {np.linalg.matrix_rank(start)}, expected {n_components}")


def require_tall(matrix: Any, n_features: int, who: str) -> None:
    """Require a matrix of shape (n_features, ·)."""
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != n_features:
        raise InputError(f"{who} of shape {shape}: it needs one row per feature, {n_features}")


def _is_finite(value: Any) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and math.isfinite(value)
