"""Tables of the paper `fedpower`, from the histories of its cells.

Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed eigenspace estimation*. All
noise is stated as the paper's ν, the standard deviation beside ``Aᵢ = (m/n) MᵢᵀMᵢ``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from fedcore.parts.gram_noise import sensitivity, standard_deviation, theorem_6
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.reports import audits
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run, last
from fedcore.reports.rows import Row, Rows, groups
from fedcore.reports.summaries import by_group, medians, without

FIGURES = ("fig3", "fig4", "fig4_tight")
# Parameters that the panels of these figures vary.
PANELS = {"p": ["local_steps"], "ε": ["epsilon"], "K/m": ["participants", "replacement"]}
STALL = 1.5  # a smaller factor of progress in a third of the rounds counts as a stall
SETTLED = 1.2  # a curve below this times its end has settled
# A claim about a figure holds if its ratio is below this; 0.95 asks for a clear difference.
LIMITS = {
    "larger-p-wins": 1.0,
    "larger-eps-wins": 0.95,
    "larger-K-wins": 0.95,
    "K-matters-little": STALL,
    "K-matters-little-all": STALL,
}
FOUND = 0.9  # with a distance above this, the subspace has not been found at all


def runs(results: Results) -> Rows:
    """Return the distance after the last communication and the ε spent, a row per repeat."""
    return results.table(
        *FIGURES, "calibration",
        p=lambda run: run.params.local_steps,
        calibration=lambda run: run.params.calibration,
        epsilon=lambda run: run.params.epsilon,
        share=lambda run: (run.params.participants or run.data["n_clients"])
        / run.data["n_clients"],
        rounds=last("round"),
        distance=last("projection_distance"),
        epsilon_spent=last("epsilon"),
    )  # fmt: skip


def varied(results: Results, experiment: str, *names: str) -> list[Run]:
    """Return the default run of an experiment and those that differ in these parameters only.

    They are sorted by the first parameter, with None last.
    """
    (default,) = results.runs(experiment, variant="default")
    same = {name: getattr(default.params, name) for name in names}
    found = [
        run for run in results.runs(experiment) if replace(run.params, **same) == default.params
    ]
    return sorted(found, key=lambda run: getattr(run.params, names[0]) or math.inf)


def claims(results: Results) -> Rows:
    """Return the claims of the text, and the number that decides each."""
    return panel_claims(results) + alignment_claims(results) + decay_claims(results)


def panel_claims(results: Results) -> Rows:
    """Return the claims of Figures 3 and 4, by the mean of the repeats."""
    rows: Rows = []
    for experiment in FIGURES:
        steps, budgets, machines = (
            [
                (run, run["projection_distance"].mean(axis=0))
                for run in varied(results, experiment, *names)
            ]
            for names in PANELS.values()
        )
        default, whole = machines[-1]  # all machines
        drawn = [float(curve[-1]) for run, curve in machines[:-1] if run.params.replacement]
        (once,) = (float(curve[-1]) for run, curve in machines[:-1] if not run.params.replacement)
        found = {
            "larger-p-wins": max(
                _worst_ratio(large, small) for (_, small), (_, large) in combinations(steps, 2)
            ),
            "larger-eps-wins": _largest_step([float(curve[-1]) for _, curve in budgets]),
            "larger-K-wins": _largest_step(drawn),
            "K-matters-little": drawn[0] / drawn[-1],
            "K-matters-little-all": once / float(whole[-1]),
        }
        for claim, ratio in found.items():
            holds = ratio < LIMITS[claim] and whole[-1] < FOUND
            rows.append(_claim(default.row(), claim, ratio, holds))
    return rows


def alignment_claims(results: Results) -> Rows:
    """Return the claims of Theorem 8: growth from p = 4 to 16, and the gain of the alignment.

    By medians of the repeats.
    """
    rows = []
    for _, group in groups(misalignments(results), "problem"):
        at = {
            (key["alignment"], key["p"]): medians(some, "misalignment", "largest")
            for key, some in groups(group, "alignment", "p")
        }
        for alignment in ("none", "procrustes"):
            growth = at[alignment, 16]["misalignment"] / at[alignment, 4]["misalignment"]
            holds = growth <= 1.25 if alignment == "procrustes" else growth >= STALL
            rows.append(_claim(group[0], f"growth-{alignment}", growth, holds))
        gain = at["procrustes", 16]["largest"] / at["none", 16]["largest"]
        rows.append(_claim(group[0], "alignment-helps", gain, gain <= 0.8))
    return rows


def decay_claims(results: Results) -> Rows:
    """Return the claims of LocalPower about constant and decaying p.

    A claim holds if it holds in every repeat.
    """
    rows = []
    for problem in results.problems("decay"):
        cells = sorted(
            results.runs("decay", problem=problem), key=lambda run: run.params.local_steps
        )
        constant, decaying = (
            [c["projection_distance"] for c in cells if (c.params.schedule == "constant") is same]
            for same in (True, False)
        )
        stalled = constant[1:]  # p > 1
        progress = max(float((c[:, 20] / c[:, -1]).max()) for c in stalled)
        lowest = np.min([c[:, -1] for c in stalled], axis=0)
        gain = min(float((lowest / c[:, -1]).min()) for c in decaying)
        first = max(float((large[:, 1] / small[:, 1]).max()) for small, large in pairwise(constant))
        for claim, ratio, holds in (
            ("constant-stalls", progress, progress < STALL),
            ("decay-goes-on", gain, gain >= 100.0),
            ("larger-p-first", first, first < 1.0),
        ):
            rows.append(_claim(cells[0].row(), claim, ratio, holds))
    return rows


def calibrations() -> Rows:
    """Return the noise of Theorem 6, the least noise for the same guarantee, and their ratio.

    ``from_sensitivity`` and ``from_conversion`` are the factors of the ratio. ``share_paper`` is
    the ε that Theorem 6's noise spends over the stated ε; ``share_paper_proof`` is the same with
    the sensitivity of the paper's proof.
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
    """Return the noise of a round and the k-th eigenvalue, which explain Figure 4.

    The mean of m clients' noises has a norm of about ``ν (√d + √r) / √m``. Near U_k an error of
    size e becomes ``(σ_(k+1)/σ_k) e`` plus noise over σ_k. Distances therefore settle near
    ``ν (√(d − k) + √k) / √(m (σ_k² − σ_(k+1)²))``, if this is well below 1.
    """
    return [_noise(run) for run in results.runs("calibration")]


