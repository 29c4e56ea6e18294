"""Hyper-parameters that methods with a total privacy budget (ε, δ) share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.privacy.accounting import require_delta, require_epsilon
from fedcore.validation import require_at_least, require_flag, require_one_of

CALIBRATIONS = ("tight", "paper")


@dataclass(frozen=True)
class Budgeted:
    """Hyper-parameters of a method that spends (ε, δ) in all.

    Attributes
    ----------
    n_components : int
        k, columns of the basis.
    epsilon : float or None, default=1.0
        ε of the whole run; None for the method without noise, which protects nobody.
    delta : float, default=1e-6
        δ of the whole run.
    calibration : {"tight", "paper"}, default="tight"
        Least noise that the accountant allows for (ε, δ), or what the method's paper states.
    clip : bool, default=False
        Whether rows of norm above 1 are scaled down to it; else they are refused.
    start : ndarray of shape (n_features, n_components), optional
        Starting basis; the default is drawn.
    """

    n_components: int
    epsilon: float | None = 1.0
    delta: float = 1e-6
    calibration: str = "tight"
    clip: bool = False
    start: np.ndarray | None = None

    def __post_init__(self) -> None:
        require_at_least(1, n_components=self.n_components)
        if self.epsilon is not None:
            require_epsilon(self.epsilon)
        require_delta(self.delta)
        require_one_of(CALIBRATIONS, calibration=self.calibration)
        require_flag(clip=self.clip)

    def open(
        self, federation: Federation, neighbours: str, *, bounded: bool = True, rows: bool = True
    ) -> None:
        """Begin the account of a private run, and see to it that no row is longer than 1.

        With `bounded` false the method does without a bound, and clips only if asked to; `rows`
        says whether it looks at single rows, and not at products AᵀA X alone.
        """
        if rows and self.epsilon is not None:
            federation.require_single_rows()
        if self.clip or (bounded and self.epsilon is not None):
            federation.bound_rows(1.0, clip=self.clip)
        if self.epsilon is not None:
            federation.protect(delta=self.delta, neighbours=neighbours)

    def require_small_epsilon(self, limit: float = 1.0) -> None:
        """Refuse the calibration of a paper where its theorem does not hold."""
        if self.calibration == "paper" and self.epsilon is not None and self.epsilon > limit:
            raise InputError(
                f"epsilon = {self.epsilon:g}: the paper's calibration is proved for epsilon up to "
                f"{limit:g}; use calibration = 'tight'"
            )


def gaussian_start(
    federation: Federation, params: Budgeted, rng: np.random.Generator
) -> np.ndarray:
    """Return `params.start`, or a Gaussian matrix, orthonormalised: shape (n_features, k)."""
    size = (federation.shape.n_features, params.n_components)
    return orth(rng.standard_normal(size) if params.start is None else params.start)
