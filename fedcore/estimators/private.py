"""The fit of a `FederatedPCA` with differential privacy: clients add noise to every upload.

Neighbouring data sets differ by one added or removed record of one client. Clients first clip their
samples to public bounds (`fedcore.estimators.bounds`). A fit then has four steps:

1. Each client uploads, with noise, the sum of ``a = (x − c)/ρ`` over its samples x, and its number
   of samples multiplied by κ = 0.5. The vector c is the middle of the bounds, and the divisor ρ
   makes ‖a‖ ≤ 1 for every sample. To these sums, one sample adds the vector (a, κ), which has norm
   at most √(1 + κ²). The server clips the mean to the bounds. If scales are wanted, each feature of
   x − c is divided by its largest magnitude within the bounds before ρ is chosen.

2. If scales are wanted, each client uploads the noisy sum of ``((x − mean)/w)²`` over its samples.
   For each feature, w is the largest distance from the mean that the bounds allow. A sample's
   vector of squares has norm at most √d, or at most 1 if the samples are bounded in norm (`Ball`).
   A variance below the standard deviation of its noise is replaced by this standard deviation.

3. The algorithm runs on the samples ``b = (x − mean)/scale/ρ′``, where the divisor ρ′ makes
   ‖b‖ ≤ 1.

4. The clients upload noisy second moments of their samples b along the algorithm's basis Z. With y
   = Zᵀb, these moments are the upper triangle of ``Σ y yᵀ`` and the squares outside range(Z),
   ``Σ ‖b‖² − ‖y‖²``. One record adds a vector of norm at most ``‖y‖² + ‖b‖² − ‖y‖² ≤ 1`` to the
   moments. Squares below the standard deviation of their noise are replaced by this standard
   deviation. Unless the user gives a starting basis ``start``, Z has one column more than the
   requested number of components. The diagonal entry of ``Σ y yᵀ`` for the extra column is about
   the next eigenvalue, which `sines` needs.

All noise is Gaussian. Releases with noise multipliers zᵢ are together as private as one release
with multiplier z, where 1/z² = Σ 1/zᵢ². The fit uses the smallest z that (ε, δ) allows for all
steps together, and each step gets a fixed share of 1/z² (`SHARES`). Each client adds noise to its
own sums. The server adds up the noisy sums and need not be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedcore.errors import Advice, ConvergenceWarning, InputError, warn
from fedcore.estimators.bounds import Ball, Box
from fedcore.estimators.last_round import Axes, principal_axes
from fedcore.estimators.settings import PRIVATE, Found, Request
from fedcore.federation.execution import protected
from fedcore.federation.federation import Federation
from fedcore.linalg import from_upper_triangle, upper_triangle
from fedcore.privacy import accounting, calibration
from fedcore.privacy.bounded_rows import LONGEST_ROW
from fedcore.privacy.events import Gaussian
from fedcore.problems.clients import Clients
from fedcore.problems.tasks import shared_basis
from fedcore.sparse import SparseRows
from fedcore.user_runs import run
from fedcore.validation import require_start
from fedcore.words import counted

NEIGHBOURS = "add_or_remove_one"
SHARES = {"mean": 0.2, "scale": 0.2, "rounds": 0.5, "last": 0.1}
COUNT = 0.5  # κ
RUN_OPTIONS = {"progress", "simulate", "transcript"}  # a user may set these
HIGHER_ORDER = 0.5  # standard deviations, for terms of higher order
MARGIN = 4.0  # standard deviations by which a released gap may be above the true one
WARNING_SINE = 0.5  # estimated sine above which a user is warned: 30 degrees
SAFETY_FACTOR = 1.0 + 1e-9  # the multipliers are found by iteration

Vector = Callable[[np.ndarray, Any], np.ndarray]  # of a client's rows and the server's message


def fit(asked: Request, matrices: Any) -> Found:
    """Release the mean, the scales, the basis and the moments along the basis, all with noise.

    Parameters
    ----------
    asked : Request
        Checked parameters of the estimator.
    matrices : sequence of ndarray of shape (n_i, d)
        The clients' checked samples.

    Raises
    ------
    InputError
        If parameters or samples are invalid, or if samples are sparse.
    """
    d = matrices[0].shape[1]
    if not asked.counts_components:
        raise InputError(
            f"n_components = {asked.n_components} needs exact variances, which a private fit does "
            "not release",
            advice=[Advice("give a whole number", {"n_components": min(2, d)})],
        )
    r = asked.rank(d, d)  # how many samples there are is protected, too
    options = _options(asked, d, r)
    if isinstance(matrices[0], SparseRows):
        raise InputError(
            "a private fit needs dense samples, but these clients are sparse: call .toarray() on "
            "every client's matrix"
        )
    bounds = asked.bounds
    assert bounds is not None
    with np.errstate(over="ignore"):
        size = bounds.reach(bounds.middle, np.ones(d))
    if not 1 / LONGEST_ROW <= size <= LONGEST_ROW:
        raise InputError(
            f"bounds allow samples at distance {size:.3g} from the middle of bounds, and the "
            "square of this distance is out of the range of double precision: change the unit of "
            "the data and of bounds"
        )
    spent = multipliers(asked)
    left = epsilon_of_rounds(asked, spent)
    wide = min(r + (options.get("start") is None), d)

    @protected
    def begin(federation: Federation) -> dict[str, Any]:
        federation.protect(delta=asked.delta, neighbours=NEIGHBOURS)
        mean, n_samples = _mean(federation, asked, bounds, spent["mean"])
        scale = np.ones(d)
        if asked.scale:
            scale = _scale(federation, bounds, mean, n_samples, spent["scale"])
        federation.standardise(mean, scale * bounds.reach(mean, scale))
        return {"mean": mean, "scale": scale, "n_samples": n_samples}

    @protected
    def finish(federation: Federation, output: Mapping[str, Any]) -> dict[str, Any]:
        federation.broadcast(np.asarray(shared_basis(output), dtype=np.float64))
        return {"total": _released(federation, _moments, 1.0, spent["last"])}

    inside = [bounds.clip(np.asarray(data, dtype=np.float64)) for data in matrices]
    result = run(
        asked.algorithm.name, Clients(inside), wide, seed=asked.seed, epsilon=left,
        delta=asked.delta, clip=True, measure=(), begin=begin, finish=finish, **options,
    )  # fmt: skip
    output = result.output
    basis, total = np.asarray(shared_basis(output), dtype=np.float64), output["total"]
    moments = from_upper_triangle(total[:-1], wide)
    axes = principal_axes(basis[:, :r], moments[:r, :r])
    least = _deviation(1.0, spent["last"], len(inside))
    rest = np.append(np.diagonal(moments)[r:], total[-1] * (wide < d))  # next eigenvalue, others
    outside = max(float(rest.sum()), least) if r < d else 0.0
    steps = int(result.history["iteration"][-1])
    rounds = _deviation(math.sqrt(max(steps, 1)), spent["rounds"], len(inside))
    squares = np.append(axes.squares, rest[0])
    estimates = sines(squares, d, rounds=rounds, last=least, steps=steps)
    if r == d:  # they span the whole space, whatever each of them is
        estimates[-1] = 0.0
    _tell(asked.epsilon, estimates[: d - 1], r)
    squares = np.maximum(axes.squares, least)
    unit = bounds.reach(output["mean"], output["scale"]) ** 2
    return Found(
        Axes(axes.components, squares * unit), outside * unit, output["n_samples"], result,
        float(estimates[-1]),
    )  # fmt: skip


def _released(
    federation: Federation, values: Vector, sensitivity: float, multiplier: float
) -> np.ndarray:
    """Return the noisy sum over all clients of ``values(rows, message)``."""

    def release(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
        noisy = state.privacy.gaussian
        return noisy(values(data, message), sensitivity=sensitivity, noise_multiplier=multiplier)

    return federation.sum(release)


def _deviation(sensitivity: float, multiplier: float, n_clients: int) -> float:
    """Return the standard deviation of the noise in each entry of a sum over all clients."""
    return sensitivity * multiplier * math.sqrt(n_clients)


def sines(squares: np.ndarray, d: int, *, rounds: float, last: float, steps: int) -> np.ndarray:
    """For k = 1, …, r, estimate the sine of the angle between the first k axes and the exact ones.

    To first order, the rotation of the first k axes is a block of the noise matrix, divided by the
    gap of the eigenvalues. The block is a Gaussian matrix with k columns and d − k rows, which maps
    the span of the k axes to its orthogonal complement. On average, the block's norm is at most √k
    + √(d − k) times the standard deviation of an entry (Gordon's theorem). Half a standard
    deviation is added to this norm for the terms of higher order.

    The estimate uses the gap of the released eigenvalues minus `MARGIN` times the standard
    deviation `last` of their noise. If this difference is not positive, the estimate is 1. An
    estimate below 1 therefore rarely comes from a gap that is only noise. The released gap tends to
    be smaller than the true gap, because noise has rotated the axes.

    In an iterative algorithm, each step multiplies the error of the start and the noise of earlier
    steps by the ratio of the eigenvalues on both sides of the gap. The angle between a random start
    and the exact axes is assumed to have tangent √d. The noise of the mean is ignored, because it
    matters only if the noise of the rounds already hides everything.

    Parameters
    ----------
    squares : ndarray of shape (r + 1,)
        Released eigenvalues, in descending order except for their noise.
    d : int
        Number of features.
    rounds, last : float
        Standard deviations of the noise in one entry of the algorithm's sums (`rounds`), and in one
        entry of `squares` (`last`).
    steps : int
        Number of steps of an iteration; 0 for a direct method.

    Returns
    -------
    ndarray of shape (r,)
        Estimated sines, at most 1.
    """
    gaps, k = squares[:-1] - squares[1:] - MARGIN * last, np.arange(1, len(squares))
    with np.errstate(all="ignore"):
        found = (np.sqrt(k) + np.sqrt(d - k) + HIGHER_ORDER) * rounds / gaps
        if steps:
            found += math.sqrt(d) * (np.maximum(squares[1:], 0) / squares[:-1]) ** steps
    return np.where(gaps > 0, np.fmin(found, 1.0), 1.0)


def _tell(epsilon: float, estimates: np.ndarray, r: int) -> None:
    """Warn if noise hides the subspace, and say how many leading components are still reliable.

    Entry k − 1 of `estimates` is the estimated sine for the first k components. If there are as
    many components as features, `estimates` lacks the last entry, because all components together
    span the whole space.
    """
    if not len(estimates) or estimates[-1] <= WARNING_SINE:
        return
    above = int(np.append(0, 1 + np.flatnonzero(estimates <= WARNING_SINE))[-1])
    alone = f", and for the first {above} alone {estimates[above - 1]:.2g}" if above else ""
    warn(
        f"the noise of epsilon = {epsilon:g} may hide {r - above} of {counted(r, 'component')}, "
        f"because the sine of the angle between the first {len(estimates)} and the exact ones may "
        f"be {estimates[-1]:.2g}{alone} (at 1, components cannot be distinguished from noise): "
        "take more samples, a larger epsilon, tighter bounds or fewer components",
        ConvergenceWarning,
    )


def multipliers(asked: Request) -> dict[str, float]:
    """Return each step's noise multiplier; with these multipliers, all steps together spend (ε, δ).

    Raises
    ------
    InputError
        If ε or δ is out of range, or if δ is missing.
    """
    accounting.EPSILON(asked.epsilon, "epsilon")
    if asked.delta is None:
        raise InputError("a private fit needs delta: choose it well below 1 / number of records")
    single = SAFETY_FACTOR * calibration.gaussian_noise_multiplier(asked.epsilon, asked.delta)
    used = {k: share for k, share in SHARES.items() if k != "scale" or asked.scale}
    return {k: single * math.sqrt(sum(used.values()) / share) for k, share in used.items()}


def epsilon_of_rounds(asked: Request, multipliers: Mapping[str, float]) -> float:
    """Return the ε that the algorithm's own rounds may spend, from their noise multiplier.

    Raises
    ------
    InputError
        If this part of ε is smaller than algorithms accept.
    """
    left = accounting.epsilon({Gaussian(multipliers["rounds"]): 1}, asked.delta)
    if left < accounting.LEAST_EPSILON:
        raise InputError(
            f"epsilon = {asked.epsilon!r} is too small at delta = {asked.delta!r}, because the "
            f"share for the rounds of {asked.algorithm.name} is below "
            f"{accounting.LEAST_EPSILON:g}: choose a larger epsilon"
        )
    return left


def _options(asked: Request, d: int, r: int) -> dict[str, Any]:
    """Check and return the options of the algorithm's run, before any message is sent."""
    own = asked.algorithm.private_fit
    if own is None:
        raise InputError(
            f"FederatedPCA has no private fit by {asked.algorithm.name}: take {PRIVATE}, or run "
            "a private method by fedcore.run"
        )
    fixed = {"epsilon", "delta", "clip", "calibration", "measure", *own}
    for taken in fixed & asked.options.keys():
        raise InputError(f"params has '{taken}', which a private fit sets itself: remove it")
    options = {**own, **asked.options}
    of_method = {k: v for k, v in options.items() if k not in RUN_OPTIONS}
    start = asked.algorithm.params({"n_components": r, **of_method}).start
    if start is not None:
        require_start(start, d, r)
    return options


def _mean(
    federation: Federation, asked: Request, bounds: Box | Ball, multiplier: float
) -> tuple[np.ndarray, int]:
    """Return the noisy mean, or zeros without centring, and the noisy number of samples."""
    middle, d, center = bounds.middle, len(bounds.middle), asked.center
    units = _units(bounds, middle) if asked.scale else np.ones(d)
    units = units * bounds.reach(middle, units)

    def sum_and_count(data: np.ndarray, message: Any) -> np.ndarray:
        total = (data - middle).sum(axis=0) / units if center else []
        return np.append(total, COUNT * len(data))

    total = _released(federation, sum_and_count, math.sqrt(center + COUNT**2), multiplier)
    n_samples = max(1, round(float(total[-1]) / COUNT))
    if not center:
        return np.zeros(d), n_samples
    mean = bounds.clip((middle + units * total[:-1] / n_samples)[None])[0]
    federation.ledger.download(mean, federation.shape.n_clients)
    return mean, n_samples


def _units(bounds: Box | Ball, point: np.ndarray) -> np.ndarray:
    """Return ``bounds.widths(point)`` as divisors, with 1 in place of each 0."""
    widths = bounds.widths(point)
    return np.where(widths > 0, widths, 1.0)


def _scale(
    federation: Federation, bounds: Box | Ball, mean: np.ndarray, n: int, multiplier: float
) -> np.ndarray:
    """Return the root mean square of each feature about `mean`, computed from a noisy sum."""
    widths = _units(bounds, mean)

    def fractions(data: np.ndarray, message: Any) -> np.ndarray:
        return np.sum(((data - mean) / widths) ** 2, axis=0)

    total = _released(federation, fractions, bounds.sum_of_fractions, multiplier)
    n_clients = federation.shape.n_clients
    least = _deviation(bounds.sum_of_fractions, multiplier, n_clients)
    scale = widths * np.sqrt(np.maximum(total, least) / n)
    federation.ledger.download(scale, n_clients)
    return scale


def _moments(data: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the upper triangle of ``Σ y yᵀ`` for scores y, and the squares outside range(Z)."""
    scores = data @ Z
    inside = scores.T @ scores
    outside = np.einsum("ij,ij->", data, data) - np.trace(inside)
    return np.append(upper_triangle(inside), outside)
