"""Lower bound on the ε of a private method, from many runs on two neighbouring data sets.

Let P and P′ be the distributions of a method's output on two neighbouring data sets. For every
event E, an (ε, δ)-DP method satisfies ``P(E) ≤ e^ε P′(E) + δ``. The audit runs a method many times
on each of two data sets that differ in one row, the canary (see `fedcore.generators.canary`). These
data sets are neighbours under the relation that the method's ledger (its privacy account) states.
For each run, the audit computes one score from what the server saw. The event E is "the score is
beyond a threshold" or "the score is NaN". The audit uses half of the runs to choose E. The other
half gives Clopper–Pearson bounds: a lower bound on P(E) and an upper bound on P′(E). With the
chosen confidence,

    ε ≥ log((P(E) − δ) / P′(E))

(Jagielski, Ullman & Oprea, NeurIPS 2020). If the ledger has counted Gaussian noise only, the whole
run is one Gaussian mechanism with a parameter μ (Dong, Roth & Su, JRSS-B 2022). A Gaussian
mechanism satisfies the stronger inequality ``Φ⁻¹(P(E)) − Φ⁻¹(P′(E)) ≤ μ``. The Clopper–Pearson
bounds then give a lower bound on μ. From this bound follows a tighter bound on ε at the given δ
than from the formula above (Nasr et al., *Tight auditing of differentially private machine
learning*, USENIX Security 2023).

A bound above the claimed ε refutes the claim with the chosen confidence. A bound below the claimed
ε supports the claim only if the same audit would detect noise that is too small. Every audit should
therefore be repeated on a weakened twin, a second version of the method. The twin multiplies all
noise by a factor below 1, but its ledger assumes the full noise. The audit must refute the ε that
the twin claims. In an experiment's configuration, ``audit: canary`` adds the score to the history
as a column, and ``noise_factor`` is the factor of a twin. If a client takes several local steps
before an upload, the score depends only on the last step, and the audit says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.ndimage import uniform_filter1d

from fedcore import algorithms
from fedcore.arrays import floats
from fedcore.errors import InputError
from fedcore.federation.transcript import Exchange, Transcript
from fedcore.generators import canary
from fedcore.history import History
from fedcore.linalg import from_upper_triangle
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import Weakened
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.runs import execute
from fedcore.validation import require_valid, whole

COLUMN = ("1", "evidence in what the server saw for the data with the canary e₁")
LEVELS = np.linspace(0.002, 0.998, 250)  # quantiles of the scores that are tried as thresholds
STRETCH = 25  # neighbouring thresholds over which a bound is averaged


class EpsilonBound(NamedTuple):
    """A lower bound on ε, and the counts of runs from which this bound is computed.

    Attributes
    ----------
    epsilon : float
        Lower bound on the method's ε, at least 0. The bound holds with the chosen confidence and,
        with ``gaussian=True`` in `lower_bound`, for Gaussian mechanisms only.
    hits, false_alarms : int
        Numbers of runs in which the event E (a score beyond a threshold, or a score of NaN)
        occurred. `hits` counts the runs on the data set where E is more frequent, and
        `false_alarms` those on the other data set. Runs that were used to choose E do not count.
    runs : int
        Number of runs on each data set, without the runs that were used to choose E.
    """

    epsilon: float
    hits: int
    false_alarms: int
    runs: int


def start_transcript() -> Transcript:
    """Return an empty transcript that will record all uploads of the single client."""
    return Transcript()


def column(problem: Problem, transcript: Transcript, recorder: Recorder) -> list[float]:
    """Return, for each row of the run's history, the sum of the `score` of all uploads so far.

    If the history contains a ``threshold`` θ for a round, the noise of this round is proportional
    to θ. The score of the round then gets the weight 1/θ², as in the likelihood ratio. The audit
    may use θ, because the method releases θ and has spent privacy budget on it.
    """
    pair = canary.pair(problem.clients[0], _privacy(recorder).neighbours)
    scale = {row["round"]: row.get("threshold") or 1.0 for row in recorder.rows}
    scores = [
        (e.round, score(pair, e) / scale.get(e.round, 1.0) ** 2) for e in transcript.exchanges
    ]
    return [
        sum(value for number, value in scores if number <= row["round"]) for row in recorder.rows
    ]


def score(pair: canary.NeighbourPair, exchange: Exchange) -> float:
    """Return a number that says how strongly one reply speaks for the data set with the canary.

    The client's Gram matrix G is G₁ with the canary and G₀ without it. The score depends on what
    the client replies. If the reply to a message Z is ``Y = G Z + noise``, the score is ``⟨Y − ½(G₁
    + G₀) Z, (G₁ − G₀) Z⟩``. If the noise is Gaussian with variance σ², this score is σ² times the
    log likelihood ratio. If the client sends its own Z with Y, the score uses the client's Z. If
    the reply is a Gram matrix, or its upper triangle row by row, the same formula applies with Z =
    I. If the reply V has orthonormal columns, the score is ``tr Vᵀ(G₁ − G₀)V``. A d × r reply V
    with r < d also gets this last score if neither server nor client has sent a Z. For a vector
    that is no upper triangle, such as a vote, the score is 0.

    Raises
    ------
    InputError
        If the shape of the reply fits none of these cases.
    """
    between, change = pair
    d = len(change)
    reply, Z = exchange.sent, exchange.received
    if isinstance(reply, tuple):
        reply, Z = reply[0], reply[1]
    if np.shape(reply) == (d * (d + 1) // 2,):
        reply = from_upper_triangle(reply, d)
    if np.ndim(reply) == 1:
        return 0.0
    if np.shape(reply)[0] == d and (_is_basis(reply) or (Z is None and np.shape(reply)[1] < d)):
        return float(np.sum(reply * (change @ reply)))
    Z = Z if np.shape(Z) == np.shape(reply) else np.eye(d)
    if np.shape(reply) != Z.shape:
        raise InputError(
            "the canary audit reads only d×r products with a Gram matrix, d×d Gram matrices and "
            f"bases, but this method sends an array of shape {np.shape(reply)}: leave out the audit"
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
    noise_factor: float | None = None,
    **params: Any,
) -> EpsilonBound:
    """Run an algorithm `runs` times on each of two neighbouring data sets, and bound ε from below.

    The algorithm's ledger (its privacy account) determines the neighbouring relation. It also
    determines whether the tighter bound for Gaussian mechanisms applies.

    Parameters
    ----------
    algorithm : str
    n_components : int
    runs : int
        Number of runs on each data set; half of them are used only to choose the threshold of the
        score.
    delta : float
        The δ at which ε is bounded; the algorithm gets it as its hyper-parameter ``delta``.
    confidence : float
        Probability with which the bound holds.
    seed : int
    samples, n_features : int
        Numbers of samples and of features (see `fedcore.generators.canary`).
    noise_factor : float, optional
        Factor below 1 that multiplies all noise, while the ledger assumes the full noise. An audit
        of such a weakened method should give a bound above the claimed ε.
    **params
        Hyper-parameters of the algorithm other than ``n_components`` and ``delta``.

    Raises
    ------
    InputError
        For fewer than four runs, a δ outside (0, 1), or an algorithm that claims no privacy.
    """
    require_valid(whole(4), runs=runs)
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
            transcript = start_transcript()
            stream = np.random.SeedSequence(seed, spawn_key=(world, i))
            noise = stream if noise_factor is None else Weakened(stream, noise_factor)
            recorder, _ = execute(
                chosen, problem, settings, stream, transcript=transcript, noise=noise
            )
            scores[world].append(column(problem, transcript, recorder)[-1])
            privacy = _privacy(recorder)
            gaussian = gaussian and is_gaussian(privacy.about()["mechanisms"])
        other = {canary.NEIGHBOUR[privacy.neighbours]: True}
    return lower_bound(*scores, delta=delta, confidence=confidence, gaussian=gaussian)


def is_gaussian(mechanisms: Sequence[str]) -> bool:
    """Return whether all events are Gaussian; if so, the whole run is one Gaussian mechanism."""
    return list(mechanisms) == [Gaussian.__name__]


def from_histories(present: History, absent: History) -> EpsilonBound:
    """Return a 95 % lower bound on ε from two histories of an experiment with ``audit: canary``.

    Parameters
    ----------
    present, absent : History
        Histories of runs on the data with and without the canary (the row that the audit tries to
        detect). The bound comes from the final scores, at the δ of the runs.
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
) -> EpsilonBound:
    """Return a lower bound on ε from scores of independent runs on two neighbouring data sets.

    Parameters
    ----------
    present, absent : sequence of float
        Scores of the runs on the data with and without the canary, one per run; NaN is allowed.
    delta : float
    confidence : float
        Probability with which the bound holds.
    gaussian : bool, default=False
        True if the method is a Gaussian mechanism according to its ledger; see `is_gaussian`. The
        bound then holds for Gaussian mechanisms only.

    Raises
    ------
    InputError
        For fewer than four runs on a data set, or a δ outside (0, 1).
    """
    accounting.require_delta(delta)
    first, second = (
        np.atleast_1d(floats(scores, name))
        for name, scores in (("present", present), ("absent", absent))
    )
    if max(first.ndim, second.ndim) > 1:
        raise InputError("present and absent must be lists of numbers, one score per run")
    require_valid(whole(4), runs=min(len(first), len(second)))
    worlds = first, second
    # The event is a large, a small or a NaN score; it may be more frequent on either data set.
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
        # The largest of many bounds is mostly luck, far out; a running mean evens that out.
        bounds = uniform_filter1d(np.maximum(bounds, -1.0), STRETCH, mode="nearest")
        tried.append((bounds.max(), thresholds[bounds.argmax()]))
    best = int(np.argmax([bound for bound, _ in tried]))
    (p, q), threshold = tests[best], tried[best][1:]
    hits, alarms = _beyond(p[1::2], threshold), _beyond(q[1::2], threshold)
    found = _bounds(hits, len(p[1::2]), alarms, len(q[1::2]), delta, confidence, gaussian)[0]
    if gaussian and found > 0.0:  # `found` is μ
        found = accounting.epsilon({Gaussian(1.0 / float(found)): 1}, delta)
    runs = min(len(p[1::2]), len(q[1::2]))
    return EpsilonBound(max(0.0, float(found)), int(hits[0]), int(alarms[0]), runs)


