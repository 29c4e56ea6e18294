"""Statistical tests that compare the measured values of runs with what a paper prints.

`judge_runs` is test A, in which each run agrees or disagrees with the printed text. `judge_number`
is test B for a printed number, and `judge_exact` is test C for exact statements. Each test finds
that the printed text holds, that the text fails, or that the runs cannot tell. ``docs/judging.md``
has the rules and their error rates, which ``tools/error_rates.py`` computes.

A run that was lost, diverged or never reached its goal has the value NaN or infinity, which counts
against the printed text. A run that says nothing about the item has the value None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are used: half a second of every start

from fedcore.reports import tables
from fedcore.repro.tables.rows import gathered
from fedcore.words import counted

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
LOOKS = (5, 10, 20, 40, 80)  # numbers of runs after which test B is made
LEVEL = 0.05  # a printed number holds in the interval of confidence 1 - LEVEL around our mean
FRACTION = 0.1  # of a printed number: a difference that counts as none
WIDEST = 0.25  # share of a number: a test that cannot detect such a difference shows nothing
WIDE = 2.0  # largest over smallest of positive values that are compared by their logarithms
EXPONENT = 0.25  # difference of two exponents that counts as none
ACCURACY = 3  # points of accuracy that a test must tell apart
NO_ORDER = 200  # number of runs after which an undecided test A finds no clear order
MOST = 10_000  # largest number of runs that is worth naming
SLACK = 1 + 1e-9  # for rounding errors of a comparison with printed digits
HEAVY = 3  # degrees of freedom of the heavy tails that are allowed for at small levels
PANEL = 0.9  # of a panel's points must hold
POINTS = "points"  # name of a panel's part
NO_RESULT = "no run has a result"
# Kinds of what runs lack that cannot tell.
FEW, UNCLEAR, DOUBT = "too few runs", "no clear order", "few runs agree"
SPREAD, NEAR, ROUNDED = "our runs spread too far", "near the limit", "rounding decides"
SILENT, ALONE = "no result", "one point fails"
TWO = 2  # failing points that make a panel fail; with heavy tails, one of fifty often fails

Numbers = list[float | None]


class Demand(NamedTuple):
    """Strength of the evidence that a verdict needs.

    Attributes
    ----------
    weight : float
        Least weight of evidence, as `weigh` returns it, at which test A finds that the printed text
        holds or fails. Test A (`judge_runs`) asks whether the share of runs that agree with the
        printed text exceeds one half, or a printed share. A headline claim needs the weight 100.
    level : float
        Significance level at which test B finds that the printed text fails. Test B
        (`judge_number`) compares a printed number with the mean of our runs. A headline claim needs
        the level 0.002.
    searched : int
        Number of readings (ways to run an item) among which a search found the tested reading. The
        required weight is multiplied by `searched`, and the level is divided by `searched`.
    cells : int
        Number of cells (tested values) that are judged jointly. The allowed rate of false failures
        is divided equally among them.
    """

    weight: float = 20.0
    level: float = 0.01
    searched: int = 1
    cells: int = 1

    @property
    def holds(self) -> float:
        """Least weight of evidence, by `weigh`, at which `judge_runs` finds that the text holds."""
        return self.weight * self.searched

    @property
    def fails(self) -> float:
        """Least weight of evidence, by `weigh`, at which `judge_runs` finds that the text fails."""
        return self.holds * self.cells


USUAL = Demand()
HEADLINE = Demand(weight=100.0, level=0.002)


@dataclass(frozen=True)
class Part:
    """Outcome of a cell (tested value), or of all points of a panel, as structured data.

    Attributes
    ----------
    state : str
        `HOLDS`, `FAILS` or `UNDECIDED`.
    share : tuple of int
        Two counts: agreeing runs and all runs, or, for a panel, points that hold and all points.
        The tuple is empty if nothing is counted.
    lack : str
        Kind of evidence that the runs lack, if they cannot decide. For a panel, the kind that is
        most frequent among its undecided points.
    at : tuple of str
        Names of points that lack the evidence in `lack`; may be empty.
    silent : str
        Reason in the claims file why some runs say nothing about the item.
    """

    state: str
    share: tuple[int, ...] = ()
    lack: str = ""
    at: tuple[str, ...] = ()
    silent: str = ""


@dataclass(frozen=True)
class Outcome:
    """Result of a test that compares measured values with what is printed.

    Attributes
    ----------
    part : Part
        The result as structured data.
    measured : str
        Text that summarizes the measured values.
    why : str
        Why the runs cannot tell and what would decide; empty if the runs can tell.
    side : int
        1 if a printed number fails and is larger than the measured one, -1 if it fails and is
        smaller, else 0.
    runs : int
        Number of runs that the test uses.
    growth : float
        Estimated factor by which the number of runs must grow until the test decides. The factor is
        0 if the test has decided, or if no number of runs would decide it.
    """

    part: Part
    measured: str
    why: str = ""
    side: int = 0
    runs: int = 0
    growth: float = 0.0

    @property
    def state(self) -> str:
        """`HOLDS`, `FAILS` or `UNDECIDED`, as in `part`."""
        return self.part.state


def weigh(k: int, n: int, q: float = 0.5) -> tuple[float, float]:
    """Return the weights of evidence that the true share of agreeing runs is above and below `q`.

    Of `n` runs, `k` agree with the printed text. A weight is the mean likelihood of all shares on
    one side of `q`, divided by the likelihood of `q`. If the true share is `q`, each weight is a
    martingale with mean 1; the probability that it ever reaches w is at most 1/w (Ville, 1939).
    """
    log_own = scipy.special.xlogy(k, q) + scipy.special.xlog1py(n - k, -q)
    log_beta = scipy.special.betaln(k + 1, n - k + 1)
    below = float(scipy.special.betainc(k + 1, n - k + 1, q))
    above = float(scipy.special.betainc(n - k + 1, k + 1, 1 - q))
    factor = math.exp(min(log_beta - log_own, 600.0))
    return factor * above / (1 - q), factor * below / q


def judge_runs(
    points: Sequence[Numbers], given: Mapping[str, Any], demand: Demand = USUAL
) -> Outcome:
    """Make test A: test whether the share of agreeing runs exceeds one half, or a printed share.

    Parameters
    ----------
    points : sequence of list
        For each point (setting of the runs, such as n = 100), a value for each run in the order of
        seeds. The value is 1 if the run agrees, 0 if it disagrees, and None if it says nothing.
    given : mapping
        ``probability`` is the share that the agreeing runs must exceed, by default 0.5. If
        ``every`` is true, a single point can change the outcome to `FAILS` or `UNDECIDED`.
    demand : Demand
    """
    q = given.get("probability", 0.5)
    runs = min(map(len, points))
    pooled = [value for point in points for value in point[:runs]]
    state, why, lack, decided = _share(pooled, q, demand.holds, demand.fails)
    agree, n = pooled.count(1.0), len(pooled)
    if given.get("every") and state != FAILS:
        limit = demand.fails * len(points)
        each = [_share(list(point), q, math.inf, limit) for point in points]
        against = [weigh(_most(point), len(point), q)[1] for point in points]
        worst = against.index(max(against))
        enough, there = each[worst][3], len(points[worst])
        if any(one[0] == FAILS for one in each):
            state, why, lack, decided = FAILS, "", "", 0
        elif any(_most(point) < q * len(point) for point in points):  # doubt, and no refutation
            here = f"{points[worst].count(1.0)} of {counted(there, 'run')} agree"
            state, why, lack, decided = UNDECIDED, f"at one point {here}", DOUBT, 0
            if enough:
                why += f", and {counted(enough - there, 'more run')} there would refute it"
                decided = math.ceil(enough / there * n)
    gone = pooled.count(None)
    without = f", {gone} without a result" if gone else ""
    part = Part(state, (agree, n), lack)
    return Outcome(part, f"{agree} of {n}{without}", why, runs=n, growth=decided / n)


def _most(values: Numbers) -> int:
    """Return the number of agreeing runs if all runs without a result count as agreeing."""
    return values.count(1.0) + values.count(None)


def _share(values: Numbers, q: float, holds: float, fails: float) -> tuple[str, str, str, int]:
    """Test whether the share of agreeing runs is above or below `q`.

    Return the state, the reason if the runs cannot tell, the kind of evidence that they lack, and
    the number of runs that would decide.
    """
    n = len(values)
    agree, silent = values.count(1.0), values.count(None)
    if weigh(agree, n, q)[0] >= holds:
        return HOLDS, "", "", 0
    if weigh(_most(values), n, q)[1] >= fails:
        return FAILS, "", "", 0
    if silent == n:
        return UNDECIDED, NO_RESULT, SILENT, 0
    unclear = f"no clear order after {counted(n, 'run')}"
    if n >= NO_ORDER:
        return UNDECIDED, unclear, UNCLEAR, 0

    def decides(m: int) -> bool:
        k = round(agree * m / n)
        above, below = weigh(k, m, q)
        return above >= holds or below >= fails

    m = n + 1  # how many would decide if they agreed as often as these
    while m < MOST and not decides(m):
        m += max(1, m // 50)
    if m >= MOST:
        return UNDECIDED, unclear, UNCLEAR, 0
    more = counted(m - n, "more run")
    return UNDECIDED, f"{more} would decide, if they agree as often", FEW, m


def judge_number(
    values: Numbers,
    given: Mapping[str, Any],
    demand: Demand = USUAL,
    pooled: tuple[float, int] | None = None,
) -> Outcome:
    """Make test B: compare a printed number with the mean of the measured values.

    Parameters
    ----------
    values : list
        Values of the runs in the order of their seeds.
    given : mapping
        Settings of the test, with the keys of ``number`` in ``claims.schema.yaml``.
    demand : Demand
        How strong the evidence must be.
    pooled : (deviation, degrees of freedom), optional
        Standard deviation pooled over similar rows of our table of measured values, used if there
        are fewer than five runs.
    """
    look = max((m for m in LOOKS if m <= len(values)), default=len(values))
    seen = values[:look]
    known = np.array([v for v in seen if v is not None and math.isfinite(v)])
    gone = look - len(known)
    if gone:
        failed = sum(v is not None and not math.isfinite(v) for v in seen)
        state = FAILS if weigh(look - failed, look)[1] >= demand.fails else UNDECIDED
        measured = f"{gone} of {counted(look, 'run')} without a result"
        if state == FAILS:
            return Outcome(Part(FAILS), measured, runs=look)
        return Outcome(Part(UNDECIDED, lack=SILENT), measured, measured, runs=look)
    few = look < LOOKS[0]
    if few and pooled is None:
        growth = LOOKS[0] / look
        why = f"{counted(look, 'run')}, and a number needs {LOOKS[0]}"
        return Outcome(Part(UNDECIDED, lack=FEW), _ranged(known), why, 0, look, growth)
    x, half = float(given["of"]), _half_digit(given["of"])
    logs = given["scale"] == "relative" and not few and x > 0 and bool((known > 0).all())
    logs = logs and known.max() > WIDE * known.min()
    ours = float(np.exp(np.log(known).mean()) if logs else known.mean())
    tolerance, widest = _tolerance(given, x, ours, half, logs)
    if logs:
        known, away = np.log(known), abs(math.log(x / ours))
    else:
        away = abs(x - ours)
    s, freedom = pooled if few and pooled else (float(known.std(ddof=1)), look - 1)

    def width(level: float, n: int = look, freedom: int = freedom) -> float:
        spread = s * math.sqrt(1 / n + (0 if given["theory"] else 1 / given["runs"]))
        return _quantile(level, freedom) * spread + float(given["reading_error"])

    fails = width(demand.level / demand.searched / demand.cells)
    measured = _ranged(np.exp(known) if logs else known)
    if away > max(fails, tolerance) * SLACK:
        return Outcome(Part(FAILS), measured, side=1 if x > ours else -1, runs=look)
    within = max(width(LEVEL), tolerance)
    shown = f"± {_shown(within, given, ours, logs)}"
    strict = LEVEL / demand.searched * demand.level / USUAL.level
    later = [m for m in LOOKS if m > len(values)]
    if max(width(strict), tolerance) > widest * SLACK:
        narrow = (m for m in later if max(width(strict, m, m - 1), tolerance) <= widest * SLACK)
        enough = next(narrow, 0)
        if enough:
            told = f"{enough} runs would tell"
        elif given["theory"] or not later:
            told = "no later look would tell"
        else:
            told = f"more would not tell, as the print is of {counted(given['runs'], 'run')}"
        why, growth = f"our own runs spread by {shown}; {told}", enough / len(values)
        return Outcome(Part(UNDECIDED, lack=SPREAD), measured, why, 0, look, growth)
    if away <= within * SLACK:
        return Outcome(Part(HOLDS), f"{measured}, within {shown}", runs=look)
    more = next(iter(later), 0)
    told = f"the next look is at {more} runs" if more else "no more looks are made"
    why = f"{_shown(away, given, ours, logs)} apart, near the limit of {shown}; {told}"
    return Outcome(Part(UNDECIDED, lack=NEAR), measured, why, 0, look, more / len(values))


@cache
def _quantile(level: float, freedom: int) -> float:
    """Return the quantile that |t| of Student's distribution exceeds with probability `level`.

    For levels below `USUAL.level`, the result is at least the quantile for `HEAVY` degrees of
    freedom, scaled to standard deviation 1.
    """
    normal = float(scipy.stats.t.ppf(1 - level / 2, freedom))
    if level >= USUAL.level:
        return normal
    heavy = float(scipy.stats.t.ppf(1 - level / 2, HEAVY)) * math.sqrt(1 - 2 / HEAVY)
    return max(normal, heavy)


def _tolerance(
    given: Mapping[str, Any], x: float, ours: float, half: float, logs: bool
) -> tuple[float, float]:
    """Return the largest negligible difference, and the smallest that the test must detect."""
    if given["scale"] == "accuracy":
        point = float(given["point"])
        return max(point, half), ACCURACY * point
    if given["scale"] == "exponent":
        tolerance = max(float(given.get("tolerance", EXPONENT)), half)
        return tolerance, tolerance
    if logs:
        return math.log1p(max(FRACTION, half / x)), math.log1p(WIDEST)
    return max(FRACTION * abs(x), half), WIDEST * min(abs(x), abs(ours))


def _shown(width: float, given: Mapping[str, Any], ours: float, logs: bool) -> str:
    if given["scale"] == "accuracy":
        return f"{width / float(given['point']):.2g} points"
    if given["scale"] == "exponent" or ours == 0:
        return f"{width:.2g}"
    return f"{100 * (math.expm1(width) if logs else width / abs(ours)):.2g} %"


def judge_exact(values: Numbers, agree: Numbers, limits: Sequence[float | None] = ()) -> Outcome:
    """Make test C: test whether the printed statement is true for every value.

    Parameters
    ----------
    values : list
        The measured values.
    agree : list
        For each value, 1 if it is as printed, 0 if not, and None if it says nothing.
    limits : sequence of float or None
        Upper limits of the values. The outcome shows the smallest ratio of limit to
        value if this ratio is at least 1.05.
    """
    n, silent = len(agree), agree.count(None)
    share: tuple[int, ...] = ()
    measured = _ranged(values, np.median)
    if values == agree:
        share = (agree.count(1.0), n)
        measured = f"{share[0]} of {n}"
    if 0.0 in agree:
        return Outcome(Part(FAILS, share), measured, runs=n)
    if silent:
        why = f"{silent} of {n} without a result"
        return Outcome(Part(UNDECIDED, share, SILENT), measured, why, runs=n)
    pairs = zip(limits, values, strict=False)
    slack = min((limit / v for limit, v in pairs if limit and v and v > 0), default=1.0)
    if slack >= 1.05:
        measured = f"{measured}, slack {tables.show(float(f'{slack:.2g}'))}"
    return Outcome(Part(HOLDS, share), measured, runs=n)


def agreement(values: Numbers, given: Mapping[str, Any], limits: Numbers) -> Numbers:
    """Return for each value 1 if it is as printed, 0 if not, and None if it says nothing.

    `limits` has one limit per value; limits are used only if `given` has ``at_most`` or
    ``at_least``.
    """
    bounded = "at_most" in given or "at_least" in given
    return [
        None if value is None or (bounded and limit is None) else _agrees(value, given, limit)
        for value, limit in zip(values, limits, strict=True)
    ]


def _agrees(value: float, given: Mapping[str, Any], limit: float | None) -> float:
    """Return 1 if a value is finite and as printed, else 0."""
    if not math.isfinite(value):
        return 0.0
    if "equals" in given:
        x, half = float(given["equals"]), _half_digit(given["equals"])
        return float(abs(value - x) <= half * SLACK)
    if "between" in given:
        low, high = given["between"]
        return float(low <= value <= high)
    if limit is None:  # true and false
        return float(value == 1.0)
    return float(value <= limit if "at_most" in given else value >= limit)


def judge_jointly(found: Mapping[str, Outcome], panel: bool) -> Outcome:
    """Return the joint outcome of tested values that form a table row, a sentence or a panel."""
    if len(found) == 1:
        return next(iter(found.values()))
    states = [outcome.state for outcome in found.values()]
    failed = {name: outcome for name, outcome in found.items() if outcome.state == FAILS}
    enough = states.count(HOLDS) >= (PANEL if panel else 1) * len(states)
    runs = min(outcome.runs for outcome in found.values())
    share: tuple[int, ...] = ()
    if panel:
        share = (states.count(HOLDS), len(states))
        measured = f"{share[0]} of {len(states)} points hold, {len(failed)} fail"
    else:
        measured = "; ".join(f"{name}: {outcome.measured}" for name, outcome in found.items())
    if len(failed) >= (TWO if panel else 1):
        return Outcome(Part(FAILS, share), measured, runs=runs)
    if enough and not failed:
        return Outcome(Part(HOLDS, share), measured, runs=runs)
    unsure = [outcome for outcome in found.values() if outcome.state == UNDECIDED]
    growths = [outcome.growth for outcome in unsure]
    growth = max(growths) if all(growths) and growths else 0.0
    if panel:
        ((lack, _),) = Counter([one.part.lack for one in unsure] or [ALONE]).most_common(1)
        part, why = Part(UNDECIDED, share, lack), _panel_why(states, unsure)
        return Outcome(part, measured, why, 0, runs, growth)
    reasons = gathered((outcome.why, name) for name, outcome in found.items())
    told = [f"{' and '.join(names)}: {why}" for why, names in reasons.items() if why]
    return Outcome(Part(UNDECIDED), measured, "; ".join(told), 0, runs, growth)


def _panel_why(states: Sequence[str], unsure: Sequence[Outcome]) -> str:
    """Return why the runs cannot tell whether a panel's points agree with the printed panel."""
    told = []
    if FAILS in states:
        told.append(f"{states.count(FAILS)} point fails, too few to refute a panel")
    if unsure:
        told.append(f"at {len(unsure)} of {len(states)} points the runs cannot tell")
    able = states.count(HOLDS) + sum(outcome.growth > 0 for outcome in unsure)
    needed = math.ceil(PANEL * len(states))
    if able < needed:
        told.append(f"more runs would not help: at most {able} can hold, and {needed} must")
    return "; ".join(told)


def pooled_deviation(groups: Sequence[Numbers]) -> tuple[float, int] | None:
    """Return the pooled standard deviation of groups, and its degrees of freedom.

    The result is None if there are no degrees of freedom.
    """
    known = [[v for v in group if v is not None and math.isfinite(v)] for group in groups]
    freedom = sum(len(group) - 1 for group in known if group)
    if not freedom:
        return None
    squares = sum(float(np.var(group)) * len(group) for group in known if group)
    return math.sqrt(squares / freedom), freedom


def _ranged(values: Iterable[float | None], middle: Callable[..., Any] = np.mean) -> str:
    """Return a text with the mean of the known values (or another `middle`) and their range."""
    known = [v for v in values if v is not None and not math.isnan(v)]
    if not known:
        return "no result"
    mean, low, high = (tables.show(float(f(known))) for f in (middle, min, max))
    return mean if low == high else f"{mean} [{low}, {high}]"


def _half_digit(printed: str | float) -> float:
    """Return half a unit of the last printed digit; 0 if `printed` is a float."""
    if not isinstance(printed, str):
        return 0.0
    return 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
