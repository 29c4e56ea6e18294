"""Counterfactuals: what must turn the outcome of a test.

The same values are held against something that must not hold, such as another printed number. A
test that would hold there, too, has no power, and its outcome is "undecided".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import mul
from typing import Any

from fedcore.reports import tables
from fedcore.repro.verdicts.claim_tests import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Numbers,
    Outcome,
    Values,
    margin_of,
    numbers_of,
    outcome_of,
)

SHIFT = 1.5  # factor on a printed number that must turn the outcome
FURTHER = 3.0  # factor on measured values that must take them over a limit


def turned(
    test: Mapping[str, Any], values: Values, state: str, *, spread: bool = True
) -> list[tuple[str, Outcome]]:
    """Return the counterfactuals that a test has by itself, in words, each with its outcome.

    What fails is asked whether it would hold if every run had come out as printed. What holds is
    held against a number half as large again and against half of it; values are taken three times
    as far towards or beyond a limit.
    """
    ((kind, given),) = test.items()
    numbers = numbers_of(values)
    if state == FAILS:
        perfect = [_perfect(kind, given)] * len(numbers)
        return [("every run as printed", outcome_of(test, perfect, spread=spread))]
    if kind == "holds":
        flipped = _each(numbers, lambda x: 1.0 - x)
        return [("every run turned round", outcome_of(test, flipped, spread=spread))]
    if kind in ("at_most", "at_least"):
        at_most = kind == "at_most"
        worse = _each(numbers, lambda x: x * FURTHER if (x > 0) == at_most else x / FURTHER)
        return [("values three times worse", outcome_of(test, worse, spread=spread))]
    if kind == "between":
        shifts = [(text, test, _each(numbers, change)) for text, change in _moved(given)]
    else:
        shifts = [
            (f"{_text(x)} printed", _with(test, x), numbers)
            for x in shifted(given["of"] if kind == "mean" else given, margin_of(kind, given))
        ]
    return [(what, outcome_of(one, moved, spread=spread)) for what, one, moved in shifts]


def shifted(printed: str | float, margin: float = 0.0) -> list[str | float]:
    """Return a printed number half as large again, and half of it, with as many digits.

    0 is shifted by three margins, or by 1 without a margin.

    Examples
    --------
    >>> shifted("337"), shifted("1.80e-06"), shifted(0.0, margin=0.5)
    (['506', '168'], ['2.70e-06', '9.00e-07'], [1.5, -1.5])
    """
    x = float(printed)
    step = 3 * margin or 1.0
    others = [x * SHIFT, x * (2.0 - SHIFT)] if x else [step, -step]
    return [_shown_like(printed, other) for other in others]


def scaled(
    test: Mapping[str, Any], values: Values, factor: float, *, spread: bool = True
) -> Outcome:
    """Return the outcome with values times a factor."""
    return outcome_of(test, _each(numbers_of(values), partial(mul, factor)), spread=spread)


def with_power(outcome: Outcome, others: Sequence[tuple[str, Outcome]]) -> tuple[Outcome, bool]:
    """Return an outcome after its counterfactuals, and whether all of them turned it.

    What holds is undecided if a counterfactual would hold as well.
    """
    same = [what for what, other in others if other.state == outcome.state]
    if outcome.state != HOLDS or not same:
        return outcome, not same
    lack = f"no power: it would also hold with {' or '.join(same)}"
    return replace(outcome, state=UNDECIDED, lack=lack), False


def _perfect(kind: str, given: Any) -> float:
    """Return a value that agrees with what is printed."""
    if kind == "between":
        return (given[0] + given[1]) / 2
    if kind in ("at_most", "at_least"):
        return float(given["limit"])
    return 1.0 if kind == "holds" else float(given["of"] if kind == "mean" else given)


def _each(numbers: Numbers, change: Callable[[float], float]) -> Numbers:
    """Return changed numbers; of a repeat that says nothing, nothing."""
    return [None if x is None else change(x) for x in numbers]


def _with(test: Mapping[str, Any], number: str | float) -> dict[str, Any]:
    """Return a test with another printed number."""
    ((kind, given),) = test.items()
    if kind != "mean":
        return {kind: number}
    # The margin stays what it was, as it says how exactly the printed number is known.
    return {kind: {**given, "of": number, "margin": margin_of(kind, given), "absolute": True}}


def _moved(given: Sequence[float]) -> list[tuple[str, Callable[[float], float]]]:
    """Return what makes values half as large again, and half; beyond an interval around 0."""
    low, high = given
    if low <= 0 <= high:
        beyond = 1.5 * (high - low) or 1.0
        return [("values off by three tolerances", lambda x: x + beyond)]
    factors = (SHIFT, 2.0 - SHIFT)
    return [(f"{tables.show(f)} times the values", partial(mul, f)) for f in factors]


def _shown_like(printed: str | float, value: float) -> str | float:
    """Return a number in the form of the printed one, so that it has as many digits."""
    if not isinstance(printed, str):
        return value
    mantissa, mark, _ = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{value:.{decimals}{'e' if mark else 'f'}}"


def _text(number: str | float) -> str:
    return number if isinstance(number, str) else tables.show(number)