def _privacy(recorder: Recorder) -> Privacy:
    if recorder.ledger.privacy is None:
        raise InputError("this run claims no privacy: choose a private algorithm to audit its ε")
    return recorder.ledger.privacy


def _is_basis(matrix: np.ndarray) -> bool:
    """Return whether the columns are orthonormal up to 1e-5; noisy products hardly ever are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.allclose(matrix.T @ matrix, np.eye(matrix.shape[1]), rtol=0.0, atol=1e-5))


def _ordered(scores: np.ndarray) -> np.ndarray:
    """Return the scores with −∞ in place of NaN, so that no NaN is above a threshold."""
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
    """Return Clopper–Pearson lower bounds on ε or, with `gaussian`, on a Gaussian mechanism's μ.

    A bound is −∞ if the counts give no information, for example if `hits` is 0. The bounds on the
    probabilities of a hit and of a false alarm may each fail with probability (1 − `confidence`)/2.
    """
    error = (1.0 - confidence) / 2.0
    low = np.nan_to_num(stats.beta.ppf(error, hits, of_hits - hits + 1))  # NaN for 0 hits
    high = np.nan_to_num(stats.beta.isf(error, alarms + 1, of_alarms - alarms), nan=1.0)
    if gaussian:
        return stats.norm.ppf(low) - stats.norm.ppf(high)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
