"""Tables of the paper `faps`, from the histories of its cells.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*.
Rounds are counted under three stopping rules from one run; see `RULES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from fedcore.algorithms import local_power
from fedcore.history import History
from fedcore.reports import summaries
from fedcore.reports.report import Table
from fedcore.reports.results import Results
from fedcore.reports.rows import at, first, status
from fedcore.reports.summaries import by_group

Rows = list[dict[str, Any]]

# ``kkt``, ‖P⊥ AAᵀZ‖_F ≤ 1e−4 ‖A‖₂², explains the printed errors of the synthetic problems;
# ``scaled``, ‖P⊥ AAᵀZ‖_F ≤ 5e−6 ‖A‖_F², those of the images; ``rule27`` is what the paper states, a
# relative change of Σ‖AᵢᵀZ‖²_F of at most 1e−10.
KKT_LIMIT, SCALED_LIMIT, RULE_27 = 1e-4, 5e-6, 1e-10
RULES = {
    "kkt": lambda history: history["kkt_residual"] <= KKT_LIMIT,
    "scaled": lambda history: history["kkt"] <= SCALED_LIMIT,
    "rule27": lambda history: _change(history["captured"]) <= RULE_27,
}
EXPERIMENTS = (
    "table4",
    "inner",
    "table1",
    "table1_printed",
    "fig2m",
    "fig2p",
    "fig2xi",
    "fig3",
    "fig4",
)
MEASURES = ("round", "bytes_up", "kkt", "singular_value_error")
# Curves of figures: name and line; the colour is the algorithm's.
LABELS = {
    ("ssi", "default"): ("SSI", "-"),
    ("local_power", "default"): ("LocalPower", "-"),
    ("faps", "default"): ("FAPS as printed", "--"),
    ("faps", "residual"): ("FAPS, inner rule (14)", "-"),
    ("faps", "ritz-signs"): ("FAPS, Ritz vectors", ":"),
    ("block_krylov", "default"): ("block Krylov", "-"),
    ("momentum_power", "default"): ("momentum", "-"),
}
RULE_PROBLEMS = ("uneven", "n2000", "xi1", "xi4", "kappa100", "mnist")  # rule (27) is looked at
RATES = ("products_per_round", "measured", "steps", "exact", "ssi")
LEAKAGE_LIMIT = 1e-5  # of Figure 1b
RATE_FROM = 1e-3  # KKT violation, over ‖A‖₂², from which on the rate is measured


@cache
def counts(results: Results) -> Rows:
    """Rounds, bytes, errors and products at every stop, a row per start; NaN when never.

    ``products`` are those of a client's AᵢAᵢᵀ with a block, ``inner_products`` those that FAPS
    counts itself, over all clients. The columns ``twin_…`` are the same of the repeat's twin, None
    where it has none; see `fedcore.experiments.twins`.
    """
    rows = []
    for experiment, problem, algorithm, variant, history in _cells(results, EXPERIMENTS):
        cell = _described(experiment, problem, algorithm, variant, history)
        for rule in RULES:
            found = _stops(algorithm, history, rule)
            twins = _stops(algorithm, history.twins, rule) if history.twins else []
            for repeat, stop in enumerate(found):
                twin = twins[repeat] if twins else dict.fromkeys(stop)
                rows.append(
                    cell
                    | {"repeat": repeat, "rule": rule}
                    | stop
                    | {f"{summaries.TWIN}{name}": value for name, value in twin.items()}
                )
    return rows


def _stops(algorithm: str, history: History, rule: str) -> list[dict[str, float]]:
    """What `counts` says of each repeat at its stop."""
    records = [first(holds) for holds in RULES[rule](history)]
    return [
        {
            "rounds": at(history, "round", repeat, record),
            "bytes_up": at(history, "bytes_up", repeat, record),
            "kkt": at(history, "kkt", repeat, record),
            "singular_value_error": at(history, "singular_value_error", repeat, record),
            "products": products(algorithm, history, repeat, record),
        }
        for repeat, record in enumerate(records)
    ]


def amplification(results: Results) -> Rows:
    """How far each cell with twins amplifies one rounding of its start, a row per cell.

    The distances between a run and its twin are medians over the starts: at the start, after round
    one, and the largest. ``least`` and ``most`` are the rounds to the stop kkt over the starts,
    ``rounding`` is the largest change of one by its twin, and ``decided_by`` says which of the two
    is the greater matter; see `summaries.decided_by`.
    """
    rows = []
    for experiment, problem, algorithm, variant, history in _cells(results, EXPERIMENTS):
        if history.twins is None:
            continue
        distance = history["twin_distance"]
        rounds, twins = (
            [stop["rounds"] for stop in _stops(algorithm, one, "kkt")]
            for one in (history, history.twins)
        )
        rows.append(
            _described(experiment, problem, algorithm, variant, history)
            | {
                "at_start": float(np.median(distance[:, 0])),
                "after_one": float(np.median(distance[:, 1])),
                "largest": float(np.median(np.nanmax(distance, axis=1))),
                "rounds": summaries.statistic(rounds),
                "least": summaries.statistic(rounds, "min"),
                "most": summaries.statistic(rounds, "max", missing="first"),
                "rounding": summaries.rounding(rounds, twins),
                "decided_by": summaries.decided_by(rounds, twins),
            }
        )
    return rows


def products(algorithm: str, history: History, repeat: int, record: int | None) -> float:
    """Return the products of AᵢAᵢᵀ with a block that a client has made up to a record."""
    rounds = at(history, "round", repeat, record)
    if "inner_products" in history.columns:
        clients = history.about["problem"]["n_clients"]
        return at(history, "inner_products", repeat, record) / clients
    if algorithm == "local_power" and rounds == rounds:
        params = local_power.Params(**history.about["params"])
        return float(sum(local_power.steps_of(params, k) for k in range(1, int(rounds) + 1)))
    return rounds


def averages(rows: Rows) -> Rows:
    """Tables 2 and 3: means over problems and starts, a row per experiment, method and stop."""
    groups: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        key = (row["experiment"], row["algorithm"], variant_of(row), row["rule"])
        groups.setdefault(key, []).append(row)
    names = ("experiment", "algorithm", "variant", "rule")
    return [
        dict(zip(names, key, strict=True))
        | {
            name: summaries.statistic([row[name] for row in group], "mean")
            for name in ("kkt", "singular_value_error")
        }
        | {"runs": len(group)}
        for key, group in groups.items()
    ]


@cache
def rates(results: Results) -> Rows:
    """Factor by which the KKT violation falls per round, beside what theory says, per start.

    It is measured between 1e−3 and 1e−4 of ‖A‖₂². With b = Σβᵢ at the stop, g = λ_p − λ_{p+1},
    c = λ_{p+1}/(λ_p + b) and q inner products per round, ``exact`` is b/(b + g), ``steps`` is
    (b + g c^q)/(b + g), and ``ssi`` is λ_{p+1}/λ_p; see `fedcore.algorithms.faps`. The theory is
    one of clients that are alike.
    """
    rows = []
    for experiment, problem, algorithm, variant, history in _cells(results, EXPERIMENTS):
        if algorithm not in ("ssi", "faps"):
            continue
        eigenvalues = history.reference["singular_values"] ** 2
        p = history.about["params"]["n_components"]
        last, next_ = eigenvalues[p - 1 : p + 1]
        gap = last - next_
        for repeat, residual in enumerate(history["kkt_residual"]):
            begin, end = first(residual <= RATE_FROM), first(residual <= KKT_LIMIT)
            if begin is None or end is None or begin == end:
                continue
            row = _described(experiment, problem, algorithm, variant, history) | {
                "repeat": repeat,
                "measured": float((residual[end] / residual[begin]) ** (1 / (end - begin))),
                "ssi": float(next_ / last),
                "products_per_round": 1.0,
                "penalty": float("nan"),
                "exact": float("nan"),
                "steps": float("nan"),
            }
            if algorithm == "faps":
                b = at(history, "penalty", repeat, end)
                q = (
                    products(algorithm, history, repeat, end)
                    - products(algorithm, history, repeat, begin)
                ) / (end - begin)
                row |= {
                    "products_per_round": q,
                    "penalty": b,
                    "exact": float(b / (b + gap)),
                    "steps": float((b + gap * (next_ / (last + b)) ** q) / (b + gap)),
                }
            rows.append(row)
    return rows


def theory(rows: Rows) -> dict[str, Any]:
    """Rates that theory gives for the problem of `rows`, some of `rates`, at their median penalty.

    Returns
    -------
    dict
        ``products_per_round`` and ``steps``, curves; ``exact`` and ``ssi``, numbers.
    """
    b, ssi = (float(np.median([row[name] for row in rows])) for name in ("penalty", "ssi"))
    row = min(rows, key=lambda row: abs(row["penalty"] - b))
    gap = row["penalty"] * (1 / row["exact"] - 1)
    last = gap / (1 - ssi)
    q = np.geomspace(1.0, 30.0, 60)
    steps = (b + gap * (ssi * last / (last + b)) ** q) / (b + gap)
    return {"products_per_round": q, "steps": steps, "exact": b / (b + gap), "ssi": ssi}


def inner(rows: Rows, measured: Rows) -> Rows:
    """Inner rule of FAPS: medians over the starts of `counts`' rows and `rates`' rows, stop kkt.

    ``rounding`` and ``decided_by`` are those of `summaries.summarise`.
    """
    some = [r for r in rows if r["experiment"] == "inner" and r["rule"] == "kkt"]
    by = ["status", "algorithm", "variant"]
    rated = {
        (row["algorithm"], row["variant"]): row
        for row in _medians([r for r in measured if r["experiment"] == "inner"], by, RATES)
    }
    none = dict.fromkeys(RATES, float("nan"))
    ends = {
        (row["algorithm"], row["variant"]): {
            "least": row["min"],
            "most": row["max"],
            "rounding": row.get("rounding"),
            "decided_by": row.get("decided by"),
        }
        for row in summaries.summarise(some, "rounds", by)
    }
    return [
        row
        | ends[row["algorithm"], row["variant"]]
        | {name: rated.get((row["algorithm"], row["variant"]), none)[name] for name in RATES}
        for row in _medians(some, by, ("rounds", "products", "kkt", "singular_value_error"))
    ]


def rates_by_problem(rows: Rows) -> Rows:
    """Medians over the starts of `rates`' rows, FAPS with SSI's measured rate beside it.

    ``speed_of_exact``, ln(exact)/ln(ssi), is SSI's rounds over those of exact solves: below 1 where
    b > λ_{p+1}, so that FAPS cannot be the faster one there.
    """
    by = ["experiment", "problem", "status", "p", "algorithm", "variant"]
    found = _medians([r for r in rows if r["experiment"] != "inner"], by, (*RATES, "penalty"))
    ssi = {(r["problem"], r["p"]): r["measured"] for r in found if r["algorithm"] == "ssi"}
    return [
        row
        | {
            "ssi_measured": ssi.get((row["problem"], row["p"]), float("nan")),
            "speed_of_exact": float(np.log(row["exact"]) / np.log(row["ssi"])),
        }
        for row in found
        if row["algorithm"] == "faps"
    ]


def panel(
    rows: Rows, experiment: str, column: str, rule: str = "kkt"
) -> Iterator[tuple[str, str, list[tuple[str, int]], np.ndarray]]:
    """Yield what a panel of Figures 2 and 3 draws, method by method.

    Yields
    ------
    algorithm, variant : str
    ticks : list of (problem, p)
        The same for every method.
    values : ndarray of shape (repeats, ticks)
        NaN where there is no such run or it did not come to the stop.
    """
    some = [r for r in rows if r["experiment"] == experiment and r["rule"] == rule]
    ticks = list(dict.fromkeys((r["problem"], r["p"]) for r in some))
    methods: dict[tuple[str, str], Rows] = {}
    for row in some:
        methods.setdefault((row["algorithm"], variant_of(row)), []).append(row)
    for key, group in methods.items():
        values = np.full((1 + max(r["repeat"] for r in group), len(ticks)), np.nan)
        for row in group:
            values[row["repeat"], ticks.index((row["problem"], row["p"]))] = row[column]
        if key in LABELS and not np.isnan(values).all():
            yield *key, ticks, values


def variant_of(row: dict[str, Any]) -> str:
    """Return the variant of a row; those of Figure 2 (3) are values of p instead."""
    if row["experiment"] != "fig2p":
        return row["variant"]
    return "residual" if row["algorithm"] == "faps" else "default"


def leakage(results: Results) -> Rows:
    """Rounds until the rebuilt Gram matrix, and the KKT violation, have come to given errors.

    ``ratio`` is that of the two numbers of rounds, with all rounds of the run, a lower bound, for a
    KKT violation that is not reached; ``least`` is the smallest error of the rebuilt matrix.
    """
    rows = []
    for experiment, problem, algorithm, variant, history in _cells(results, ("fig1a", "fig1b")):
        for repeat in range(history.repeats):
            for limit in (1e-2, 1e-3, 10 * LEAKAGE_LIMIT, LEAKAGE_LIMIT):
                record = first(history["kkt_residual"][repeat] <= limit)
                known = first(history["leakage"][repeat] <= limit)
                rounds_kkt = at(history, "round", repeat, record)
                rounds_leakage = at(history, "round", repeat, known)
                rounds = float(history.last("round")[repeat])
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": status(history),
                        "n": history.about["problem"]["n_features"],
                        "algorithm": algorithm,
                        "variant": variant,
                        "repeat": repeat,
                        "limit": limit,
                        "rounds_kkt": rounds_kkt,
                        "rounds_leakage": rounds_leakage,
                        "rounds": rounds,
                        "ratio": rounds_leakage
                        / np.fmin(rounds_kkt, history.last("round")[repeat]),
                        "leakage_at_kkt": at(history, "leakage", repeat, record),
                        "least": float(np.nanmin(history["leakage"][repeat])),
                    }
                )
    return rows


def growth(rows: Rows) -> Rows:
    """Figure 1b, from `leakage`'s rows: rounds of SSI until either error is 1e−5, a row per start.

    ``kind`` is ``white`` for independent entries, ``decaying`` for the spectrum (23), ξ = 1.0316;
    ``rounds_known`` are the rounds until the Gram matrix is known to 1e−4.
    """
    some = [row for row in rows if row["experiment"] == "fig1b"]
    known = {
        (row["problem"], row["repeat"]): row["rounds_leakage"]
        for row in some
        if row["limit"] == 10 * LEAKAGE_LIMIT
    }
    return [
        {"kind": row["problem"].split("_")[0]}
        | row
        | {"rounds_known": known[row["problem"], row["repeat"]]}
        for row in some
        if row["limit"] == LEAKAGE_LIMIT
    ]


def orderings(rows: Rows) -> Rows:
    """Which method needs fewer rounds, by medians over the starts, on every problem.

    `rows` are those of `counts`. A row per stop, problem, and pair of methods; FAPS once in every
    variant. ``ratio`` is that of the medians, and ``holds`` says that it is below 1, or at most 1
    for LocalPower against SSI, which it becomes. ``twin_least_…`` and ``twin_most_…`` are the ends
    of what both come to when any runs are exchanged for their twins, and ``twin_change_ratio`` is
    the largest change of a single run's rounds over the other method's median (or of the median
    over them); None where neither method has twins.
    """
    found: Rows = []
    medians: dict[tuple[Any, ...], dict[tuple[str, str], Rows]] = {}
    for row in rows:
        if row["experiment"] == "inner":
            continue
        key = (row["experiment"], row["problem"], row["p"], row["rule"])
        name = (row["algorithm"], variant_of(row) if row["algorithm"] == "faps" else "")
        medians.setdefault(key, {}).setdefault(name, []).append(row)
    for key, methods in medians.items():
        pairs = [("local-power-before-ssi", "", ("local_power", ""), ("ssi", ""))]
        for algorithm, variant in methods:
            if algorithm == "faps":
                mine = (algorithm, variant)
                pairs.append(("faps-before-local-power", variant, mine, ("local_power", "")))
                pairs.append(("faps-before-ssi", variant, mine, ("ssi", "")))
        for claim, variant, *names in pairs:
            one, other = (methods.get(name, []) for name in names)
            found.append(
                dict(zip(("experiment", "problem", "p", "rule"), key, strict=True))
                | {"status": next(iter(methods.values()))[0]["status"]}
                | {"claim": claim, "variant": variant}
                | _compared(one, other, tie=not variant)
            )
    return found


def _compared(one: Rows, other: Rows, *, tie: bool) -> dict[str, Any]:
    """Medians of the rounds of two methods against each other, and what twins make of them."""
    column = f"{summaries.TWIN}rounds"

    def before(rounds: float, others: float) -> bool:
        return bool(rounds < others or (rounds == others and tie))

    first_, second = (
        summaries.statistic([row["rounds"] for row in rows]) if rows else np.nan
        for rows in (one, other)
    )
    found = {"ratio": _over(first_, second), "holds": before(first_, second)}
    names = ("least_ratio", "most_ratio", "change_ratio", "least_holds", "most_holds")
    twins: dict[str, Any] = dict.fromkeys(names)
    if any(row[column] is not None for row in (*one, *other)):
        (least, most), (least_, most_) = (
            summaries.exchanged(
                [row["rounds"] for row in rows],
                [[] if row[column] is None else [row[column]] for row in rows],
            )
            if rows
            else (np.nan, np.nan)
            for rows in (one, other)
        )
        # One repeat alone against the median of the other method, as run and as its twin.
        alone = [
            summaries.rounding(
                [_over(row["rounds"], second) for row in one],
                [_over(row[column], second) for row in one],
            ),
            summaries.rounding(
                [_over(first_, row["rounds"]) for row in other],
                [_over(first_, row[column]) for row in other],
            ),
        ]
        twins = {
            "least_ratio": _over(least, most_),
            "most_ratio": _over(most, least_),
            "change_ratio": max(change or 0.0 for change in alone),
            "least_holds": bool(np.isfinite(most_)) and before(most, least_),
            "most_holds": bool(np.isfinite([least, least_]).all()) and before(least, most_),
        }
    return found | {f"{summaries.TWIN}{name}": value for name, value in twins.items()}


def _over(rounds: float | None, others: float | None) -> float | None:
    """Ratio of two numbers of rounds: NaN when one was not reached, None without the twin."""
    if rounds is None or others is None:
        return None
    known = np.isfinite([rounds, others]).all() and others
    return float(rounds / others) if known else np.nan


def _cells(
    results: Results, experiments: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str, History]]:
    """Yield (experiment, problem, algorithm, variant, history) of several experiments."""
    for experiment in experiments:
        for cell in results.select(experiment):
            yield experiment, *cell


def _described(
    experiment: str, problem: str, algorithm: str, variant: str, history: History
) -> dict[str, Any]:
    """First columns of the tables of cells."""
    return {
        "experiment": experiment,
        "problem": problem,
        "status": status(history),
        "algorithm": algorithm,
        "variant": variant,
        "p": history.about["params"]["n_components"],
    }


def _medians(rows: Rows, by: list[str], columns: tuple[str, ...]) -> Rows:
    """Return the medians of several columns in each group of rows."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        dict(zip(by, key, strict=True))
        | {name: summaries.statistic([row[name] for row in group]) for name in columns}
        for key, group in groups.items()
    ]


def _change(captured: np.ndarray) -> np.ndarray:
    """Relative change from the record before, NaN at the first."""
    return np.abs(np.diff(captured, prepend=np.nan)) / captured


TABLES = {
    "counts": Table(
        counts, by_group("rounds", "experiment", "problem", "algorithm", "variant", "p", "rule")
    ),
    "inner": Table(lambda results: inner(counts(results), rates(results))),
    "rates": Table(rates),
    "leakage": Table(leakage),
    "averages": Table(lambda results: averages(counts(results))),
    "orderings": Table(lambda results: orderings(counts(results))),
    "amplification": Table(amplification),
}
