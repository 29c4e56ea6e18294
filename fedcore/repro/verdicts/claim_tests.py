"""Outcomes: how measured values stand to a printed one, by statistics over the repeats.

A test takes the values of all repeats and says that the printed item holds, that it fails, or that
these repeats cannot decide, and then how many would. What must turn an outcome stands in
`fedcore.repro.verdicts.counterfactuals`.

A repeat without a result never helps. NaN is a run that failed, or never got to where the item is
measured: it is against a limit or an exact number, and where no run has a value, the item fails.
None is a run that says nothing of the item, such as one too small for its fit: what holds in all
others is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used: half a second of every start

from fedcore.reports import tables
from fedcore.words import counted

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
LEVEL = 0.05  # of every test
# Student's test calls one of ours an outlier more often than its level says if the runs have heavy
# tails. At this part of the level it keeps the level itself for Student's law of two degrees.
OUTLIER = 0.2
MOST = 10_000  # largest number of repeats that is worth naming
SLACK = 1 + 1e-9  # for rounding errors of a comparison with printed digits

Values = Sequence[float | bool | None]
Numbers = list[float | None]


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
    ends : bool
        Whether `measured` names the smallest and the largest value.
    no_rival : bool
        Whether it is undecided because its counterfactual was not run.
    """

    state: str
    measured: str
    accepted: str
    place: str
    lack: str = ""
    ends: bool = False
    no_rival: bool = False


def outcome_of(
    test: Mapping[str, Any], values: Values, *, spread: bool = True, failing: float = LEVEL
) -> Outcome:
    """Hold values against a printed item.

    Parameters
    ----------
    test : mapping
        One of the tests of ``claims.schema.yaml``, such as ``{"one_run": "337"}``.
    values : sequence of float or bool or None
        One per repeat, independent of one another. NaN stands for one that failed, and None for
        one that says nothing of the item.
    spread : bool
        False for values that are computed and have no spread over repeats; one is enough then.
    failing : float
        Level at which an item fails; a smaller one than `LEVEL` where it is one of several tests.
    """
    ((kind, given),) = test.items()
    return _TESTS[kind](given, numbers_of(values), spread, failing)


def joined(
    judged: Callable[[int, float], Outcome], groups: int, *, level: float = LEVEL
) -> list[Outcome]:
    """Return the outcomes of an item that must hold in each of several groups.

    That it holds in all of them is no likelier by chance than that it holds in one. That it fails
    in one of them is: so many fail as Simes' procedure allows at the level, and the others among
    those that seem to fail are undecided.
    """
    found = [judged(i, level) for i in range(groups)]
    if groups == 1 or all(outcome.state != FAILS for outcome in found):
        return found
    for rank in range(1, groups + 1):
        stricter = [judged(i, level * rank / groups) for i in range(groups)]
        if sum(outcome.state == FAILS for outcome in stricter) >= rank:
            return found
    lack = f"fails, which is no surprise in one of {groups}"
    return [
        replace(outcome, state=UNDECIDED, lack=lack) if outcome.state == FAILS else outcome
        for outcome in found
    ]


def numbers_of(values: Values) -> Numbers:
    """Return values as numbers, and None for a repeat that says nothing."""
    return [None if value is None else float(value) for value in values]


def known_of(values: Numbers) -> list[float]:
    """Return the values of the repeats that have a result."""
    return [value for value in values if value is not None and math.isfinite(value)]


def margin_of(kind: str, given: Any) -> float:
    """Return the margin of a test in the units of its column; 0 without one."""
    if kind != "mean":
        return 0.0
    return float(given["margin"] * (1.0 if given.get("absolute") else abs(float(given["of"]))))


def _one_run(printed: str | float, values: Numbers, spread: bool, failing: float) -> Outcome:
    """Printed number of one run: within the range of ours, widened by half of its last digit."""
    x, half = float(printed), _half_digit(printed)
    known = known_of(values)
    n, gone = len(known), len(values) - len(known)
    if not known:
        return _none(values, f"a range around {printed}")
    ends = f"{tables.show(min(known))} to {tables.show(max(known))}"
    accepted = f"within the range of {counted(n, 'run')}, {ends}"
    place = f"{sum(v < x for v in known)} of {len(values)} below"
    outcome = Outcome(HOLDS, tables.show(float(np.median(known))), accepted, place)
    if min(known) - half * SLACK <= x <= max(known) + half * SLACK:
        return outcome
    if gone and x > max(known):
        lack = f"{gone} of {len(values)} runs without a result may lie beyond the others"
        return replace(outcome, state=UNDECIDED, lack=lack)
    outlies = _outlies(x, half, known, failing)
    if not spread or outlies(n):
        return replace(outcome, state=FAILS)
    lack = "one run has no spread" if n == 1 else "too few runs to call it an outlier"
    return replace(outcome, state=UNDECIDED, lack=f"{lack}; {_more(_needed(outlies, n))}")


