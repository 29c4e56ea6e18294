"""Tables of the paper `fedpower`, from the histories of its cells.

Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed eigenspace estimation*. All
noise is stated as the paper's ν, the standard deviation beside ``Aᵢ = (m/n) MᵢᵀMᵢ``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedcore.repro.tables import audits
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run, last
from fedcore.repro.tables.rows import Rows, flags, reached
from fedcore.repro.tables.summaries import by_group, without
from fedpower.bases import bases
from fedpower.draws import parts
from fedpower.examples import identities, leaks, partitions
from fedpower.theory import (
    FIGURES,
    bounds,
    calibrations,
    dissimilarities,
    misalignments,
    noise,
    partial,
    printed_bounds,
)

# Parameters that the panels of these figures vary.
PANELS = {"p": ["local_steps"], "ε": ["epsilon"], "K/m": ["participants", "replacement"]}
ALIGNMENTS = ("alignment", "alignment_noisy")
DECAYS = ("decay", "decay_noisy", "decay_same_noise")
FEW = ("few_machines", "few_machines_noisy")
SETTLED = 1.2  # a curve below this times its end has settled
EFFECTIVE = 0.5  # end over start of a curve that finds something
FEWER = 1.5  # the influence of K/m is small below this ratio of distances
NEAR = 1.1  # over the distance at which p = 1 ends


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
    """Return the claims of the text, whether each repeat bears it out, and the ratio that decides.

    The runs of a repeat have one start. Those of `machine_claims` and `similarity_claims` are on
    several problems, and are paired by their number alone.
    """
    return [
        *panel_claims(results), *alignment_claims(results), *decay_claims(results),
        *machine_claims(results), *few_machine_claims(results), *similarity_claims(results),
        *sampling_claims(results),
    ]  # fmt: skip


def panel_claims(results: Results) -> Rows:
    """Return the claims of Figures 3 and 4.

    Those named "all" or "once" draw the smallest K without replacement, and the others draw with
    replacement. Those named "all" or "full" take all machines as the largest K.

    The influence of K/m is None where nothing is found at the smallest K/m: any two curves that
    stay at their start are alike.
    """
    rows: Rows = []
    for experiment in filter(results.problems, FIGURES):  # a run may leave one out
        steps, budgets, machines = (
            [run["projection_distance"] for run in varied(results, experiment, *names)]
            for names in PANELS.values()
        )
        at = varied(results, experiment, *PANELS["K/m"])
        with_replacement = [run.params.participants and run.params.replacement for run in at]
        drawn = [c for c, chosen in zip(machines, with_replacement, strict=True) if chosen]
        (once,) = (
            c for c, run in zip(machines, at, strict=True)
            if run.params.participants and not run.params.replacement
        )  # fmt: skip
        few, many, whole = drawn[0], drawn[-1], machines[-1]
        larger = [_worst_ratios(curve, steps[0]) for curve in steps[1:]]
        nearer = [_mean_ratios(curve, steps[0]) for curve in steps[1:]]
        rising = [large[:, -1] / small[:, -1] for small, large in pairwise(budgets)]
        influence, influence_full, influence_all = (
            np.where(less[:, -1] < EFFECTIVE * less[:, 0], less[:, -1] / more[:, -1], math.nan)
            for less, more in ((few, many), (few, whole), (once, whole))
        )
        for claim, ratio, limit in (
            ("larger-p-wins", np.max(larger, axis=0), 1.0),
            ("larger-p-nearer", np.max(nearer, axis=0), 1.0),
            ("larger-eps-wins", np.max(rising, axis=0), 1.0),
            ("larger-K-wins", many[:, -1] / few[:, -1], 1.0),
            ("larger-K-wins-full", whole[:, -1] / few[:, -1], 1.0),
            ("larger-K-wins-all", whole[:, -1] / once[:, -1], 1.0),
            ("K-influence", influence, FEWER),
            ("K-influence-full", influence_full, FEWER),
            ("K-influence-all", influence_all, FEWER),
            ("K8-effective", few[:, -1] / few[:, 0], EFFECTIVE),
            ("K8-once-effective", once[:, -1] / once[:, 0], EFFECTIVE),
        ):
            rows += _claims(at[-1], claim, ratio, ratio < limit)
    return rows


def alignment_claims(results: Results) -> Rows:
    """Return the claims of Theorem 8 and of Definition 5."""
    return [
        row
        for experiment in ALIGNMENTS
        for problem in results.problems(experiment)
        for epsilon in dict.fromkeys(
            run.params.epsilon for run in results.runs(experiment, problem=problem)
        )
        for row in _alignment_claims(results, experiment, problem, epsilon)
    ]


def _alignment_claims(
    results: Results, experiment: str, problem: str, epsilon: float | None
) -> Rows:
    """Return the claims about the misalignment on one problem with one budget.

    ``exponent`` is that of p from the smallest p to the largest.
    """
    rows: Rows = []
    found = {
        (run.params.alignment, run.params.local_steps): run
        for run in results.runs(experiment, problem=problem)
        if run.params.epsilon == epsilon
    }
    steps = sorted({p for _, p in found})
    any_run = found["none", steps[0]]
    for alignment in ("none", "procrustes"):
        rho = [found[alignment, p].last("misalignment") for p in steps]
        growth = rho[-1] / rho[min(1, len(rho) - 2)]
        rows += _claims(any_run, f"growth-{alignment}", growth, growth > SETTLED)
        exponent = np.log(rho[-1] / rho[0]) / math.log(steps[-1] / steps[0])
        rows += _claims(any_run, f"exponent-{alignment}", exponent, exponent > 0)
    largest = [
        found["procrustes", p]["misalignment"].max(axis=1)
        / found["none", p]["misalignment"].max(axis=1)
        for p in steps
    ]
    gain = np.max(largest, axis=0)
    rows += _claims(any_run, "alignment-helps", gain, gain < 1.0)
    return rows


def decay_claims(results: Results) -> Rows:
    """Return the claims of Section 3.3 about constant and decaying p.

    Communications are counted until the distance is twice the highest level at which a constant p
    ends; `rounds` over `p` of them are expected. Their ratio is infinite, and the claim false, if a
    run never arrives.
    """
    rows = []
    for experiment, problem in ((e, p) for e in DECAYS for p in results.problems(e)):
        cells = sorted(
            results.runs(experiment, problem=problem), key=lambda run: run.params.local_steps
        )
        constant = [run for run in cells if run.params.schedule == "constant"]
        (linear,) = (run["projection_distance"] for run in cells if run.params.schedule == "linear")
        curves = [run["projection_distance"] for run in constant]
        ends, starts = ([curve[:, i] for curve in curves] for i in (-1, 1))
        rises = np.min([large / small for small, large in pairwise(ends)], axis=0)
        falls = np.max([large / small for small, large in pairwise(starts)], axis=0)
        level = 2.0 * np.max(ends[1:], axis=0)[:, None]
        needed = [_first(curve <= level) for curve in curves]
        lowest, others = ends[0] / np.min(ends[1:], axis=0), np.max(needed[1:], axis=0) / needed[0]
        left = linear[:, -1] / ends[0]
        for claim, ratio, holds in (
            ("larger-p-first", falls, falls < 1.0),
            ("larger-p-ends-higher", rises, rises > 1.0),
            ("larger-p-ends-lower", ends[-1] / ends[-2], ends[-1] < ends[-2]),
            ("p1-ends-lowest", lowest, lowest < 1.0),
            ("p1-slowest", others, others < 1.0),
            ("decay-first", linear[:, 1] / starts[0], linear[:, 1] < starts[0]),
            ("decay-ends-low", left, left <= NEAR),
        ):
            rows += _claims(cells[0], claim, ratio, holds)
        for run, count in zip(constant[1:], needed[1:], strict=True):
            p = run.params.local_steps
            never = np.isnan(count) | np.isnan(needed[0])
            ratio = np.where(never, math.inf, count * p / needed[0])
            near = np.abs(count - needed[0] / p) <= 1.0
            rows += _claims(run, f"communications-p{p}", ratio, near)
    return rows


def machine_claims(results: Results) -> Rows:
    """Return "more machines give a smaller distance", at equal n/m and at equal n."""
    ends = {run.problem: run for run in results.runs("machines")}
    few, rows = ends.get("model1_five"), []
    for claim, problem in (("more-machines", "model1"), ("more-machines-same-rows", "model1_25k")):
        many = ends.get(problem)
        if few is None or many is None:
            continue  # a run may leave one out
        ratio = many.last("projection_distance") / few.last("projection_distance")
        rows += _claims(many, claim, ratio, ratio < 1.0)
    return rows


def few_machine_claims(results: Results) -> Rows:
    """Return "the fewer the machines, the larger the gain of p = 4", with and without noise.

    The gain is the distance with p = 1 over that with p = 4, after the last communication of p = 4.
    ``ratio`` is the smallest ratio of gains from some machines to the next larger number of them.
    """
    return [row for name in FEW for row in _few_machine_claims(results, name)]


def _few_machine_claims(results: Results, experiment: str) -> Rows:
    rows: Rows = []
    gains: dict[str, np.ndarray] = {}
    for problem in results.problems(experiment):
        one, four = (
            run["projection_distance"]
            for run in sorted(
                results.runs(experiment, problem=problem), key=lambda run: run.params.local_steps
            )
        )
        gains[problem] = one[:, four.shape[1] - 1] / four[:, -1]
    for claim, problems in (
        ("fewer-machines-gain", ("model1_5x400k", "model1", "model1_80x25k")),
        ("fewer-machines-gain-same-size", ("model1_five", "model1")),
    ):
        if not gains.keys() >= set(problems):
            continue  # a run may leave some out
        steps = [gains[few] / gains[many] for few, many in pairwise(problems)]
        ratio = np.min(steps, axis=0)
        (run, *_) = results.runs(experiment, problem="model1")
        rows += _claims(run, claim, ratio, ratio > 1.0)
    return rows


def similarity_claims(results: Results) -> Rows:
    """Return "a larger η gives a larger misalignment" over problems with fewer and fewer rows."""
    rows = []
    for alignment in ("procrustes", "none"):
        found = sorted(
            results.runs("similarity", variant=alignment),
            key=lambda run: -int(run.data["n_samples"]),
        )
        if len(found) > 1:
            rho = [run.last("misalignment") for run in found]
            step = np.min([large / small for small, large in pairwise(rho)], axis=0)
            rows += _claims(found[0], f"larger-eta-{alignment}", step, step > 1.0)
    return rows


def sampling_claims(results: Results) -> Rows:
    """Return "more machines drawn give less bias", without noise."""
    found = sorted(results.runs("sampling"), key=lambda run: run.params.participants)
    if not found:
        return []
    ratio = found[-1].last("projection_distance") / found[0].last("projection_distance")
    return _claims(found[-1], "larger-K-less-bias", ratio, ratio < 1.0)


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


def _claims(run: Run, claim: str, ratio: np.ndarray, holds: np.ndarray) -> Rows:
    """Return a row per repeat; ``ratio`` and ``holds`` are None in one without a ratio, NaN."""
    named = {name: run.row()[name] for name in ("experiment", "problem", "status")}
    named |= {"entries": run.params.entries, "epsilon": run.params.epsilon}
    return [
        named | {"claim": claim, "repeat": i, "ratio": value, "holds": right}
        for i, (value, right) in enumerate(
            zip(flags(ratio, ratio), flags(holds, ratio), strict=True)
        )
    ]


def _first(holds: np.ndarray) -> np.ndarray:
    """Return the first communication of each repeat where `holds` is true; NaN without one."""
    return reached(holds, np.broadcast_to(np.arange(float(holds.shape[1])), holds.shape))


def _worst_ratios(large: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Return each repeat's largest ratio of two curves before `small` has settled, NaN without one.

    It is taken over the communications of both.
    """
    common = slice(1, min(large.shape[1], small.shape[1]))
    open_ = small[:, common] > SETTLED * small[:, -1:]
    ratio = np.where(open_, large[:, common] / small[:, common], -math.inf).max(axis=1)
    return np.where(open_.any(axis=1), ratio, math.nan)


