"""Tables of the paper `fedpower`, from the histories of its cells.

Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed eigenspace estimation*. All
noise is stated as the paper's ν, the standard deviation beside ``Aᵢ = (m/n) MᵢᵀMᵢ``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from fedcore import algorithms
from fedcore.history import History
from fedcore.parts.gram_noise import sensitivity, standard_deviation, theorem_6
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.reports import audits
from fedcore.reports.report import Table
from fedcore.reports.results import Results
from fedcore.reports.rows import status
from fedcore.reports.summaries import by_group

Rows = list[dict[str, Any]]

PANELS = ("fig3", "fig4", "fig4_tight")
STALL = 1.5  # less progress than this factor in a third of the rounds is none
SETTLED = 1.2  # a curve below this times its end has settled
# Below these the claims about a figure hold; a floor must be clearly lower than the one before.
LIMITS = {
    "larger-p-wins": 1.0,
    "larger-eps-wins": 0.95,
    "larger-K-wins": 0.95,
    "K-matters-little": STALL,
    "K-matters-little-all": STALL,
}
FOUND = 0.9  # of a distance above this, the subspace has not been found at all


def settings(history: History) -> Any:
    """Hyper-parameters of a cell, defaults filled in."""
    return algorithms.get(history.about["algorithm"]).params(history.about["params"])


def runs(results: Results) -> Rows:
    """Distance after the last communication and ε spent, a row per repeat."""
    rows = []
    for experiment in (*PANELS, "calibration"):
        for problem, _, variant, history in results.select(experiment):
            params = settings(history)
            clients = history.about["problem"]["n_clients"]
            distances, spent = history.last("projection_distance"), history.last("epsilon")
            for repeat in range(history.repeats):
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": status(history),
                        "variant": variant,
                        "p": params.local_steps,
                        "calibration": params.calibration,
                        "epsilon": params.epsilon,
                        "share": (params.participants or clients) / clients,
                        "repeat": repeat,
                        "rounds": int(history.last("round")[repeat]),
                        "distance": float(distances[repeat]),
                        "epsilon_spent": float(spent[repeat]),
                    }
                )
    return rows


def claims(results: Results) -> Rows:
    """Claims of the text, and the number that decides each."""
    return panel_claims(results) + alignment_claims(results) + decay_claims(results)


def panel_claims(results: Results) -> Rows:
    """Claims of Figures 3 and 4, by the mean of the repeats."""
    rows: Rows = []
    for experiment in PANELS:
        cells = {variant: history for _, _, variant, history in results.select(experiment)}
        curves = {name: history["projection_distance"].mean(0) for name, history in cells.items()}
        end = {name: float(curve[-1]) for name, curve in curves.items()}
        epsilons = sorted((settings(h).epsilon, v) for v, h in cells.items() if _varies_epsilon(v))
        found = {
            "larger-p-wins": max(
                _worst_ratio(curves[large], curves[small])
                for large, small in (("default", "p1"), ("p4", "default"), ("p4", "p1"))
            ),
            "larger-eps-wins": _largest_step([end[name] for _, name in epsilons]),
            "larger-K-wins": _largest_step([end[name] for name in ("K8", "K12", "K20")]),
            "K-matters-little": end["K8"] / end["K20"],
            "K-matters-little-all": end["K8-once"] / end["default"],
        }
        for claim, ratio in found.items():
            holds = ratio < LIMITS[claim] and end["default"] < FOUND
            rows.append(_claim(experiment, cells["default"], claim, ratio, holds))
    return rows


def alignment_claims(results: Results) -> Rows:
    """Claims of Theorem 8, by medians: growth from p = 4 to 16, and the gain of the alignment."""
    rows = []
    cells = {(problem, variant): h for problem, _, variant, h in results.select("alignment")}
    for problem in results.problems("alignment"):
        for alignment in ("none", "procrustes"):
            few, many = (cells[problem, f"{alignment}-{p}"] for p in ("p4", "p16"))
            growth = _median(many.last("misalignment")) / _median(few.last("misalignment"))
            holds = growth <= 1.25 if alignment == "procrustes" else growth >= STALL
            rows.append(_claim("alignment", many, f"growth-{alignment}", growth, holds))
        none, aligned = (cells[problem, f"{name}-p16"] for name in ("none", "procrustes"))
        largest = [_median(h["misalignment"].max(axis=1)) for h in (none, aligned)]
        gain = largest[1] / largest[0]
        rows.append(_claim("alignment", none, "alignment-helps", gain, gain <= 0.8))
    return rows


def decay_claims(results: Results) -> Rows:
    """Claims of LocalPower about constant and decaying p; every repeat must show them."""
    rows = []
    cells = {
        (problem, variant): h["projection_distance"]
        for problem, _, variant, h in results.select("decay")
    }
    histories = {problem: h for problem, _, _, h in results.select("decay")}
    for problem in results.problems("decay"):
        curves = {variant: c for (other, variant), c in cells.items() if other == problem}
        constant = [curves["constant-4"], curves["constant-8"]]
        progress = max(float((c[:, 20] / c[:, -1]).max()) for c in constant)
        lowest = np.minimum(*(c[:, -1] for c in constant))
        gain = min(float((lowest / curves[v][:, -1]).min()) for v in ("linear-8", "halving-8"))
        order = [curves[v][:, 1] for v in ("constant-8", "constant-4", "constant-1")]
        first = max(float((a / b).max()) for a, b in pairwise(order))
        for claim, ratio, holds in (
            ("constant-stalls", progress, progress < STALL),
            ("decay-goes-on", gain, gain >= 100.0),
            ("larger-p-first", first, first < 1.0),
        ):
            rows.append(_claim("decay", histories[problem], claim, ratio, holds))
    return rows


def calibrations() -> Rows:
    """Noise of Theorem 6 beside the least noise for the same guarantee, and the factors between.

    `share_paper` is the ε that Theorem 6's noise really spends, over the ε it is stated for;
    `share_paper_proof` the same with the sensitivity of the paper's proof.
    """
    rows = []
    for r, T in ((1, 1), (1, 10), (2, 10), (5, 10), (5, 100), (20, 10)):
        for delta in (1e-2, 1e-4, 1e-8):
            for epsilon in (0.01, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0):
                paper = theorem_6(r, T, epsilon, delta)
                tight = standard_deviation("tight", r, T, epsilon, delta)
                proof = 2.0 * math.sqrt(r)
                spent = accounting.epsilon({Gaussian(paper / sensitivity(r)): T}, delta)
                as_proved = accounting.epsilon({Gaussian(paper / proof): T}, delta)
                rows.append(
                    {
                        "r": r,
                        "T": T,
                        "delta": delta,
                        "epsilon": epsilon,
                        "paper": paper,
                        "tight": tight,
                        "ratio": paper / tight,
                        "from_sensitivity": proof / sensitivity(r),
                        "from_conversion": paper / tight * sensitivity(r) / proof,
                        "share_paper": spent / epsilon,
                        "share_paper_proof": as_proved / epsilon,
                    }
                )
    return rows


def noise(results: Results) -> Rows:
    """Why Figure 4 cannot come out: the noise of a round against the k-th eigenvalue.

    The mean of m clients' noises has the norm ``ν (√d + √r) / √m``. Near U_k an error of size e
    becomes ``(σ_(k+1)/σ_k) e`` plus noise over σ_k, so that distances settle near
    ``ν (√(d − k) + √k) / √(m (σ_k² − σ_(k+1)²))``, if that is well below 1.
    """
    rows = []
    for problem, _, _, history in results.select("calibration"):
        params, about = settings(history), history.about["problem"]
        m, n, d = about["n_clients"], about["n_samples"], about["n_features"]
        k, r = params.target or params.n_components, params.n_components
        eigenvalues = history.reference["singular_values"] ** 2 / n
        inside, outside = float(eigenvalues[k - 1]), float(eigenvalues[k])
        s = standard_deviation(
            params.calibration, r, params.iterations, params.epsilon, params.delta
        )
        nu = s * m / n
        rows.append(
            {
                "problem": problem,
                "status": status(history),
                "calibration": params.calibration,
                "epsilon": params.epsilon,
                "nu": nu,
                "noise_norm": nu * (math.sqrt(d) + math.sqrt(r)) / math.sqrt(m),
                "sigma_k": inside,
                "sigma_next": outside,
                "predicted": nu
                * (math.sqrt(d - k) + math.sqrt(k))
                / math.sqrt(m * (inside**2 - outside**2)),
                "measured": float(history.last("projection_distance").mean()),
                "epsilon_spent": float(history.last("epsilon").max()),
            }
        )
    return rows


def misalignments(results: Results) -> Rows:
    """ρ in the last round, and the largest of the run, against p; a row per repeat."""
    rows = []
    for problem, _, _, history in results.select("alignment"):
        params = settings(history)
        rho, distance = history.last("misalignment"), history.last("projection_distance")
        for repeat in range(history.repeats):
            rows.append(
                {
                    "problem": problem,
                    "status": status(history),
                    "alignment": params.alignment,
                    "p": params.local_steps,
                    "repeat": repeat,
                    "misalignment": float(rho[repeat]),
                    "largest": float(history["misalignment"][repeat].max()),
                    "distance": float(distance[repeat]),
                }
            )
    return rows


def dissimilarities(results: Results) -> Rows:
    """η of every problem (Definition 4), and what Theorem 8 asks of it up to p = 16."""
    rows = []
    for problem, _, _, history in results.select("dissimilarity"):
        eta = float(history.last("dissimilarity")[0])
        rows.append(
            {
                "problem": problem,
                "status": status(history),
                "eta": eta,
                "eta_at_most_1_over_16": eta <= 1 / 16,
            }
        )
    return rows


def decays(results: Results) -> Rows:
    """Distance after 1, 20 and all communications, a row per repeat."""
    rows = []
    for problem, _, variant, history in results.select("decay"):
        distance = history["projection_distance"]
        for repeat in range(history.repeats):
            rows.append(
                {
                    "problem": problem,
                    "status": status(history),
                    "variant": variant,
                    "repeat": repeat,
                    "after_1": float(distance[repeat, 1]),
                    "after_20": float(distance[repeat, 20]),
                    "end": float(distance[repeat, -1]),
                }
            )
    return rows


def error_rates(present: History, absent: History) -> tuple[np.ndarray, np.ndarray]:
    """Both error rates of the test "score beyond a threshold", for all thresholds."""
    scores = present.last("canary"), absent.last("canary")
    thresholds = np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, 501))
    missed = [float(np.mean(scores[0] <= t)) for t in thresholds]
    alarms = [float(np.mean(scores[1] > t)) for t in thresholds]
    return np.array(missed), np.array(alarms)


def least_errors(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Least error rates that an (ε, δ)-DP method allows any test (Wasserman & Zhou, 2010)."""
    missed = np.linspace(0.0, 1.0, 501)
    below = np.maximum(
        1.0 - delta - math.exp(epsilon) * missed, (1.0 - delta - missed) / math.exp(epsilon)
    )
    return missed, np.maximum(below, 0.0)


