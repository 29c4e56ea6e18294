"""Outcomes: how measured values stand to a printed one, by statistics over the repeats.

A test takes the values of all repeats and says that the printed item holds, that it fails, or that
these repeats cannot decide, and then how many would. Each test also has a counterfactual: the same
values held against something that must not hold. A test that would hold there, too, has no power,
and its outcome is "undecided".

A repeat without a result never helps: it counts as false under flags and limits, and where it could
change a range or a mean, nothing holds.
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
ENOUGH = 39  # runs whose range a further run leaves with probability 2 / (ENOUGH + 1) = LEVEL
MOST = 10_000  # largest number of repeats that is worth naming
SHIFT = 1.5  # factor on a printed number that must turn the outcome
FURTHER = 3.0  # factor on measured values that must take them over a limit
SLACK = 1 + 1e-9  # for rounding errors of a comparison with printed digits
# Tests of a tolerance in which the print may lie near one end: one of two shifts must turn them.
RANGES = ("one_run", "between")

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
        One per repeat, independent of one another; None and NaN stand for a repeat without a
        result.
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

    What fails is asked whether it would hold if every run had come out as printed. What holds is
    held against a number half as large again and against half of it; values are taken three times
    as far towards or beyond a limit.

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
    if state == FAILS:
        perfect = [_perfect(kind, given)] * len(numbers)
        return "every run as printed", judge(test, perfect, spread=spread)
    if kind == "holds":
        flipped = [x if math.isnan(x) else 1.0 - x for x in numbers]
        return "every run turned round", judge(test, flipped, spread=spread)
    if kind in ("at_most", "at_least"):
        worse = [x * FURTHER if (x > 0) == (kind == "at_most") else x / FURTHER for x in numbers]
        return "values three times worse", judge(test, worse, spread=spread)
    if kind == "between":
        shifts = [(text, test, moved) for text, moved in _moved(given, numbers)]
    else:
        shifts = [
            (f"{_text(x)} printed", _with(test, x), numbers)
            for x in shifted(given["of"] if kind == "mean" else given, _margin(kind, given))
        ]
    found = [(what, judge(one, moved, spread=spread)) for what, one, moved in shifts]
    wanted = [pair for pair in found if (pair[1].state != state) == (kind in RANGES)]
    return (wanted or found)[0]


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
    return judge(test, [x * factor for x in _numbers(values)], spread=spread)


def with_power(outcome: Outcome, what: str, other: Outcome) -> Outcome:
    """Return an outcome, undecided if the counterfactual `other` would hold as well."""
    if outcome.state != HOLDS or other.state != HOLDS:
        return outcome
    return replace(outcome, state=UNDECIDED, lack=f"no power: it would also hold with {what}")


def _numbers(values: Values) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _perfect(kind: str, given: Any) -> float:
    """Return a value that agrees with what is printed."""
    if kind == "between":
        return (given[0] + given[1]) / 2
    if kind in ("at_most", "at_least"):
        return float(given["limit"])
    return 1.0 if kind == "holds" else float(given["of"] if kind == "mean" else given)


def _with(test: Mapping[str, Any], number: str | float) -> dict[str, Any]:
    """Return a test with another printed number."""
    ((kind, given),) = test.items()
    if kind != "mean":
        return {kind: number}
    # The margin stays what it was, as it says how exactly the printed number is known.
    return {kind: {**given, "of": number, "margin": _margin(kind, given), "absolute": True}}


def _margin(kind: str, given: Any) -> float:
    if kind != "mean":
        return 0.0
    return float(given["margin"] * (1.0 if given.get("absolute") else abs(float(given["of"]))))


def _moved(given: Sequence[float], numbers: list[float]) -> list[tuple[str, list[float]]]:
    """Return values half as large again, and half of them; beyond an interval around 0."""
    low, high = given
    if low <= 0 <= high:
        beyond = 1.5 * (high - low) or 1.0
        return [("values off by three tolerances", [x + beyond for x in numbers])]
    factors = (SHIFT, 2.0 - SHIFT)
    return [(f"{tables.show(f)} times the values", [x * f for x in numbers]) for f in factors]


def _one_run(printed: str | float, values: list[float], spread: bool) -> Outcome:
    """Printed number of one run: within the range of ours, widened by half of its last digit."""
    x, half = float(printed), _half_digit(printed)
    known = [v for v in values if math.isfinite(v)]
    n, gone = len(known), len(values) - len(known)
    if not known:
        return _none(values, f"a range around {printed}")
    ends = f"{tables.show(min(known))} to {tables.show(max(known))}"
    accepted = f"within the range of {n} run{'s' if n > 1 else ''}, {ends}"
    place = f"{sum(v < x for v in known)} of {len(values)} below"
    outcome = Outcome(HOLDS, tables.show(float(np.median(known))), accepted, place)
    if min(known) - half * SLACK <= x <= max(known) + half * SLACK:
        return outcome
    if gone and x > max(known):
        lack = f"{gone} of {len(values)} runs without a result may lie beyond the others"
        return replace(outcome, state=UNDECIDED, lack=lack)
    outlies = _outlies(x, half, known)
    if not spread or outlies(n):
        return replace(outcome, state=FAILS)
    lack = "one run has no spread" if n == 1 else "too few runs to call it an outlier"
    return replace(outcome, state=UNDECIDED, lack=f"{lack}; {_more(outlies, n)}")


def _outlies(x: float, half: float, known: list[float]) -> Callable[[int], bool]:
    """Return whether `n` runs like the known ones show that `x`, outside their range, is none.

    A further run then is as far out with probability below `LEVEL`: by Student's prediction
    interval, of logarithms where all numbers are positive, with a deviation of half a printed digit
    at least; and for `ENOUGH` runs by their range, whatever the distribution.
    """
    if len(known) == 1:
        return lambda n: n >= 5  # a guess, as nothing is known of the spread
    sample = np.array(known)
    if x > 0 and (sample > 0).all():
        sample, x, half = np.log(sample), math.log(x), half / x
    deviation = max(float(sample.std(ddof=1)), half)
    away = abs(x - float(sample.mean())) / deviation if deviation > 0 else math.inf

    def outlies(n: int) -> bool:
        by_student = 2 * stats.t.sf(away / math.sqrt(1 + 1 / n), n - 1) < LEVEL
        return bool(n >= ENOUGH or by_student)

    return outlies


def _mean(given: Mapping[str, Any], values: list[float], spread: bool) -> Outcome:
    """Printed mean, or exact value: two one-sided tests against a margin."""
    x, runs = float(given["of"]), given.get("runs")
    margin = max(_margin("mean", given), _half_digit(given["of"])) * SLACK
    known = np.array([v for v in values if math.isfinite(v)])
    n, gone = len(known), len(values) - len(known)
    accepted = f"{given['of']} ± {tables.show(float(f'{margin:.6g}'))}"
    if not n:
        return _none(values, accepted)
    mean = float(known.mean())
    if not spread:
        near = not gone and bool((abs(known - x) <= margin).all())
        return Outcome(HOLDS if near else FAILS, _range(values), accepted, "computed")
    if n == 1:
        lack = "one run has no spread; about 4 more would decide"
        return Outcome(UNDECIDED, tables.show(mean), accepted, "", lack)
    deviation = float(known.std(ddof=1))

    def width(n: int) -> float:
        error = deviation * math.sqrt(1 / n + (1 / runs if runs else 0.0))
        return float(stats.t.ppf(1 - LEVEL, n - 1)) * error

    ends = tables.show(mean - width(n)), tables.show(mean + width(n))
    place = f"90 % interval {ends[0]} to {ends[1]}"
    if runs:
        place += f", with the spread of the {runs} printed run{'s' if runs > 1 else ''}"
    outcome = Outcome(HOLDS, f"{tables.show(mean)} (mean)", accepted, place)
    away = abs(mean - x)
    if away - width(n) > margin:
        return replace(outcome, state=FAILS)
    if gone:
        return replace(outcome, state=UNDECIDED, lack=_without(values))
    if away + width(n) <= margin:
        return outcome
    lack = _more(lambda m: width(m) <= abs(margin - away), n)
    return replace(outcome, state=UNDECIDED, lack=f"the interval crosses the margin; {lack}")


def _equals(printed: str | float, values: list[float], spread: bool) -> Outcome:
    """Count or exact number: every value is it, to the printed digits."""
    x, half = float(printed), _half_digit(printed)
    right = [abs(v - x) <= half * SLACK for v in values]
    share = f"{sum(right)} of {len(right)} equal"
    return Outcome(HOLDS if all(right) else FAILS, _range(values), f"{printed} in every run", share)


def _limit(sign: float) -> Callable[[Mapping[str, Any], list[float], bool], Outcome]:
    def limited(given: Mapping[str, Any], values: list[float], spread: bool) -> Outcome:
        limit, of = given["limit"], given.get("of", "every")
        within = [float(sign * v <= sign * limit) for v in values]  # not so for NaN
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
    """True in every run, or in most: more than half of all runs that could be drawn.

    A NaN is a run that says nothing, such as one that ended too early. It decides neither way.
    """
    right, wrong, n = values.count(1.0), values.count(0.0), len(values)
    accepted = "true in every run" if of == "every" else "true in more than half of all runs"
    if not right + wrong:
        return _none(values, accepted)
    share = f"{right} of {n}"
    outcome = Outcome(HOLDS, share, accepted, share)

    def sure(right: int, n: int) -> bool:  # Clopper-Pearson: more than half are true
        return right > 0 and float(stats.beta.ppf(LEVEL, right, n - right + 1)) > 0.5

    if of == "every" and wrong:
        return replace(outcome, state=FAILS)
    if of == "every" and right < n:
        return replace(outcome, state=UNDECIDED, lack=_without(values))
    if sure(right, n) or (not spread and right == n):
        return outcome
    if sure(wrong, n) or (not spread and wrong):
        return replace(outcome, state=FAILS)
    lack = _more(lambda m: sure(round(max(right, wrong) * m / n), m), n)
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
    """Return the outcome where no repeat has a result."""
    return Outcome(FAILS, _without(values), accepted, "")


def _without(values: list[float]) -> str:
    gone = sum(not math.isfinite(v) for v in values)
    return f"{gone} of {len(values)} runs without a result"


def _more(decides: Callable[[int], bool], n: int) -> str:
    """Return how many more repeats would decide if the spread stayed as it is."""
    m = n
    while m < MOST and not decides(m):
        m += max(1, m // 20)
    return f"about {m - n} more would decide" if m < MOST else "no number of runs would decide"


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
