"""Federated linear regression with a representation that clients share, as an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Never, Self

import numpy as np

from fedcore import algorithms
from fedcore.calls import run
from fedcore.errors import InputError
from fedcore.estimators import inputs
from fedcore.estimators.exchanges import require_values
from fedcore.estimators.inputs import Given
from fedcore.estimators.manners import Estimator, merged
from fedcore.estimators.request import continued
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.linalg import orth
from fedcore.problems.clients import Clients, check_labels, check_own_labels
from fedcore.problems.labelled import Features, per_row, row_labels
from fedcore.problems.regression import least_squares
from fedcore.sparse import SparseRows
from fedcore.words import client, counted

TAKEN = {
    "labels": "fit(clients, labels)", "held_out": "fedcore.run",
    "center": "centred samples: fit centres every client",
}  # fmt: skip


class Model(NamedTuple):
    """A client's own regression, ``x @ coef + intercept``.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        In units of the labels per unit of the feature.
    intercept : float
        In units of the labels.
    """

    coef: np.ndarray
    intercept: float


class SharedRepresentationRegression(Estimator):
    """Linear regression with a common subspace of the features and a head for every client.

    Client i predicts ``⟨wᵢ, Bᵀ z⟩`` from z, its features less its own means and divided by scales
    that all clients share. B has few columns and is learned together; wᵢ and the means stay with
    the client. It pays when clients have too few samples for a regression of their own, and their
    coefficients lie near a common subspace. A new client needs no round: see `adapt`.

    With plain sums the server sees every client's sums of squares and, in every round, its update
    of B; all allow secure aggregation. There is no private fit.

    Parameters
    ----------
    n_components : int, default=2
        Columns k of B.
    algorithm : str, default="fedrep_linear"
        A method that learns from labels and returns B as its V: fedrep_linear.
    params : mapping, optional
        Hyper-parameters of the algorithm (``fedcore algorithms NAME`` lists them), such as
        ``rounds``, and ``measure`` (default: nothing), ``threads`` and ``transcript`` of
        `fedcore.run`. They refer to features and labels of variance 1.
    random_state : int, SeedSequence, Generator, RandomState or None, default=0
        Same seed, same result, as in `FederatedPCA`.
    verbose : bool or int, default=False
        Whether to show a bar that counts the algorithm's rounds, on standard error.
    **others
        Entries of `params`; type checkers refuse them.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Bᵀ, orthonormal rows, of the scaled features.
    scale_ : ndarray of shape (n_features,)
        What features are divided by: the root of the mean square about the clients' own means.
        One round: every client uploads d + 2 doubles, and downloads d + 1.
    models_ : list of Model
        One per client, its minimiser with the last B.
    client_names_ : list of str
        Names of the clients, or their numbers.
    n_iter_ : int
        Iterations.
    history_ : dict of str to ndarray of shape (records,)
        As in `fedcore.Result`.
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
    >>> B = np.linalg.qr(rng.standard_normal((20, 2)))[0]
    >>> clients = [rng.standard_normal((30, 20)) for _ in range(12)]
    >>> labels = [X @ B @ rng.standard_normal(2) + 1.0 for X in clients]
    >>> model = fedcore.SharedRepresentationRegression(2).fit(clients, labels)
    >>> model.score(clients[3], labels[3], client=3) > 0.999
    True
    """

    _one_by_one: ClassVar[Mapping[str, str]] = {
        "predict": "predict(c, client=i) for i, c in enumerate(clients)",
        "score": "score(c, v, client=i) for i, (c, v) in enumerate(zip(clients, labels))",
        "adapt": "adapt(c, v) for c, v in zip(clients, labels)",
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "fedrep_linear",
        params: Mapping[str, Any] | None = None,
        random_state: inputs.Seed = 0,
        verbose: bool | int = False,
        **others: Never,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.params = merged(params, others)
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, clients: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn the representation, and every client's model.

        Parameters
        ----------
        clients, groups
            As in `FederatedPCA.fit`.
        y : sequence of array-like of shape (n_i,), or array-like of shape (n_samples,)
            The labels of every client, or of one matrix.

        Returns
        -------
        SharedRepresentationRegression
            The estimator itself.

        Raises
        ------
        InputError
            For an algorithm that learns no shared representation from labels, an unknown parameter
            or one that is given twice, a rank that is too large; for unfit samples, as in
            `FederatedFactorization.fit`, and sparse ones; and for labels that are missing, too few
            or too many, not numbers, not finite, constant at every client, or whose squares are out
            of range; and when the run diverges.
        """
        if y is None:
            raise InputError(
                "SharedRepresentationRegression requires y to be passed, but the target y is None: "
                "give the labels of every client"
            )
        given = inputs.given(clients, groups)
        with given.named():
            matrices, features = inputs.checked(given)
            _require_dense(matrices[0], client(0))
            labels = _labels_of(y, given, matrices, clients)
            _require_sizes(Clients(matrices), labels)
            self._fit(matrices, labels, features)
        self.client_names_ = given.labels or [str(i) for i in range(len(matrices))]
        self.n_features_in_: int = matrices[0].shape[1]
        self._keep_names(features)
        return self

    def predict(
        self, x: Any, *, client: int | str | Model | None = None, groups: Any = None
    ) -> np.ndarray:
        """Return predictions with the model of one client, or of the client of every row.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)
        client : int, str or Model, optional
            Name of a client of the fit, or its number from 0 unless names are numbers themselves,
            or what `adapt` returned. It can only be left out if the fit had one client.
        groups : array-like of shape (n,), optional
            Name of the client of every row, as in `fit`; instead of `client`.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            For an unfit `x`, a client that is unknown, not said, or said twice.
        """
        self._require_fitted()
        if client is not None and groups is not None:
            raise InputError("the client is said twice: give client=… or groups=…")
        if groups is None:
            matrix = self._matrix(x, "predict")
            model = client if isinstance(client, Model) else self.models_[self._number(client)]
            return matrix @ model.coef + model.intercept
        self._matrix(x, "predict")  # errors name its rows, not those of a group
        parts = inputs.given(x, groups)
        assert parts.labels is not None and parts.rows is not None
        found = np.empty(sum(map(len, parts.rows)))
        for label, rows, part in zip(parts.labels, parts.rows, parts.matrices, strict=True):
            found[rows] = self.predict(part, client=label)
        return found

    def score(
        self, x: Any, y: Any, *, client: int | str | Model | None = None, groups: Any = None
    ) -> float:
        """Return R², the share of the labels' variance that `predict` explains.

        Parameters
        ----------
        x, client, groups
            As for `predict`.
        y : array-like of shape (n,)

        Returns
        -------
        float
            At most 1. As in scikit-learn, where all labels are equal it is 1 if they are predicted,
            and else 0.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            As `predict`, and for unfit labels.
        """
        self._require_fitted()
        self._matrix(x, "score")
        found = self.predict(x, client=client, groups=groups)
        y = check_own_labels(y, found, "x", row_labels(x))
        error, spread = np.sum((y - found) ** 2), np.sum((y - y.mean()) ** 2)
        if not spread:
            return float(not error)
        return float(1 - error / spread)

    def adapt(self, x: Any, y: Any) -> Model:
        """Return the model of a new client: its own head on the shared representation.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        Model
            The least-squares fit, of smallest norm if there are several; for `predict`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            For unfit or sparse samples, or unfit labels.
        """
        self._require_fitted()
        matrix = self._matrix(x, "adapt")
        _require_dense(matrix, "x")
        return self._model(matrix, check_own_labels(y, matrix, "x", row_labels(x)))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn may assume of the estimator."""
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required, tags.input_tags.sparse = True, False
        return tags

    def _found(self) -> str:
        r, d = self.components_.shape
        return (
            f"{counted(r, 'component')} of {counted(d, 'feature')}, and a model of each of "
            f"{counted(len(self.models_), 'client')}: predict(x, client=…)\n{self.ledger_}"
        )

    def _fit(
        self, matrices: list[np.ndarray], labels: list[np.ndarray], features: Features
    ) -> None:
        chosen = algorithms.get(self.algorithm)
        if not chosen.labelled or chosen.takes("epsilon") or not chosen.takes("n_components"):
            raise InputError(
                f"{chosen.name} learns no representation from labels: take fedrep_linear"
            )
        if sum(map(len, labels)) == 1:
            raise InputError("n_samples = 1: one sample has no slope to learn")
        seed = inputs.seed_of(self.random_state)
        options = inputs.options_of(self, TAKEN, features)
        x = [X - X.mean(axis=0, dtype=np.float64) for X in matrices]
        y = [v - v.mean(dtype=np.float64) for v in labels]
        federation = Federation(x, seed, check=False, transcript=options.get("transcript"))
        replies = [np.append(np.einsum("ij,ij->j", X, X), [v @ v, len(v)])
                   for X, v in zip(x, y, strict=True)]  # fmt: skip
        federation.ledger.upload(replies)
        total = np.sum(replies, axis=0)
        if not total[-2] > 0:
            raise InputError("the labels of every client are constant: there is nothing to learn")
        roots = np.sqrt(total[:-1] / total[-1])
        roots[roots == 0] = 1.0  # constant features
        federation.ledger.download(roots, len(x))
        self.scale_, unit = roots[:-1], roots[-1]
        result = run(
            chosen.name, [X / self.scale_ for X in x], self.n_components, seed=seed,
            labels=[v / unit for v in y], **options,
        )  # fmt: skip
        if "V" not in result.output:
            raise InputError(f"{chosen.name} returns no shared representation: take fedrep_linear")
        if not np.isfinite(result.output["V"]).all():
            raise InputError(
                f"{chosen.name} has diverged: take a smaller step, params={{'step': …}}"
            )
        self.components_: np.ndarray = orth(result.output["V"]).T
        self.models_ = [self._model(X, v) for X, v in zip(matrices, labels, strict=True)]
        self.n_iter_ = int(result.history["iteration"][-1])
        self.history_ = continued(result.history, federation.ledger)
        self.ledger_: Ledger = federation.ledger + result.ledger

    def _model(self, X: np.ndarray, y: np.ndarray) -> Model:
        middle, level = X.mean(axis=0, dtype=np.float64), float(y.mean(dtype=np.float64))
        features = ((X - middle) / self.scale_) @ self.components_.T
        coef = (self.components_.T @ least_squares(features, y - level)) / self.scale_
        return Model(coef, level - float(middle @ coef))

    def _number(self, client: int | str | None) -> int:
        if client is None:
            if len(self.models_) == 1:
                return 0
            raise InputError(
                f"the fit had {len(self.models_)} clients, and every one has its own model: give "
                "client=…, its number, its name, or what adapt returned, or groups=…"
            )
        if str(client) in self.client_names_:
            return self.client_names_.index(str(client))
        numbered = any(map(str.isdecimal, self.client_names_))  # then a number is such a name
        if isinstance(client, int | np.integer) and not numbered:
            if 0 <= client < len(self.models_):
                return int(client)
        raise InputError(
            f"client {client!r} was not in the fit: give its number, its name, or what adapt "
            f"returned; names are {', '.join(self.client_names_[:9])}"
        )


def _require_dense(matrix: Any, who: str) -> None:
    if isinstance(matrix, SparseRows):
        raise InputError(
            "SharedRepresentationRegression learns from dense samples, and "
            f"{who} is sparse: call .toarray() on it"
        )


def _require_sizes(samples: Clients, labels: list[np.ndarray]) -> None:
    """Require samples, not all zero, and labels whose squares neither overflow nor underflow."""
    require_values(samples)
    largest = max(float(np.abs(v).max()) for v in labels)
    limits = np.finfo(np.float64)
    high = np.sqrt(float(limits.max) / sum(map(len, labels)))
    if largest and not np.sqrt(float(limits.tiny)) <= largest <= high:
        raise InputError(
            f"the largest label is {largest:.3g}, and its square leaves the range: divide the "
            f"labels by {10.0 ** round(np.log10(largest)):g}"
        )


def _labels_of(y: Any, given: Given, matrices: list[np.ndarray], clients: Any) -> list[np.ndarray]:
    """Check the labels, client by client; those of one matrix are given as one vector."""
    if given.rows is not None:
        values = per_row(y, "y", sum(map(len, given.rows)), given.row_names)
        return check_labels([values[rows] for rows in given.rows], matrices)
    if isinstance(clients, Sequence | Mapping):
        return check_labels(y, matrices, clients)
    return check_labels([y], matrices, given.matrices)
