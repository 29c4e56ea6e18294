"""Tables of the paper `faps`, from the histories of its cells.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*.
Rounds are counted under three stopping rules from one run; see `RULES`.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from faps.claims import ERRORS, advantage, averages, harder, largest, leads, leakage, linear
from faps.theory import theorem_8
from fedcore.history import History
from fedcore.repro.tables.budgets import products
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, chosen, groups, reached
from fedcore.repro.tables.summaries import (
    TWIN,
    by_group,
    decided_by,
    medians,
    rounding,
    statistic,
    summarise,
)

# ``kkt``, ‖P⊥ AAᵀZ‖_F ≤ 1e−4 ‖A‖₂², explains the printed errors of the synthetic problems.
# ``scaled``, ‖P⊥ AAᵀZ‖_F ≤ 5e−6 ‖A‖_F², explains those of the images. ``rule27`` is the paper's
# rule: a relative change of Σ‖AᵢᵀZ‖²_F of at most 1e−10, or MaxIter rounds.
KKT_LIMIT, SCALED_LIMIT, RULE_27, MAX_ITER = 1e-4, 5e-6, 1e-10, 3000
RULES = {
    "kkt": lambda history: history["kkt_residual"] <= KKT_LIMIT,
    "scaled": lambda history: history["kkt"] <= SCALED_LIMIT,
    "rule27": lambda history: (
        (_change(history["captured"]) <= RULE_27) | (history["round"] >= MAX_ITER)
    ),
}
FIGURES_2_TO_4 = ("table1", "fig2m", "fig2p", "fig2xi", "fig3", "fig3centred", "fig4")
EXPERIMENTS = ("table4", "inner", *FIGURES_2_TO_4)
RATES = ("products_per_round", "measured", "steps", "exact", "ssi")
RATE_FROM = 1e-3  # KKT violation over ‖A‖₂² at which the measurement of the rate begins
METHODS = {
    "ssi": "SSI",
    "local_power": "LocalPower",
    "block_krylov": "block Krylov",
    "momentum_power": "momentum",
}
CLAIMS = Path(__file__).with_name("claims.yaml")
# One number at a time: the last digit of NumPy's powers of arrays depends on the CPU.
_power = np.frompyfunc(pow, 2, 1)


def method(run: Run) -> str | None:
    """Return the name of a run's method: its tag `method`, or else that of its algorithm.

    It is None for what is neither compared nor drawn: variants of FAPS without the tag.
    """
    return run.tags.get("method") or METHODS.get(run.algorithm)


@cache
def counts(results: Results) -> Rows:
    """Rounds, bytes, errors and products at every stop, a row per start; NaN if not reached.

    There is no row for a stop that a run did not reach because it ended at other stops before.
    ``made`` is the number of rounds that the run made, ``products`` counts products of a client's
    AᵢAᵢᵀ with a block. ``twin_…`` are the same columns of the repeat's twin, None if it has none;
    see `fedcore.experiments.twins`. ``point`` names the problem, and p where it varies. ``method``
    is that of `method`.
    """
    found = []
    for run, rule in itertools.product(results.runs(*EXPERIMENTS), RULES):
        made = run.last("round").astype(float)
        rows = run.rows(
            p=_p, point=_point, method=method, rule=rule, made=made, **_stops(run, rule)
        )
        most = getattr(run.params, "rounds", 0)
        found += [row for row in rows if row["rounds"] == row["rounds"] or row["made"] >= most]
    return found


def known_early(rows: Rows) -> Rows:
    """Rows of `leakage`, in which ``early`` is None where a run ended too soon to tell.

    It ended before its KKT violation reached the limit, and the matrix was not known in its first
    half.
    """
    found = [dict(row) for row in rows]
    for row in found:
        if math.isnan(row["rounds_kkt"]) and not row["early"]:
            row["early"] = None
    return found


def times(results: Results) -> Rows:
    """Table 4: CPU seconds until every stop, a row per start.

    They are NaN where it was not reached. The start, which all methods make alike, is left out.
    ``over_local_power`` are the seconds over those of LocalPower from the same start, and
    ``round_over_ssi`` are the seconds of a round over those of SSI.
    """
    found = []
    for run, rule in itertools.product(results.runs("times"), ("kkt", "rule27")):
        spent = run.seconds - run.seconds[:, :1]
        stop = RULES[rule](run.history)
        seconds, rounds = reached(stop, spent), reached(stop, run["round"])
        found += run.rows(method=method, rule=rule, seconds=seconds, a_round=seconds / rounds)
    same = ("problem", "rule", "repeat")
    for name, theirs, column in (
        ("over_local_power", "local_power", "seconds"),
        ("round_over_ssi", "ssi", "a_round"),
    ):
        others = {tuple(r[key] for key in same): r[column] for r in chosen(found, algorithm=theirs)}
        for row in found:
            row[name] = row[column] / others[tuple(row[key] for key in same)]
    return found


def _point(run: Run) -> str:
    return f"p{_p(run)}" if run.experiment == "fig2p" else run.problem


def _p(run: Run) -> int:
    return int(run.params.n_components)


def _stops(run: Run, rule: str) -> dict[str, Any]:
    """Columns of `counts` for the repeats at their stop, shape (repeats,) each."""
    measures = {"rounds": "round", "bytes_up": "bytes_up"}
    measures |= {name: name for name in ERRORS}

    def at_stop(history: History) -> dict[str, np.ndarray]:
        values = {name: history[column] for name, column in measures.items()}
        values["products"] = products(run, history)
        return {name: reached(RULES[rule](history), column) for name, column in values.items()}

    found, twins = at_stop(run.history), run.history.twins
    again = at_stop(twins) if twins else dict.fromkeys(found)
    return found | {f"{TWIN}{name}": column for name, column in again.items()}


def amplification(results: Results) -> Rows:
    """How much each cell with twins amplifies one rounding of its start, a row per cell.

    The distances between a run and its twin are medians over the starts: at the start, after round
    one, and the largest. ``least`` and ``most`` are the smallest and largest numbers of rounds to
    the stop kkt over the starts. ``rounding`` is the largest change of a start's number in its
    twin. ``decided_by`` is that of `summaries.decided_by`.
    """
    rows = []
    for run in results.runs(*EXPERIMENTS):
        if run.history.twins is None:
            continue
        distance, stops = run["twin_distance"], _stops(run, "kkt")
        rounds, twins = stops["rounds"], stops[f"{TWIN}rounds"]
        rows.append(
            run.row(
                p=_p,
                at_start=np.median(distance[:, 0]),
                after_one=np.median(distance[:, 1]),
                largest=np.median(np.nanmax(distance, axis=1)),
                rounds=statistic(rounds),
                least=statistic(rounds, "min"),
                most=statistic(rounds, "max", missing="first"),
                rounding=rounding(rounds, twins),
                decided_by=decided_by(rounds, twins),
            )
        )
    return rows


def rates(results: Results) -> Rows:
    """Factor by which the KKT violation falls per round, measured and in theory, per start.

    It is measured between 1e−3 and 1e−4 of ‖A‖₂². With b = Σβᵢ at the stop, g = λ_p − λ_{p+1},
    c = λ_{p+1}/(λ_p + b) and q inner steps per round, ``exact`` is b/(b + g), ``steps`` is
    (b + g c^q)/(b + g), or 1 − g/b + (1 − c^q) g²/(b (b + g)) from the server's Z, and ``ssi`` is
    λ_{p+1}/λ_p; see `fedcore.algorithms.faps`. The theory assumes equal clients.
    """
    rows = []
    for run in results.runs(*EXPERIMENTS):
        if run.algorithm not in ("ssi", "faps"):
            continue
        p, residual = _p(run), run["kkt_residual"]
        last, next_ = run.history.reference["singular_values"][p - 1 : p + 1] ** 2
        gap = last - next_
        begin, end = residual <= RATE_FROM, residual <= KKT_LIMIT
        records = np.broadcast_to(np.arange(residual.shape[1]), residual.shape)
        spent = reached(end, records) - reached(begin, records)
        spent[spent == 0] = np.nan
        made = products(run, run.history)
        b = reached(end, run["penalty"]) if run.algorithm == "faps" else np.nan
        q = (reached(end, made) - reached(begin, made)) / spent
        steps = (b + gap * _power(next_ / (last + b), q)) / (b + gap)
        if getattr(run.params, "inner_start", "client") == "server":  # q − 1 steps
            share = 1 - _power(next_ / (last + b), q - 1)
            steps = 1 - gap / b + share * gap**2 / (b * (b + gap))
        found = run.rows(
            p=p,
            measured=_power(reached(end, residual) / reached(begin, residual), 1 / spent),
            ssi=next_ / last,
            products_per_round=q,
            penalty=b,
            exact=b / (b + gap),
            steps=steps,
        )
        rows += [row for row in found if not np.isnan(row["measured"])]
    return rows


def theory(rows: Rows) -> dict[str, Any]:
    """Rates of theory at the median penalty of `rows`, rows of `rates` for one problem."""
    b, ssi = medians(rows, "penalty", "ssi").values()
    row = min(rows, key=lambda row: abs(row["penalty"] - b))
    gap = row["penalty"] * (1 / row["exact"] - 1)
    last = gap / (1 - ssi)
    q = np.geomspace(1.0, 30.0, 60)
    steps = (b + gap * (ssi * last / (last + b)) ** q) / (b + gap)
    return {"products_per_round": q, "steps": steps, "exact": b / (b + gap), "ssi": ssi}


def inner(rows: Rows, measured: Rows) -> Rows:
    """Inner rule of FAPS: medians over the starts of rows of `counts` and of `rates`, stop kkt.

    ``rounding`` and ``decided_by`` are those of `summaries.summarise`.
    """
    found = []
    some = chosen(rows, experiment="inner", rule="kkt")
    for key, group in groups(some, "status", "algorithm", "variant"):
        (ends,) = summarise(group, "rounds", [])
        found.append(
            key
            | medians(group, "rounds", "products", "kkt", "singular_value_error")
            | {"least": ends["min"], "most": ends["max"]}
            | {"rounding": ends.get("rounding"), "decided_by": ends.get("decided by")}
            | medians(chosen(measured, experiment="inner", **key), *RATES)
        )
    return found


def rates_by_problem(rows: Rows) -> Rows:
    """Medians over the starts of rows of `rates`, for FAPS, with SSI's measured rate.

    ``speed_of_exact``, ln(exact)/ln(ssi), is SSI's rounds over those of exact solves. It is below 1
    if b > λ_{p+1}: by this theory, FAPS is then slower than SSI.
    """
    found = []
    some = [row for row in rows if row["experiment"] != "inner"]
    by = ("experiment", "problem", "status", "p", "algorithm", "variant")
    for key, group in groups(chosen(some, algorithm="faps"), *by):
        row = key | medians(group, *RATES, "penalty")
        ssi = chosen(some, algorithm="ssi", problem=row["problem"], p=row["p"])
        row["ssi_measured"] = medians(ssi, "measured")["measured"]
        row["speed_of_exact"] = float(np.log(row["exact"]) / np.log(row["ssi"]))
        found.append(row)
    return found


def at_stop(run: Run) -> dict[str, np.ndarray]:
    """Return iterations, CPU seconds and products a round to the paper's stop (27), by start.

    ``cut`` says which starts a limit of rounds ended before; they have what they made.
    """
    stop, made = RULES["rule27"](run.history), products(run, run.history)
    seconds = run.seconds - run.seconds[:, :1]
    rounds = reached(stop, run["round"])
    cut = np.isnan(rounds)
    rounds = np.where(cut, run.last("round"), rounds)
    ends = np.where(cut, np.fmax.reduce(made, axis=1), reached(stop, made))
    seconds = np.where(cut, np.fmax.reduce(seconds, axis=1), reached(stop, seconds))
    return {"rounds": rounds, "seconds": seconds, "products": ends / rounds, "cut": cut}


def xi(results: Results, run: Run) -> float:
    """Return the decay ξ of a run's spectrum."""
    return float(results.plan["problems"][run.problem]["params"]["xi"])


