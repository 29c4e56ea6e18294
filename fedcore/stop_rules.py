"""Rules that end a run, depending on the newest row of numbers that the run has recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from fedcore.errors import ConfigError, InputError, nearest, require_known
from fedcore.validation import NON_NEGATIVE, require_valid

StopRule = Callable[[Mapping[str, float]], bool]
KINDS = ("at_most", "relative_change")


class StopRules:
    """Rule that ends a run as soon as each of several rules has held at least once.

    The record of one run thus shows for each rule how many rounds pass until the rule holds.

    Parameters
    ----------
    rules : mapping of str to mapping
        Mapping from the name of a recorded column to the column's rules. ``{"at_most": x}`` holds
        if the value is x or less. ``{"relative_change": x}`` holds if the change from the previous
        value is at most x times the new absolute value.

    Notes
    -----
    In a private run, a rule on a column that the privacy guarantee does not cover raises an
    `InputError`.
    """

    def __init__(self, rules: Mapping[str, Mapping[str, float]]) -> None:
        for column, rule in rules.items():
            for kind, limit in rule.items():
                require_known(kind, KINDS, f"stop, {column}: no rule")
                require_valid(NON_NEGATIVE, **{f"{column}.{kind}": limit})
        self._open = {(c, kind): limit for c, rule in rules.items() for kind, limit in rule.items()}
        self._before: dict[str, float] = {}

    def __call__(self, row: Mapping[str, float]) -> bool:
        """Evaluate the rules on a new recorded row, and return whether the run ends."""
        for (column, kind), limit in list(self._open.items()):
            try:
                value = row[column]
            except KeyError:
                raise ConfigError(f"stop: no column '{column}': {nearest(column, row)}") from None
            if _holds(kind, limit, value, self._before.get(column)):
                del self._open[column, kind]
        self._before = dict(row)
        return not self._open


def require_released(columns: Iterable[str], released: Collection[str]) -> None:
    """Raise an `InputError` if one of `columns`, which a stop rule reads, is not in `released`."""
    for name in columns:
        if name not in released:
            raise InputError(
                f"stop: '{name}' is not released in a private run, and the end of the run would "
                f"reveal it: a rule may read {', '.join(sorted(released))}"
            )


def _holds(kind: str, limit: float, value: float, before: float | None) -> bool:
    if kind == "at_most":
        return value <= limit
    return before is not None and abs(value - before) <= limit * abs(value)
