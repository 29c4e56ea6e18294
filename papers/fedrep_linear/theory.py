"""Statements of Sections 2.1 and 4 of `fedrep_linear` on heads, samples and new clients.

See `fedrep_linear.tables`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from fedcore.metrics.regression import NEW_SAMPLES
from fedcore.problems.regression import least_squares
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, first
from fedrep_linear.speeds import DISTANCE

RECOVERED = 1e-4  # distance at which the representation counts as recovered
SIZES = ("scale_few", "scale_many", "scale_d")  # problems of `fresh` in which n or d varies
WITHIN = 10.0  # factor on (11) that an unknown constant is left
SMALL = 0.05  # share of the zero model's error
SOLVED = 1e-10  # share of the first excess of the loss at which a head counts as found
# Sizes m, k and d for which operations of a head are counted; the first is the smallest.
HEADS = [(4, 2, 4), *((8 * k, k, 8 * k) for k in (2, 4, 8, 16, 32)), (32, 32, 32), (512, 2, 8),
         (512, 16, 32), (64, 4, 256), (64, 4, 1024)]  # fmt: skip


def recovered(run: Run, of_twins: bool = False) -> list[bool]:
    """Return whether each trial of a run, or its twin, recovers the representation.

    A client whose samples hardly tell two heads apart may take a large head. The next step on B
    then throws the run to a place that rounding chooses, from which it may recover or not.
    """
    twins = run.history.twins if of_twins else None
    return ((twins or run).last(DISTANCE) <= RECOVERED).tolist()


def smallest(tried: list[tuple[int, bool]]) -> float:
    """Return the smallest size from which on every one that was tried is enough; NaN without."""
    enough = [m for m, _ in tried if all(done for other, done in tried if other >= m)]
    return float(min(enough, default=math.nan))


def share(m: float, by: float, largest: float) -> float | None:
    """Return a smallest size over `by`.

    A missing one is beyond the largest size that was tried: infinite if that is above `by`. Else it
    may lie on either side of `by`, and it is None.
    """
    if not math.isnan(m):
        return m / by
    return math.inf if largest >= by else None


def fresh(results: Results) -> Rows:
    """Samples of a client, fresh in every round, until the representation is recovered.

    A row per trial, of the batch with which it takes the fewest; ``total`` is infinite if none of
    the batches is enough. ``ratio`` is over (11) with constant 1, at the κ of the trial's heads; it
    is None if none is enough and the samples end before `WITHIN` times (11). ``share_alone`` is
    that of `shares_alone`.
    """
    rows: Rows = []
    for problem in results.problems("fresh"):
        runs = list(results.runs("fresh", problem=problem))
        (k, data), sigma = (runs[0].params.n_components, runs[0].data), head_sigma(runs[0])
        fixed = results.plan["problems"][problem]["params"]
        settings = data.get("settings") or [{}] * len(sigma)
        totals = np.min([_until_recovered(run) for run in runs], axis=0)
        seen: Counter[tuple[int, int]] = Counter()
        for setting, total, values in zip(settings, totals.tolist(), sigma, strict=False):
            n, d = ((fixed | setting)[name] for name in ("n_clients", "n_features"))
            kappa = float(values[0] / values[-1])
            bracket, scale = kappa**4 * k**2 * (d / n + k * math.log(n)), d / n + math.log(n)
            asked = bracket * math.log(1 / RECOVERED)
            open_ = math.isinf(total) and fixed["samples"] < WITHIN * asked
            rows.append(
                runs[0].row(repeat=seen[n, d], n=n, d=d, k=k, kappa=kappa, total=total,
                            bracket=bracket, scale=scale, ratio=None if open_ else total / asked)
            )  # fmt: skip
            seen[n, d] += 1
    sizes = [row for row in rows if row["problem"] in SIZES]
    alone = shares_alone(sizes, "total")
    for row in rows:
        of_size = row["problem"] in SIZES
        row["share_alone"] = alone.get((row["n"], row["d"], row["repeat"])) if of_size else None
    return rows


def shares_alone(rows: Rows, column: str) -> dict[tuple[int, int, int], float]:
    """Return the growth from a quarter of d over that of d, which is that of a client alone.

    Trials, by n, d and number, are paired by their number. There is none without a quarter of d,
    and NaN where it has no finite value.
    """
    values = {(row["n"], row["d"], row["repeat"]): row[column] for row in rows}
    quarters = {key: values.get((key[0], key[1] / 4, key[2])) for key in values}
    return {
        key: values[key] / quarter / 4 if math.isfinite(quarter) else math.nan
        for key, quarter in quarters.items()
        if quarter is not None
    }


def _until_recovered(run: Run) -> list[float]:
    """Samples that each trial of a run takes, those of its start among them."""
    known = (first(values <= RECOVERED) for values in run[DISTANCE])
    return [math.inf if t is None else run.params.batch * (t + 1.0) for t in known]


def growths(results: Results) -> Rows:
    """Growth of `fresh` from a smallest size; a row per trial of a larger one.

    ``share`` is the growth over that of (11) with k and with κ, and over that of d/n + log n with n
    and d (``size`` is "scale"). Trials of different sizes are paired by their number alone.
    ``share`` is None where the samples end too early, as the ratio of `fresh` is, and NaN where the
    smallest size was not enough.
    """
    found = fresh(results)
    ranks, kappas = (
        [row for row in found if row["problem"].startswith(f"fresh_{name}_")]
        for name in ("rank", "kappa")
    )
    sizes = [row for row in found if row["problem"] in SIZES]
    return [
        *_growths("rank", ranks, "k", "bracket"),
        *_growths("kappa", kappas, "problem", "bracket"),
        *_growths("scale", sizes, "n", "scale"),
    ]


def _growths(size: str, rows: Rows, by: str, weight: str) -> Rows:
    """Return the growth of the total, and over that of a weight, from the least `by`."""
    least = min((row[by] for row in rows), default=None)
    base = {row["repeat"]: row for row in rows if row[by] == least}
    made: Rows = []
    for row in (row for row in rows if row[by] != least):
        one = base[row["repeat"]]
        growth = row["total"] / one["total"] if math.isfinite(one["total"]) else math.nan
        share = None if row["ratio"] is None else growth * one[weight] / row[weight]
        names = ("problem", "status", "repeat", "n", "d", "k", "kappa")
        made.append({"size": size} | {name: row[name] for name in names})
        made[-1] |= {"growth": growth, "share": share}
    return made


def head_sigma(run: Run) -> np.ndarray:
    """Singular values of ``W*/√n`` of every trial, (trials, k); further draws are for tuning."""
    return run.history.reference["head_singular_values"][: run.history.repeats]


def moments(results: Results) -> Rows:
    """What the clients' messages for the start tell of their samples, a row per draw.

    See `fedcore.metrics.moments`. ``told`` is the membership advantage.
    """
    rows: Rows = []
    for run in results.runs("moments"):
        rows += run.rows(
            d=run.data["n_features"],
            told=run.last("membership_advantage"),
            rebuilt=run.last("rebuilt_sample"),
            distance=run.last(DISTANCE),
        )
    return rows


def newcomers(results: Results) -> Rows:
    """Smallest number of a new client's samples from which on its error is small, by k and trial.

    Small is a share of `SMALL` of the error of the model that says zero. ``over_k`` divides the
    number by k; both are infinite if none of the numbers that were tried is enough. ``share`` is
    the growth of ``over_k`` from the least k; trials of an experiment are paired by their number.
    """
    rows: Rows = []
    for run in results.runs("newcomers", "newcomers_exact"):
        k = run.params.n_components
        sizes = [s for s in NEW_SAMPLES if f"new_client_error_{s}" in run.history.columns]
        errors = np.array([run.last(f"new_client_error_{s}") for s in sizes])
        small = errors <= SMALL * 0.5 * run.tags["k"]  # heads from N(0, I_k)
        needs = np.array([smallest(list(zip(sizes, trial, strict=True))) for trial in small.T])
        needs = np.where(np.isnan(needs), np.inf, needs)
        rows += run.rows(samples=needs, over_k=needs / k, distance=run.last(DISTANCE))
    least = min((row["k"] for row in rows), default=None)
    pair = ("experiment", "variant", "repeat")
    base = {tuple(r[key] for key in pair): r["over_k"] for r in rows if r["k"] == least}
    for row in rows:
        one = base.get(tuple(row[key] for key in pair), math.nan)  # without the least k: none
        row["share"] = row["over_k"] / one if math.isfinite(one) else math.nan
    return rows


def head_steps(results: Results) -> Rows:
    """Decrease of the mean loss (7) of two heads with gradient steps on them; a row per trial.

    The excess of a loss over its minimum is quadratic in the distance to the minimiser.
    ``steady`` is the decrease of its logarithm in the second half of the steps to a share of
    `SOLVED` over that in the first: 1 if steps grow as log(1/ε).
    """
    rows: Rows = []
    for run in results.runs("head_steps"):
        excess = run["training_loss"] - run["fitted_loss"]
        for repeat, values in enumerate(excess):
            solved = first(values <= SOLVED * values[0])
            end = len(values) - 1 if solved is None else solved
            middle = end // 2
            with np.errstate(invalid="ignore", divide="ignore"):
                parts = np.log(values[[0, middle]] / np.abs(values[[middle, end]]))
            rows.append(
                run.row(
                    repeat=repeat,
                    steps=math.nan if solved is None else float(end),
                    left=values[end] / values[0],
                    steady=float(parts[1] / parts[0]),
                )
            )
    return rows


def qr_operations(m: int, k: int) -> float:
    """Return the operations of a thin QR factorisation by reflections, Q formed, for m >= k."""
    return 2 * (2 * m * k**2 - 2 * k**3 / 3)


def solve_operations(k: int) -> float:
    """Return the operations of the solution of a k × k system by LU, for one right side."""
    return 2 * k**3 / 3 + 2 * k**2


class Counted(np.ndarray):
    """Array that counts operations: of products, QR factorisations and solutions, by their shapes.

    The last two are those of Golub & Van Loan, *Matrix Computations*, Sections 5.2 and 3.2. Half of
    all operations are additions.

    Attributes
    ----------
    counts : list of float
        One for each product and factorisation, shared by all arrays that come of this one.
    """

    counts: list[float]

    def __array_finalize__(self, other: Any) -> None:
        self.counts = getattr(other, "counts", [])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute with plain arrays, and count a product."""
        plain = [np.asarray(x) for x in inputs]
        found = getattr(ufunc, method)(*plain, **kwargs)
        if ufunc is np.matmul:
            self.counts.append(2 * np.size(found) * plain[0].shape[-1])
        return self._counted(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call with plain arrays, and count a factorisation."""
        plain = [np.asarray(x) if isinstance(x, Counted) else x for x in args]
        if function is np.linalg.qr:
            self.counts.append(qr_operations(*plain[0].shape))
        elif function is np.linalg.solve:
            self.counts.append(solve_operations(len(plain[0])))
        return self._counted(function(*plain, **kwargs))

    def _counted(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(map(self._counted, found))
        if not isinstance(found, np.ndarray):
            return found
        counted = found.view(Counted)
        counted.counts = self.counts
        return counted


def head_operations(results: Results) -> Rows:
    """Operations of an exact head, counted while it is found, a row per size.

    ``part`` is "whole" for all that a client does with its samples and the B that it gets, and
    "given features" for what it does after the product X B. ``growth`` is the number of operations
    over ``m k² + k³``, over the same at the smallest size.
    """
    rows: Rows = []
    rng = np.random.default_rng(0)
    for part in ("whole", "given features"):
        shares: list[float] = []
        for m, k, d in HEADS:
            A: Any = rng.standard_normal((m, d)).view(Counted) @ rng.standard_normal((d, k))
            least_squares(A, rng.standard_normal(m))
            features, *rest = A.counts
            found = sum(rest) + (features if part == "whole" else 0)
            shares.append(found / (m * k**2 + k**3))
            rows.append(
                {"part": part, "status": "synthetic", "repeat": len(shares) - 1}
                | {"m": m, "k": k, "d": d, "counted": found, "share": shares[-1]}
                | {"growth": shares[-1] / shares[0]}
            )
    return rows


def heterogeneity(results: Results) -> Rows:
    """Whether the more different heads of two draws have the larger error; a row per pair.

    Draws are ranked by the mean distance of two heads. One of the lower half is paired with the
    one at the same place in the upper half.
    """
    rows: Rows = []
    for run in results.runs("heterogeneity"):
        apart, error = run.last("head_distance"), run.last("population_error")
        order = np.argsort(apart, kind="stable")
        half = len(order) // 2
        for pair, (low, high) in enumerate(zip(order[:half], order[-half:], strict=True)):
            rows.append(
                run.row(
                    repeat=pair,
                    heads=apart[high] / apart[low],
                    errors=error[high] / error[low],
                    grows=bool(error[high] > error[low]),
                )
            )
    return rows


def one_model(results: Results) -> Rows:
    """Section 2.1: errors over that of the best single model, and distances; a row per trial."""
    rows: Rows = []
    for run in results.runs("one_model"):
        error, best = run.last("population_error"), run.last("single_model_error")
        rows += run.rows(to_formula=error / best, error=error, distance=run.last(DISTANCE))
    return rows