def _change(captured: np.ndarray) -> np.ndarray:
    """Relative change from the previous record, NaN at the first."""
    return np.abs(np.diff(captured, prepend=np.nan)) / captured


TABLES = {
    "counts": Table(
        counts, by_group("rounds", "experiment", "problem", "algorithm", "variant", "p", "rule")
    ),
    "inner": Table(lambda results: inner(counts(results), rates(results))),
    "rates": Table(rates),
    "leakage": Table(lambda results: known_early(leakage(results))),
    "averages": Table(
        lambda results: averages(counts(results)),
        by_group(ERRORS, "experiment", "method", "rule"),
    ),
    "times": Table(
        times, by_group(("seconds", "over_local_power", "round_over_ssi"), "method", "rule")
    ),
    "leads": Table(
        lambda results: leads(counts(results)),
        by_group("lead", "experiment", "point", "rule", "method", "rival"),
    ),
    "advantage": Table(
        lambda results: advantage(leads(counts(results))), by_group("change", "method", "rule")
    ),
    "largest": Table(lambda results: largest(leads(counts(results)))),
    "linear": Table(linear, by_group(("straight", "rate"), "problem", "algorithm", "variant")),
    "harder": Table(lambda results: harder(counts(results))),
    "theorem_8": Table(theorem_8),
    "amplification": Table(amplification),
}
