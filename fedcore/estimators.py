"""Federated PCA in the manner of scikit-learn, which is not needed for it."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.api import run, shared_basis
from fedcore.clients import check_clients
from fedcore.errors import InputError
from fedcore.federation import Federation
from fedcore.ledger import Ledger

_DEFAULTS = {"algorithm": "power_exact", "random_state": 0}
_TAKEN = {"clients": "fit(clients)", "seed": "random_state=…", "finish": "fedcore.run"}


class NotFittedError(InputError, AttributeError):
    """An estimator was asked for what it only knows after `fit`."""


class FederatedPCA:
    """Principal components of data that stays with its clients, by any registered algorithm.

    **Nothing is centred**: the components are the leading right singular vectors of the stacked
    client matrices S as they are given. For PCA about the mean, subtract the common mean from every
    client before. scikit-learn's counterpart is therefore ``TruncatedSVD``, not ``PCA``.

    An algorithm finds a subspace; its principal axes take **one more round**, which the ledger
    charges like any other: an orthonormal basis Z goes to the clients, the r×r matrices
    ``Zᵀ SᵢᵀSᵢ Z`` come back (as a sum: secure aggregation will do), and the eigenvectors of the sum
    turn Z. This round carries no noise, so that a private algorithm is refused: use `fedcore.run`.
    The history ends before this round.

    Parameters
    ----------
    n_components : int
        Number of components r.
    algorithm : str, default="power_exact"
        Name in the registry; ``fedcore.algorithms.names()`` lists them.
    random_state : int or numpy.random.SeedSequence or None, default=0
        Same seed, same result, bit for bit where CPU type, BLAS, its number of threads and
        library versions are the same. None draws fresh entropy at every `fit`.
    **params
        Hyper-parameters of the algorithm (``fedcore algorithms NAME`` lists them), and ``start``,
        ``measure`` and ``threads`` of `fedcore.run`. Checked by `fit`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, ordered by explained variance. The entry of largest magnitude of each row
        is positive.
    singular_values_ : ndarray of shape (n_components,)
        Norms of the columns of ``S @ components_.T``, in data units, descending. Those of a
        converged algorithm are S's own, those of any other are smaller. They come from a Gram
        matrix, so that below about 1e-8 of the largest one they are rounding.
    explained_variance_ : ndarray of shape (n_components,)
        ``singular_values_**2 / n_samples``: the uncentred second moment along each component, in
        data units squared. Not n − 1, since no mean was estimated.
    history_ : dict of str to ndarray of shape (records,)
        ``iteration``, ``round``, ``bytes_up``, … and the metrics, as in `fedcore.Result`.
    ledger_ : Ledger
        What crossed between clients and server, the last round included.
    n_features_in_ : int
        Features of the clients' matrices.

    See Also
    --------
    fedcore.run : The same as a function, without the last round.

    Examples
    --------
    >>> import numpy as np, fedcore
    >>> rng = np.random.default_rng(0)
    >>> scale = np.array([8.0, 4.0, 1.0, 0.1, 0.1])
    >>> clients = [scale * rng.standard_normal((50, 5)) for _ in range(4)]
    >>> pca = fedcore.FederatedPCA(n_components=2, power=4).fit(clients)
    >>> pca
    FederatedPCA(n_components=2, power=4)
    >>> exact = np.linalg.svd(np.vstack(clients), compute_uv=False)
    >>> np.allclose(pca.singular_values_, exact[:2])
    True
    >>> pca.transform(clients[0]).shape, pca.ledger_.rounds
    ((50, 2), 6)
    """

    def __init__(
        self,
        n_components: int,
        *,
        algorithm: str = "power_exact",
        random_state: int | np.random.SeedSequence | None = 0,
        **params: Any,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.random_state = random_state
        self.params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name; `deep` changes nothing and is there for scikit-learn."""
        return {
            "n_components": self.n_components,
            "algorithm": self.algorithm,
            "random_state": self.random_state,
            **self.params,
        }

    def set_params(self, **values: Any) -> FederatedPCA:
        """Set parameters by name and return the estimator; `fit` checks them."""
        for name, value in values.items():
            if name == "n_components" or name in _DEFAULTS:
                setattr(self, name, value)
            else:
                self.params = {**self.params, name: value}
        return self

    def __repr__(self) -> str:
        shown = [
            f"{name}=<array of shape {value.shape}>"
            if isinstance(value, np.ndarray)
            else f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name not in _DEFAULTS or value != _DEFAULTS[name]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def fit(self, clients: Sequence[np.ndarray]) -> FederatedPCA:
        """Find the components.

        Parameters
        ----------
        clients : sequence of ndarray of shape (n_i, n_features)
            One matrix per client, rows are samples. Not centred.

        Returns
        -------
        FederatedPCA
            The estimator itself.

        Raises
        ------
        InputError
            For an unknown algorithm or parameter, unfit client data, or a rank that is too large.
        """
        _check_names(self.algorithm, self.params)
        result = run(
            self.algorithm,
            clients,
            self.n_components,
            seed=_seed(self.random_state),
            finish=_principal_axes,
            **self.params,
        )
        self.components_: np.ndarray = result.output["principal_axes"]
        self.explained_variance_: np.ndarray = result.output["second_moments"]
        self.singular_values_: np.ndarray = result.output["singular_values"]
        self.history_: dict[str, np.ndarray] = result.history
        self.ledger_: Ledger = result.ledger
        self.n_features_in_: int = self.components_.shape[1]
        return self

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the scores ``x @ components_.T``, shape (n, n_components); needs no communication.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `x` is not a finite numeric matrix with the features of the fit.
        """
        self._require_fitted()
        return _matrix(x, self.n_features_in_, "features") @ self.components_.T

    def inverse_transform(self, x: np.ndarray) -> np.ndarray:
        """Return ``x @ components_``, shape (n, n_features): scores back in the space of the data.

        Parameters
        ----------
        x : ndarray of shape (n, n_components)

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `x` is not a finite numeric matrix with one column per component.
        """
        self._require_fitted()
        return _matrix(x, len(self.components_), "components") @ self.components_

    def _require_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")


def _principal_axes(federation: Federation, output: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Turn the basis that was found into principal axes, in one round of r×r numbers per client."""
    basis = shared_basis(output)

    def moment(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        scores = data @ Z
        return scores.T @ scores

    federation.broadcast(basis)
    squares, rotation = np.linalg.eigh(federation.sum(moment).astype(np.float64))
    squares = np.maximum(squares[::-1], 0.0)
    axes = np.ascontiguousarray((basis @ rotation[:, ::-1]).T)
    largest = np.argmax(np.abs(axes), axis=1)
    axes[axes[np.arange(len(axes)), largest] < 0] *= -1.0
    return {
        "principal_axes": axes,
        "singular_values": np.sqrt(squares),
        "second_moments": squares / federation.shape.n_samples,
    }


def _check_names(algorithm: Any, params: Mapping[str, Any]) -> None:
    if not isinstance(algorithm, str):
        raise InputError(f"algorithm must be the name of one, got {algorithm!r}")
    for name in _TAKEN.keys() & params.keys():
        raise InputError(f"FederatedPCA takes no parameter '{name}': use {_TAKEN[name]}")


def _seed(random_state: Any) -> np.random.SeedSequence:
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if random_state is not None and (not whole or random_state < 0):
        raise InputError(
            "random_state must be a whole number of at least 0, a SeedSequence or None, "
            f"got {random_state!r}"
        )
    return np.random.SeedSequence(None if random_state is None else int(random_state))


def _matrix(x: Any, n_columns: int, what: str) -> np.ndarray:
    """Check a matrix as the clients' are checked, in words that fit a single one."""
    try:
        (matrix,) = check_clients([x])
    except InputError as error:
        raise InputError(str(error).replace("client 0", "x", 1)) from None
    if matrix.shape[1] != n_columns:
        raise InputError(f"x has {matrix.shape[1]} {what}, the fitted estimator has {n_columns}")
    return matrix
