"""Newcomers, which are clients that join after the training and train only a head.

The source is Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Section 5.2 and Figure 6. Every
newcomer gets the same network and trains only its head, epoch after epoch. An epoch is a round in
which all newcomers take part (Appendix A.2). The momentum is zero at the start of each epoch.

The paper does not say which of a method's networks a newcomer gets. In fedcore, the choice depends
on the method's output, which is the dictionary that the method returns. If the output has
``parameters``, newcomers get the server's network, which has these parameters. With equal seeds and
hyper-parameters, FedAvg and APFL give newcomers the same network. If the output has ``body`` and
``heads``, newcomers get the shared body and the mean of the heads. If the output has ``models``,
newcomers get the mean of these networks. A method whose clients send nothing has no network for a
newcomer. The ledger, which counts the numbers that a run sends, does not count what a newcomer
receives, because the run has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from fedcore import deep
from fedcore.deep.models import MODELS
from fedcore.deep.settings import Params
from fedcore.deep.training import require_classes
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost
from fedcore.iterates import Iterate
from fedcore.metrics.classification import test_accuracies
from fedcore.problems.clients import Labelled
from fedcore.problems.problem import Problem
from fedcore.seeds import child
from fedcore.words import counted

STREAM_KEY = 4  # of the newcomers' random streams, below the seed of the run; see `fedcore.seeds`


def network(output: Mapping[str, Any]) -> np.ndarray:
    """Return the network that newcomers get from a method's output.

    Raises
    ------
    InputError
        If the output contains no network for newcomers.
    """
    if "parameters" in output:
        return np.asarray(output["parameters"])
    if {"body", "heads"} <= output.keys():
        return np.concatenate([output["body"], _mean(output["heads"])])
    if "models" in output:
        return _mean(output["models"])
    raise InputError(
        "newcomers need a network, and this method returns none: return 'parameters', 'body' with "
        "'heads', or 'models'"
    )


def _mean(vectors: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(reduce(np.add, vectors) / len(vectors))


class Newcomers:
    """The newcomers of a run, whose data are checked before the run begins.

    Parameters
    ----------
    settings : Params
        Hyper-parameters of the run; newcomers use the same batch size, learning rate and momentum.
    cost : Cost
        Communication cost of the run, which shows whether clients send anything.
    n_features : int
        Number of features of the samples on which the run trains.
    problem : Problem
        Problem (client data) whose clients are the newcomers, with training samples and held-out
        samples.
    epochs : int
        Number of passes of each newcomer over its samples.

    Attributes
    ----------
    NAME : str
        Name of the array of accuracies in the history file, which stores the results of an
        experiment. The first axis runs over the repeats (runs with different seeds).
    TEXT : (str, str)
        Units and description of the accuracies.
    about : dict
        Facts about the newcomers, which are stored in the history file.

    Raises
    ------
    InputError
        If clients of the run send nothing, if the newcomers' samples do not fit the network or the
        batches, or if no samples are held out.
    """

    NAME: ClassVar[str] = "newcomer_accuracy"
    TEXT: ClassVar[tuple[str, str]] = (
        "share of samples",
        "accuracy of newcomers on held-out samples, before and after each epoch on their heads",
    )

    def __init__(
        self, settings: Params, cost: Cost, n_features: int, problem: Problem, epochs: int
    ) -> None:
        name = f"problem {problem.name}"
        if not cost.scalars_up:
            raise InputError(
                "newcomers get a network that the clients have trained together, and no client of "
                "this method sends anything: leave this method out"
            )
        if problem.held_out is None or problem.held_out.labels is None:
            raise InputError(f"{name} has no held-out samples for newcomers: give it 'held_out'")
        if problem.n_features != n_features:
            raise InputError(
                f"{name}: newcomers have {counted(problem.n_features, 'feature')}, and the network "
                f"is trained on {n_features}"
            )
        self._settings, self._problem, self._epochs = settings, problem, epochs
        try:
            deep.learner(settings, self._federation(np.random.SeedSequence(0)))
        except InputError as error:
            raise InputError(f"{name}, newcomers: {error}") from error
        classes = MODELS[settings.model].classes
        for i, y in enumerate(problem.held_out.labels):
            who = f"{name}: newcomer {i}, held out,"
            require_classes(y, classes, who, settings.model)
        self.about = {
            "problem": problem.name,
            "epochs": epochs,
            "status": problem.status,
            "note": problem.note,
            "sha256": problem.checksum,
            "n_clients": len(problem.clients),
            "n_samples": problem.n_samples,
        }

    def accuracies(self, output: Mapping[str, Any], seed: np.random.SeedSequence) -> np.ndarray:
        """Return every newcomer's accuracy before the first epoch and after each epoch.

        Parameters
        ----------
        output : mapping
            Output of the algorithm that trained the networks.
        seed : SeedSequence
            Seed of the run. The newcomers' batches depend only on this seed, and are therefore the
            same for all methods.

        Returns
        -------
        ndarray of shape (epochs + 1, newcomers)
            Accuracies on the held-out samples, or NaN if a network's parameters are not finite.
        """
        federation = self._federation(child(seed, STREAM_KEY))
        learner = deep.learner(self._settings, federation)

        def first(data: Labelled, state: Any, w: np.ndarray) -> None:
            state.head = learner.split(w)[1]

        @learner.step
        def tune(data: Labelled, state: Any, w: np.ndarray) -> None:
            batches = learner.head_batches(learner.split(w)[0], data, state.rng, 1)
            state.head = learner.descend(state.head, learner.head.gradient, batches)

        w = network(output)
        body, _ = learner.split(w)
        federation.broadcast(w)
        federation.local(first)
        found = []
        for epoch in range(self._epochs + 1):
            if epoch:
                federation.local(tune)
            heads = federation.client_state("head")
            networks: Any = learner.networks(w, body, heads)
            accuracies = test_accuracies(Iterate(classifiers=networks), self._problem)
            finite = np.isfinite(body).all() & [bool(np.isfinite(head).all()) for head in heads]
            found.append(np.where(finite, accuracies, np.nan))
        return np.array(found)

    def _federation(self, seed: np.random.SeedSequence) -> Federation:
        return Federation(self._problem.clients, seed, labelled=True, check=False)
