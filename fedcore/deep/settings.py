"""Hyper-parameters and cost that all methods for networks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcore.deep.models import MODELS
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts import participation
from fedcore.parts.params import Checked
from fedcore.parts.participation import Participation
from fedcore.validation import Count, CountOrZero, NonNegative, Numbers, Positive, one_of, real


@dataclass(frozen=True)
class Params(Checked):
    """Hyper-parameters of stochastic gradient descent at the clients.

    Attributes
    ----------
    model : str
        Network, see `fedcore.deep.models`.
    rounds : int
        T, communication rounds.
    participation : float
        r, share of the clients that take part in a round, drawn without replacement. Their number
        is rounded to the nearest integer, and at least 1.
    epochs : int
        Passes over a client's samples in a round.
    batch : int, optional
        Samples of a step, all of a client's when not given; the last batch of an epoch holds the
        rest.
    rate : float
        Learning rate.
    momentum : float
        Share of the last step that is added to a step; it begins anew in every round.
    weight_decay : float
        Multiple of the weights, without the constants, that is added to a gradient.
    augment : bool
        Train on images that are moved by up to four pixels, with zeros where nothing was, and
        mirrored, at random and anew in every epoch.
    ground : list of float, optional
        What `augment` puts where nothing was, a number for each channel: black is −mean/deviation
        of a standardised channel, and the zeros without it are the mean colour.
    """

    model: Annotated[str, one_of(MODELS)]
    rounds: CountOrZero = 100
    participation: Participation = 0.1
    epochs: Count = 1
    batch: Count | None = 10
    rate: Positive = 0.01
    momentum: Annotated[float, real(least=0, below=1)] = 0.5
    weight_decay: NonNegative = 0.0
    augment: bool = False
    ground: Numbers | None = None

    def n_participants(self, n_clients: int) -> int:
        """Return the number of clients that take part in a round."""
        return participation.number(self.participation, n_clients)

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the clients of a round; None for all of them."""
        return participation.drawn(self.participation, n_clients, rng)

    def cost(self, shape: Shape, *, up: int, down: int, once: int = 0) -> Cost:
        """Return the cost of rounds with `up` and `down` numbers per participant.

        `once` numbers go to every client in a run.
        """
        each = self.rounds * self.n_participants(shape.n_clients)
        return Cost(self.rounds, each * up, each * down + once * shape.n_clients)


@dataclass(frozen=True)
class Tuned(Params):
    """Parameters of `Params`, and of fine-tuning after the last round.

    Attributes
    ----------
    fine_tune : int
        Epochs in which every client trains the head alone after the last round, in one more record.
    """

    fine_tune: CountOrZero = 0


@dataclass(frozen=True)
class Personal(Params):
    """Parameters of `Params`, and of heads that stay with the clients.

    Attributes
    ----------
    first_head : {"initial", "averaged"}
        Head of a client until its first training, which begins there: that of the first network, or
        the mean of the heads from the last round, whose participants then send them with the body.
    """

    first_head: Annotated[str, one_of(("initial", "averaged"))] = "initial"
