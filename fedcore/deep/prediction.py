"""Predict the classes of a user's samples with trained networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.deep.models import MODELS, sample_shape
from fedcore.errors import InputError
from fedcore.iterates import Classifiers
from fedcore.user_tables.matrices import check_like
from fedcore.validation import whole
from fedcore.words import counted


@dataclass(frozen=True)
class Trained:
    """The networks that a run recorded last.

    Attributes
    ----------
    classifiers : Classifiers
        The network that each client uses.
    server : ndarray of shape (p,) or None
        All parameters of the server's network, or None if the server has no complete network.
    model : str
        Hyper-parameter `model` of the run, which names the network.
    n_clients, n_features : int
    columns : list or None
        Names of the features, if the clients were data frames.
    """

    classifiers: Classifiers
    server: np.ndarray | None
    model: str
    n_clients: int
    n_features: int
    columns: Sequence[Any] | None = None

    def predict(self, samples: Any, client: int | None = None) -> np.ndarray:
        """Return the predicted class of every sample; see `fedcore.user_runs.Result.predict`."""
        X = check_like(samples, "samples", self.columns, "the run")
        if X.shape[1] != self.n_features:
            has = counted(X.shape[1], "feature")
            raise InputError(f"samples have {has}, and the network takes {self.n_features}")
        return np.argmax(self._of_server(X) if client is None else self._of(client, X), axis=1)

    def _of(self, client: int, X: np.ndarray) -> np.ndarray:
        """Return one client's scores for `X`; to save time, other clients score only one sample."""
        if not whole(0).admits(client) or client >= self.n_clients:
            raise InputError(
                f"client = {client!r}: give a whole number from 0 to {self.n_clients - 1}"
            )
        asked = [X if i == client else X[:1] for i in range(self.n_clients)]
        return self.classifiers.scores(asked)[client]

    def _of_server(self, X: np.ndarray) -> np.ndarray:
        if self.server is None or self.model not in MODELS:  # a plug-in may have its own
            raise InputError(
                "the server of this method has no complete network: name a client, such as client=0"
            )
        from fedcore.deep.evaluation import in_pieces
        from fedcore.deep.networks import Network

        model, shape = MODELS[self.model], sample_shape(self.model, self.n_features)
        network = Network(model.body + model.head, shape)
        found: np.ndarray = in_pieces(network, self.server, network.inputs(X)).cpu().numpy()
        return found
