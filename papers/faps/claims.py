"""What the paper `faps` states of its runs, from rows of `counts` and from histories.

See `faps.tables`, which has the counts themselves.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Row, Rows, chosen, groups, reached
from fedcore.repro.tables.summaries import TWIN, statistic

RULE_14, FROM_Z, ONE_STEP = "FAPS, inner rule (14)", "FAPS from Z", "FAPS from Z, one step"
LINE_FROM = 1e-2  # KKT violation over ‖A‖₂² at which a straight line begins
# The printed points at which methods are compared: Table 4, Figure 2 (1) to (4), Figures 3 and 4.
PRINTED = {
    "table4": 1, "table1": 4, "fig2m": 4, "fig2p": 4, "fig2xi": 4, "fig3": 4, "fig4": 3,
}  # fmt: skip
ORDER = 10.0  # one order of magnitude
ERRORS = ("kkt", "singular_value_error")
AT_END, OR_END = "_at_end", "_or_end"  # endings of columns with errors of the last round
LEAKS = ("fig1a", "fig1b", "late")
LEAKAGE_LIMIT = 1e-5  # of Figure 1b
LEAKAGE_LIMITS = (1e-2, 1e-3, 10 * LEAKAGE_LIMIT, LEAKAGE_LIMIT)


def averages(rows: Rows) -> Rows:
    """Tables 2 and 3: means over the points of an experiment, a row per method, stop and start.

    There is no row for a method that was not run on all points. The mean is NaN if a run did not
    reach the stop; that of ``kkt_or_end`` and ``singular_value_error_or_end`` then has the error
    with which this run ended.
    """
    found = []
    some = [row for row in _without_p(rows) if row["experiment"] != "inner"]
    for key, group in groups(some, "experiment", "rule"):
        points = {row["point"] for row in group}
        for names, own in groups(group, "algorithm", "variant", "repeat"):
            if {row["point"] for row in own} == points:
                means = {
                    f"{name}{ending}": statistic([of(row, name) for row in own], "mean")
                    for ending, of in (("", dict.__getitem__), (OR_END, _or_end))
                    for name in ERRORS
                }
                found.append(key | names | means | {"points": len(points), "status": _status(own)})
    return found


def _or_end(row: Row, name: str) -> float:
    """Return an error at the stop, or at the end of a run that did not reach it."""
    return float(row[name if row["rounds"] == row["rounds"] else f"{name}{AT_END}"])


def _status(rows: Rows) -> str:
    """Return the status of what several problems gave: that of the first in this order."""
    found = {row["status"] for row in rows}
    order = ("surrogate", "rebuilt", "official content", "official", "synthetic")
    return next(status for status in order if status in found)


def _without_p(rows: Rows) -> Rows:
    """Replace the variants of Figure 2 (3), which are values of p, by those of other figures."""
    names = {RULE_14: "residual", FROM_Z: "server-subspaces"}
    return [
        row | {"variant": names.get(row["method"], "default")}
        if row["experiment"] == "fig2p"
        else row
        for row in rows
    ]


def leakage(results: Results) -> Rows:
    """Rounds until the error of the rebuilt Gram matrix, and the KKT violation, reach limits.

    ``ratio`` is the quotient of the two numbers of rounds. If the KKT violation does not reach the
    limit, its divisor is the number of all rounds, so that ``ratio`` is an upper bound. ``early``
    says whether the matrix is known in at most half of these rounds. ``least`` is the smallest
    error of the rebuilt matrix. In the experiment ``late`` the attack leaves out the first rounds.
    """
    rows: Rows = []
    for run in results.runs(*LEAKS):
        late = run.experiment == "late"
        rounds, error = run["round"], run["late_leakage" if late else "leakage"]
        tables = []
        for limit in LEAKAGE_LIMITS:
            stop = run["kkt_residual"] <= limit
            kkt, known = reached(stop, rounds), reached(error <= limit, rounds)
            ratio = known / np.fmin(kkt, run.last("round"))
            tables.append(
                run.rows(
                    n=run.data["n_features"],
                    limit=limit,
                    rounds_kkt=kkt,
                    rounds_leakage=known,
                    rounds=run.last("round").astype(float),
                    ratio=ratio,
                    early=ratio <= 0.5,
                    leakage_at_kkt=reached(stop, error),
                    least=np.nanmin(error, axis=1),
                )
            )
        rows += chain.from_iterable(zip(*tables, strict=True))
    return rows


def growth(rows: Rows) -> Rows:
    """Figure 1b, from rows of `leakage`: rounds of SSI until an error is 1e−5, a row per start.

    The tag ``kind`` is ``white`` for independent entries and ``decaying`` for the spectrum (23)
    with ξ = 1.0316. ``rounds_known`` is the number of rounds until the error of the rebuilt Gram
    matrix is 1e−4.
    """
    some = chosen(rows, experiment="fig1b")
    known = chosen(some, limit=10 * LEAKAGE_LIMIT)
    return [
        row | {"rounds_known": other["rounds_leakage"]}
        for row, other in zip(chosen(some, limit=LEAKAGE_LIMIT), known, strict=True)
    ]


def orderings(rows: Rows) -> Rows:
    """Which method needs fewer rounds from the same start: a row per stop, point, pair and start.

    `rows` are those of `counts`; every variant of FAPS is compared. ``ratio`` is that of the
    rounds, ours over theirs, NaN unless both reached the stop. ``holds`` is None if one did not
    reach it and made too few rounds to tell. ``messages`` is the ratio of bytes per round. A tie
    of LocalPower with SSI, which have no variant, counts for LocalPower: it becomes SSI in the end.
    """
    found = []
    some = [row for row in _without_p(rows) if row["experiment"] != "inner"]
    for key, group in groups(some, "experiment", "problem", "point", "rule", "status"):
        power, ssi = (chosen(group, algorithm=name) for name in ("local_power", "ssi"))
        pairs = [("local-power-before-ssi", None, power, ssi)]
        for name, ours in groups(chosen(group, algorithm="faps"), "variant"):
            pairs.append(("faps-before-local-power", name["variant"], ours, power))
            pairs.append(("faps-before-ssi", name["variant"], ours, ssi))
        for claim, variant, ours, theirs in pairs:
            starts = {row["repeat"]: row for row in theirs}
            for row in ours:
                if row["repeat"] in starts:
                    names = {"claim": claim, "variant": variant, "repeat": row["repeat"]}
                    found.append(key | names | _compared(row, starts[row["repeat"]], not variant))
    return found


def _compared(ours: Row, theirs: Row, tie: bool) -> Row:
    """Columns of `orderings` for one start, and of its twin, None if neither has one."""
    one, other = ours["rounds"], theirs["rounds"]
    per_round = [row["bytes_up"] / row["rounds"] for row in (ours, theirs)]
    found: Row = {
        "ratio": one / other,
        "holds": _less(one, other, ours["made"], theirs["made"], tie),
        "messages": per_round[0] / per_round[1],
        f"{TWIN}ratio": None,
        f"{TWIN}holds": None,
    }
    twins = [row[f"{TWIN}rounds"] for row in (ours, theirs)]
    if any(twin is not None for twin in twins):
        one, other = (x if t is None else t for x, t in zip((one, other), twins, strict=True))
        found[f"{TWIN}ratio"] = one / other
        found[f"{TWIN}holds"] = _less(one, other, ours["made"], theirs["made"], tie)
    return found


def _less(one: float, other: float, made: float, made_by_other: float, tie: bool) -> bool | None:
    """Whether the first needs fewer rounds; NaN is more than all rounds that were made."""
    if np.isnan(one):
        return False if made >= other else None
    if np.isnan(other):
        return True if made_by_other >= one else None
    return bool(one < other or (tie and one == other))


def advantage(rows: Rows) -> Rows:
    """Figure 4: SSI's rounds over those of FAPS, a row per variant, stop and start of `orderings`.

    ``change`` is the largest over the smallest, NaN unless each κ has one. ``spectra`` is the
    number of κ that were run.
    """
    found = []
    some = chosen(rows, claim="faps-before-ssi", experiment="fig4")
    spectra = {row["point"] for row in some}
    for key, group in groups(some, "variant", "rule", "repeat"):
        own = {row["point"]: 1 / row["ratio"] for row in group}
        whole = own.keys() == spectra and len(own) > 1
        found.append(
            key
            | {"change": max(own.values()) / min(own.values()) if whole else np.nan}
            | {"spectra": len(own)}
            | {"status": _status(group)}
        )
    return found


def largest(rows: Rows) -> Rows:
    """SSI's rounds over those of FAPS at the best point, a row per variant and stop of `orderings`.

    A point counts with the median over its starts; ``points`` is the number of those that were run.
    A sentence on the largest of all points may come true on a part of them, but it is refuted by
    all alone: ``decided`` is whether ``best`` is `ORDER` or more, or no point is left out.
    """
    found = []
    some = [row for row in chosen(rows, claim="faps-before-ssi") if row["experiment"] in PRINTED]
    for key, group in groups(some, "variant", "rule"):
        at = [
            statistic([1 / row["ratio"] for row in starts])
            for _, starts in groups(group, "experiment", "point")
        ]
        best = float(np.fmax.reduce(at))
        found.append(
            key
            | {
                "points": len(at),
                "best": best,
                "decided": best >= ORDER or len(at) == sum(PRINTED.values()),
            }
            | {"status": _status(group)}
        )
    return found


def linear(results: Results) -> Rows:
    """Figure 4: how straight the logarithm of the KKT violation falls, a row per method and start.

    ``straight`` is R² of a straight line through all records from a violation of 1e−2 on, NaN if
    there are fewer than ten. ``rate`` is the factor per round of this line.
    """
    return [
        row
        for run in results.runs("fig4")
        if run.algorithm in ("ssi", "local_power", "faps")
        for row in run.rows(**_line(run))
    ]


def _line(run: Run) -> dict[str, np.ndarray]:
    found = np.full((2, len(run["round"])), np.nan)
    for repeat, (k, residual) in enumerate(zip(run["round"], run["kkt_residual"], strict=True)):
        known = ~np.isnan(residual) & (np.cumsum(residual <= LINE_FROM) > 0)
        if known.sum() >= 10:
            x, y = k[known] - k[known].mean(), np.log10(residual[known])
            slope = (x @ y) / (x @ x)
            rest = y - y.mean() - slope * x
            found[:, repeat] = 1 - (rest @ rest) / ((y - y.mean()) ** 2).sum(), 10.0**slope
    return {"straight": found[0], "rate": found[1]}


def harder(rows: Rows) -> Rows:
    """Whether SSI needs more rounds from problem to problem, from rows of `counts`, per start.

    ``decay``: the closer ξ is to 1 (Figure 2 (4)). ``condition``: the smaller κ is (Figure 4).
    ``holds`` is None if some problems are missing and the others rise.
    """
    found = []
    for claim, experiment, order in (
        ("decay", "fig2xi", ("xi1", "xi2", "xi3", "xi4")),
        ("condition", "fig4", ("kappa1000", "kappa100", "kappa10")),
    ):
        some = chosen(rows, experiment=experiment, algorithm="ssi")
        for key, group in groups(some, "rule", "status", "repeat"):
            own = {row["point"]: row["rounds"] for row in group}
            rounds = [own[point] for point in order if point in own]
            rise = bool(np.all(np.diff(rounds) > 0))
            holds = None if rise and len(rounds) < len(order) else rise
            found.append({"claim": claim} | key | {"holds": holds})
    return found
