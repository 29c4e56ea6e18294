"""Federated PCA with the interface of scikit-learn; scikit-learn need not be installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.api import run
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.problems.clients import check_clients, client_list, feature_names, require_names
from fedcore.seeds import root_of
from fedcore.tasks import shared_basis

_DEFAULTS = {"algorithm": "block_krylov", "center": True, "tol": None, "random_state": 0}
_TAKEN = {"clients": "fit(clients)", "seed": "random_state=…", "finish": "fedcore.run"}


class NotFittedError(InputError, AttributeError):
    """An estimator was used before `fit`."""


class FederatedPCA:
    """Principal components of data that stays with its clients, by any registered algorithm.

    With its defaults it gives the components, singular values and variances of
    ``sklearn.decomposition.PCA`` on the pooled data, to the accuracy of `tol`; with
    ``center=False`` the components and singular values of ``TruncatedSVD``.

    The ledger charges all rounds: one for the mean (per client d + 1 doubles up and d down), those
    of the algorithm, and one for the principal axes. In the last round the server sends an
    orthonormal basis Z, the clients reply with the r×r matrices ``Zᵀ SᵢᵀSᵢ Z`` and the sums of
    squares of Sᵢ, and the eigenvectors of the sum rotate Z. The first and the last round have no
    noise. Private algorithms are therefore refused: use `fedcore.run`. The history ends before the
    last round.

    **What the server sees of a client.** With plain sums it sees every reply: the mean, the number
    of samples, and in every round of the default the product of the client's covariance with r more
    directions. After n_features / r rounds these determine the covariance. All these exchanges
    allow secure aggregation; the server then sees the same quantities of the pooled data only. The
    attack of `fedcore.audits.leakage` on a client of five, on digits after convergence, leaves
    these errors: the default 2e-15 with r = 10 (7 rounds) and 0.12 with r = 2 (12 rounds), momentum
    2e-9 and 0.09 (32 and 46 rounds), subspace iteration 5e-9 and 0.10 (75 and 139 rounds). The
    slower methods reveal about as much; the default is the one with the fewest rounds.

    Parameters
    ----------
    n_components : int
        Number of components r.
    algorithm : str, default="block_krylov"
        Name in the registry; ``fedcore.algorithms.names()`` lists them.
    center : bool, default=True
        Whether the clients subtract the mean of all samples first.
    tol : float, optional
        For algorithms with a residual test (block_krylov, momentum_power, ssi): largest sine of
        the angle between the subspace found and the exact one. Their default is 1e-8. If rounding
        does not allow `tol`, the run ends at what rounding allows. Directions of singular values
        that agree to 1e-8 are interchangeable.
    random_state : int or numpy.random.SeedSequence or None, default=0
        Same seed, same result, bit for bit where CPU type, BLAS, its number of threads and
        library versions are the same. None draws fresh entropy at every `fit`.
    **params
        Hyper-parameters of the algorithm (``fedcore algorithms NAME`` lists them; `rounds` is the
        largest number of rounds), and ``start``, ``measure`` (default: nothing), ``threads`` and
        ``transcript`` of `fedcore.run`. Checked by `fit`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, ordered by explained variance. The entry of largest magnitude of each row
        is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of all samples, in data units; zeros with ``center=False``.
    singular_values_ : ndarray of shape (n_components,)
        Norms of the columns of ``(S - mean_) @ components_.T``, in data units, descending: the
        exact singular values if the algorithm has converged, otherwise at most these. They come
        from a Gram matrix; values below about 1e-8 of the largest are rounding errors.
    explained_variance_ : ndarray of shape (n_components,)
        ``singular_values_**2 / (n_samples - 1)``, in data units squared. With ``center=False`` the
        divisor is n_samples: the second moment about zero.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        ``explained_variance_`` over the total variance of all features.
    converged_ : bool or None
        Whether `tol`, or the limit of rounding, was reached; None for an algorithm without a test.
    n_iter_ : int
        Iterations; for the algorithms with a test, rounds.
    history_ : dict of str to ndarray of shape (records,)
        ``iteration``, ``round``, ``bytes_up``, … and the metrics, as in `fedcore.Result`.
    ledger_ : Ledger
        Traffic between clients and server, the first and the last round included.
    n_features_in_ : int
        Features of the clients' matrices.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if the clients are data frames and all names are strings. All clients, and
        the data frames of `transform`, must have the same names in the same order.

    See Also
    --------
    fedcore.run : The same as a function, without the last round.

    Examples
    --------
    >>> import numpy as np, fedcore
    >>> rng = np.random.default_rng(0)
    >>> scale = np.array([8.0, 4.0, 1.0, 0.1, 0.1])
    >>> clients = [5.0 + scale * rng.standard_normal((50, 5)) for _ in range(4)]
    >>> pca = fedcore.FederatedPCA(n_components=2).fit(clients)
    >>> pca
    FederatedPCA(n_components=2)
    >>> S = np.vstack(clients)
    >>> exact = np.linalg.svd(S - S.mean(axis=0), compute_uv=False)
    >>> np.allclose(pca.singular_values_, exact[:2])
    True
    >>> pca.transform(clients[0]).shape, pca.converged_, pca.ledger_.rounds
    ((50, 2), True, 5)
    """

    def __init__(
        self,
        n_components: int,
        *,
        algorithm: str = "block_krylov",
        center: bool = True,
        tol: float | None = None,
        random_state: int | np.random.SeedSequence | None = 0,
        **params: Any,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.center = center
        self.tol = tol
        self.random_state = random_state
        self.params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name; `deep` has no effect, scikit-learn passes it."""
        return {
            "n_components": self.n_components,
            **{name: getattr(self, name) for name in _DEFAULTS},
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

    def fit(self, clients: Sequence[np.ndarray], y: None = None) -> FederatedPCA:
        """Find the components.

        Parameters
        ----------
        clients : sequence of ndarray of shape (n_i, n_features)
            One matrix per client, rows are samples.
        y : None
            Not used; scikit-learn passes it.

        Returns
        -------
        FederatedPCA
            The estimator itself.

        Raises
        ------
        InputError
            For an unknown algorithm or parameter, unfit client data, or a rank that is too large,
            and when the run diverges.

        Warns
        -----
        ConvergenceWarning
            When the rounds run out before `tol` is met, or the data do not determine n_components
            components in their precision.
        """
        _check_names(self.algorithm, self.params)
        clients = client_list(clients)
        tolerance = {} if self.tol is None else {"tol": self.tol}
        result = run(
            self.algorithm,
            clients,
            self.n_components,
            seed=_seed(self.random_state),
            finish=_principal_axes,
            center=self.center,
            # No metrics: the objective would need the singular values of the pooled data.
            **{"measure": (), **self.params, **tolerance},
        )
        output = result.output
        self.components_: np.ndarray = output["principal_axes"]
        self.mean_: np.ndarray = output.get("mean", np.zeros(self.components_.shape[1]))
        self.singular_values_: np.ndarray = output["singular_values"]
        freedom = output["n_samples"] - ("mean" in output)
        self.explained_variance_: np.ndarray = self.singular_values_**2 / freedom
        self.explained_variance_ratio_: np.ndarray = self.singular_values_**2 / output["total"]
        self.converged_ = bool(output["converged"]) if "converged" in output else None
        self.n_iter_ = int(result.history["iteration"][-1])
        self.history_: dict[str, np.ndarray] = result.history
        self.ledger_: Ledger = result.ledger
        self.n_features_in_: int = self.components_.shape[1]
        names = feature_names(clients)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the scores ``(x - mean_) @ components_.T``, without communication.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)
            A data frame must have the columns of the fit; those of an array are not checked.

        Returns
        -------
        ndarray of shape (n, n_components)

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `x` is not a finite numeric matrix with the features of the fit.
        """
        self._require_fitted()
        columns, names = getattr(x, "columns", None), getattr(self, "feature_names_in_", None)
        if columns is not None and names is not None:
            require_names(list(columns), list(names), "x", "the fitted estimator")
        matrix = _matrix(x, self.n_features_in_, "features", "transform")
        return (matrix - self.mean_) @ self.components_.T

    def inverse_transform(self, x: np.ndarray) -> np.ndarray:
        """Return ``x @ components_ + mean_``: scores back in the space of the data.

        Parameters
        ----------
        x : ndarray of shape (n, n_components)

        Returns
        -------
        ndarray of shape (n, n_features)

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `x` is not a finite numeric matrix with one column per component.
        """
        self._require_fitted()
        scores = _matrix(x, len(self.components_), "components", "inverse_transform")
        return scores @ self.components_ + self.mean_

    def _require_fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")


def _principal_axes(federation: Federation, output: Mapping[str, Any]) -> dict[str, Any]:
    """Rotate the basis to principal axes, in one round of r·r + 1 numbers per client."""
    basis = shared_basis(output)
    if not np.isfinite(basis).all():
        raise InputError(
            "the run has diverged, its subspace is not finite: take smaller steps or another "
            "algorithm"
        )
    r = basis.shape[1]

    def moments(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        scores = (data @ Z).astype(np.float64)
        squares = np.einsum("ij,ij->j", data, data, dtype=np.float64)
        return np.append(scores.T @ scores, squares.sum())

    federation.broadcast(basis)
    total = federation.sum(moments).astype(np.float64)
    squares, rotation = np.linalg.eigh(total[:-1].reshape(r, r))
    axes = np.ascontiguousarray((basis @ rotation[:, ::-1]).T)
    largest = np.argmax(np.abs(axes), axis=1)
    axes[axes[np.arange(len(axes)), largest] < 0] *= -1.0
    return {
        "principal_axes": axes,
        "singular_values": np.sqrt(np.maximum(squares[::-1], 0.0)),
        "total": total[-1],
        "n_samples": federation.shape.n_samples,
    }


def _check_names(algorithm: Any, params: Mapping[str, Any]) -> None:
    if not isinstance(algorithm, str):
        raise InputError(f"algorithm must be the name of an algorithm, got {algorithm!r}")
    for name in _TAKEN.keys() & params.keys():
        raise InputError(f"FederatedPCA takes no parameter '{name}': use {_TAKEN[name]}")


def _seed(random_state: Any) -> np.random.SeedSequence:
    if random_state is None:
        return np.random.SeedSequence()
    try:
        return root_of(random_state)
    except InputError as error:
        raise InputError(
            "random_state must be a whole number of at least 0, a SeedSequence or None, "
            f"got {random_state!r}"
        ) from error


def _matrix(x: Any, n_columns: int, what: str, method: str) -> np.ndarray:
    """Check a matrix like a client's; errors call it x."""
    if isinstance(x, list | tuple) and any(getattr(part, "ndim", 0) == 2 for part in x):
        raise InputError(
            f"x is a list of {len(x)} matrices and {method} takes one: write "
            f"[model.{method}(c) for c in clients]"
        )
    try:
        (matrix,) = check_clients([x])
    except InputError as error:
        raise InputError(str(error).replace("client 0", "x", 1)) from None
    if matrix.shape[1] != n_columns:
        raise InputError(f"x has {matrix.shape[1]} {what}, the fitted estimator has {n_columns}")
    return matrix
