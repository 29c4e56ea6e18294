"""Empirical privacy audit: a lower bound on ε from many runs on two neighbouring data sets.

An (ε, δ)-DP method cannot tell neighbours apart too well: for every event E, ``P(E) ≤ e^ε P′(E) +
δ``, P on one data set and P′ on the other. The audit runs a method often on two data sets of
`fedcore.generators.canary`, neighbours under the relation that the method's ledger declares, scores
what the server saw, and takes for E "the score is beyond a threshold", or "the score is NaN". Half
of the runs choose the event; the other half bounds both probabilities as Clopper & Pearson do, P
from below and P′ from above, and with the confidence asked for

    ε ≥ log((P(E) − δ) / P′(E))

(Jagielski, Ullman & Oprea, NeurIPS 2020). If all that the ledger was charged is Gaussian noise, the
claim is more than (ε, δ): the run is one Gaussian mechanism of some μ (Dong, Roth & Su, JRSS-B
2022), for which ``Φ⁻¹(P(E)) − Φ⁻¹(P′(E)) ≤ μ``. So the same counts bound μ, and by it ε at δ, far
more tightly (Nasr et al., *Tight auditing of differentially private machine learning*, USENIX
Security 2023): half the noise is seen where the first bound needs a third or a fifth.

A bound above the claimed ε proves the claim wrong. One below it says something only if the audit
could have failed: so it stands beside that of the method's weakened twin, which draws all its noise
a stated factor smaller and charges its ledger as if it did not, and must be found out. In an
experiment, ``audit: canary`` records the score as a column, and ``weaken`` makes the twin. Of
several local steps before an upload the score sees the last alone: such a method is hardly audited,
and no paper's file does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.ndimage import uniform_filter1d

from fedcore import algorithms
from fedcore.api import execute
from fedcore.errors import InputError
from fedcore.federation.transcript import Exchange, Transcript
from fedcore.generators import canary
from fedcore.history import History
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import Weakened
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.validation import require_at_least

COLUMN = ("1", "evidence in what the server saw for the data with the canary e₁")
LEVELS = np.linspace(0.002, 0.998, 250)  # quantiles of the scores that are tried as thresholds
STRETCH = 25  # of them


class Bound(NamedTuple):
    """Lower bound on ε, and the test that it rests on.

    Attributes
    ----------
    epsilon : float
        At least 0; every (ε, δ)-DP method of the kind assumed has a larger one, with the confidence
        asked for.
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
    """Score of all uploads up to every record of a run; see `score`.

    Where the run records a ``threshold`` θ that the noise of a round is in proportion to (it has
    been released, at a price), the round weighs 1/θ², as in the likelihood.
    """
    pair = canary.pair(problem.clients[0], _privacy(recorder).neighbours)
    scale = {row["round"]: row.get("threshold") or 1.0 for row in recorder.rows}
    scores = [
        (e.round, score(pair, e) / scale.get(e.round, 1.0) ** 2) for e in transcript.exchanges
    ]
    return [
        sum(value for number, value in scores if number <= row["round"]) for row in recorder.rows
    ]


