"""Networks that clients train with PyTorch, which the extra ``deep`` installs.

Only this package of fedcore imports PyTorch. A network consists of a body, which computes features
of a sample, and a head, which computes class scores from the features. All parameters of a network
form one vector: first the body's parameters, then the head's. Server and clients exchange and keep
such vectors. The ledger, which counts communicated numbers, therefore treats a network like any
other array. ``federation.mean(update, of=chosen)`` averages the networks that the function `update`
returns at the clients `chosen`. The code for a network's sizes, initial parameters and
hyper-parameters does not need PyTorch. The plan of the workflow's jobs, the cost formulas and
`fedcore list methods` therefore work without PyTorch. The function `learner` returns the object
that trains and evaluates the networks of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcore.deep.settings import Params
from fedcore.errors import FedcoreError
from fedcore.federation.federation import Federation

if TYPE_CHECKING:
    from fedcore.deep.training import Learner


def learner(params: Params, federation: Federation) -> Learner:
    """Return a `Learner`, which trains and evaluates the network `params.model` at the clients.

    Parameters
    ----------
    params : Params
        Hyper-parameters of the method.
    federation : Federation
        Federation whose clients hold labelled samples.

    Raises
    ------
    FedcoreError
        If PyTorch is not installed.
    InputError
        If `params`, the samples or the labels do not fit the network, or if a client has fewer
        samples than a batch.
    """
    try:
        from fedcore.deep.training import Learner
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise FedcoreError(
            "networks need PyTorch: install it with pip install torch, or pip install '.[deep]' "
            "in fedcore's checkout"
        ) from error
    return Learner(params, federation.clients)
