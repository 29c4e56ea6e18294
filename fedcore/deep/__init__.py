"""Networks that clients train: the only package that imports PyTorch, the extra ``deep``.

A network's parameters are one vector, the body's first and then the head's. Such vectors are what
server and clients exchange and what clients keep. The ledger therefore counts networks like any
other array, the server averages them, and a method reads like its paper:
``w = federation.mean(update, of=chosen)``. What is known of a network without training it (sizes,
splits, the first vector) needs no PyTorch, nor do the hyper-parameters. The plan, the closed forms
of the cost and `fedcore list methods` therefore work without PyTorch. `learner` gives a run the
object that trains and evaluates.
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

    Parameters
    ----------
    params : Params
    federation : Federation

    Returns
    -------
    fedcore.deep.training.Learner

    Raises
    ------
    FedcoreError
        Without PyTorch.
    InputError
        When the clients' data do not fit the network or the batches.
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
