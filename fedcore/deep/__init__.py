"""Networks that clients train with PyTorch, which the extra ``deep`` installs.

Only this package of fedcore imports PyTorch. The parameters of a network form one vector, the
body's parameters first, then the head's. Server and clients exchange and keep such vectors. The
communication ledger therefore counts a network like any other array, and ``w =
federation.mean(update, of=chosen)`` averages networks. A network's sizes, initial parameters and
hyper-parameters do not need PyTorch. The workflow's plan, the cost formulas and `fedcore list
methods` therefore work without PyTorch. The function `learner` returns the object that trains and
evaluates the networks of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcore.deep.settings import Params
from fedcore.errors import FedcoreError
from fedcore.federation.federation import Federation

if TYPE_CHECKING:
    from fedcore.deep.training import Learner


def learner(params: Params, federation: Federation) -> Learner:
    """Return the object that trains and evaluates the network of `params` on the clients' data.

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
