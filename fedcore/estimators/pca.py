"""Federated PCA with the interface of scikit-learn's PCA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from fedcore.errors import held
from fedcore.estimators import exact_fit, inputs, private
from fedcore.estimators.base import Transformer
from fedcore.estimators.inputs import Given
from fedcore.estimators.likelihood import Model
from fedcore.estimators.settings import Request, Seed
from fedcore.federation.centring import centred, scaled
from fedcore.federation.ledger import Ledger
from fedcore.user_runs import RunHistory
from fedcore.user_tables.labelled import Features, column_names
from fedcore.user_tables.matrices import check_clients
from fedcore.validation import FLAG, require_valid
from fedcore.words import counted

FACTORS = "read components_ and explained_variance_, from which it is made"


class FederatedPCA(Transformer):
    """Principal components of data that stay with their clients, by any registered algorithm.

    By default, the results are those of ``sklearn.decomposition.PCA`` on the pooled data, up to the
    tolerance `tol`. With ``center=False``, the components and singular values are those of
    scikit-learn's ``TruncatedSVD``.

    `ledger_` counts the traffic of all rounds. In the round for the mean, each client uploads d + 2
    doubles and downloads d, with d = n_features. A second round for the mean (d + 1 doubles up, d
    down) follows if a client has a feature whose mean is above 2²⁰ times its standard deviation.
    With ``scale=True``, each client uploads and downloads d doubles in a round for the scales. The
    algorithm's rounds come next, and a last round for the principal axes ends the fit.

    In the last round, the server sends an orthonormal basis Z. Each client i replies with the r×r
    matrix ``Zᵀ SᵢᵀSᵢ Z`` and the squared norm of the part of its samples Sᵢ outside range(Z). The
    server rotates Z to the eigenvectors of the summed r×r matrices. If the algorithm has no
    convergence test, each client also sends the n_features · r doubles ``SᵢᵀSᵢ Z``, from which the
    server estimates the error of Z. `history_` does not include the last round.

    **What the server sees of a client.** Without secure aggregation, the server sees every reply of
    every client. The replies reveal a client's mean, its number of samples, and the number of its
    features with a mean far from zero. In every round of the default algorithm, the server sees the
    product of the client's covariance with r + 1 new directions. After n_features / (r + 1) rounds,
    these products determine the client's covariance, and `fedcore.audits.leakage` rebuilds the
    covariance. All exchanges allow secure aggregation, with which the server sees only the sums of
    the clients' replies. Slower algorithms reveal about as much of a client's data as the default
    algorithm. For a privacy guarantee, set `epsilon`; the clients then add noise to every upload.

    Parameters
    ----------
    n_components : int or float or None, default=None
        Number of components r; None means ``min(n_samples, n_features)``. A share between 0 and 1
        means the fewest components that explain more than this share of the variance. For None or a
        share, the algorithm computes all components, so the server learns the pooled covariance.
        If n_samples ≥ n_features, the default algorithm then needs one round, in which each client
        sends and receives n_features² numbers.
    algorithm : str, default="auto"
        Name of a registered algorithm; ``fedcore.algorithms.names()`` lists them. "auto" means
        block_krylov, or analyze_gauss if `epsilon` is given.
    params : mapping, optional
        Hyper-parameters of the algorithm, which ``fedcore list methods NAME`` shows. The entry
        ``rounds`` is the largest number of rounds. The options ``start``, ``measure`` (default:
        nothing), ``transcript`` and ``simulate`` of `fedcore.run` are also allowed. `fit` checks
        all entries.
        In a `FederatedPCA`, the default of ``n_oversamples`` is 1, so messages have
        n_components + 1 columns. From the additional column, the convergence test estimates the
        next singular value. With a starting basis ``start``, ``n_oversamples`` is at least
        n_components, because the additional random columns must find the directions that ``start``
        lacks. Messages are then about twice as large as without a ``start``.
    center : bool, default=True
        Whether the clients subtract the mean of all samples first.
    scale : bool, default=False
        Whether the clients divide every feature by its standard deviation, so that all features
        have equal weight. With ``center=False``, the clients divide by the root mean square.
    tol : float, optional
        Largest accepted sine of the angle between the computed and the exact subspace. Only
        algorithms with a residual test (block_krylov, momentum_power, ssi) accept `tol`; its
        default is 1e-8. If rounding errors make `tol` unreachable, the run ends at the best
        reachable sine, in float32 often 1e-6 to 1e-4. `error_estimate_` estimates the reached sine.
        An estimate above both `tol` and 1e-3 causes a warning. Directions of equal singular values
        are arbitrary within their span.
    random_state : int, SeedSequence, Generator, RandomState or None, default=0
        Seed of the run. The same seed gives the same result. All bits agree if CPU type, BLAS,
        number of BLAS threads and library versions are also the same. With None, every `fit` draws
        fresh entropy. With a generator of `numpy.random`, every `fit` draws its seed from the
        generator. Privacy noise comes from this seed only if `params` sets ``simulate`` to True.
    epsilon, delta : float, optional
        Privacy parameters. The whole fit is (ε, δ)-differentially private; neighbouring data sets
        differ by one added or removed record of one client. The guarantee holds against everyone
        who sees the messages, including the server. The guarantee covers the mean, the scales, the
        algorithm's rounds and the last round. A private fit requires `bounds`, a whole number
        `n_components`, and the algorithm analyze_gauss or noisy_power. Every fit spends ε and δ
        anew, and a grid search makes many fits.
    bounds : (low, high) or float, optional
        Public bounds of the entries of a sample, as two numbers or two arrays of shape
        (n_features,). A single number for `bounds` is the largest norm of a sample. Clients clip
        their samples to these bounds, and wider bounds need more noise. Bounds in a Series, a data
        frame or a mapping such as ``dict(age=(0, 120), …)`` are matched to the features by name.
    verbose : bool or int, default=False
        Whether to show a progress bar of the rounds on standard error.

    Attributes
    ----------
    components_ : ndarray of shape (r, n_features)
        Components as orthonormal rows, ordered by explained variance. In each row, the entry of
        largest magnitude is positive.
    n_components_ : int
        Number of components.
    mean_ : ndarray of shape (n_features,)
        Mean of all samples, in data units; zeros with ``center=False``.
    scale_ : ndarray of shape (n_features,)
        Divisors of the features, in data units; ones with ``scale=False``.
    singular_values_ : ndarray of shape (r,)
        Norms of the columns of ``((S - mean_) / scale_) @ components_.T`` for the pooled samples S,
        in descending order. If the algorithm has converged, these norms are the exact singular
        values; otherwise each norm is at most the exact singular value. Singular values below about
        1e-8 of the largest are rounding errors, because they come from a Gram matrix.
    explained_variance_ : ndarray of shape (r,)
        ``singular_values_**2 / (n_samples_ - 1)``. With ``center=False``, the divisor is
        ``n_samples_``, and the values are second moments about zero. In a private fit, a noisy sum
        of squares below the standard deviation of its noise is replaced by this standard deviation.
        The attributes `singular_values_` and `noise_variance_` are also computed from the resulting
        sums.
    explained_variance_ratio_ : ndarray of shape (r,)
        ``explained_variance_`` divided by the total variance of all features.
    noise_variance_ : float
        Mean variance of the ``min(n_samples, n_features) - n_components_`` directions outside the
        components, or 0 if there are none. In a private fit, the mean is over
        ``n_features - n_components_`` directions.
    error_estimate_ : float
        The convergence test's estimate of the sine of the largest angle between the computed and
        the exact subspace. ``docs/error_estimate.md`` says how often and how far the true angle
        exceeds the estimate. In a run without a convergence test, the estimate comes from the
        products of the last round. This estimate is often too small, because the next singular
        value is unknown. The value is 1 if nothing is known about the angle. For a private fit, the
        estimate says how far the noise may have rotated the principal subspace of the clipped and
        scaled samples. The estimate of a private fit is the norm of the noise divided by the gap of
        the released eigenvalues (`fedcore.estimators.private.sines`), and costs no ε. Among private
        fits with an estimate below 1, at most one in 20 has a larger error than its estimate. If
        the estimate of a private fit is 1, the components cannot be distinguished from noise.
    converged_ : bool or None
        Whether the run reached `tol` or the limit that rounding sets. If the run reached only the
        rounding limit, `error_estimate_` is above `tol`. The value is None if the algorithm makes
        no convergence test.
    n_iter_ : int
        Number of iterations; each iteration is one round if the algorithm has a convergence test.
    n_samples_ : int
        Number of samples of all clients; in a private fit, this number is noisy.
    history_ : RunHistory
        Columns ``iteration``, ``round``, ``bytes_up``, … and metrics, with a value per recorded
        iteration, as in `fedcore.Result`.
    ledger_ : Ledger
        Privacy loss, and traffic between clients and server in all rounds, including the rounds for
        the mean, the scales and the principal axes.
    n_features_in_ : int
        Number of features of the clients' matrices.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if the clients are data frames and all names are strings. `fit` and
        `transform` match the columns of data frames by these names.

    See Also
    --------
    fedcore.run : Run an algorithm without the round for the principal axes.

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
    >>> pca.transform(clients[0]).shape, pca.converged_
    ((50, 2), True)
    >>> pca.error_estimate_ < 1e-8
    True
    """

    def __init__(
        self,
        n_components: float | None = None,
        *,
        algorithm: str = "auto",
        params: Mapping[str, Any] | None = None,
        center: bool = True,
        scale: bool = False,
        tol: float | None = None,
        random_state: Seed = 0,
        epsilon: float | None = None,
        delta: float | None = None,
        bounds: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.params = params
        self.center = center
        self.scale = scale
        self.tol = tol
        self.random_state = random_state
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.verbose = verbose

    def __str__(self) -> str:
        """Return the parameters and, after a fit, explained variance, error estimate and cost."""
        if not self.__sklearn_is_fitted__():
            return repr(self)
        r, d = self.components_.shape
        share = float(self.explained_variance_ratio_.sum())
        return (
            f"{self!r}\n{counted(r, 'component')} of {counted(d, 'feature')} hold {share:.4g} of "
            f"the variance\n{distance(self)}\n{self.ledger_}"
        )

    def fit(self, clients: Any, y: None = None, *, groups: Any = None) -> Self:
        """Find the principal components of the clients' pooled data, and return the estimator.

        Parameters
        ----------
        clients : sequence, mapping or matrix
            One matrix of shape (n_i, n_features) per client, with samples as rows. The keys of a
            mapping are the clients' names, which error messages use. A single matrix is one client,
            or one client per value in `groups`.
        y : None
            Ignored; scikit-learn's tools pass this argument.
        groups : array-like of shape (n_samples,), optional
            The client of every row, if `clients` is a single matrix.

        Returns
        -------
        FederatedPCA

        Raises
        ------
        InputError
            If the algorithm or a parameter is unknown, the clients' data are invalid, the rank is
            too large, or the run diverges.

        Warns
        -----
        ConvergenceWarning
            If the rounds end before `tol` is met, or if the data's precision is too low to
            determine n_components components. A fit without a convergence test warns if
            `error_estimate_` is above 1e-4. A private fit warns if `error_estimate_` is above one
            half.
        """
        self._fit(inputs.given(clients, groups))
        return self

    def transform(self, x: Any) -> np.ndarray:
        """Return the scores ``((x - mean_) / scale_) @ components_.T``, without communication.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)
            A data frame must have the columns of the fit, which are matched by name. The columns of
            an array are taken in their order.

        Returns
        -------
        ndarray of shape (n, r)
            Scores in the precision of `x`, or the data frame that `set_output` asks for.

        Raises
        ------
        NotFittedError
            If called before `fit`.
        InputError
            If `x` is not a finite numeric matrix with the features of the fit.
        """
        rows = self._standardised(x, "transform")
        return self._output(rows @ self.components_.T.astype(rows.dtype), x)

    def inverse_transform(self, x: Any) -> np.ndarray:
        """Map scores back to the space of the data by ``x @ components_ * scale_ + mean_``.

        Parameters
        ----------
        x : ndarray of shape (n, r)
            Scores. The columns of a data frame are matched by the names of `get_feature_names_out`,
            unless the columns are called 0, 1, …

        Returns
        -------
        ndarray of shape (n, n_features)
            Samples in data units.

        Raises
        ------
        NotFittedError
            If called before `fit`.
        InputError
            If `x` is not a finite numeric matrix with one column per component.
        """
        names, r = self.get_feature_names_out().tolist(), self.n_components_
        if {*(column_names(x) or ())} <= {*range(r)}:
            names = None
        scores = inputs.one_matrix(x, r, "components", "inverse_transform", names)
        return (scores @ self.components_ * self.scale_ + self.mean_).astype(scores.dtype)

    def score(self, x: Any, y: None = None) -> float:
        """Return the average log-likelihood of samples, which a grid search maximises.

        Parameters
        ----------
        x : ndarray of shape (n, n_features), or several
            One matrix, or the matrices of several clients, as in `fit`. A grid search over a list
            of clients holds out whole clients.
        y : None
            Ignored; scikit-learn's tools pass this argument.

        Returns
        -------
        float
            Mean of `score_samples` over all samples, as in `sklearn.decomposition.PCA`.
        """
        parts = inputs.given(x).matrices if inputs.several(x) else [x]
        return float(np.mean(np.concatenate([self.score_samples(part) for part in parts])))

    def score_samples(self, x: Any) -> np.ndarray:
        """Return the log-likelihood of every sample under `fedcore.estimators.likelihood.Model`.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)
            Samples in data units.

        Returns
        -------
        ndarray of shape (n,)
            Logarithms of densities in data units, even with ``scale=True``.

        Raises
        ------
        NotFittedError
            If called before `fit`.
        InputError
            If `x` is invalid, or if the model has directions without variance.
        """
        return self._model().log_likelihood(self._standardised(x, "score_samples"))

    @held("the covariance of all features", FACTORS)
    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the Gaussian model that `score` uses.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Covariance in data units squared.
        """
        return self._model().covariance()

    @held("the precision of all features", FACTORS)
    def get_precision(self) -> np.ndarray:
        """Return the inverse of `get_covariance`.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        return self._model().precision()

    def _model(self) -> Model:
        self._require_fitted()
        return Model(
            self.components_, self.explained_variance_, self.noise_variance_, self.scale_
        )  # fmt: skip

    def _standardised(self, x: Any, method: str) -> Any:
        """Check the samples given to `method`, subtract the mean, and divide by the scale."""
        self._require_fitted()
        matrix = inputs.one_matrix(x, self.n_features_in_, "features", method, self._names_in)
        rows = centred(matrix, self.mean_)
        return rows if np.all(self.scale_ == 1.0) else scaled(rows, self.scale_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: a private fit is random and accepts no sparse data."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        private = self.epsilon is not None
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=InputTags(sparse=not private),
            non_deterministic=private,
        )

    def _fit(self, given: Given) -> None:
        require_valid(FLAG, center=self.center, scale=self.scale)
        method = exact_fit.fit if self.epsilon is None else private.fit
        with given.named(), held("the fit"):
            matrices = check_clients(given.matrices)
            inputs.tell_totals(given, matrices)
            features = Features(column_names(given.matrices[0]), matrices[0].shape[1])
            found = method(Request.from_estimator(self, features), matrices)
        self.components_: np.ndarray = found.axes.components
        self.n_components_, self.n_features_in_ = self.components_.shape
        result, output = found.result, found.result.output
        self.mean_, self.scale_, self.n_samples_ = output["mean"], output["scale"], found.n_samples
        freedom = max(self.n_samples_ - bool(self.center), 1)
        squares, r = found.axes.squares, self.n_components_
        total = squares.sum() + found.outside
        others = self.n_features_in_ - r  # of a private fit, whose number of samples is noisy
        if self.epsilon is None:
            others = min(self.n_samples_ - r, others)
        self.singular_values_: np.ndarray = np.sqrt(squares)
        self.explained_variance_: np.ndarray = squares / freedom
        self.explained_variance_ratio_: np.ndarray = squares / total
        self.noise_variance_ = float(found.outside / freedom / others) if others > 0 else 0.0
        self.error_estimate_ = found.estimate
        converged = output.get("converged")
        self.converged_ = None if converged is None else bool(converged)
        self.n_iter_ = int(result.history["iteration"][-1])
        self.history_: RunHistory = result.history
        self.history_.about["centred"] = bool(self.center)
        self.ledger_: Ledger = result.ledger
        self._keep_names(features)


def distance(model: FederatedPCA) -> str:
    """Return a line of text with the estimated angle between the fitted and the exact subspace."""
    sine = model.error_estimate_
    noise = ""
    if model.ledger_.privacy is not None and sine > private.WARNING_SINE:
        noise = "; at 1, the components and their share of the variance may be noise"
    return f"distance to the exact subspace: sine of the angle about {sine:.2g}, an estimate{noise}"
