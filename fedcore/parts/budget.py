"""Hyper-parameters of methods with a total privacy budget (ε, δ).

`local_budget` uses a theorem on privacy amplification by shuffling from Feldman, McMillan & Talwar,
*Hiding among the clones: a simple and nearly optimal analysis of privacy amplification by
shuffling* (FOCS 2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.params import Parameters
from fedcore.privacy.accounting import Epsilon, find_least
from fedcore.privacy.calibration import Calibration
from fedcore.validation import Share


@dataclass(frozen=True)
class Budgeted(Parameters):
    """Hyper-parameters of a method with the total privacy budget (ε, δ).

    Attributes
    ----------
    n_components : int
        Number k of columns of the basis.
    epsilon : float or None
        Privacy loss ε of the whole run. With None, the method adds no noise and gives no privacy.
    delta : float
        Parameter δ of the (ε, δ)-DP guarantee for the whole run.
    calibration : str
        ``tight`` takes the least noise with which, by the privacy accountant, the run is (ε, δ)-DP.
        ``paper`` takes the noise that the method's paper states.
    clip : bool
        If true, rows of norm above 1 are scaled to norm 1. If false, methods that need bounded rows
        refuse such rows in a private run.
    """

    epsilon: Epsilon | None = 1.0
    delta: Share = 1e-6
    calibration: Calibration = "tight"
    clip: bool = False

    def open(
        self, federation: Federation, neighbours: str, *, bounded: bool = True, rows: bool = True
    ) -> None:
        """Start to count the run's privacy loss, and bound the rows' norms by 1 where necessary.

        Parameters
        ----------
        federation : Federation
        neighbours : str
            Neighbouring relation of the privacy guarantee, as in `Federation.protect`.
        bounded : bool, default=True
            Whether the method, in a private run, needs rows of norm at most 1. If false, rows are
            bounded only with `clip`.
        rows : bool, default=True
            True if the method reads single rows, false if it reads only products AᵀA X.

        Raises
        ------
        InputError
            In a private run, raised if the method reads single rows but the clients hold, instead
            of their rows, matrix factors with the same Gram matrix. Also raised if the method needs
            bounded rows and a row of norm above 1 is not clipped.
        """
        if rows and self.epsilon is not None:
            federation.require_single_rows()
        if self.clip or (bounded and self.epsilon is not None):
            federation.bound_rows(1.0, clip=self.clip)
        if self.epsilon is not None:
            federation.protect(delta=self.delta, neighbours=neighbours)

    def require_small_epsilon(self, limit: float = 1.0) -> None:
        """Raise an `InputError` if `calibration` is ``paper`` and ε is above `limit`.

        Parameters
        ----------
        limit : float, default=1.0
            Largest ε for which the paper proves its calibration.
        """
        if self.calibration == "paper" and self.epsilon is not None and self.epsilon > limit:
            raise InputError(
                f"epsilon = {self.epsilon:g}: the paper's calibration is proved for epsilon up to "
                f"{limit:g}; use calibration = 'tight'"
            )


def gaussian_start(
    federation: Federation, params: Budgeted, rng: np.random.Generator
) -> np.ndarray:
    """Return a random starting basis, or `params.start` orthonormalised if it is given.

    Parameters
    ----------
    federation : Federation
    params : Budgeted
    rng : numpy.random.Generator
        Random generator of the server.

    Returns
    -------
    ndarray of shape (n_features, n_components)
        Orthonormal starting basis; by default a Gaussian matrix, orthonormalised.
    """
    size = (federation.shape.n_features, params.n_components)
    return orth(rng.standard_normal(size) if params.start is None else params.start)


def local_budget(epsilon: float, delta: float, n: int) -> tuple[float, float] | None:
    """Return the budget (ε₀, δ₀) of one of n shuffled local randomisers, given their total (ε, δ).

    Half of δ pays for the amplification by shuffling, and half for the local δ₀ of the n
    randomisers. With half of δ, the theorem of Feldman et al. requires ``ε₀ ≤ log(n / (16
    log(4/δ)))``. The result is None if this limit of ε₀ is at most ε.
    """
    if n <= 16.0 * math.log(4.0 / delta) * math.exp(min(epsilon, 700.0)):
        return None
    highest, log_term = math.log(n / (16.0 * math.log(4.0 / delta))), math.log(8.0 / delta)

    def excess(local: float) -> float:
        e = math.exp(local)
        inner = 8.0 * math.sqrt(e * log_term / n) + 8.0 * e / n
        return math.log1p((e - 1.0) / (e + 1.0) * inner) - epsilon

    local = -find_least(lambda minus: excess(-minus) <= 0.0, -highest, 0.0)
    share = (math.exp(epsilon) + 1.0) * (1.0 + math.exp(-local) / 2.0) * n
    return local, delta / (2.0 * share)
