"""Checks of values; a failed check raises an `InputError` that names the value.

The type annotation of a function's parameter declares its valid values, as in ``rounds:
Annotated[int, whole(0)]`` or its short form ``rounds: CountOrZero``. `check_annotated` checks
values against annotations.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from math import inf
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_type_hints

import numpy as np

from fedcore.errors import FedcoreError, InputError, nearest, require_known

Given = ParamSpec("Given")
Value = TypeVar("Value")
Check = Callable[[Any, str], None]  # of a value and its name


@dataclass(frozen=True)
class Rule:
    """Rule that says which values are valid.

    Attributes
    ----------
    words : str
        Description of the valid values, such as "a whole number of at least 1".
    admits : callable
        Function that returns whether a value is valid.
    known : tuple of str
        All valid values, if the values are words.
    """

    words: str
    admits: Callable[[Any], bool]
    known: tuple[str, ...] = ()

    def __call__(self, value: Any, name: str) -> None:
        """Raise an `InputError` that mentions `name` unless `value` is valid."""
        if not self.admits(value):
            if self.known:
                hint = nearest(str(value), self.known)
                raise InputError(f"{name} = {value!r} is unknown: {hint}")
            raise InputError(f"{name} must be {self.words}, got {value!r}")


@cache  # rules are asked for many times a run
def whole(least: int) -> Rule:
    """Return the rule that admits whole numbers of Python or NumPy, but no booleans.

    Parameters
    ----------
    least : int
        The smallest valid number.
    """

    def admits(value: Any) -> bool:
        number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return number and value >= least

    return Rule(f"a whole number of at least {least}", admits)


@cache
def real(
    *, above: float = -inf, least: float = -inf, below: float = inf, most: float = inf
) -> Rule:
    """Return the rule that admits finite real numbers of Python or NumPy, but no booleans.

    Parameters
    ----------
    above, below : float, optional
        Bounds that are not valid themselves.
    least, most : float, optional
        Bounds that are valid themselves.
    """
    bounds = {"above": above, "of at least": least, "below": below, "at most": most}
    said = " and ".join(f"{word} {end:g}" for word, end in bounds.items() if abs(end) < inf)

    def admits(value: Any) -> bool:
        x = value
        if type(value) is not float:  # what most calls give, at every release of noise
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                return False
            try:
                x = float(value)
            except OverflowError:
                return False
        return above < x < below and least <= x <= most

    return Rule(f"a finite number {said}".strip(), admits)


def one_of(known: Collection[str]) -> Rule:
    """Return the rule that a value is one of several words.

    Parameters
    ----------
    known : collection of str
        The valid words.
    """
    words = tuple(known)
    return Rule(
        f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words, words
    )


def _list_of(rule: Rule, words: str) -> Rule:
    """Return the rule for a non-empty list in which each value obeys `rule`."""

    def admits(value: Any) -> bool:
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
            return False
        return len(value) > 0 and all(map(rule.admits, value))

    return Rule(f"a list of {words}", admits)


FLAG = Rule("true or false", lambda value: isinstance(value, bool | np.bool_))
TEXT = Rule("a text", lambda value: isinstance(value, str))

POSITIVE, NON_NEGATIVE = real(above=0), real(least=0)

Count = Annotated[int, whole(1)]
CountOrZero = Annotated[int, whole(0)]
Counts = Annotated[Sequence[int], _list_of(whole(1), "whole numbers of at least 1")]
Numbers = Annotated[Sequence[float], _list_of(real(), "finite numbers")]
Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NON_NEGATIVE]
Share = Annotated[float, real(above=0, below=1)]


def as_python(value: Any) -> Any:
    """Return a number or boolean of NumPy or another library as Python's int, float or bool.

    Python's integers never overflow, unlike NumPy's short or unsigned integers. Other values are
    returned unchanged.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if real().admits(value) else value