def _mean_ratios(large: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Return each repeat's geometric mean of the ratios of two curves after the start."""
    common = slice(1, min(large.shape[1], small.shape[1]))
    return np.asarray(np.exp(np.log(large[:, common] / small[:, common]).mean(axis=1)))


TABLES = {
    "runs": Table(
        runs, by_group("distance", "experiment", "problem", "variant", "calibration", "epsilon")
    ),
    "claims": Table(claims, by_group("ratio", "experiment", "problem", "epsilon", "claim")),
    "bounds": Table(bounds, by_group("share", "bound", "experiment", "variant", "limit")),
    "partial": Table(partial, by_group("share", "experiment", "variant")),
    "calibrations": Table(
        lambda _: calibrations(),
        lambda rows: [row for row in rows if (row["T"], row["delta"]) == (10, 1e-4)],
    ),
    "bases": Table(lambda _: bases()),
    "noise": Table(noise, without("experiment", "algorithm", "variant")),
    "misalignments": Table(misalignments, by_group("misalignment", "problem", "alignment", "p")),
    "printed_bounds": Table(printed_bounds, without("status")),
    "dissimilarities": Table(dissimilarities, without("experiment", "algorithm", "variant")),
    "parts": Table(parts, by_group(("part", "each_once"), "variant", "machine")),
    "identities": Table(identities, by_group("difference", "problem", "variant")),
    "partitions": Table(partitions, by_group("share", "problem", "size")),
    "leaks": Table(leaks, by_group("least", "problem", "variant", "equations", "elements")),
    "decays": Table(decays, by_group("end", "problem", "variant")),
    "audits": Table(lambda results: audits.bounds(results, "audit")),
}