def score(pair: canary.Pair, exchange: Exchange) -> float:
    """Inner product of a reply, less what both neighbours explain, with what the canary changes.

    For a reply ``Y = G Z + noise`` to a message Z, G the client's Gram matrix, G₁ with the canary
    and G₀ without: ``⟨Y − ½(G₁ + G₀) Z, (G₁ − G₀) Z⟩``, in Gaussian noise σ² times the log
    likelihood ratio. A client that sends a Z of its own along is measured against that. For a reply
    to no such message that is the Gram matrix itself, or its upper triangle row by row, Z = I. Of a
    basis V, or of any d × r reply to no message, it is ``tr Vᵀ(G₁ − G₀)V``, and a vote, any other
    vector, says nothing: 0.

    Parameters
    ----------
    pair : fedcore.generators.canary.Pair
    exchange : Exchange

    Raises
    ------
    InputError
        For a reply of another shape.
    """
    between, change = pair
    d = len(change)
    reply, Z = exchange.sent, exchange.received
    if isinstance(reply, tuple):
        reply, Z = reply[0], reply[1]
    if np.shape(reply) == (d * (d + 1) // 2,):
        triangle = np.zeros((d, d))
        triangle[np.triu_indices(d)] = reply
        reply = triangle + np.triu(triangle, 1).T
    if np.ndim(reply) == 1:
        return 0.0
    if np.shape(reply)[0] == d and (_is_basis(reply) or (Z is None and np.shape(reply)[1] < d)):
        return float(np.sum(reply * (change @ reply)))
    Z = Z if np.shape(Z) == np.shape(reply) else np.eye(d)
    if np.shape(reply) != Z.shape:
        raise InputError(
            f"the canary audit reads replies that are d×r products with a Gram matrix, d×d "
            f"Gram matrices, or bases; this method sends {np.shape(reply)}"
        )
    return float(np.sum((reply - between @ Z) * (change @ Z)))


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
    weaken: float | None = None,
    **params: Any,
) -> Bound:
    """Run `algorithm` `runs` times on either of two neighbouring data sets and bound its ε.

    Which neighbours, and which of the two bounds of the module's text, follows from the ledger.

    Parameters
    ----------
    algorithm : str
    n_components : int
    runs : int
        On each data set; half of them choose the threshold.
    delta : float
        δ of the run, a hyper-parameter of the algorithm, and of the bound.
    confidence : float
    seed : int
    samples, n_features : int
        Size of the data; see `fedcore.generators.canary`.
    weaken : float, optional
        Draw all noise so many times as large as is claimed, with the same ledger: the audit says
        something of the honest method only if it finds this twin out.
    **params
        Other hyper-parameters of the algorithm.

    Raises
    ------
    InputError
        For fewer than four runs, a δ outside (0, 1), or an algorithm that claims no privacy.
    """
    require_at_least(4, runs=runs)
    accounting.require_delta(delta)
    chosen = algorithms.get(algorithm)
    settings = chosen.params({"n_components": n_components, "delta": delta, **params})
    scores: list[list[float]] = []
    gaussian = True
    other: dict[str, bool] = {}
    for world in range(2):
        drawn = canary.generate(
            np.random.default_rng(0), samples=samples, n_features=n_features, **other
        )
        problem = Problem("canary", drawn)
        scores.append([])
        for i in range(runs):
            transcript = watch()
            stream = np.random.SeedSequence(seed, spawn_key=(world, i))
            noise = stream if weaken is None else Weakened(stream, weaken)
            recorder, _ = execute(
                chosen, problem, settings, stream, (), transcript=transcript, noise=noise
            )
            scores[world].append(column(problem, transcript, recorder)[-1])
            privacy = _privacy(recorder)
            gaussian = gaussian and is_gaussian(privacy.about()["mechanisms"])
        other = {canary.NEIGHBOUR[privacy.neighbours]: True}
    return lower_bound(*scores, delta=delta, confidence=confidence, gaussian=gaussian)


def is_gaussian(mechanisms: Sequence[str]) -> bool:
    """Whether a run is one Gaussian mechanism, by the kinds of events that its ledger names."""
    return list(mechanisms) == [Gaussian.__name__]


def from_histories(present: History, absent: History) -> Bound:
    """Lower bound on ε, 95 %, from two cells of an experiment with ``audit: canary``.

    Parameters
    ----------
    present, absent : History
        Of runs on neighbouring data; their last scores are compared, at the δ of the runs.
    """
    claims = [history.about["privacy"] for history in (present, absent)]
    return lower_bound(
        present.last("canary"),
        absent.last("canary"),
        delta=claims[0]["delta"],
        gaussian=all(is_gaussian(claim["mechanisms"]) for claim in claims),
    )


