"""Outcomes: how measured values stand to a printed one, by statistics over the repeats.

A test takes the values of all repeats and says that the printed item holds, that it fails, or that
these repeats cannot decide, and then how many would. Each test also has a counterfactual: the same
values held against something that must not hold. A test that would hold there, too, has no power,
and its outcome is "undecided".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from fedcore.reports import tables

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
LEVEL = 0.05  # of every test
MOST = 10_000  # largest number of repeats that is worth naming
SHIFT = 1.5  # factor on a printed number that must turn the outcome
FURTHER = 3.0  # factor on measured values that must take them over a limit

Values = Sequence[float | bool | None]


@dataclass(frozen=True)
class Outcome:
    """How the values stand to what is printed.

    Attributes
    ----------
    state : str
        `HOLDS`, `FAILS` or `UNDECIDED`.
    measured : str
        The statistic that was compared, as people read it.
    accepted : str
        What would have held, and from where.
    place : str
        Where the printed value lies among the measured ones, or the share of the repeats.
    lack : str
        Why the repeats cannot decide, and how many more would; empty otherwise.
    """

    state: str
    measured: str
    accepted: str
    place: str
    lack: str = ""


def judge(test: Mapping[str, Any], values: Values, *, spread: bool = True) -> Outcome:
    """Hold values against a printed item.

    Parameters
    ----------
    test : mapping
        One of the tests of ``claims.schema.yaml``, such as ``{"one_run": "337"}``.
    values : sequence of float or bool or None
        One per repeat; None and NaN stand for a repeat without a result.
    spread : bool
        False for values that are computed and have no spread over repeats; one is enough then.

    Returns
    -------
    Outcome
    """
    ((kind, given),) = test.items()
    return _TESTS[kind](given, _numbers(values), spread)


def turned(
    test: Mapping[str, Any], values: Values, state: str, *, spread: bool = True
) -> tuple[str, Outcome]:
    """Return the counterfactual that a test has by itself, in words, and its outcome.

    Parameters
    ----------
    test, values, spread
        As of `judge`.
    state : str
        What `judge` said, `HOLDS` or `FAILS`; a test with power says something else here.

    Returns
    -------
    what : str
    outcome : Outcome
    """
    ((kind, given),) = test.items()
    numbers = _numbers(values)
    if kind == "holds":
        flipped = [x if math.isnan(x) else 1.0 - x for x in numbers]
        return "all values turned round", _flags(given, flipped, spread)
    if kind in ("one_run", "mean", "equals"):
        number = given["of"] if kind == "mean" else given
        middle = float(np.nanmedian(numbers)) if not all(map(math.isnan, numbers)) else math.nan
        others = [middle] if state == FAILS else [float(number) * x for x in (SHIFT, 2.0 - SHIFT)]
        changes = []
        for other in others:
            shown = _shown_like(number, other) if state == HOLDS else other
            test = {kind: {**given, "of": shown} if kind == "mean" else shown}
            outcome = judge(test, numbers, spread=spread)
            changes.append((f"{_text(shown)} printed", outcome))
        return next((change for change in changes if change[1].state != state), changes[0])
    if kind == "between":
        low, high = given
        moved = [(low + high) / 2 if state == FAILS else high + (high - low) + 1.0] * len(numbers)
        side = "inside" if state == FAILS else "beyond"
        return f"values {side} the interval", _between(given, moved, spread)
    if state == FAILS:
        moved = [float(given["limit"])] * len(numbers)
        return "values at the limit", _TESTS[kind](given, moved, spread)
    factor = FURTHER if kind == "at_most" else 1.0 / FURTHER
    return scaled(test, numbers, factor, spread=spread)


def scaled(
    test: Mapping[str, Any], values: Values, factor: float, *, spread: bool = True
) -> tuple[str, Outcome]:
    """Return "<factor> times the measured values", and the outcome with these."""
    moved = [x * factor for x in _numbers(values)]
    return f"{tables.show(factor)} times the measured values", judge(test, moved, spread=spread)


def with_power(outcome: Outcome, what: str, other: Outcome) -> Outcome:
    """Return an outcome, undecided if the counterfactual `other` would hold as well."""
    if outcome.state != HOLDS or other.state != HOLDS:
        return outcome
    return replace(outcome, state=UNDECIDED, lack=f"the same values would also agree with {what}")


def _numbers(values: Values) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _one_run(printed: str | float, values: list[float], spread: bool) -> Outcome:
    """Printed number of one run: within the range of ours, widened by half of its last digit."""
    x, half = float(printed), _half_digit(printed)
    known = [v for v in values if not math.isnan(v)]
    gone = len(values) - len(known)
    if not known:
        return _none(values, f"a range around {printed}")
    low, high = min(known) - half, math.inf if gone else max(known) + half
    shown = f"{tables.show(min(known))} to {'never' if gone else tables.show(max(known))}"
    accepted = f"within the range of {len(values)} runs, {shown}"
    below = sum(v < x for v in known)
    place = f"{below} of {len(values)} below"
    outcome = Outcome(HOLDS, tables.show(float(np.median(known))), accepted, place)
    if low <= x <= high:
        return outcome
    if not spread or (len(known) > 1 and min(known) == max(known)):
        return replace(outcome, state=FAILS)
    far, needed = _outlies(x, known)
    if far:
        return replace(outcome, state=FAILS)
    lack = "one run has no spread" if len(known) == 1 else "too few runs to call it an outlier"
    return replace(outcome, state=UNDECIDED, lack=f"{lack}; {needed}")


def _outlies(x: float, known: list[float]) -> tuple[bool, str]:
    """Whether a further run would be as far as `x` with probability below `LEVEL`; else what would.

    Student's prediction interval, of logarithms where all numbers are positive.
    """
    if len(known) == 1:
        return False, "five runs at least"
    sample = np.array(known)
    if x > 0 and (sample > 0).all():
        sample, x = np.log(sample), math.log(x)
    away = abs(x - sample.mean()) / sample.std(ddof=1)

    def outlies(n: int) -> bool:
        return bool(2 * stats.t.sf(away / math.sqrt(1 + 1 / n), n - 1) < LEVEL)

    if outlies(len(known)):
        return True, ""
    return False, _more(outlies, len(known))


def _mean(given: Mapping[str, Any], values: list[float], spread: bool) -> Outcome:
    """Printed mean, or exact value: two one-sided tests against a margin."""
    x, runs = float(given["of"]), given.get("runs")
    margin = given["margin"] if given.get("absolute") else given["margin"] * abs(x)
    margin = max(margin, _half_digit(given["of"]))
    known = np.array([v for v in values if not math.isnan(v)])
    accepted = f"{given['of']} ± {tables.show(margin)}"
    if len(known) < len(values) or not len(known):
        return _none(values, accepted)
    mean, n = float(known.mean()), len(known)
    if not spread or n == 1:
        near = abs(mean - x) <= margin
        state = (HOLDS if near else FAILS) if not spread else UNDECIDED
        lack = "" if not spread else "one run has no spread; five runs at least"
        return Outcome(state, tables.show(mean), accepted, "computed" if not spread else "", lack)
    deviation = float(known.std(ddof=1))

    def width(n: int) -> float:
        error = deviation * math.sqrt(1 / n + (1 / runs if runs else 0.0))
        return float(stats.t.ppf(1 - LEVEL, n - 1)) * error

    low, high = mean - width(n), mean + width(n)
    place = f"90 % interval {tables.show(low)} to {tables.show(high)}"
    if runs:
        place += f", with the spread of the {runs} printed run{'s' if runs > 1 else ''}"
    outcome = Outcome(HOLDS, f"{tables.show(mean)} (mean)", accepted, place)
    away = abs(mean - x)
    if away + width(n) <= margin:
        return outcome
    if away - width(n) > margin:
        return replace(outcome, state=FAILS)
    lack = _more(lambda m: width(m) <= abs(margin - away), n)
    return replace(outcome, state=UNDECIDED, lack=f"the interval crosses the margin; {lack}")


def _equals(printed: str | float, values: list[float], spread: bool) -> Outcome:
    """Count or exact number: every value is it, to the printed digits."""
    x, half = float(printed), _half_digit(printed)
    right = [abs(v - x) <= half * (1 + 1e-9) for v in values]
    share = f"{sum(right)} of {len(right)} equal"
    return Outcome(HOLDS if all(right) else FAILS, _range(values), f"{printed} in every run", share)


def _limit(sign: float) -> Callable[[Mapping[str, Any], list[float], bool], Outcome]:
    def limited(given: Mapping[str, Any], values: list[float], spread: bool) -> Outcome:
        limit, of = given["limit"], given.get("of", "every")
        within = [0.0 if math.isnan(v) else float(sign * v <= sign * limit) for v in values]
        flags = _flags(of, within, spread)
        word = "at most" if sign > 0 else "at least"
        runs = "every run" if of == "every" else "most runs"
        accepted = f"{word} {tables.show(limit)} in {runs}"
        return replace(flags, measured=_range(values), accepted=accepted)

    return limited


def _between(given: Sequence[float], values: list[float], spread: bool) -> Outcome:
    """Every value lies in an interval."""
    low, high = given
    flags = _flags("every", [float(low <= v <= high) for v in values], spread)
    accepted = f"between {tables.show(float(low))} and {tables.show(float(high))} in every run"
    return replace(flags, measured=_range(values), accepted=accepted)


def _flags(of: str, values: list[float], spread: bool) -> Outcome:
    """True in every run, or in most: more than half of all runs that could be drawn."""
    right, n = sum(v == 1.0 for v in values), len(values)
    accepted = "true in every run" if of == "every" else "true in more than half of all runs"
    share = f"{right} of {n}"
    outcome = Outcome(HOLDS, share, accepted, share)

    def sure(right: int, n: int) -> bool:  # Clopper-Pearson: more than half are true
        return right > 0 and float(stats.beta.ppf(LEVEL, right, n - right + 1)) > 0.5

    if of == "every" and right < n:
        return replace(outcome, state=FAILS)
    if sure(right, n) or (not spread and right == n):
        return outcome
    if sure(n - right, n) or (not spread and right < n):
        return replace(outcome, state=FAILS)
    lack = _more(lambda m: sure(round(right * m / n), m) or sure(round((n - right) * m / n), m), n)
    return replace(outcome, state=UNDECIDED, lack=f"{share} may be chance; {lack}")


_TESTS: dict[str, Callable[[Any, list[float], bool], Outcome]] = {
    "one_run": _one_run,
    "mean": _mean,
    "equals": _equals,
    "holds": _flags,
    "at_most": _limit(1.0),
    "at_least": _limit(-1.0),
    "between": _between,
}


def _none(values: list[float], accepted: str) -> Outcome:
    """Return the outcome where repeats without a result leave no mean or range."""
    gone = sum(map(math.isnan, values))
    measured = f"{gone} of {len(values)} without a result"
    return Outcome(FAILS if gone == len(values) else UNDECIDED, measured, accepted, "", measured)


def _more(decides: Callable[[int], bool], n: int) -> str:
    """Return how many repeats would decide if the spread stayed as it is."""
    m = n
    while m < MOST and not decides(m):
        m += max(1, m // 20)
    return f"about {m} would decide" if m < MOST else "no number of runs would decide"


def _range(values: list[float]) -> str:
    """Return the median, and the ends if they differ."""
    known = [v for v in values if not math.isnan(v)]
    if not known:
        return "–"
    middle, low, high = (tables.show(float(f(known))) for f in (np.median, min, max))
    return middle if low == high else f"{middle} [{low}, {high}]"


def _half_digit(printed: str | float) -> float:
    """Return half a unit of the last digit of a number printed as text; 0 of a number."""
    if not isinstance(printed, str):
        return 0.0
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def _shown_like(printed: str | float, value: float) -> str | float:
    """Return a number in the form of the printed one, so that it has as many digits."""
    if not isinstance(printed, str):
        return value
    mantissa, mark, _ = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{value:.{decimals}{'e' if mark else 'f'}}"


def _text(number: str | float) -> str:
    return number if isinstance(number, str) else tables.show(number)
