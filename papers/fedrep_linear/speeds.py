"""Figure 3 of the paper `fedrep_linear`: how fast the distance to the representation falls.

The noise of the labels, and the clients that a round leaves out, set a floor below which no method
comes. A trial's *floor* is the smallest median distance over the last tenth of the rounds, over all
methods and learning rates that ran on its data with as many clients in a round. Its *target* lies
halfway, in the logarithm, between the start and the floor. A method's speed is the mean decrease of
ln(distance) per round from the start to the target. It says something only if the starts lie well
above the floor, see `PHASE`; elsewhere the start, not the method, would be measured.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, chosen, flags, groups

METHODS = ("fedrep", "gd10", "gd")
DISTANCE = "representation_distance"
LOST = 1e30  # a diverging trial is left out from here on; 1e300 is beyond what can be drawn
PHASE = 2.0  # most starts are above their floors by this factor, or nothing is measured


def size(run: Run) -> dict[str, int]:
    """Number of clients n and samples m of each; in a small run n is still the paper's."""
    clients = run.data["n_clients"]
    return {"n": run.tags.get("n") or clients, "m": run.data["n_samples"] // clients}


def trajectory(run: Run, column: str) -> np.ndarray:
    """Return a column, shape (trials, rounds), with NaN where a trial has ended or is `LOST`."""
    values = run[column]
    return np.where((run["iteration"] >= 0) & (np.abs(values) < LOST), values, np.nan)


def convergence(results: Results) -> Rows:
    """Distances, rounds to the target and speed of every trial of Figure 3, a row each."""
    rows = []
    for together in (("fig3", "authors"), ("starts",)):  # a tenth of the clients, all of them
        for problem in dict.fromkeys(p for name in together for p in results.problems(name)):
            runs = list(results.runs(*together, problem=problem))
            found = [trajectory(run, DISTANCE) for run in runs]
            floor = np.min([_tail(distance) for distance in found], axis=0)
            for experiment in together:
                rows += _of_experiment(
                    [
                        (r, d)
                        for r, d in zip(runs, found, strict=True)
                        if r.experiment == experiment
                    ],
                    floor,
                )
    return rows


def _of_experiment(pairs: list[tuple[Run, np.ndarray]], floor: np.ndarray) -> Rows:
    """Rows of `convergence` for runs with their distances, which share data and floor."""
    rows = []
    for run, distance in pairs:
        start = np.min([other[:, 0] for _, other in pairs], axis=0)
        target = np.sqrt(start * floor)
        rounds = crossing(distance, target)
        rows += run.rows(
            **size(run),
            method=run.variant,
            start_rounds=run["round"][:, 0].astype(int),
            start=distance[:, 0],
            end=run.last(DISTANCE),
            floor=floor,
            target=target,
            above_floor=start >= PHASE * floor,
            rounds=rounds,
            speed=speed(distance, target, rounds),
            diverged=run.last("diverged") > 0,
        )
    return rows


def crossing(distance: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rounds until ln(distance), between two rounds a line, is at the target; NaN if never.

    Parameters
    ----------
    distance : ndarray of shape (trials, rounds)
    target : ndarray of shape (trials,)
    """
    there = distance <= target[:, None]
    found = np.full(len(distance), np.nan)
    for trial in np.flatnonzero(there.any(axis=1)):
        t = int(there[trial].argmax())
        if t == 0:
            found[trial] = 0.0
            continue
        before, after = np.log(np.maximum(distance[trial, t - 1 : t + 1], 1e-300))
        found[trial] = t - 1 + (before - math.log(target[trial])) / (before - after)
    return found


def speed(distance: np.ndarray, target: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Mean decrease of ln(distance) per round until the target, or the last round without it.

    NaN for a trial that diverged, or that starts below the target.
    """
    last = distance.shape[1] - 1
    arrived = ~np.isnan(rounds)
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.log(distance[:, 0] / target) / rounds
        whole = np.maximum(np.log(distance[:, 0] / distance[:, -1]) / last, 0.0)
    return np.where(arrived, np.where(rounds > 0, until, np.nan), whole)


def panels(results: Results) -> Rows:
    """Speeds of the three methods in every panel of Figure 3, a row per trial.

    A panel measures them if the starts of most trials are well above the floor. In others speeds
    are NaN, and comparisons None.
    """
    rows = []
    by = ("experiment", "reading", "n", "problem", "status")
    found = [row for row in convergence(results) if row["experiment"] != "starts"]
    for named, panel in groups(found, *by):
        measured = sum(row["above_floor"] for row in panel) > len(panel) / 2
        for trial, mine in groups(panel, "repeat"):
            by_method = {row["method"]: row for row in mine}
            fedrep, gd10, gd = (
                float(by_method[method]["speed"]) if measured else math.nan for method in METHODS
            )
            lost, lost10, _ = (
                measured and bool(by_method[method]["diverged"]) for method in METHODS
            )
            rows.append(
                named
                | trial
                | {"fedrep": fedrep, "gd10": gd10, "gd": gd}
                | {
                    "fedrep_fastest": flags(fedrep > max(gd10, gd), fedrep, gd10, gd, failed=lost),
                    "more_steps_faster": flags(gd10 > gd, gd10, gd, failed=lost10),
                    "start": mine[0]["start"],
                    "floor": mine[0]["floor"],
                }
            )
    return rows


def scaling(results: Results) -> Rows:
    """Gain of speed from one n of Figure 3 to the next, a row per trial.

    ``gain_x`` is the factor on a method's speed; as if n grew tenfold, where it grows by more.
    """
    rows = []
    by = ("experiment", "reading", "status", "repeat")
    for named, mine in groups(panels(results), *by):
        mine = sorted(mine, key=lambda row: int(row["n"]))
        for few, many in pairwise(mine):
            tens = math.log10(many["n"] / few["n"])
            fedrep, gd10, gd = (
                (many[method] / few[method]) ** (1.0 / tens) if few[method] > 0 else math.nan
                for method in METHODS
            )
            rows.append(
                named
                | {"step": f"{few['n']} to {many['n']}"}
                | {"gain_fedrep": fedrep, "gain_gd10": gd10, "gain_gd": gd}
                | {
                    "fedrep_gains": flags(fedrep > 1, fedrep),
                    "gd_gains_less": flags(gd < fedrep, fedrep, gd),
                    "gd10_gains_less": flags(gd10 < fedrep, fedrep, gd10),
                }
            )
    return rows


def initialisation(results: Results) -> Rows:
    """Appendix A.1 on starts: rounds to the target by method, start and server, a row per trial.

    ``rounds_to_pgd`` divides by the rounds of the same trial from PGD. ``sensitivity`` is the same,
    and infinite for a trial that never arrives.
    """
    params = {run.variant: run.params for run in results.runs("starts")}
    rows = [
        row
        | {
            "method": "gd" if params[row["variant"]].head_steps else "fedrep",
            "init": params[row["variant"]].init,
            "server": "qr" if params[row["variant"]].orthonormalise else "plain",
            "failed": bool(np.isnan(row["rounds"])),
        }
        for row in chosen(convergence(results), experiment="starts")
    ]
    for row in rows:
        same = {"repeat": row["repeat"], "method": row["method"], "server": row["server"]}
        (usual,) = chosen(rows, init="pgd", **same)
        row["rounds_to_pgd"] = _ratio(row["rounds"], usual["rounds"])
        row["sensitivity"] = math.inf if row["failed"] else row["rounds_to_pgd"]
    for row in rows:
        other = {"repeat": row["repeat"], "init": row["init"], "server": row["server"]}
        (fedrep,) = chosen(rows, method="fedrep", **other)
        values = row["sensitivity"], fedrep["sensitivity"]
        row["more_sensitive"] = flags(values[0] > values[1], *values)
    return rows


def rising(values: list[float]) -> bool:
    """Whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))


def _ratio(value: float, other: float) -> float:
    return value / other if other > 0 else math.nan


def _tail(distance: np.ndarray) -> np.ndarray:
    """Median over the last tenth of the rounds, infinite where a trial diverged, (trials,)."""
    last = distance[:, -max(1, distance.shape[1] // 10) :]
    return np.asarray(np.median(np.where(np.isnan(last), np.inf, last), axis=1))
