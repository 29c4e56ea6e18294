"""Federated low-rank factorisation with the interface of scikit-learn's decompositions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Never, Self

import numpy as np

from fedcore import algorithms
from fedcore.calls import run
from fedcore.errors import ConvergenceWarning, InputError, warn
from fedcore.estimators import exchanges, inputs
from fedcore.estimators.inputs import Given
from fedcore.estimators.manners import Transformer, merged
from fedcore.federation.centring import ROWS
from fedcore.federation.ledger import Ledger
from fedcore.linalg import range_basis
from fedcore.sparse import SparseRows
from fedcore.words import counted

TAKEN = {
    "power": "power=…", "center": "FederatedPCA", "labels": "SharedRepresentationRegression",
    "held_out": "fedcore.run",
}  # fmt: skip


class FederatedFactorization(Transformer):
    """Factors Sᵢ ≈ Uᵢ Vᵀ of the clients' matrices: V is shared, and Uᵢ stays with its client.

    Samples are taken as they are, without centring. With plain sums the server sees every client's
    products with V, and in a last round ‖Sᵢ − Uᵢ Vᵀ‖² and ‖Sᵢ‖²; all allow secure aggregation.
    There is no private fit.

    Parameters
    ----------
    n_components : int, default=2
        Rank r.
    algorithm : str, default="power_exact"
        An algorithm that returns both factors: power_exact, power_gd, power_prox, wk2023.
    power : int or None, default=3
        α, products with SᵀS after the sketch, for algorithms that have them: with more, UVᵀ is
        nearer to the best approximation, and V is conditioned worse. None leaves the algorithm's
        default.
    params : mapping, optional
        Other hyper-parameters of the algorithm (``fedcore algorithms NAME`` lists them), and
        ``start``, ``measure`` (default: nothing), ``threads`` and ``transcript`` of `fedcore.run`.
    random_state : int, SeedSequence, Generator, RandomState or None, default=0
        Same seed, same result, as in `FederatedPCA`.
    verbose : bool or int, default=False
        Whether to show a bar that counts the algorithm's rounds, on standard error.
    **others
        Entries of `params`; type checkers refuse them.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Vᵀ. The rows are in general not orthogonal.
    factors_ : list of ndarray of shape (n_i, n_components)
        Uᵢ of every client; they are in no message.
    reconstruction_err_ : float
        ‖S − U Vᵀ‖_F over all clients, in data units. Every client uploads its share of the square,
        and of ‖S‖² to compare it with, two doubles in a last round.
    n_iter_ : int
        Iterations.
    history_ : dict of str to ndarray of shape (records,)
        As in `fedcore.Result`; it ends before the last round.
    ledger_ : Ledger
        Traffic between clients and server.
    n_features_in_ : int
        Features of the clients' matrices.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if the clients are data frames and all names are strings.

    Examples
    --------
    >>> import numpy as np, fedcore
    >>> rng = np.random.default_rng(0)
    >>> clients = [rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6)) for _ in range(2)]
    >>> model = fedcore.FederatedFactorization(n_components=4).fit(clients)
    >>> model.factors_[0].shape, bool(model.reconstruction_err_ < 1e-6)
    ((20, 4), True)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "power_exact",
        power: int | None = 3,
        params: Mapping[str, Any] | None = None,
        random_state: inputs.Seed = 0,
        verbose: bool | int = False,
        **others: Never,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.power = power
        self.params = merged(params, others)
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, clients: Any, y: None = None, *, groups: Any = None) -> Self:
        """Find the factors.

        Parameters
        ----------
        clients, y, groups
            As in `FederatedPCA.fit`.

        Returns
        -------
        FederatedFactorization
            The estimator itself.

        Raises
        ------
        InputError
            For an algorithm that is unknown, private or returns one factor only, an unknown
            parameter or one that is given twice, a rank that is too large, or unfit client data:
            no clients, an empty one, NaN, infinite or masked entries, text, widths or column names
            that differ, dense beside sparse, all zeros, squares out of range.

        Warns
        -----
        ConvergenceWarning
            When the run diverges, or UVᵀ is further from S than zero is.
        """
        self._fit(inputs.given(clients, groups))
        return self

    def transform(self, x: Any) -> Any:
        """Return the U that minimises ``‖x - U @ components_‖``, of smallest norm.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_components)
            In the precision of `x`; or what `set_output` asks for.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `x` is not a finite numeric matrix with the features of the fit.
        """
        self._require_fitted()
        matrix = self._matrix(x, "transform")
        basis, sigma, rotation = range_basis(self.components_.T)
        solve = ((basis / sigma) @ rotation.T).astype(matrix.dtype)
        return self._output(matrix @ solve, x)

    def inverse_transform(self, x: Any) -> np.ndarray:
        """Return ``x @ components_``, in the space of the data.

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
        r = len(self.components_)
        return inputs.one_matrix(x, r, "components", "inverse_transform") @ self.components_

    def _found(self) -> str:
        r, d = self.components_.shape
        return (
            f"V of {counted(r, 'column')} for {counted(d, 'feature')}, and U of "
            f"{counted(len(self.factors_), 'client')}\n"
            f"error ‖S − U Vᵀ‖ of all clients: {self.reconstruction_err_:.4g}\n{self.ledger_}"
        )

    def _fit(self, given: Given) -> None:
        with given.named():
            matrices, features = inputs.checked(given)
        options = inputs.options_of(self, TAKEN, features)
        chosen = algorithms.get(self.algorithm)
        if chosen.takes("epsilon") or chosen.labelled:
            raise InputError(
                f"{chosen.name} is private or learns from labels: FederatedFactorization takes "
                "neither"
            )
        if "epsilon" in options:
            raise InputError(
                "FederatedFactorization has no private fit: leave epsilon out, or take FederatedPCA"
            )
        if self.power is not None and chosen.takes("power"):
            options["power"] = self.power
        seed = inputs.seed_of(self.random_state)
        with given.named():
            result = run(chosen.name, matrices, self.n_components, seed=seed, **options)
        if not {"U", "V"} <= result.output.keys():
            raise InputError(
                f"{chosen.name} returns no factors U and V: take power_exact, power_gd, wk2023, …"
            )
        V, U = result.output["V"], list(result.output["U"])
        replies = [
            np.array([_squared_error(S, u, V), exchanges.squares_of_features(S).sum()])
            for S, u in zip(matrices, U, strict=True)
        ]
        self.ledger_: Ledger = result.ledger
        self.ledger_.upload(replies)
        error, zero = total = np.sum(replies, axis=0)
        if (transcript := options.get("transcript")) is not None:
            exchanges.tell(transcript, self.ledger_.rounds, replies, total)
        if error > zero * (1 + 1e-9):
            warn(
                f"{chosen.name} ends at an error of {np.sqrt(error):.3g}, larger than the "
                f"{np.sqrt(zero):.3g} of a zero model: make more or smaller steps (`fedcore "
                f"algorithms {chosen.name}` lists its parameters), or take another algorithm",
                ConvergenceWarning,
            )
        self.components_: np.ndarray = np.ascontiguousarray(V.T)
        self.factors_: list[np.ndarray] = U
        self.reconstruction_err_ = float(np.sqrt(error))
        self.n_iter_ = int(result.history["iteration"][-1])
        self.history_: dict[str, np.ndarray] = result.history
        self.n_features_in_: int = V.shape[0]
        self._keep_names(features)


def _squared_error(data: np.ndarray | SparseRows, U: np.ndarray, V: np.ndarray) -> np.float64:
    """``‖S − U Vᵀ‖²_F`` of one client, in double precision and in blocks of rows."""
    blocks: Iterator[np.ndarray]
    if isinstance(data, SparseRows):
        blocks = data.blocks(ROWS)
    else:
        blocks = (data[first : first + ROWS] for first in range(0, len(data), ROWS))
    total, first = np.float64(0.0), 0
    for block in blocks:
        part = U[first : first + len(block)].astype(np.float64) @ V.T
        total += np.sum((block - part) ** 2)
        first += len(block)
    return total
