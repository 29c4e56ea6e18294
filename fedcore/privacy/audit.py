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
        Runs with the event, on the data set where it is the more frequent and on the other, among
        those that were not used to choose it.
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
    likelihood ratio. For a reply to no such message that is the Gram matrix itself, or its upper
    triangle row by row, Z = I. Of a d × r basis V it is ``tr VᵀDV``, and a vote, any other vector,
    says nothing: 0.
    """
    others, d = data[:-1], data.shape[1]
    D = np.diag([1.0, -1.0, *[0.0] * (d - 2)])
    reply = exchange.sent[0] if isinstance(exchange.sent, tuple) else exchange.sent
    if np.shape(reply) == (d * (d + 1) // 2,):
        triangle = np.zeros((d, d))
        triangle[np.triu_indices(d)] = reply
        reply = triangle + np.triu(triangle, 1).T
    if np.ndim(reply) == 1:
        return 0.0
    Z = exchange.received if np.shape(exchange.received) == np.shape(reply) else np.eye(d)
    if exchange.received is None and len(reply) == d > np.shape(reply)[1]:
        return float(np.sum(reply * (D @ reply)))
    if np.shape(reply) != Z.shape:
        raise InputError(
            f"the canary audit reads replies that are d×r products with a Gram matrix, d×d "
            f"Gram matrices, or bases; this method sends {np.shape(reply)}"
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
            recorder, _ = execute(
                chosen, problem, settings, stream, (), transcript=transcript, noise=stream
            )
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
        Scores, any number per run that may differ in distribution.
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
    worlds = np.asarray(present, np.float64), np.asarray(absent, np.float64)
    # The event may be a large or a small score, and more frequent on either data set.
    tests = [(p, q) for a, b in (worlds, worlds[::-1]) for p, q in ((a, b), (-a, -b))]
    tried = []
    for p, q in tests:
        thresholds = np.quantile(np.concatenate([p[::2], q[::2]]), np.linspace(0.002, 0.998, 250))
        bounds = _bounds(_beyond(p[::2], thresholds), len(p[::2]),
                         _beyond(q[::2], thresholds), len(q[::2]), delta, confidence)  # fmt: skip
        tried.append((bounds.max(), thresholds[bounds.argmax()]))
    best = int(np.argmax([bound for bound, _ in tried]))
    (p, q), threshold = tests[best], tried[best][1:]
    hits, alarms = _beyond(p[1::2], threshold), _beyond(q[1::2], threshold)
    found = _bounds(hits, len(p[1::2]), alarms, len(q[1::2]), delta, confidence)[0]
    runs = min(len(p[1::2]), len(q[1::2]))
    return Bound(max(0.0, float(found)), int(hits[0]), int(alarms[0]), runs)


def _beyond(scores: np.ndarray, thresholds: Any) -> np.ndarray:
    """Count the scores above each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), np.asarray(thresholds), side="right")


def _bounds(
    hits: np.ndarray,
    of_hits: int,
    alarms: np.ndarray,
    of_alarms: int,
    delta: float,
    confidence: float,
) -> np.ndarray:
    """Clopper–Pearson, half of the error on either side; −inf where nothing can be said."""
    error = (1.0 - confidence) / 2.0
    low = np.nan_to_num(stats.beta.ppf(error, hits, of_hits - hits + 1))  # none of 0 hits
    high = np.nan_to_num(stats.beta.isf(error, alarms + 1, of_alarms - alarms), nan=1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
