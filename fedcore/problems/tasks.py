"""Tasks of methods (subspace, classification), with the parameters and outputs they require.

The argument ``task`` of `fedcore.algorithms.Algorithm` sets an algorithm's task. To add a task, add
a class to this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import orth
from fedcore.problems.clients import Clients, require_size
from fedcore.problems.problem import Problem
from fedcore.validation import require_rank, require_start, require_tall


class Task(ABC):
    """Base class of tasks; a task defines the parameters, checks and outputs of its methods.

    Attributes
    ----------
    fields : tuple of str
        Parameters that an algorithm's class ``Params`` must have.
    packages : tuple of str
        Additional packages whose versions a history (record of runs) contains.
    labelled : bool
        Whether every method of the task learns from labels.
    centred : bool
        Whether the samples may be centred before a run.
    twins : bool
        Whether a run can be compared with a twin run, whose starting matrix differs only by
        rounding errors.
    printed : tuple of str
        Names of the metrics that the command line records by default.
    problem : mapping
        Default settings with which the command line prepares samples, such as ``scale``. The keys
        are the same as for a problem in a paper's ``experiments.yaml``.
    """

    fields: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]] = ()
    labelled: ClassVar[bool] = False
    centred: ClassVar[bool] = True
    twins: ClassVar[bool] = True
    printed: ClassVar[tuple[str, ...]]
    problem: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def measures(self, problem: Problem) -> tuple[str, ...]:
        """Return the names of the metrics that a run on `problem` records by default."""

    @abstractmethod
    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Raise an error if the parameters `settings` do not fit the data of `problem`."""

    @abstractmethod
    def check_samples(self, clients: Clients) -> None:
        """Raise an error if nothing can be learnt from the samples.

        Private runs skip this check.
        """

    @abstractmethod
    def require(self, output: Any, who: str, n_features: int) -> None:
        """Raise an error if the output of the algorithm `who` does not fit the task."""

    @abstractmethod
    def components(self, output: Mapping[str, Any]) -> np.ndarray | None:
        """Return orthonormal rows that span an output's subspace, or None without a subspace."""


class Subspace(Task):
    """Task to find a subspace of the feature space, as a basis, a factor or a representation."""

    fields = ("n_components", "start")
    printed = ("objective", "subspace_distance")

    def measures(self, problem: Problem) -> tuple[str, ...]:
        """Return ``objective`` as the only name."""
        return ("objective",)

    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Check the number of components and the starting matrix.

        In a private run, the number of components may exceed the number of samples.
        """
        at_most = problem.n_features if private else problem.n_samples
        require_rank(settings.n_components, at_most, problem.n_features)
        if settings.start is not None:
            require_start(settings.start, problem.n_features, settings.n_components)

    def check_samples(self, clients: Clients) -> None:
        """Raise an error if all samples are zero, or if their squares overflow or underflow."""
        require_size(clients)

    def require(self, output: Any, who: str, n_features: int) -> None:
        """Raise an error if the output lacks basis and V, or if one has not `n_features` rows."""
        names = output.keys() & {"basis", "V"} if isinstance(output, Mapping) else ()
        if not names:
            raise InputError(
                f"{who} returns neither V nor basis: let run return a mapping with one of the two"
            )
        for name in sorted(names):
            require_tall(output[name], n_features, f"{who} returns {name}")

    def components(self, output: Mapping[str, Any]) -> np.ndarray:
        """Return an orthonormal basis of the output's subspace, as rows."""
        return shared_basis(output).T


class Classification(Task):
    """Task to train networks that classify samples: one network for all clients or one for each."""

    fields = ("model",)
    packages = ("torch",)
    labelled = True
    centred = False  # the held-out samples would have to be, too
    twins = False
    printed = ("test_accuracy",)
    problem: ClassVar = {"scale": "unit", "precision": "single", "held_out": 0.2}

    def measures(self, problem: Problem) -> tuple[str, ...]:
        """Return ``test_accuracy`` if samples are held out, and ``training_accuracy`` if not."""
        return ("training_accuracy" if problem.held_out is None else "test_accuracy",)

    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Accept all data, because `fedcore.deep.learner` checks whether they fit the network."""

    def check_samples(self, clients: Clients) -> None:
        """Accept all samples without a check."""

    def require(self, output: Any, who: str, n_features: int) -> None:
        """Raise an error if the output is not a mapping."""
        if not isinstance(output, Mapping):
            raise InputError(f"{who} returns a {type(output).__name__}: let run return a mapping")

    def components(self, output: Mapping[str, Any]) -> None:
        """Return None, because a network has no components."""


SUBSPACE, CLASSIFIERS = Subspace(), Classification()


def shared_basis(output: Mapping[str, Any]) -> np.ndarray:
    """Return an orthonormal basis (n_features, n_components) of the subspace in an output."""
    return output["basis"] if "basis" in output else orth(output["V"])
