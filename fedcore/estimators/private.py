"""The fit of a `FederatedPCA` with differential privacy: every exchange has noise.

Neighbours: one record of one client is added or removed. Clients clip their samples to public
bounds (`fedcore.estimators.bounds`), and then

1. upload the noisy sum of ``a = (x − c)/ρ`` with ‖a‖ ≤ 1, c the middle of the bounds, and with
   weight κ their number: (a, κ) has norm √(1 + κ²) at most. The mean is put inside the bounds. For
   scales, each feature of a is in units of its own bounds;
2. for scales, upload the noisy sums of ``((x − mean)/w)²`` with w the largest distances that the
   bounds allow, in norm at most √d (1 for a bound of the norm). A variance below the standard
   deviation of its noise is replaced by that;
3. run the algorithm on ``b = (x − mean)/scale/ρ′`` with ‖b‖ ≤ 1;
4. upload the noisy moments of its basis Z, the upper triangle of ``Σ y yᵀ`` with y = Zᵀb, and the
   squares outside range(Z), ``Σ ‖b‖² − ‖y‖²``. A record adds a vector of norm at most
   ``‖y‖² + ‖b‖² − ‖y‖² ≤ 1``. Squares below the standard deviation of their noise are replaced by
   that: nothing smaller can be told from noise, and a variance of 0 would have no density. Z has a
   column more than components are wanted, whose square is about the next eigenvalue (`sines`).

All noise is Gaussian: releases of multipliers zᵢ compose to one of z with 1/z² = Σ 1/zᵢ². z is the
least for the whole (ε, δ), and each step has a fixed share of 1/z² (`SHARES`). Each of several
clients adds noise to its own sums, and the server, which need not be trusted, adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.errors import Advice, ConvergenceWarning, InputError, warn
from fedcore.estimators.bounds import Ball, Box
from fedcore.estimators.last_round import Axes, principal_axes
from fedcore.estimators.settings import PRIVATE, Found, Request
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.federation.transcript import Transcript
from fedcore.linalg import from_upper_triangle, upper_triangle
from fedcore.privacy import accounting
from fedcore.privacy.bounded_rows import LONGEST
from fedcore.privacy.events import Gaussian
from fedcore.privacy.noise import simulated
from fedcore.problems.tasks import shared_basis
from fedcore.runs import run
from fedcore.sparse import SparseRows
from fedcore.validation import require_flag, require_start, whole
from fedcore.words import counted

NEIGHBOURS = "add_or_remove_one"
SHARES = {"mean": 0.2, "scale": 0.2, "rounds": 0.5, "last": 0.1}
COUNT = 0.5  # κ
OF_RUN = {"measure", "progress", "simulate", "transcript"}  # that a user may set
HIGHER = 0.5  # standard deviations for what is not of first order
MARGIN = 4.0  # standard deviations by which a released gap may be above the true one
HIDDEN = 0.5  # estimated sine above which a user is warned: 30 degrees
SAFE = 1.0 + 1e-9  # the multipliers are found by iteration

Vector = Callable[[np.ndarray, Any], np.ndarray]  # of a client's rows and the server's message


@dataclass
class Releases:
    """The noisy exchanges of one fit, and what they have cost.

    Each has a federation of its own, as the algorithm's run has, and the ledgers are added. One
    federation has one source of noise, and a simulation has another key for every step. An
    algorithm also begins the privacy account itself, before the first upload.

    Attributes
    ----------
    asked : Request
    multipliers : dict of str to float
        Noise multiplier of every step.
    simulate : bool
        Whether noise comes from the seed.
    transcript : Transcript or None
    ledger : Ledger
    """

    asked: Request
    multipliers: dict[str, float]
    simulate: bool
    transcript: Transcript | None
    ledger: Ledger

    def sum(
        self, step: str, rows: list[np.ndarray], values: Vector, sensitivity: float,
        message: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the noisy sum over all clients of ``values(rows, message)``."""
        z = self.multipliers[step]
        seed = self.asked.seed
        source = simulated(seed, f"FederatedPCA {step}", {"z": z}) if self.simulate else None
        federation = Federation(rows, seed, transcript=self.transcript, check=False, noise=source)
        federation.protect(delta=self.asked.delta, neighbours=NEIGHBOURS)
        if message is not None:
            federation.broadcast(message)

        def release(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
            noisy = state.privacy.gaussian
            return noisy(values(data, message), sensitivity=sensitivity, noise_multiplier=z)

        total = federation.sum(release)
        self.ledger = self.ledger + federation.ledger if self.ledger.rounds else federation.ledger
        return total

    def deviation(self, step: str, sensitivity: float, n_clients: int) -> float:
        """Standard deviation of the noise in an entry of the sum."""
        return sensitivity * self.multipliers[step] * math.sqrt(n_clients)


def fit(asked: Request, matrices: Any) -> Found:
    """Release mean, scales, basis and moments, all with noise.

    Parameters
    ----------
    asked : Request
    matrices : sequence of ndarray of shape (n_i, d)
        Checked.

    Raises
    ------
    InputError
        For parameters or samples that do not fit, and for sparse samples.
    """
    d = matrices[0].shape[1]
    if asked.n_components is None or asked.share is not None:
        raise InputError(
            f"n_components = {asked.n_components} is found from exact variances, which a private "
            "fit does not release",
            advice=[Advice("give a whole number", {"n_components": min(2, d)})],
        )
    whole(1)(asked.n_components, "n_components of a private fit")
    r = asked.rank(d, d)  # how many samples there are is protected, too
    options = _options(asked, d, r)
    if isinstance(matrices[0], SparseRows):
        raise InputError(
            "a private fit clips and centres dense samples, and these clients are sparse: call "
            ".toarray() on every client's matrix"
        )
    bounds = asked.bounds
    assert bounds is not None
    with np.errstate(over="ignore"):
        size = bounds.reach(bounds.middle, np.ones(d))
    if not 1 / LONGEST <= size <= LONGEST:
        raise InputError(
            f"bounds allow samples up to {size:.3g} from their middle, whose squares leave the "
            "range of double precision: take another unit of the data and of bounds"
        )
    simulate, told = options.pop("simulate", False), options.pop("transcript", None)
    require_flag(simulate=simulate)
    spent = multipliers(asked)
    left = epsilon_of_rounds(asked, spent)
    releases = Releases(asked, spent, simulate, told, Ledger())
    inside = [bounds.clip(np.asarray(data, dtype=np.float64)) for data in matrices]

    mean, n_samples = _mean(releases, inside, bounds)
    scale = np.ones(d)
    if asked.scale:
        scale = _scale(releases, inside, bounds, mean, n_samples)
    reach = bounds.reach(mean, scale)
    rows = [(data - mean) / scale / reach for data in inside]
    wide = min(r + (options.get("start") is None), d)
    result = run(
        asked.algorithm.name, rows, wide, seed=asked.seed, simulate=simulate,
        epsilon=left, delta=asked.delta, clip=True, transcript=told, **options,
    )  # fmt: skip
    before = releases.ledger
    releases.ledger = before + result.ledger
    basis = np.asarray(shared_basis(result.output), dtype=np.float64)
    total = releases.sum("last", rows, _moments, 1.0, message=basis)
    moments, beyond = from_upper_triangle(total[:-1], wide), float(total[-1]) * (wide < d)
    axes = principal_axes(basis[:, :r], moments[:r, :r])
    least = releases.deviation("last", 1.0, len(rows))
    following = float(moments[r, r]) if wide > r else beyond  # the next eigenvalue, or more
    outside = max(following + beyond * (wide > r), least) if r < d else 0.0
    estimates = sines(
        np.append(axes.squares, following), d, rounds=_deviation(result.ledger), last=least,
        steps=int(result.history["iteration"][-1]),
    )  # fmt: skip
    if r == d:  # they span the whole space, whatever each of them is
        estimates[-1] = 0.0
    _tell(asked.epsilon, estimates[: d - 1], r)
    earlier = before.snapshot()  # of ε, the history has the algorithm's part alone
    history = {k: v + earlier.get(k, 0) for k, v in result.history.items() if k != "epsilon"}
    return Found(
        Axes(axes.components, np.maximum(axes.squares, least) * reach**2), outside * reach**2,
        mean, scale, n_samples, history, releases.ledger, float(estimates[-1]),
    )  # fmt: skip


def sines(
    squares: np.ndarray, d: int, *, rounds: float, last: float, steps: int
) -> np.ndarray:  # fmt: skip
    """Estimate how far the first 1, 2, …, r axes are from the exact ones, from released values.

    To first order, noise turns the first k axes by what it has between their span and the rest, a
    Gaussian matrix of k columns and d − k rows, over the gap of the eigenvalues. The norm of this
    matrix is at most √k + √(d − k) standard deviations of an entry on average (Gordon); half a
    standard deviation more makes up for the higher orders. The gap is the one that the last round
    shows, less `MARGIN` standard deviations of its noise: a fit whose gap is noise says 1, and of
    the fits that say less, few have a gap that noise has made. The gap shown is smaller than the
    true one, because the axes have turned.
    In an iteration, the noise of earlier steps fades as the error of the start does, by the ratio
    of the eigenvalues at each step; √d is the tangent of a random start's angle. The noise of the
    mean is left out: where it counts, that of the rounds leaves nothing.

    Parameters
    ----------
    squares : ndarray of shape (r + 1,)
        Eigenvalues as released, descending but for their noise.
    d : int
        Features.
    rounds, last : float
        Standard deviations of the noise in an entry of the algorithm's sums, and of `squares`.
    steps : int
        Of an iteration; 0 for a direct method.

    Returns
    -------
    ndarray of shape (r,)
        At most 1.
    """
    gaps, k = squares[:-1] - squares[1:] - MARGIN * last, np.arange(1, len(squares))
    with np.errstate(all="ignore"):
        found = (np.sqrt(k) + np.sqrt(d - k) + HIGHER) * rounds / gaps
        if steps:
            found += math.sqrt(d) * (np.maximum(squares[1:], 0) / squares[:-1]) ** steps
    return np.where(gaps > 0, np.fmin(found, 1.0), 1.0)


def _deviation(ledger: Ledger) -> float:
    """Standard deviation of the noise in an entry of a round's sum; infinite without a round."""
    accounts = [] if ledger.privacy is None else ledger.privacy.accounts
    each = [e.noise_multiplier for a in accounts for e in a.events if isinstance(e, Gaussian)]
    return math.hypot(*each) if each else math.inf


def _tell(epsilon: float, estimates: np.ndarray, r: int) -> None:
    """Warn if noise hides the subspace of the components, and say of which first ones it does not.

    Of all features, the last component is left out of `estimates`.
    """
    if not len(estimates) or estimates[-1] <= HIDDEN:
        return
    above = int(np.append(0, 1 + np.flatnonzero(estimates <= HIDDEN))[-1])
    alone = f", and of the first {above} alone {estimates[above - 1]:.2g}" if above else ""
    warn(
        f"the noise of epsilon = {epsilon:g} may hide {r - above} of {counted(r, 'component')}: "
        f"the sine of the angle of the first {len(estimates)} to the exact ones may be "
        f"{estimates[-1]:.2g}{alone}, and at 1 nothing tells them from noise: take more "
        "samples, a larger epsilon, tighter bounds or fewer components",
        ConvergenceWarning,
    )


def multipliers(asked: Request) -> dict[str, float]:
    """Return the noise multiplier of every step, so that all of them spend (ε, δ).

    Raises
    ------
    InputError
        For an ε or δ out of range.
    """
    accounting.EPSILON(asked.epsilon, "epsilon")
    if asked.delta is None:
        raise InputError("a private fit needs delta: choose it well below 1 / number of records")
    single = SAFE * accounting.gaussian_noise_multiplier(asked.epsilon, asked.delta)
    used = {k: share for k, share in SHARES.items() if k != "scale" or asked.scale}
    return {k: single * math.sqrt(sum(used.values()) / share) for k, share in used.items()}


def epsilon_of_rounds(asked: Request, multipliers: Mapping[str, float]) -> float:
    """Return the part of ε that the algorithm's own rounds have.

    Raises
    ------
    InputError
        When it is less than an algorithm takes.
    """
    left = accounting.epsilon({Gaussian(multipliers["rounds"]): 1}, asked.delta)
    if left < accounting.LEAST:
        raise InputError(
            f"epsilon = {asked.epsilon!r} is too small to be divided at delta = {asked.delta!r}: "
            f"of it the rounds of {asked.algorithm.name} would have less than {accounting.LEAST:g};"
            " choose a larger epsilon"
        )
    return left


def _options(asked: Request, d: int, r: int) -> dict[str, Any]:
    """Return the options of the algorithm's run, checked before anything crosses."""
    own = asked.algorithm.private_fit
    if own is None:
        raise InputError(
            f"a private FederatedPCA does not run {asked.algorithm.name}, which has no private "
            f"fit: take {PRIVATE}, or run another private method by fedcore.run"
        )
    fixed = {"epsilon", "delta", "clip", "calibration", *own}
    for taken in fixed & asked.options.keys():
        raise InputError(f"params of a private fit has no entry '{taken}': the estimator sets it")
    options = {**own, **asked.options}
    if not isinstance(options["measure"], Sized) or len(options["measure"]):
        raise InputError(
            "params of a private fit has no entry 'measure': measures are exact functions of the "
            "data, which nothing would mark in history_; fedcore.run marks them (Result.released)"
        )
    of_method = {k: v for k, v in options.items() if k not in OF_RUN}
    start = asked.algorithm.params({"n_components": r, **of_method}).start
    if start is not None:
        require_start(start, d, r)
    return options


def _mean(
    releases: Releases, inside: list[np.ndarray], bounds: Box | Ball
) -> tuple[np.ndarray, int]:
    """Return the mean, or zeros, and the number of samples, of which there is at least one."""
    middle, d, center = bounds.middle, len(bounds.middle), releases.asked.center
    units = _units(bounds, middle) if releases.asked.scale else np.ones(d)
    units = units * bounds.reach(middle, units)

    def sum_and_count(data: np.ndarray, message: Any) -> np.ndarray:
        total = data.sum(axis=0) / units if center else []
        return np.append(total, COUNT * len(data))

    sensitivity = math.sqrt(center + COUNT**2)
    rows = [data - middle for data in inside] if center else inside
    total = releases.sum("mean", rows, sum_and_count, sensitivity)
    n_samples = max(1, round(float(total[-1]) / COUNT))
    if not center:
        return np.zeros(d), n_samples
    mean = bounds.clip((middle + units * total[:-1] / n_samples)[None])[0]
    releases.ledger.download(mean, len(inside))
    return mean, n_samples


def _units(bounds: Box | Ball, point: np.ndarray) -> np.ndarray:
    """Return the largest distances from `point` of the features; 1 for one without any."""
    widths = bounds.widths(point)
    return np.where(widths > 0, widths, 1.0)


def _scale(
    releases: Releases, inside: list[np.ndarray], bounds: Box | Ball, mean: np.ndarray, n: int
) -> np.ndarray:
    """Return the roots of the mean squares about `mean`."""
    widths = _units(bounds, mean)

    def fractions(data: np.ndarray, message: Any) -> np.ndarray:
        return np.einsum("ij,ij->j", data, data)

    rows = [(data - mean) / widths for data in inside]
    total = releases.sum("scale", rows, fractions, bounds.sum_of_fractions)
    least = releases.deviation("scale", bounds.sum_of_fractions, len(inside))
    scale = widths * np.sqrt(np.maximum(total, least) / n)
    releases.ledger.download(scale, len(inside))
    return scale


def _moments(data: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Upper triangle of ``Σ y yᵀ``, and the squares outside range(Z)."""
    scores = data @ Z
    inside = scores.T @ scores
    outside = np.einsum("ij,ij->", data, data) - np.trace(inside)
    return np.append(upper_triangle(inside), outside)
