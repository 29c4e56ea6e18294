"""Run an algorithm once on checked data.

The public function `fedcore.run` is in `fedcore.user_runs`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import Advice, InputError, held
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.privacy.noise import Source
from fedcore.problems.clients import require_size
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder, Recording
from fedcore.sparse import refuse

Begin = Callable[[Federation], Mapping[str, Any]]
Finish = Callable[[Federation, Mapping[str, Any]], Mapping[str, Any]]

LARGEST_SKEW = 1e-3  # of a basis, well above what rounding does to one in single precision


@held("the run")
def execute(
    algorithm: Algorithm,
    problem: Problem,
    settings: Any,
    seed: int | np.random.SeedSequence,
    recording: Recording = Recording(),  # noqa: B008 (it is frozen)
    *,
    begin: Sequence[Begin] = (),
    finish: Finish | None = None,
    transcript: Transcript | None = None,
    noise: Source | None = None,
) -> tuple[Recorder, dict[str, Any]]:
    """Run `algorithm` once on `problem`, and return the recorder and the output.

    The problem's clients must have passed `fedcore.arrays.check_matrices`. Before the algorithm,
    each function ``exchange(federation)`` in `begin` may exchange messages with the clients and
    change their samples, as `subtract_mean` does. The recorded metrics refer to the changed
    samples. After the algorithm, ``finish(federation, output)`` may exchange messages, but does not
    change the recorded rows. The ledger counts the messages of `begin` and `finish`, and the output
    includes their results. In a private run, `begin` and `finish` must be decorated with
    `fedcore.federation.execution.protected`. A `transcript` stores every upload. `noise` is the
    source of privacy noise, as in `Federation`.

    Returns
    -------
    recorder : Recorder
        Recorder with the rows of the run and the federation's ledger.
    output : dict
        The results of the algorithm, of each function in `begin`, and of `finish`.

    Raises
    ------
    InputError
        Raised if the number of components is too large, if the starting basis does not fit, or if
        labels are missing. Raised in a run without privacy if all samples are zero, or if their
        squares overflow or underflow. Raised if a function in `begin`, or `finish`, of a private
        run lacks the decorator `protected`. Raised if the algorithm breaks the rules of
        `fedcore.algorithms` for records or results.
    SizeError
        Raised if the run needs more memory than is available.
    """
    private = algorithm.private(settings)
    if problem.clients.sparse and not algorithm.sparse:
        refuse(algorithm.name)
    algorithm.task.check(settings, problem, private=private)
    federation = Federation(
        problem.clients, seed, transcript=transcript, check=False, noise=noise,
        labelled=algorithm.labelled and problem.clients.labels is not None,
    )  # fmt: skip
    if private:
        _require_noise(begin, finish)
    if begin and not algorithm.task.centred:
        raise InputError(f"{algorithm.name} takes samples as they are: leave out center and begin")
    added: dict[str, Any] = {}
    for exchange in begin:
        added |= exchange(federation)
    if begin:
        problem = Problem(
            problem.name, federation.clients, problem.status, problem.note, problem.truth
        )
    if not private:  # it would reveal something about the samples
        federation.once(partial(algorithm.task.check_samples, problem.clients))
    if algorithm.labelled and problem.clients.labels is None:
        raise InputError(
            f"{algorithm.name} learns from labels, but these data have no labels: give labels, one "
            "vector per client, or choose another algorithm"
        )
    for package in algorithm.task.packages:  # the seconds of its import are not the run's
        if importlib.util.find_spec(package):
            importlib.import_module(package)
    recorder = Recorder(
        problem, federation.ledger, recording,
        counts_released=algorithm.released, algorithm=algorithm.name, once=federation.once,
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):  # the recorder marks a diverged iterate
        output = algorithm.run(federation, settings, federation.rng, recorder)
    if not recorder.rows:
        raise InputError(
            f"{algorithm.name} has recorded no iterate: let run call record(0, …) first"
        )
    algorithm.task.require(output, algorithm.name, problem.n_features)
    recorder.end(output)
    if federation.ledger.privacy is not None:  # its parameters need not have said so
        _require_noise(begin, finish)
    output = {**output, **added}
    return recorder, output if finish is None else {**output, **finish(federation, output)}


def subtract_mean(
    federation: Federation, prepare: Callable[[], None] | None = None
) -> dict[str, np.ndarray]:
    """Subtract the mean of all samples; this function may be an entry of `begin` in `execute`.

    The returned dict contains the mean under the key ``mean``. After the mean is subtracted, a
    check makes sure that the samples are not all zero. The argument `prepare` is a function that is
    called just before this check. It may give the clients a Gram matrix, so that the check need not
    read all samples.

    Raises
    ------
    InputError
        Raised if there is only one sample, if the centred samples are zero, or if their squares
        overflow or underflow.
    """
    if federation.shape.n_samples == 1:
        raise InputError(
            "n_samples = 1: one sample has no variance about its mean; give more samples"
        )
    mean = federation.center()
    if prepare is not None:
        prepare()
    federation.once(partial(_require_variance, federation, mean))
    return {"mean": mean}


def _require_variance(federation: Federation, mean: np.ndarray) -> None:
    if mean.any() and not federation.clients.largest:
        raise InputError(
            "all samples are equal, so nothing is left when their mean is subtracted",
            advice=[Advice("keep the mean", {"center": False})],
        )
    require_size(federation.clients, "the data less their mean")


def _require_noise(begin: Sequence[Begin], finish: Finish | None) -> None:
    """Raise an `InputError` if a private run's `begin` or `finish` is not marked as protected."""
    if not getattr(finish, "protected", finish is None):
        raise InputError(
            "an exchange without noise after this algorithm (FederatedPCA's last round) would void "
            "its privacy guarantee: use fedcore.run, without finish"
        )
    if not all(getattr(exchange, "protected", False) for exchange in begin):
        raise InputError(
            "an exchange without noise before this algorithm (center=True sends the mean) would "
            "void its privacy guarantee: take center=False and no begin, and subtract a public mean"
        )


def require_orthonormal(algorithm: str, rows: np.ndarray | None) -> None:
    """Raise an `InputError` if an algorithm returns finite components that are not orthonormal."""
    if rows is None or not np.isfinite(rows).all():  # no subspace; the run is marked as diverged
        return
    error = np.abs(rows @ rows.T - np.eye(len(rows))).max()
    if error > LARGEST_SKEW:
        raise InputError(
            f"{algorithm} returns a basis whose columns are not orthonormal (off by {error:.2g}): "
            f"return orth(Z), from fedcore.linalg; `fedcore check {algorithm}` finds more faults"
        )
