"""The checked parameters of a `FederatedPCA`, and the results of its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedcore import algorithms
from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.estimators.bounds import Ball, Box, bounds_of
from fedcore.estimators.last_round import Axes
from fedcore.progress import wanted
from fedcore.seeds import root_of
from fedcore.user_runs import Result
from fedcore.user_tables.labelled import Features, per_feature
from fedcore.validation import as_python, require_rank, whole

PUBLIC, PRIVATE = "block_krylov", "analyze_gauss"  # what "auto" stands for
ROUNDING = 1e-6  # share of the variance that counts as rounding
OVERSAMPLES = 1  # additional columns, from which the test estimates the next singular value
PARAMS_ELSEWHERE = {  # entries that `params` refuses, and what to use instead
    "clients": "fit(clients)", "seed": "random_state=…", "n_components": "n_components=…",
    "algorithm": "algorithm=…", "progress": "verbose=…", "center": "center=…",
    "begin": "fedcore.run", "finish": "fedcore.run", "labels": "fedcore.run",
    "held_out": "fedcore.run",
}  # fmt: skip

Seed = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


@dataclass(frozen=True)
class Request:
    """Checked parameters of a fit.

    Attributes
    ----------
    algorithm : Algorithm
        The algorithm of the fit; "auto" has been replaced by the algorithm that it stands for.
    options : dict
        Keyword arguments of `fedcore.run`, such as hyper-parameters of the algorithm.
    n_components : int or float or None
        See `fedcore.FederatedPCA`.
    center, scale : bool
        Whether to subtract the mean of all samples, and whether to divide features by their scales.
    seed : numpy.random.SeedSequence
    epsilon, delta
        Privacy parameters as the user gives them; `fedcore.estimators.private` checks them.
    bounds : Box or Ball or None
        Bounds of the samples in a private fit.
    """

    algorithm: Algorithm
    options: dict[str, Any]
    n_components: float | None
    center: bool
    scale: bool
    seed: np.random.SeedSequence
    epsilon: Any
    delta: Any
    bounds: Box | Ball | None

    @classmethod
    def from_estimator(cls, estimator: Any, features: Features) -> Request:
        """Return the checked parameters of an estimator, for clients with the given features.

        Raises
        ------
        InputError
            If a parameter is invalid.
        """
        name = estimator.algorithm
        if not isinstance(name, str):
            raise InputError(f"algorithm must be the name of an algorithm, got {name!r}")
        options = _options_of(estimator, features)
        if estimator.tol is not None:
            if "tol" in options:
                raise InputError("tol is given twice, in params and as tol=…: drop one of them")
            options["tol"] = estimator.tol
        private = estimator.epsilon is not None
        auto = PRIVATE if private else PUBLIC
        chosen = algorithms.get(auto if name == "auto" else name)
        if chosen.takes("n_oversamples"):
            more = options.setdefault("n_oversamples", OVERSAMPLES)
            if options.get("start") is not None:
                # The start may lack all wanted directions; as many random columns contain them.
                whole(0)(more, "n_oversamples")
                options["n_oversamples"] = max([more, *options["start"].shape[1:2]])
        if not chosen.takes("n_components"):
            raise InputError(
                f"{chosen.name} learns no subspace: take {PUBLIC}, or run {chosen.name} by "
                "fedcore.run"
            )
        instead = "" if chosen.private_fit is not None else f" with algorithm='{PRIVATE}'"
        epsilon = options.get("epsilon", getattr(chosen.parameters, "epsilon", None))
        if not private and epsilon is not None:
            raise InputError(
                f"{chosen.name} is private, but FederatedPCA without epsilon adds rounds without "
                "noise, which would void the guarantee: give epsilon, delta and bounds to "
                f"FederatedPCA{instead}, or use fedcore.run"
            )
        if not private and (estimator.delta is not None or estimator.bounds is not None):
            raise InputError("delta and bounds are for a private fit: give epsilon, too")
        return cls(
            chosen, options, as_python(estimator.n_components), bool(estimator.center),
            bool(estimator.scale), _seed_of(estimator.random_state), as_python(estimator.epsilon),
            as_python(estimator.delta), bounds_of(estimator.bounds, features) if private else None,
        )  # fmt: skip

    def rank(self, n_samples: int, n_features: int) -> int:
        """Return the number of components to compute.

        Raises
        ------
        InputError
            If `n_components` is too large, or is neither a whole number nor a share nor None.
        """
        r: Any = self.n_components
        if not self.counts_components:
            return min(n_samples, n_features)
        if not whole(1).admits(r):
            raise InputError(
                "n_components must be a whole number of at least 1, a share of the variance "
                f"between 0 and 1, or None, got {r!r}"
            )
        require_rank(r, n_samples, n_features)
        return r

    @property
    def counts_components(self) -> bool:
        """Whether `n_components` is a number of components (and neither a share nor None)."""
        return self.n_components is not None and self.share is None

    @property
    def share(self) -> float | None:
        """The share of the variance in `n_components`, or None if `n_components` is not a share.

        The returned share is larger by `ROUNDING`, so that rounding errors alone cannot raise the
        explained variance above the share.
        """
        r = self.n_components
        return r + ROUNDING if isinstance(r, float) and 0 < r < 1 else None


class Found(NamedTuple):
    """Results of a fit.

    Attributes
    ----------
    axes : Axes
        Principal axes, and sums of the squared scores along them.
    outside : float
        Sum of the data's squares outside the span of the axes.
    n_samples : int
        Number of samples of all clients; in a private fit, this number is noisy.
    result : Result
        Result of the run, with ``mean`` and ``scale`` in its output.
    estimate : float
        Estimate of the sine of the largest angle to the exact subspace; 1 if the angle is unknown.
    """

    axes: Axes
    outside: float
    n_samples: int
    result: Result
    estimate: float


def _options_of(estimator: Any, features: Features) -> dict[str, Any]:
    """Return the options of a run: all entries of ``params``, and ``verbose`` as ``progress``."""
    params = estimator.params
    if params is not None and not isinstance(params, Mapping):
        raise InputError(f"params must be a mapping of names to values, got {params!r}")
    options = {name: as_python(value) for name, value in (params or {}).items()}
    for name in options:
        if not isinstance(name, str):
            raise InputError(f"params has the key {name!r}: give a parameter's name as text")
        if name in PARAMS_ELSEWHERE:
            raise InputError(f"params cannot have the entry '{name}': use {PARAMS_ELSEWHERE[name]}")
    if options.get("start") is not None:
        options["start"] = per_feature(options["start"], "start", features)
    return {**options, "progress": wanted(estimator.verbose, "verbose")}


def _seed_of(random_state: Any) -> np.random.SeedSequence:
    """Return a run's seed: fresh entropy for None, and for a generator its next numbers."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**32, size=4, dtype=np.int64).tolist())
    try:
        return root_of(random_state)
    except InputError as error:
        raise InputError(
            "random_state must be a whole number of at least 0, a SeedSequence, a Generator, a "
            f"RandomState or None, got {random_state!r}"
        ) from error
