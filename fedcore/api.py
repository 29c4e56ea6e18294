"""One call that runs a registered algorithm on matrices in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore import algorithms, metrics
from fedcore.errors import ConvergenceWarning, InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.federation.transcript import Transcript
from fedcore.parts import residuals
from fedcore.privacy.noise import Source, simulated
from fedcore.problems.clients import Clients, check_clients, check_labels, require_size
from fedcore.problems.problem import Problem
from fedcore.recorder import NOT_RELEASED, Recorder, Watch
from fedcore.seeds import root_of
from fedcore.sparse import refuse
from fedcore.validation import require_flag

StopRule = Callable[[Mapping[str, float]], bool]
Finish = Callable[[Federation, Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Result:
    """Result of a run.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features) or None
        Orthonormal rows that span the subspace found; None for an algorithm that learns networks.
    history : dict of str to ndarray of shape (records,)
        ``iteration``, ``round``, ``bytes_up``, …, and the metrics asked for.
    ledger : Ledger
        Traffic between clients and server, and privacy spent.
    output : dict
        Everything that the algorithm returned, such as ``V`` and ``U``, a list of one matrix per
        client, and what `finish` added.
    released : frozenset of str or None
        Columns of `history` that a private run released: the guarantee covers them. The others,
        such as all measures, are exact functions of the data; show them to nobody. None for a run
        without privacy.
    """

    components: np.ndarray | None
    history: dict[str, np.ndarray]
    ledger: Ledger
    output: dict[str, Any]
    released: frozenset[str] | None = None

    def __repr__(self) -> str:
        """Sizes, costs, privacy and names in one line; no arrays."""
        r, d = (0, 0) if self.components is None else self.components.shape
        found = f"{_count(r, 'component')} of {_count(d, 'feature')}; " if r else ""
        columns = [
            name if self.released is None or name in self.released else f"{name} ({NOT_RELEASED})"
            for name in self.history
        ]
        privacy = "" if self.ledger.privacy is None else f"{self.ledger.privacy!r}; "
        return (
            f"Result({found}"
            f"{_count(len(self.history['iteration']), 'record')} of {', '.join(columns)}; "
            f"{_count(self.ledger.rounds, 'round')}, {self.ledger.bytes_up:,} bytes up, "
            f"{self.ledger.bytes_down:,} down; {privacy}output: {', '.join(self.output)})"
        )


def run(
    algorithm: str,
    clients: Sequence[Any],
    n_components: int | None = None,
    *,
    labels: Sequence[np.ndarray] | None = None,
    held_out: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None = None,
    seed: int | np.random.SeedSequence = 0,
    start: np.ndarray | None = None,
    measure: Sequence[str] | None = None,
    threads: int = 1,
    stop: StopRule | None = None,
    finish: Finish | None = None,
    transcript: Transcript | None = None,
    simulate: bool = False,
    center: bool = False,
    **params: Any,
) -> Result:
    """Run a registered algorithm: `fedcore.run` without the names' checks and the progress.

    Parameters
    ----------
    algorithm, clients, n_components, labels, held_out, seed, start, measure, threads
        See `fedcore.calls.run`.
    stop, finish, transcript, simulate, center, **params
        See there.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        See there.
    """
    chosen = algorithms.get(algorithm)
    named = {"n_components": n_components, "start": start}
    given_params = {k: v for k, v in named.items() if v is not None or chosen.takes(k)} | params
    settings = chosen.params(residuals.with_tolerance(chosen, given_params))
    if isinstance(measure, str):
        raise InputError(f"measure must be a list of metrics: write measure=[{measure!r}]")
    wanted = [metrics.get(name) for name in measure or ()]
    apart = None if held_out is None else _checked(*held_out)
    problem = Problem("clients", _checked(clients, labels), held_out=apart)
    if measure is None:
        wanted = [metrics.get(name) for name in chosen.task.measures(problem)]
    require_flag(simulate=simulate, center=center)
    noise = simulated(root_of(seed), algorithm, given_params) if simulate else None
    recorder, output = execute(
        chosen, problem, settings, seed, wanted,
        threads=threads, stop=stop, finish=finish, transcript=transcript, noise=noise,
        center=center,
    )  # fmt: skip
    iterations = recorder.rows[-1]["iteration"]
    residuals.tell(algorithm, settings, output, iterations, recorder.problem.clients)
    _tell_of_end(algorithm, recorder)
    return Result(
        components=chosen.task.components(output),
        history=recorder.columns(),
        ledger=recorder.ledger,
        output=output,
        released=recorder.released,
    )


def execute(
    algorithm: algorithms.Algorithm,
    problem: Problem,
    settings: Any,
    seed: int | np.random.SeedSequence,
    measure: Sequence[metrics.Metric],
    *,
    threads: int = 1,
    iterates: str = "last",
    stop: StopRule | None = None,
    finish: Finish | None = None,
    transcript: Transcript | None = None,
    stack: bool = True,
    noise: Source | None = None,
    center: bool = False,
    measured: Mapping[str, int] | None = None,
    watch: Watch | None = None,
    checkpoint: Any = None,
) -> tuple[Recorder, dict[str, Any]]:
    """Run `algorithm` once on `problem`. The library, the cells and the tests all use it.

    The problem's clients must have passed `clients.check_clients`. After the algorithm,
    ``finish(federation, output)`` may exchange messages with the clients: the ledger is charged for
    them, the recorded rows do not change, and its result joins the output. A `transcript` gets
    every upload, those of `finish` included. `stack` and `noise` are those of `Federation`. With
    `center` the clients subtract their common mean first, in a round of its own; the records refer
    to the centred data, and the mean joins the output. `measured`, `watch` and `checkpoint` are
    those of `Recorder`.

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
        `center` or `finish`; when the algorithm records or returns something else than
        `fedcore.algorithms` asks for.
    """
    private = algorithm.private(settings)
    if problem.clients.sparse and not algorithm.sparse:
        refuse(algorithm.name)
    algorithm.task.check(settings, problem, private=private)
    if private:
        _require_noise(center, finish)
    if center and not algorithm.task.centred:
        raise InputError(f"{algorithm.name} takes samples as they are: leave out center=True")
    if algorithm.labelled and problem.clients.labels is None:
        raise InputError(
            f"{algorithm.name} learns from labels and these data have none: give labels, one "
            "vector per client, or choose another algorithm"
        )
    federation = Federation(
        problem.clients, seed, threads=threads, transcript=transcript, check=False,
        labelled=algorithm.labelled, stack=stack, noise=noise,
    )  # fmt: skip
    added = {}
    if center:
        added["mean"] = federation.center()
        problem = Problem(
            problem.name, federation.clients, problem.status, problem.note, problem.truth
        )
        if problem.clients.zero:
            raise InputError("all samples are equal: nothing is left of them but their mean")
        require_size(problem.clients, "the data less their mean")
    recorder = Recorder(
        problem, federation.ledger, measure,
        iterates=iterates, stop=stop, counts_released=algorithm.released,
        measured=measured, watch=watch, algorithm=algorithm.name, checkpoint=checkpoint,
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):  # the recorder marks a diverged iterate
        output = algorithm.run(federation, settings, federation.rng, recorder)
    if not recorder.rows:
        raise InputError(f"{algorithm.name} has recorded no iterate: run calls record(0, …) first")
    algorithm.task.require(output, algorithm.name, problem.n_features)
    recorder.end(output)
    if federation.ledger.privacy is not None:  # its parameters need not have said so
        _require_noise(center, finish)
    output = {**output, **added}
    return recorder, output if finish is None else {**output, **finish(federation, output)}


def _require_noise(center: bool, finish: Finish | None) -> None:
    """Refuse a private run with an exchange without noise before or after it."""
    if finish is not None:
        raise InputError(
            "an exchange without noise after this algorithm (FederatedPCA's last round) would void "
            "its guarantee: use fedcore.run, without finish"
        )
    if center:
        raise InputError(
            "the mean of the samples would be sent without noise, which voids the guarantee of "
            "this algorithm: take center=False, and subtract a public mean"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tell_of_end(algorithm: str, recorder: Recorder) -> None:
    """Warn if the run has diverged, or its last objective is larger than that of U Vᵀ = 0.

    A private run gets no warning of the second kind: it would show exact values of the data.
    """
    last = recorder.rows[-1]
    reached = last.get("objective", np.nan) if recorder.released is None else np.nan
    zero = 0.5 * recorder.problem.clients.squares if np.isfinite(reached) else np.nan
    if reached > zero * (1 + 1e-9):
        found = f"ends at an objective of {reached:.3g}, larger than the {zero:.3g} of a zero model"
    elif last["diverged"]:
        found = "has diverged, its result or a measure of it is not finite"
    else:
        return
    warnings.warn(
        f"{algorithm} {found}: make more or smaller steps, or take another algorithm",
        ConvergenceWarning,
        stacklevel=3,
    )


def _checked(matrices: Sequence[Any], labels: Sequence[np.ndarray] | None) -> Clients:
    """Return checked samples, with their labels if there are any; `Clients` are both already."""
    if isinstance(matrices, Clients):
        return matrices
    samples = check_clients(matrices)
    return Clients(samples, labels=None if labels is None else check_labels(labels, samples))