def _noise(run: Run) -> Row:
    params = run.params
    m, n, d = (run.data[name] for name in ("n_clients", "n_samples", "n_features"))
    k, r = params.target or params.n_components, params.n_components
    inside, outside = (run.history.reference["singular_values"][k - 1 : k + 1] ** 2 / n).tolist()
    s = standard_deviation(params.calibration, r, params.iterations, params.epsilon, params.delta)
    nu = s * m / n
    return run.row(
        calibration=params.calibration,
        epsilon=params.epsilon,
        nu=nu,
        noise_norm=nu * (math.sqrt(d) + math.sqrt(r)) / math.sqrt(m),
        sigma_k=inside,
        sigma_next=outside,
        predicted=nu * (math.sqrt(d - k) + math.sqrt(k)) / math.sqrt(m * (inside**2 - outside**2)),
        measured=run.last("projection_distance").mean(),
        epsilon_spent=run.last("epsilon").max(),
    )


def misalignments(results: Results) -> Rows:
    """Return ρ in the last round, and the largest of the run, against p; a row per repeat."""
    return results.table(
        "alignment",
        alignment=lambda run: run.params.alignment,
        p=lambda run: run.params.local_steps,
        misalignment=last("misalignment"),
        largest=lambda run: run["misalignment"].max(axis=1),
        distance=last("projection_distance"),
    )


def dissimilarities(results: Results) -> Rows:
    """Return η of every problem (Definition 4), and whether Theorem 8 allows it up to p = 16."""
    return [
        run.row(eta=eta, eta_at_most_1_over_16=bool(eta <= 1 / 16))
        for run in results.runs("dissimilarity")
        for eta in run.last("dissimilarity")
    ]


def decays(results: Results) -> Rows:
    """Return the distance after 1, 20 and all communications, a row per repeat."""
    return results.table(
        "decay",
        after_1=lambda run: run["projection_distance"][:, 1],
        after_20=lambda run: run["projection_distance"][:, 20],
        end=lambda run: run["projection_distance"][:, -1],
    )


def error_rates(present: Run, absent: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return both error rates of the test "score beyond a threshold", for all thresholds."""
    scores = present.last("canary"), absent.last("canary")
    thresholds = np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, 501))
    missed = [float(np.mean(scores[0] <= t)) for t in thresholds]
    alarms = [float(np.mean(scores[1] > t)) for t in thresholds]
    return np.array(missed), np.array(alarms)


def least_errors(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the least error rates that (ε, δ)-DP allows any test (Wasserman & Zhou, 2010)."""
    missed = np.linspace(0.0, 1.0, 501)
    below = np.maximum(
        1.0 - delta - math.exp(epsilon) * missed, (1.0 - delta - missed) / math.exp(epsilon)
    )
    return missed, np.maximum(below, 0.0)


def _claim(row: Row, claim: str, ratio: float, holds: bool) -> Row:
    named = {name: row[name] for name in ("experiment", "problem", "status")}
    return named | {"claim": claim, "ratio": float(ratio), "holds": bool(holds)}


def _worst_ratio(large: np.ndarray, small: np.ndarray) -> float:
    """Largest ratio of two curves over the communications of both, before `small` has settled."""
    open_ = np.flatnonzero(small > SETTLED * small[-1])
    common = [i for i in open_ if 1 <= i < len(large)]
    return max((float(large[i] / small[i]) for i in common), default=math.inf)


def _largest_step(values: list[float]) -> float:
    """Largest ratio of a value to the previous one; below 1 if all values fall."""
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
    "noise": Table(noise, without("experiment", "algorithm", "variant")),
    "misalignments": Table(misalignments, by_group("misalignment", "problem", "alignment", "p")),
    "dissimilarities": Table(dissimilarities, without("experiment", "algorithm", "variant")),
    "decays": Table(decays, by_group("end", "problem", "variant")),
    "audits": Table(lambda results: audits.bounds(results, "audit")),
}