def _outlies(x: float, half: float, known: list[float], level: float) -> Callable[[int], bool]:
    """Return whether `n` runs like the known ones show that `x`, outside their range, is none.

    A further run then is as far out with probability below `level`: by the range of `n` runs, which
    it leaves with probability 2 / (n + 1) whatever the distribution; or by Student's prediction
    interval, of logarithms where all numbers are positive, with a deviation of half a printed digit
    at least, at a smaller level (`OUTLIER`).
    """
    if len(known) == 1:
        return lambda n: n >= 5  # a guess, as nothing is known of the spread
    sample = np.array(known)
    if x > 0 and (sample > 0).all():
        sample, x, half = np.log(sample), math.log(x), half / x
    deviation = max(float(sample.std(ddof=1)), half)
    away = abs(x - float(sample.mean())) / deviation if deviation > 0 else math.inf

    def outlies(n: int) -> bool:
        by_student = 2 * scipy.stats.t.sf(away / math.sqrt(1 + 1 / n), n - 1) < OUTLIER * level
        return bool(2 / (n + 1) <= level * SLACK or by_student)

    return outlies


def _mean(given: Mapping[str, Any], values: Numbers, spread: bool, failing: float) -> Outcome:
    """Printed mean, or exact value: two one-sided tests against a margin."""
    x, runs = float(given["of"]), given.get("runs")
    margin = max(margin_of("mean", given), _half_digit(given["of"])) * SLACK
    known = np.array(known_of(values))
    n, gone = len(known), len(values) - len(known)
    accepted = f"{given['of']} ± {tables.show(float(f'{margin:.6g}'))}"
    if not n:
        return _none(values, accepted)
    mean = float(known.mean())
    if not spread:
        near = not gone and bool((abs(known - x) <= margin).all())
        state = HOLDS if near else FAILS
        return _ranged(Outcome(state, "", accepted, "computed"), values)
    if n == 1:
        lack = "one run has no spread; about 4 more would decide"
        return Outcome(UNDECIDED, tables.show(mean), accepted, "", lack)
    deviation = float(known.std(ddof=1))

    def width(n: int, level: float = LEVEL) -> float:
        error = deviation * math.sqrt(1 / n + (1 / runs if runs else 0.0))
        return float(scipy.stats.t.ppf(1 - level, n - 1)) * error

    ends = tables.show(mean - width(n)), tables.show(mean + width(n))
    place = f"90 % interval {ends[0]} to {ends[1]}"
    if runs:
        place += f", if the {counted(runs, 'printed run')} spread as ours"
    outcome = Outcome(HOLDS, f"{tables.show(mean)} (mean)", accepted, place)
    away = abs(mean - x)
    if away - width(n, failing) > margin:
        return replace(outcome, state=FAILS)
    if gone:
        return replace(outcome, state=UNDECIDED, lack=_without(values))
    if away + width(n) <= margin:
        return outcome
    more = _more(_needed(lambda m: width(m) <= abs(margin - away), n))
    return replace(outcome, state=UNDECIDED, lack=f"the interval crosses the margin; {more}")


def _equals(printed: str | float, values: Numbers, spread: bool, failing: float) -> Outcome:
    """Count or exact number: every value is it, to the printed digits."""
    x, half = float(printed), _half_digit(printed)
    right = [None if v is None else float(abs(v - x) <= half * SLACK) for v in values]
    share = f"{right.count(1.0)} of {len(right)} equal"
    outcome = _ranged(Outcome(HOLDS, "", f"{printed} in every run", share), values)
    if 0.0 in right:  # so is NaN
        return replace(outcome, state=FAILS)
    return outcome if all(right) else replace(outcome, state=UNDECIDED, lack=_without(values))


