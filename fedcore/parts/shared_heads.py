"""What the methods for linear regression with a shared representation have in common in a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.parts import representation_starts
from fedcore.problems.clients import Labelled
from fedcore.validation import (
    require_at_least,
    require_flag,
    require_non_negative,
    require_one_of,
    require_positive,
)


@dataclass(frozen=True)
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    n_components : int
        k, columns of B.
    rounds : int, default=200
        T.
    step : float, default=0.25
        η σ̄², step on the representation.
    head_sigma : float, default=1.0
        σ̄, in units of the labels.
    head_step : float, default=0.25
        α, gradient step on a head.
    participation : float, default=1.0
        r; the nearest whole number of clients, at least one, is drawn without replacement.
    batch : int, optional
        Samples that a client uses in a round; the default is all.
    fresh : bool, default=False
        Whether each round uses the next `batch` samples, none of them twice.
    init : {"moments", "pgd", "random"}, default="moments"
        See `fedcore.parts.representation_starts`.
    init_rounds : int, default=10
        Rounds of ``pgd``.
    init_step : float, default=0.1
        Step of ``pgd`` on ‖X θ − y‖²/2m, the authors' notebook's.
    init_heads : float, default=1.0
        Standard deviation of the first heads of ``random``, in units of the labels.
    start : ndarray of shape (n_features, n_components), optional
        B⁰, which is orthonormalised, in the place of `init`.
    """

    n_components: int
    rounds: int = 200
    step: float = 0.25
    head_sigma: float = 1.0
    head_step: float = 0.25
    participation: float = 1.0
    batch: int | None = None
    fresh: bool = False
    init: str = "moments"
    init_rounds: int = 10
    init_step: float = 0.1
    init_heads: float = 1.0
    start: np.ndarray | None = None

    def __post_init__(self) -> None:
        require_at_least(1, n_components=self.n_components, init_rounds=self.init_rounds)
        require_at_least(0, rounds=self.rounds)
        for name in ("step", "head_sigma", "head_step", "participation", "init_step"):
            require_positive(**{name: getattr(self, name)})
        if self.batch is not None:
            require_at_least(1, batch=self.batch)
        require_non_negative(init_heads=self.init_heads)
        require_flag(fresh=self.fresh)
        require_one_of(representation_starts.METHODS, init=self.init)
        if self.participation > 1:
            raise InputError(f"participation must be at most 1, got {self.participation!r}")
        if self.fresh and self.batch is None:
            raise InputError("fresh samples in every round need a batch, their number")

    @property
    def eta(self) -> float:
        """η."""
        return self.step / self.head_sigma**2

    def batch_of(self, data: Labelled, t: int) -> Labelled:
        """Return the samples that a client uses in round t, counted from 1, or in the start, 0.

        Raises
        ------
        InputError
            When the client has too few.
        """
        if self.batch is None:
            return data
        first = t * self.batch if self.fresh else 0
        if first + self.batch > data.X.shape[-2]:
            raise InputError(
                f"round {t} needs {first + self.batch} samples of every client and one has "
                f"{data.X.shape[-2]}: take a smaller batch or fewer rounds"
            )
        used = slice(first, first + self.batch)
        return Labelled(data.X[..., used, :], data.y[..., used])

    def n_participants(self, n_clients: int) -> int:
        """Return the number of clients that take part in a round."""
        return max(1, round(self.participation * n_clients))

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the clients of a round; None for all of them."""
        if self.participation == 1:
            return None
        drawn = rng.choice(n_clients, self.n_participants(n_clients), replace=False)
        return sorted(drawn.tolist())


def local_models(federation: Federation, B: np.ndarray) -> np.ndarray:
    """Coefficients ``B wᵢ`` of the clients, each with its head, (n_clients, d); from outside."""
    return np.asarray(federation.client_state("w")) @ B.T