@cache
def declared(owner: Callable[..., Any]) -> dict[str, tuple[list[Check], bool]]:
    """Return, for each annotated parameter of `owner`, its checks and whether None is valid.

    An annotation ``Annotated[kind, check]``, with or without ``| None``, declares that the value
    must pass ``check(value, name)``. A check is a `Rule` or another callable. An annotation may
    declare several checks. The annotation ``bool`` declares the check `FLAG`, which admits only
    true and false.

    Raises
    ------
    InputError
        Raised if an annotation uses a name that is imported only for type checkers.
    """
    try:
        hints = get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise InputError(
            f"annotations of {owner.__module__} cannot be read ({error}): import this name outside "
            "TYPE_CHECKING"
        ) from error
    found = {}
    for name, hint in hints.items():
        kinds = get_args(hint) if type(None) in get_args(hint) else (hint,)
        notes = [(FLAG,) if kind is bool else getattr(kind, "__metadata__", ()) for kind in kinds]
        if checks := [check for part in notes for check in part if callable(check)]:
            found[name] = (checks, type(None) in kinds)
    return found


def check_annotated(owner: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Check a mapping from parameter names to values against the annotations of `owner`."""
    for name, (checks, optional) in declared(owner).items():
        if name in values and not (optional and values[name] is None):
            for check in checks:
                check(values[name], name)


def check_names(
    owner: Callable[..., Any], names: Collection[str], what: str,
    given: Collection[str] = (), error: type[FedcoreError] = InputError,
) -> None:  # fmt: skip
    """Refuse unknown parameter names, and require the parameters without a default.

    Parameters
    ----------
    owner : callable
        Function or class that has the parameters.
    names : collection of str
        Parameter names to check.
    what : str
        Name of `owner` in the error message.
    given : collection of str
        Parameters that the caller sets itself, and that therefore must not be in `names`.
    error : type
        Class of the error.
    """
    fields = inspect.signature(owner).parameters
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = [name for name in fields if name not in given and fields[name].kind not in rest]
    for name in names:
        require_known(name, known, f"{what} has no parameter", error)
    for name in known:
        if name not in names and fields[name].default is inspect.Parameter.empty:
            raise error(f"{what} needs the parameter '{name}'")


def checked(function: Callable[Given, Value]) -> Callable[Given, Value]:
    """Decorate a function so that every call first checks the arguments against the annotations.

    NumPy's numbers are converted to Python's.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Given.args, **keywords: Given.kwargs) -> Value:
        given = signature.bind(*args, **keywords)
        for name, value in given.arguments.items():
            given.arguments[name] = as_python(value)
        check_annotated(function, given.arguments)
        return function(*given.args, **given.kwargs)

    return call


def require_valid(rule: Rule, /, **values: Any) -> None:
    """Raise an `InputError` unless all `values` obey `rule`.

    Parameters
    ----------
    rule : Rule
    **values : object
        Values to check; each keyword is the value's name in the error message.
    """
    for name, value in values.items():
        rule(value, name)


def require_rank(n_components: int, n_samples: int, n_features: int) -> None:
    """Require that an (n_samples, n_features) matrix can have rank `n_components`."""
    if n_components > min(n_samples, n_features):
        raise InputError(
            f"n_components = {n_components} is larger than min(n_samples, n_features) = "
            f"{min(n_samples, n_features)}: choose a smaller one"
        )


def require_start(start: np.ndarray, n_features: int, n_components: int) -> None:
    """Require a finite starting matrix of full rank and shape (n_features, n_components)."""
    if start.shape != (n_features, n_components):
        raise InputError(f"start has shape {start.shape}, expected ({n_features}, {n_components})")
    if not np.isfinite(start).all():
        raise InputError("start contains NaN or infinity")
    if np.linalg.matrix_rank(start) < n_components:
        raise InputError(
            f"start has rank {np.linalg.matrix_rank(start)}, expected {n_components}: give "
            "linearly independent columns"
        )


def require_tall(matrix: Any, n_features: int, who: str) -> None:
    """Require a matrix with `n_features` rows."""
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != n_features:
        raise InputError(f"{who} of shape {shape}: it needs {n_features} rows, one per feature")