def _claim(experiment: str, history: History, claim: str, ratio: float, holds: bool) -> dict:
    return {
        "experiment": experiment,
        "problem": history.about["problem"]["name"].rpartition("/")[2],
        "status": status(history),
        "claim": claim,
        "ratio": float(ratio),
        "holds": bool(holds),
    }


def _median(values: np.ndarray) -> float:
    return float(np.median(values))


def _varies_epsilon(variant: str) -> bool:
    return variant == "default" or variant.startswith("eps")


def _worst_ratio(large: np.ndarray, small: np.ndarray) -> float:
    """Largest ratio of two curves over the communications of both, before `small` has settled."""
    open_ = np.flatnonzero(small > SETTLED * small[-1])
    common = [i for i in open_ if 1 <= i < len(large)]
    return max((float(large[i] / small[i]) for i in common), default=math.inf)


def _largest_step(values: Iterable[float]) -> float:
    """Largest ratio of a value to the one before; below 1 for what falls all along."""
    return max(b / a for a, b in pairwise(values))


TABLES = {
    "runs": Table(
        runs, by_group("distance", "experiment", "problem", "variant", "calibration", "epsilon")
    ),
    "claims": Table(claims),
    "calibrations": Table(
        lambda _: calibrations(),
        lambda rows: [row for row in rows if (row["T"], row["delta"]) == (10, 1e-4)],
    ),
    "noise": Table(noise),
    "misalignments": Table(misalignments, by_group("misalignment", "problem", "alignment", "p")),
    "dissimilarities": Table(dissimilarities),
    "decays": Table(decays, by_group("end", "problem", "variant")),
    "audits": Table(lambda results: audits.bounds(results, "audit")),
}
