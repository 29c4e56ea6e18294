"""What the paper `faps` states of its runs, from rows of `counts` and from histories.

See `faps.tables`, which has the counts themselves. Methods have the names of `faps.tables.method`.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Row, Rows, chosen, groups, reached
from fedcore.repro.tables.summaries import TWIN, statistic

LINE_FROM = 1e-2  # KKT violation over ‖A‖₂² at which a straight line begins
# The printed points at which methods are compared: Table 4, Figure 2 (1) to (4), Figures 3 and 4.
PRINTED = {
    "table4": 1, "table1": 4, "fig2m": 4, "fig2p": 4, "fig2xi": 4, "fig3": 4, "fig4": 3,
}  # fmt: skip
AVERAGED = ("table1", "fig2m", "fig2p", "fig2xi", "fig3", "fig3centred")  # of four points each
ORDER = 10.0  # one order of magnitude
ERRORS = ("kkt", "singular_value_error")
LEAKS = ("fig1a", "fig1b", "late")
LEAKAGE_LIMITS = (1e-2, 1e-3, 1e-4, 1e-5)  # the last is that of Figure 1b
ORDERS = {  # problems that should become harder for SSI
    "decay": ("fig2xi", ("xi1", "xi2", "xi3", "xi4")),
    "condition": ("fig4", ("kappa1000", "kappa100", "kappa10")),
}


def averages(rows: Rows) -> Rows:
    """Tables 2 and 3: means over the four points of an experiment, per method, stop and start.

    A mean is None if a point was not run, or a run ended before it came to the stop. Starts that
    other points of the method have and one has not are left out.
    """
    found = []
    some = [row for row in rows if row["experiment"] in AVERAGED and row["method"]]
    for key, group in groups(some, "experiment", "rule", "method"):
        points = len({row["point"] for row in group})
        for start, own in groups(group, "repeat"):
            if len(own) == points:
                whole = points == PRINTED["fig3"] and not any(np.isnan(r["rounds"]) for r in own)
                means = {
                    e: statistic([r[e] for r in own], "mean") if whole else None for e in ERRORS
                }
                found.append(key | start | means | {"status": _status(own)})
    return found


def _status(rows: Rows) -> str:
    """Return the status of what several problems gave: that of the first in this order."""
    found = {row["status"] for row in rows}
    order = ("surrogate", "rebuilt", "official content", "official", "synthetic")
    return next(status for status in order if status in found)


def leakage(results: Results) -> Rows:
    """Rounds until the error of the rebuilt Gram matrix, and the KKT violation, reach limits.

    ``ratio`` is the quotient of the two numbers of rounds. If the KKT violation does not reach the
    limit, its divisor is the number of all rounds, so that ``ratio`` is an upper bound. ``early``
    says whether the matrix is known in at most half of these rounds. ``least`` is the smallest
    error of the rebuilt matrix, and ``over_ssi`` this over that of SSI from as many rounds on the
    same data, None where SSI was not run. In the experiment ``late`` the attack leaves out the
    first rounds.
    """
    rows: Rows = []
    ssi = {run.problem: run["leakage"] for run in results.runs("fig1a", algorithm="ssi")}
    for run in results.runs(*LEAKS):
        late = run.experiment == "late"
        rounds, error = run["round"], run["late_leakage" if late else "leakage"]
        least, tables = np.nanmin(error, axis=1), []
        same = ssi[run.problem][: len(error), : error.shape[1]] if run.problem in ssi else None
        for limit in LEAKAGE_LIMITS:
            stop = run["kkt_residual"] <= limit
            kkt, known = reached(stop, rounds), reached(error <= limit, rounds)
            ratio = known / np.fmin(kkt, run.last("round"))
            tables.append(
                run.rows(
                    n=run.data["n_features"],
                    method=run.tags.get("method"),  # a column also where no run has the tag
                    limit=limit,
                    rounds_kkt=kkt,
                    rounds_leakage=known,
                    rounds=run.last("round").astype(float),
                    ratio=ratio,
                    early=ratio <= 0.5,
                    leakage_at_kkt=reached(stop, error),
                    least=least,
                    over_ssi=None if same is None else least / np.nanmin(same, axis=1),
                )
            )
        rows += chain.from_iterable(zip(*tables, strict=True))
    return rows


def leads(rows: Rows) -> Rows:
    """How many times fewer rounds a method needs from the same start: a row per rival and start.

    `rows` are those of `counts`. ``lead`` is the rival's rounds over ours, and ``fewer`` whether it
    is above 1. A run that did not come to the stop needs one round more than it made at least; both
    are None where that does not tell which needs fewer. LocalPower is held against SSI, too.
    """
    found = []
    some = [row for row in rows if row["experiment"] != "inner" and row["method"]]
    for key, group in groups(some, "experiment", "problem", "point", "rule", "status"):
        for rival in ("ssi", "local_power"):
            theirs = {row["repeat"]: row for row in chosen(group, algorithm=rival)}
            for row in group:
                ours = row["algorithm"] in ("faps", "local_power") and row["algorithm"] != rival
                if ours and row["repeat"] in theirs:
                    names = {"method": row["method"], "rival": rival, "repeat": row["repeat"]}
                    found.append(key | names | _lead(row, theirs[row["repeat"]]))
    return found


def _lead(ours: Row, theirs: Row) -> Row:
    """Columns of `leads` for one start, and of its twin, None if neither has one."""
    rounds = [row["rounds"] for row in (ours, theirs)]
    twins = [row[f"{TWIN}rounds"] for row in (ours, theirs)]
    found = _ahead(rounds, (ours["made"], theirs["made"]))
    again: Row = dict.fromkeys(found)
    if any(twin is not None for twin in twins):
        rounds = [x if twin is None else twin for x, twin in zip(rounds, twins, strict=True)]
        again = _ahead(rounds, (ours["made"], theirs["made"]))
    return found | {f"{TWIN}{name}": value for name, value in again.items()}


def _ahead(rounds: list[float], made: tuple[float, float]) -> Row:
    stopped = ~np.isnan(rounds)
    ours, theirs = np.where(stopped, rounds, np.add(made, 1))
    lead = float(theirs / ours)
    fewer = lead > 1
    sure = stopped.all() or (stopped.any() and bool(stopped[0]) == fewer)
    return {"lead": lead, "fewer": fewer} if sure else {"lead": None, "fewer": None}


def advantage(rows: Rows) -> Rows:
    """Figure 4: how the lead over SSI changes with κ, a row per method, stop and start of `leads`.

    ``change`` is the largest lead over the smallest, None unless each κ has one.
    """
    found = []
    some = chosen(rows, experiment="fig4", rival="ssi")
    for key, group in groups(some, "method", "rule", "repeat"):
        own = [row["lead"] for row in group]
        whole = len(own) == PRINTED["fig4"] and None not in own
        found.append(
            key | {"change": max(own) / min(own) if whole else None} | {"status": _status(group)}
        )
    return found


def largest(rows: Rows) -> Rows:
    """Lead over SSI at the best point, a row per method and stop of `leads`.

    A point counts with the median over its starts. A sentence on the largest of all points may come
    true on a part of them, but it is refuted by all alone: there is no row if ``best`` is below
    `ORDER` and a point was not run.
    """
    found = []
    some = [row for row in chosen(rows, rival="ssi") if row["experiment"] in PRINTED]
    for key, group in groups(some, "method", "rule"):
        points = groups(group, "experiment", "point")
        at = [statistic([row["lead"] for row in own]) for _, own in points]
        best = float(np.fmax.reduce(at))
        if best >= ORDER or len(at) == sum(PRINTED.values()):
            found.append(key | {"points": len(at), "best": best, "status": _status(group)})
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
    for claim, (experiment, order) in ORDERS.items():
        some = chosen(rows, experiment=experiment, algorithm="ssi")
        for key, group in groups(some, "rule", "status", "repeat"):
            own = {row["point"]: row["rounds"] for row in group}
            rounds = [own[point] for point in order if point in own]
            rise = bool(np.all(np.diff(rounds) > 0))
            holds = None if rise and len(rounds) < len(order) else rise
            found.append({"claim": claim} | key | {"holds": holds})
    return found