def lower_bound(
    present: Sequence[float] | np.ndarray,
    absent: Sequence[float] | np.ndarray,
    *,
    delta: float,
    confidence: float = 0.95,
    gaussian: bool = False,
) -> Bound:
    """Lower bound on ε from scores of independent runs on two neighbouring data sets.

    Parameters
    ----------
    present, absent : sequence of float
        Scores, any number per run that may differ in distribution, NaN included.
    delta : float
    confidence : float
        Probability with which the bound holds.
    gaussian : bool, default=False
        Whether the claim is that of a Gaussian mechanism; see `is_gaussian`. The bound holds for
        such methods only.

    Raises
    ------
    InputError
        For fewer than four runs on either, or a δ outside (0, 1).
    """
    accounting.require_delta(delta)
    require_at_least(4, runs=min(len(present), len(absent)))
    worlds = np.asarray(present, np.float64), np.asarray(absent, np.float64)
    # The event may be a large or a small score, or none, and more frequent on either data set.
    tests = [
        (_ordered(sign * a), _ordered(sign * b))
        for a, b in (worlds, worlds[::-1])
        for sign in (1.0, -1.0)
    ]
    tests += [(np.isnan(a) * 1.0, np.isnan(b) * 1.0) for a, b in (worlds, worlds[::-1])]
    tried = []
    for p, q in tests:
        pooled = np.concatenate([p[::2], q[::2]])
        thresholds = np.quantile(pooled, LEVELS, method="lower")
        bounds = _bounds(_beyond(p[::2], thresholds), len(p[::2]), _beyond(q[::2], thresholds),
                         len(q[::2]), delta, confidence, gaussian)  # fmt: skip
        # The largest of many is a lucky one, mostly far out; the middle of a good stretch is not.
        bounds = uniform_filter1d(np.maximum(bounds, -1.0), STRETCH, mode="nearest")
        tried.append((bounds.max(), thresholds[bounds.argmax()]))
    best = int(np.argmax([bound for bound, _ in tried]))
    (p, q), threshold = tests[best], tried[best][1:]
    hits, alarms = _beyond(p[1::2], threshold), _beyond(q[1::2], threshold)
    found = _bounds(hits, len(p[1::2]), alarms, len(q[1::2]), delta, confidence, gaussian)[0]
    if gaussian and found > 0.0:  # μ, as one Gaussian mechanism
        found = accounting.epsilon({Gaussian(1.0 / float(found)): 1}, delta)
    runs = min(len(p[1::2]), len(q[1::2]))
    return Bound(max(0.0, float(found)), int(hits[0]), int(alarms[0]), runs)


def _privacy(recorder: Recorder) -> Privacy:
    if recorder.ledger.privacy is None:
        raise InputError("this run claims no privacy: there is no ε to audit")
    return recorder.ledger.privacy


def _is_basis(matrix: np.ndarray) -> bool:
    """Whether the columns are orthonormal, which those of a noisy product never are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.allclose(matrix.T @ matrix, np.eye(matrix.shape[1]), rtol=0.0, atol=1e-5))


def _ordered(scores: np.ndarray) -> np.ndarray:
    """Scores with NaN below all others: beyond no threshold."""
    return np.where(np.isnan(scores), -np.inf, scores)


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
    gaussian: bool = False,
) -> np.ndarray:
    """Clopper–Pearson, half of the error on either side; −inf where nothing can be said.

    Of ε, or with `gaussian` of μ.
    """
    error = (1.0 - confidence) / 2.0
    low = np.nan_to_num(stats.beta.ppf(error, hits, of_hits - hits + 1))  # none of 0 hits
    high = np.nan_to_num(stats.beta.isf(error, alarms + 1, of_alarms - alarms), nan=1.0)
    if gaussian:
        return stats.norm.ppf(low) - stats.norm.ppf(high)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
