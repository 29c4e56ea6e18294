"""Theorems 1 and 6 to 9 of `fedpower` against its runs, see `fedpower.tables`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from fedcore.algorithms.fedpower import sensitivity, standard_deviation, theorem_6
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Row, Rows

FIGURES = ("fig3", "fig4", "fig4_tight")
BLIND = 0.9  # a subspace at this distance is not found


def calibrations() -> Rows:
    """Return the noise of Theorem 6, the least noise for the same guarantee, and their ratio.

    ``from_sensitivity`` and ``from_conversion`` are the factors of the ratio. ``share_paper`` is
    the ε that Theorem 6's noise spends over the stated ε; ``share_paper_proof`` is the same with
    the sensitivity of the paper's proof, and ``share_tenth`` with a tenth of the noise.
    """
    rows = []
    for r, T in ((1, 1), (1, 10), (2, 10), (5, 10), (5, 100), (20, 10)):
        for delta in (1e-2, 1e-4, 1e-8):
            for epsilon in (0.01, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0):
                paper = theorem_6(r, T, epsilon, delta)
                tight = standard_deviation("tight", r, T, epsilon, delta)
                proof = 2.0 * math.sqrt(r)
                spent, tenth, as_proved = (
                    accounting.epsilon({Gaussian(multiplier): T}, delta)
                    for multiplier in (
                        paper / sensitivity(r), 0.1 * paper / sensitivity(r), paper / proof,
                    )
                )  # fmt: skip
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
                        "share_tenth": tenth / epsilon,
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
    inside, outside = _eigenvalues(run)[k - 1 : k + 1].tolist()
    s = standard_deviation(params.calibration, r, params.iterations, params.epsilon, params.delta)
    nu = s * m / n
    spread = (math.sqrt(d - k) + math.sqrt(k)) / math.sqrt(m * (inside**2 - outside**2))
    measured = run.last("projection_distance").mean()
    return run.row(
        calibration=params.calibration,
        epsilon=params.epsilon,
        nu=nu,
        noise_norm=nu * (math.sqrt(d) + math.sqrt(r)) / math.sqrt(m),
        sigma_k=inside,
        sigma_next=outside,
        predicted=nu * spread,
        measured=measured,
        over_predicted=measured / (nu * spread),
        epsilon_spent=run.last("epsilon").max(),
    )


def hidden(runs: Iterable[Run]) -> str:
    """Return why figures of these runs are flat, or nothing if one of them finds something.

    A distance of 1 says that nothing is known of the subspace.
    """
    shown = list(runs)
    least = min(float(np.nanmin(run["projection_distance"])) for run in shown)
    if least < BLIND:
        return ""
    covered = min(row["noise_norm"] / row["sigma_k"] for row in map(_noise, shown))
    return (
        f"Nothing is found: no distance is below {least:.2g}. "
        f"The noise of a round has a norm of {covered:.2g} σₖ at least."
    )


def misalignments(results: Results) -> Rows:
    """Return ρ in the last round, and the largest of the run, against p; a row per repeat.

    ``share_opt`` is ρ over the second value of (3.6), and ``share_lemma_14`` over √2 of it.
    ``share_none`` is ρ over (3.7) at the κ of M, and ``share_unrelated`` √2, the ρ of orthogonal
    bases, over the same. They are None where the experiment that measures η was left out.
    """
    plain = {
        (run.problem, run.params.local_steps): run.last("bytes_up")
        for run in results.runs("alignment")
        if run.params.alignment == "none"
    }
    eta = {row["problem"]: row["eta"] for row in dissimilarities(results)}
    rows = []
    for run in results.runs("alignment"):
        rho, p = run.last("misalignment"), run.params.local_steps
        with_opt, without = theorem_8(
            _eigenvalues(run), run.params.n_components, eta.get(run.problem, math.nan), p
        )
        shares = {
            "share_opt": rho / with_opt,
            "share_lemma_14": rho / (math.sqrt(2.0) * with_opt),
            "share_none": rho / without,
            "share_unrelated": math.sqrt(2.0) / without,
        }
        rows += run.rows(
            alignment=run.params.alignment,
            entries=run.params.entries,
            p=p,
            misalignment=rho,
            largest=run["misalignment"].max(axis=1),
            distance=run.last("projection_distance"),
            **{name: share if run.problem in eta else None for name, share in shares.items()},
            sent_over_plain=run.last("bytes_up") / plain[run.problem, p],
        )
    return rows


def theorem_8(eigenvalues: np.ndarray, k: int, eta: float, p: int) -> tuple[float, float]:
    """Return the second value of (3.6) and the value of (3.7).

    The bases that a round aligns have made p − 1 local steps since the last one. In (3.6), δ_k is
    the smallest and γ_k the largest that Weyl's inequality allows, and C_t has its limit by Davis
    and Kahan, so that the bound is not below that of the theorem. It is infinite where η leaves no
    limit.
    """
    steps, (inside, outside) = p - 1, eigenvalues[k - 1 : k + 1]
    apart, with_opt = eta * eigenvalues[0], math.inf  # the first is at least ‖A_i − A‖₂
    if inside - outside > 2.0 * apart:
        sine, gamma = apart / (inside - outside - apart), (outside + apart) / (inside - apart)
        with_opt = sine + 2.0 * gamma ** (steps / 4) * sine / math.sqrt(1.0 - sine**2)
    return with_opt, 4.0 * math.e * math.sqrt(k) * steps * _kappa(eigenvalues) ** steps * eta


def printed_bounds(results: Results) -> Rows:
    """Return the growth of (3.7) over (3.6) from each p of Figure `alignment` to the next.

    ``exponential`` is the growth of κ^p alone. (3.6) is the smaller of its two values.
    """
    eta = {row["problem"]: row["eta"] for row in dissimilarities(results)}
    rows: Rows = []
    for problem in filter(eta.__contains__, results.problems("alignment")):
        runs = list(results.runs("alignment", problem=problem))
        (run, *_), k = runs, runs[0].params.n_components
        eigenvalues = _eigenvalues(run)
        kappa, found = _kappa(eigenvalues), {}
        for p in sorted({run.params.local_steps for run in runs}):
            second, without = theorem_8(eigenvalues, k, eta[problem], p)
            first = 2.0 * math.e**2 * kappa ** (p - 1) * (p - 1) * eta[problem]
            found[p] = without / min(first, second)
        rows += [
            {"problem": problem, "status": run.row()["status"], "p": p}
            | {"growth": found[p] / found[before], "exponential": kappa ** (p - before)}
            for before, p in pairwise(found)
        ]
    return rows


def _kappa(eigenvalues: np.ndarray) -> float:
    """Return the κ of M, the smaller of the two that are printed."""
    return math.sqrt(eigenvalues[0] / eigenvalues[-1])


def bounds(results: Results) -> Rows:
    """Return distances over the bounds of Theorems 1, 7 and 9 with constant 1; a row per repeat.

    Of ``share_start`` the distance is that of the start. ρ is 0 in I₁ and I₂. For Theorem 1, where
    ``d exp(−t σ_(k+1)/σ_k)`` is ϵ after t steps, ``share`` is the largest of the run. There is no
    row of a bound whose η was not measured, in an experiment that was left out.
    """
    eta = {row["problem"]: row["eta"] for row in dissimilarities(results)}
    rows = []
    for run in (run for run in results.runs("fig3") if run.problem in eta):
        bound = theorems_7_and_9(run, eta[run.problem])
        name = "theorem9" if run.params.participants else "theorem7"
        curve = run["projection_distance"]
        rows += _shares(run, name, bound, curve[:, -1] / bound, curve[:, 0] / bound)
    for run in results.runs("theorem1"):
        k = run.params.n_components
        inside, outside = _eigenvalues(run)[k - 1 : k + 1]
        curve = run["projection_distance"]
        limits = run.data["n_features"] * np.exp(-run["iteration"] * outside / inside)
        last = limits[:, -1]
        rows += _shares(run, "theorem1", last[0], (curve / limits).max(axis=1), curve[:, 0] / last)
    return rows


def _shares(run: Run, bound: str, limit: float, share: np.ndarray, start: np.ndarray) -> Rows:
    names = ("experiment", "problem", "status", "variant", "repeat")
    rows = run.rows(limit=float(limit), share=share, share_start=start)
    values = ("limit", "share", "share_start")
    return [
        {n: row[n] for n in names}
        | {"entries": run.params.entries, "bound": bound}
        | {n: row[n] for n in values}
        for row in rows
    ]


def theorems_7_and_9(run: Run, eta: float) -> float:
    """Return I₁ + I₂ of Theorem 7, or I₁ + I₂ + I₃ of Theorem 9 for a run of Algorithm 3."""
    params, eigenvalues = run.params, _eigenvalues(run)
    m, n, d = (run.data[name] for name in ("n_clients", "n_samples", "n_features"))
    k, senders = params.target, params.participants or m
    s = standard_deviation(
        params.calibration, params.n_components, params.iterations, params.epsilon, params.delta
    )
    log = math.log(d * params.iterations)
    found = s * m / n * max(math.sqrt(d * log / senders), log / senders)
    found += 2.0 * eigenvalues[0] * eta
    if params.participants:
        found += eigenvalues[0] * max(math.sqrt(log / senders), log / senders)
    return float(found / (eigenvalues[k - 1] - eigenvalues[k]))


def partial(results: Results) -> Rows:
    """Return the ε spent by runs of Algorithm 3 over the ε stated; a row per repeat.

    ``share_tenth`` is that of a machine that sends in every round, with a tenth of the noise.
    """
    rows = []
    for run in results.runs(*FIGURES):
        params = run.params
        if not params.participants:
            continue
        r, T = params.n_components, params.iterations
        s = standard_deviation(params.calibration, r, T, params.epsilon, params.delta)
        tenth = accounting.epsilon({Gaussian(0.1 * s / sensitivity(r)): T}, params.delta)
        rows += run.rows(
            share=run.last("epsilon") / params.epsilon, share_tenth=tenth / params.epsilon
        )
    return rows


def dissimilarities(results: Results) -> Rows:
    """Return η of every problem (Definition 4), and whether Theorem 8 allows it up to p = 16."""
    return [
        run.row(eta=eta, eta_at_most_1_over_16=bool(eta <= 1 / 16))
        for run in results.runs("dissimilarity")
        for eta in run.last("dissimilarity")
    ]


def _eigenvalues(run: Run) -> np.ndarray:
    """Eigenvalues of A, in falling order."""
    return np.asarray(run.history.reference["singular_values"] ** 2 / run.data["n_samples"])
