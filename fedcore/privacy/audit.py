"""Empirical privacy audit: a lower bound on ε from many runs on two neighbouring data sets.

An (ε, δ)-DP method cannot tell neighbours apart too well: for every event E, ``P(E) ≤ e^ε P′(E) +
δ``, P on one data set and P′ on the other. The audit runs a method often on the two data sets of
`fedcore.generators.canary`, scores what the server saw, and takes for E "the score is beyond a
threshold". Half of the runs choose the threshold; the other half bounds both probabilities as
Clopper & Pearson do, P from below and P′ from above, and with the confidence asked for

    ε ≥ log((P(E) − δ) / P′(E)).

A bound below the claimed ε proves nothing; one above it proves the claim wrong (Jagielski, Ullman &
Oprea, NeurIPS 2020). In an experiment, ``audit: canary`` records the score as a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from fedcore import algorithms
from fedcore.api import execute
from fedcore.checks import require_at_least
from fedcore.errors import InputError
from fedcore.generators import canary
from fedcore.history import Recorder
from fedcore.privacy.accounting import require_delta
from fedcore.problems import Problem
from fedcore.transcript import Exchange, Transcript

COLUMN = ("1", "evidence in what the server saw for the canary e₁ and against e₂")


class Bound(NamedTuple):
    """Lower bound on ε, and the test that it rests on.

    Attributes
    ----------
    epsilon : float
        At least 0; every (ε, δ)-DP method has a larger one, with the confidence asked for.
    hits, false_alarms : int
        Runs beyond the threshold, with the canary and without, among those that were not used to
        choose it.
    runs : int
        Such runs on either data set.
    """

    epsilon: float
    hits: int
    false_alarms: int
    runs: int


def watch() -> Transcript:
    """Keep all that the only client sends."""
    return Transcript()


def column(problem: Problem, transcript: Transcript, recorder: Recorder) -> list[float]:
    """Score of all uploads up to every record of a run; see `score`."""
    rounds = [row["round"] for row in recorder.rows]
    scores = [(e.round, score(problem.clients[0], e)) for e in transcript.exchanges]
    return [sum(value for number, value in scores if number <= last) for last in rounds]


def score(data: np.ndarray, exchange: Exchange) -> float:
    """Inner product of a reply, less what the other rows explain, with what the canary changes.

    For a reply ``G Z + noise`` to a message Z, G the client's Gram matrix: ``⟨Y − G₀ Z, D Z⟩`` with
    ``D = e₁e₁ᵀ − e₂e₂ᵀ`` and G₀ of the rows but the canary, in Gaussian noise a multiple of the log
    likelihood ratio. For a reply of another shape that is the Gram matrix itself, Z = I.
    """
    others, d = data[:-1], data.shape[1]
    D = np.diag([1.0, -1.0, *[0.0] * (d - 2)])
    reply = exchange.sent[0] if isinstance(exchange.sent, tuple) else exchange.sent
    Z = exchange.received if np.shape(exchange.received) == np.shape(reply) else np.eye(d)
    if np.shape(reply) != Z.shape:
        raise InputError(
            f"the canary audit reads replies that are d×r products with a Gram matrix, or d×d "
            f"Gram matrices; this method sends {np.shape(reply)}"
        )
    return float(np.sum((reply - others.T @ (others @ Z)) * (D @ Z)))


def audit(
    algorithm: str,
    n_components: int,
    *,
    runs: int,
    delta: float,
    seed: int = 0,
    confidence: float = 0.95,
    samples: int = 20,
    n_features: int = 2,
    **params: Any,
) -> Bound:
    """Run `algorithm` `runs` times on either of two neighbouring data sets and bound its ε.

    Parameters
    ----------
    algorithm : str
    n_components : int
    runs : int
        On each data set; half of them choose the threshold.
    delta, confidence : float
    seed : int
    samples, n_features : int
        Size of the data; see `fedcore.generators.canary`.
    **params
        Hyper-parameters of the algorithm.
    """
    require_at_least(4, runs=runs)
    chosen = algorithms.get(algorithm)
    settings = chosen.params({"n_components": n_components, **params})
    scores = []
    for world in (False, True):
        drawn = canary.generate(
            np.random.default_rng(0), samples=samples, n_features=n_features, replaced=world
        )
        problem = Problem("canary", drawn)
        of_world = []
        for i in range(runs):
            transcript = watch()
            stream = np.random.SeedSequence(seed, spawn_key=(int(world), i))
            recorder, _ = execute(chosen, problem, settings, stream, (), transcript=transcript)
            of_world.append(column(problem, transcript, recorder)[-1])
        scores.append(of_world)
    return lower_bound(*scores, delta=delta, confidence=confidence)


def lower_bound(
    present: Sequence[float] | np.ndarray,
    absent: Sequence[float] | np.ndarray,
    *,
    delta: float,
    confidence: float = 0.95,
) -> Bound:
    """Lower bound on ε from scores of independent runs on two neighbouring data sets.

    Parameters
    ----------
    present, absent : sequence of float
        Scores; those of `present` are expected to be the larger ones.
    delta : float
    confidence : float
        Probability with which the bound holds.

    Raises
    ------
    InputError
        For fewer than four runs on either, or a δ outside (0, 1).
    """
    require_delta(delta)
    require_at_least(4, runs=min(len(present), len(absent)))
    train = np.asarray(present[::2]), np.asarray(absent[::2])
    test = np.asarray(present[1::2]), np.asarray(absent[1::2])
    best = max(
        (
            (_bound(*sides, delta, confidence)[0], sign, threshold)
            for sign in (1.0, -1.0)
            for threshold in np.quantile(np.concatenate(train), np.linspace(0.002, 0.998, 250))
            for sides in [_counts(*train, sign, threshold)]
        ),
    )
    _, sign, threshold = best
    epsilon, hits, alarms = _bound(*_counts(*test, sign, threshold), delta, confidence)
    return Bound(max(0.0, epsilon), hits, alarms, min(map(len, test)))


def _counts(
    present: np.ndarray, absent: np.ndarray, sign: float, threshold: float
) -> tuple[int, int, int, int]:
    """Runs beyond the threshold, and of how many; for a negative sign, of the other data set."""
    if sign > 0:
        hits, alarms = present > threshold, absent > threshold
    else:
        hits, alarms = absent < threshold, present < threshold
    return int(hits.sum()), len(hits), int(alarms.sum()), len(alarms)


def _bound(
    hits: int, n_hits: int, alarms: int, n_alarms: int, delta: float, confidence: float
) -> tuple[float, int, int]:
    """Clopper–Pearson, half of the error on either side; −inf where nothing can be said."""
    error = (1.0 - confidence) / 2.0
    low = stats.beta.ppf(error, hits, n_hits - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1.0 - error, alarms + 1, n_alarms - alarms) if alarms < n_alarms else 1.0
    epsilon = float(np.log((low - delta) / high)) if low > delta else -np.inf
    return epsilon, hits, alarms
