"""One run of a registered algorithm on a problem, for the library, the cells and the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcore import algorithms
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


@held("the run")
def execute(
    algorithm: algorithms.Algorithm,
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
    """Run `algorithm` once on `problem`. The library, the cells and the tests all use it.

    The problem's clients must have passed `clients.check_clients`. Before the algorithm,
    each ``begin(federation)`` may exchange messages with the clients and change their samples, as
    `subtract_mean` does; the records refer to the changed samples. After the algorithm,
    ``finish(federation, output)`` may exchange messages; the recorded rows do not change. The
    ledger is charged for all of them, and what they return joins the output. A `transcript` gets
    every upload. `noise` is that of `Federation`.

    Returns
    -------
    recorder : Recorder
        With the rows of the run and the federation's ledger.
    output : dict
        The results of the algorithm and of `finish`.

    Raises
    ------
    InputError
        When the rank is too large for the data, the data are zero or their squares overflow or
        underflow, the starting basis does not fit, or labels are missing; when a private run has
        `begin` or `finish`; when the algorithm records or returns something else than
        `fedcore.algorithms` asks for.
    SizeError
        When it needs more memory than there is.
    """
    private = algorithm.private(settings)
    if problem.clients.sparse and not algorithm.sparse:
        refuse(algorithm.name)
    algorithm.task.check(settings, problem, private=private)
    if private:
        _require_noise(begin, finish)
    if begin and not algorithm.task.centred:
        raise InputError(f"{algorithm.name} takes samples as they are: leave out center=True")
    if algorithm.labelled and problem.clients.labels is None:
        raise InputError(
            f"{algorithm.name} learns from labels and these data have none: give labels, one "
            "vector per client, or choose another algorithm"
        )
    federation = Federation(
        problem.clients, seed, transcript=transcript, check=False, labelled=algorithm.labelled,
        noise=noise,
    )  # fmt: skip
    added: dict[str, Any] = {}
    for exchange in begin:
        added |= exchange(federation)
    if begin:
        problem = Problem(
            problem.name, federation.clients, problem.status, problem.note, problem.truth
        )
    recorder = Recorder(
        problem, federation.ledger, recording,
        counts_released=algorithm.released, algorithm=algorithm.name,
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):  # the recorder marks a diverged iterate
        output = algorithm.run(federation, settings, federation.rng, recorder)
    if not recorder.rows:
        raise InputError(f"{algorithm.name} has recorded no iterate: run calls record(0, …) first")
    algorithm.task.require(output, algorithm.name, problem.n_features)
    recorder.end(output)
    if federation.ledger.privacy is not None:  # its parameters need not have said so
        _require_noise(begin, finish)
    output = {**output, **added}
    return recorder, output if finish is None else {**output, **finish(federation, output)}


def subtract_mean(federation: Federation) -> dict[str, np.ndarray]:
    """Subtract the mean of all samples; for ``begin=`` of `execute`. The output gets ``mean``.

    Raises
    ------
    InputError
        When too little is left of the samples.
    """
    if federation.shape.n_samples == 1:
        raise InputError("n_samples = 1: one sample has no variance about its mean")
    mean = federation.center()
    if not federation.clients.largest:
        raise InputError(
            "all samples are equal: nothing is left of them but their mean",
            advice=[Advice("keep it", {"center": False})],
        )
    require_size(federation.clients, "the data less their mean")
    return {"mean": mean}


def _require_noise(begin: Sequence[Begin], finish: Finish | None) -> None:
    """Refuse a private run with an exchange without noise before or after it."""
    if finish is not None:
        raise InputError(
            "an exchange without noise after this algorithm (FederatedPCA's last round) would void "
            "its guarantee: use fedcore.run, without finish"
        )
    if begin:
        raise InputError(
            "the mean of the samples would be sent without noise, which voids the guarantee of "
            "this algorithm: take center=False, and subtract a public mean"
        )
