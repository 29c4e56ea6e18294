"""Rounds of linear regression with a shared representation: hyper-parameters, batches, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts import participation, representation_starts
from fedcore.parts.params import Parameters
from fedcore.parts.participation import Participation
from fedcore.problems.clients import Labelled
from fedcore.validation import Count, CountOrZero, NonNegative, Positive, one_of


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters.

    Attributes
    ----------
    n_components : int
        k, columns of B.
    rounds : int
        T, rounds after the start.
    step : float
        η σ̄², step on the representation.
    head_sigma : float
        σ̄ = σ_max(W*)/√n, in units of the labels; 1 makes `step` equal to η.
    head_step : float
        α, size of a gradient step on a head.
    participation : float
        r, share of the clients that take part in a round, drawn without replacement. Their number
        is rounded to the nearest integer, and at least 1.
    batch : int, optional
        Samples that a client uses in a round; all when not given.
    fresh : bool
        Whether each round uses the next `batch` samples, and none twice.
    init : str
        How B⁰ is found; see `fedcore.parts.representation_starts`.
    init_rounds : int
        Rounds of ``pgd``.
    init_step : float
        Step of ``pgd`` on ‖X θ − y‖²/2m, the loss of the authors' notebook.
    init_heads : float
        Standard deviation of the first heads of ``random``, in units of the labels.
    start : ndarray of shape (n_features, n_components), optional
        B⁰, orthonormalised first; replaces `init`.
    """

    rounds: CountOrZero = 200
    step: Positive = 0.25
    head_sigma: Positive = 1.0
    head_step: Positive = 0.25
    participation: Participation = 1.0
    batch: Count | None = None
    fresh: bool = False
    init: Annotated[str, one_of(representation_starts.METHODS)] = "moments"
    init_rounds: Count = 10
    init_step: Positive = 0.1
    init_heads: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fresh and self.batch is None:
            raise InputError("fresh = true needs batch, the number of samples per round")

    @property
    def eta(self) -> float:
        """η."""
        return self.step / self.head_sigma**2

    def batch_of(self, data: Labelled, t: int) -> Labelled:
        """Return the samples that a client uses in round t = 1, 2, …, or in the start, t = 0.

        Raises
        ------
        InputError
            When the client has too few samples.
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
        return participation.number(self.participation, n_clients)

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the clients of a round; None for all of them."""
        return participation.drawn(self.participation, n_clients, rng)


def communication(params: Params, shape: Shape, rows: int) -> Cost:
    """Cost of the start and of rounds with `rows` × k numbers per participant down and up."""
    start = representation_starts.communication(params, shape)
    block = params.n_participants(shape.n_clients) * rows * params.n_components
    moved = params.rounds * block
    return Cost(start.rounds + params.rounds, start.scalars_up + moved, start.scalars_down + moved)


def local_models(federation: Federation, B: np.ndarray) -> np.ndarray:
    """Coefficients ``B wᵢ`` of all clients, shape (n_clients, d), read outside the protocol."""
    return np.asarray(federation.client_state("w")) @ B.T