def _limit(sign: float) -> Callable[[Mapping[str, Any], Numbers, bool, float], Outcome]:
    def limited(given: Mapping[str, Any], values: Numbers, spread: bool, failing: float) -> Outcome:
        limit, of = given["limit"], given.get("of", "every")
        # A run that failed, NaN, is not within.
        within = [None if v is None else float(sign * v <= sign * limit) for v in values]
        flags = _flags(of, within, spread, failing)
        word = "at most" if sign > 0 else "at least"
        runs = "every run" if of == "every" else "most runs"
        accepted = f"{word} {tables.show(limit)} in {runs}"
        return _ranged(replace(flags, accepted=accepted), values)

    return limited


def _between(given: Sequence[float], values: Numbers, spread: bool, failing: float) -> Outcome:
    """Every value lies in an interval."""
    low, high = given
    within = [None if v is None else float(low <= v <= high) for v in values]
    flags = _flags("every", within, spread, failing)
    accepted = f"between {tables.show(float(low))} and {tables.show(float(high))} in every run"
    return _ranged(replace(flags, accepted=accepted), values)


def _flags(of: str, values: Numbers, spread: bool, failing: float) -> Outcome:
    """True in every run, or in most: more than half of all runs that could be drawn.

    A run that says nothing decides neither way.
    """
    right, wrong, n = values.count(1.0), values.count(0.0), len(values)
    accepted = "true in every run" if of == "every" else "true in more than half of all runs"
    if not right + wrong:
        return _none(values, accepted)
    share = f"{right} of {n}"
    outcome = Outcome(HOLDS, share, accepted, share)

    def sure(right: int, n: int, level: float = LEVEL) -> bool:  # Clopper-Pearson: more than half
        return right > 0 and float(scipy.stats.beta.ppf(level, right, n - right + 1)) > 0.5

    if of == "every" and wrong:
        return replace(outcome, state=FAILS)
    if of == "every" and right < n:
        return replace(outcome, state=UNDECIDED, lack=_without(values))
    if sure(right, n) or (not spread and right == n):
        return outcome
    if sure(wrong, n, failing) or (not spread and wrong):
        return replace(outcome, state=FAILS)
    more = _needed(lambda m: sure(round(max(right, wrong) * m / n), m), n)
    gone = f", {n - right - wrong} without a result," if right + wrong < n else ""
    may = ", runs that arrive may" if gone and more is None else ""
    return replace(
        outcome, state=UNDECIDED, lack=f"{share}{gone} may be chance; {_more(more)}{may}"
    )


_TESTS: dict[str, Callable[[Any, Numbers, bool, float], Outcome]] = {
    "one_run": _one_run,
    "mean": _mean,
    "equals": _equals,
    "holds": _flags,
    "at_most": _limit(1.0),
    "at_least": _limit(-1.0),
    "between": _between,
}


def _none(values: Numbers, accepted: str) -> Outcome:
    """Return the outcome where no repeat has a result: it fails if one failed."""
    said = _without(values)
    if all(value is None for value in values):
        return Outcome(UNDECIDED, said, accepted, "", said)
    return Outcome(FAILS, said, accepted, "")


def _without(values: Numbers) -> str:
    gone = len(values) - len(known_of(values))
    return f"{gone} of {counted(len(values), 'run')} without a result"


def _needed(decides: Callable[[int], bool], n: int) -> int | None:
    """Return how many more repeats would decide, if the spread stayed as it is; None: no number."""
    m = n
    while m < MOST and not decides(m):
        m += max(1, m // 20)
    return m - n if m < MOST else None


def _more(repeats: int | None) -> str:
    if repeats is None:
        return "no number of runs would decide"
    return f"about {repeats} more would decide"


def _ranged(outcome: Outcome, values: Numbers) -> Outcome:
    """Return an outcome of which the median is measured, with the ends if they differ."""
    known = [v for v in values if v is not None and not math.isnan(v)]
    if not known:
        return replace(outcome, measured="–")
    middle, low, high = (tables.show(float(f(known))) for f in (np.median, min, max))
    if low == high:
        return replace(outcome, measured=middle)
    return replace(outcome, measured=f"{middle} [{low}, {high}]", ends=True)


def _half_digit(printed: str | float) -> float:
    """Return half a unit of the last digit of a number printed as text; 0 of a number."""
    if not isinstance(printed, str):
        return 0.0
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)
