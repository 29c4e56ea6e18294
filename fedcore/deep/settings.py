"""Hyper-parameters and cost of all methods that train networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fedcore.deep.models import MODELS
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.params import Checked
from fedcore.parts.participation import Participating, Participation
from fedcore.validation import Count, CountOrZero, NonNegative, Numbers, Positive, one_of, real


@dataclass(frozen=True)
class Params(Participating, Checked):
    """Hyper-parameters of stochastic gradient descent at the clients.

    Attributes
    ----------
    model : str
        Name of the network; `fedcore.deep.models` describes the networks.
    rounds : int
        T, number of communication rounds.
    participation : float
        r, share of the clients that take part in a round, drawn without replacement. The number of
        participants is rounded to the nearest integer, and is at least 1.
    epochs : int
        Number of passes over a client's samples in a round.
    batch : int, optional
        Number of samples in a training step; by default all samples of the client. The last batch
        of an epoch contains the remaining samples.
    rate : float
        Learning rate.
    momentum : float
        Share of the previous step that is added to each step. The first step of a round has no
        previous step.
    weight_decay : float
        Factor λ of the weight decay, which adds λ times the weights to their gradient; biases do
        not decay.
    augment : bool
        Whether to move images by up to four pixels and to mirror them, at random in every epoch.
        Without `ground`, zeros fill the empty border.
    ground : list of float, optional
        Numbers that fill the empty border of a moved image, one for each channel. In a standardised
        channel, black is −mean/deviation, and the default of zero is the mean colour.
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

    def cost(self, shape: Shape, *, up: int, down: int, once: int = 0) -> Cost:
        """Return the communication cost of the whole run.

        Parameters
        ----------
        shape : Shape
            Size of the federation.
        up, down : int
            How many numbers every participant uploads and downloads in each round.
        once : int, default=0
            How many numbers every client downloads in addition, once during the run.
        """
        each = self.rounds * self.n_participants(shape.n_clients)
        return Cost(self.rounds, each * up, each * down + once * shape.n_clients)


@dataclass(frozen=True)
class Tuned(Params):
    """The hyper-parameters of `Params`, and one more for fine-tuning after the last round.

    Attributes
    ----------
    fine_tune : int
        Number of epochs in which every client trains only its head after the last round. The
        networks are recorded once more after these epochs.
    """

    fine_tune: CountOrZero = 0


@dataclass(frozen=True)
class Personal(Params):
    """The hyper-parameters of `Params`, and one more for the heads, which stay with the clients.

    Attributes
    ----------
    first_head : {"initial", "averaged"}
        Head from which a client starts its first training: the initial network's head, or the mean
        of the heads from the previous round. With "averaged", participants send both their bodies
        and their heads.
    """

    first_head: Annotated[str, one_of(("initial", "averaged"))] = "initial"
