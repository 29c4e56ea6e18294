"""Tasks: what a method learns, and what it needs and returns for that.

An algorithm names its task as ``task=`` of `fedcore.algorithms.Algorithm`. To add a task, add a
class here.
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
    """What every task says about itself.

    Attributes
    ----------
    fields : tuple of str
        Fields that ``Params`` must have.
    packages : tuple of str
        Packages whose versions a history keeps, in addition to fedcore's own.
    labelled : bool
        Whether every method of the task learns from labels.
    centred : bool
        Whether the samples may be centred first.
    twins : bool
        Whether a twin's result can be compared with that of its run.
    printed : tuple of str
        Names of the metrics that the command line records unless told otherwise.
    problem : mapping
        How the command line treats a data set's samples, as keys of a problem in a paper's file.
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
        """Return the names of the metrics that a run on `problem` records unless told otherwise."""

    @abstractmethod
    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Refuse parameters that do not fit the data."""

    @abstractmethod
    def check_samples(self, clients: Clients) -> None:
        """Refuse samples from which nothing can be learnt; private runs skip this check."""

    @abstractmethod
    def require(self, output: Any, who: str, n_features: int) -> None:
        """Refuse what the algorithm `who` returns if it is not what the task asks for."""

    @abstractmethod
    def components(self, output: Mapping[str, Any]) -> np.ndarray | None:
        """Return an orthonormal basis, as rows, of an output's subspace; None if there is none."""


class Subspace(Task):
    """A subspace of the samples' space: by itself, as a factor, or as a representation."""

    fields = ("n_components", "start")
    printed = ("objective", "subspace_distance")

    def measures(self, problem: Problem) -> tuple[str, ...]:
        """Return the objective."""
        return ("objective",)

    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Check rank and start; a private run may not fail because of the number of samples."""
        at_most = problem.n_features if private else problem.n_samples
        require_rank(settings.n_components, at_most, problem.n_features)
        if settings.start is not None:
            require_start(settings.start, problem.n_features, settings.n_components)

    def check_samples(self, clients: Clients) -> None:
        """Require samples that are not all zero and whose squares neither over- nor underflow."""
        require_size(clients)

    def require(self, output: Any, who: str, n_features: int) -> None:
        """Require an output in which `shared_basis` finds a subspace."""
        names = output.keys() & {"basis", "V"} if isinstance(output, Mapping) else ()
        if not names:
            raise InputError(f"{who} returns no V and no basis: run returns a mapping with one")
        for name in sorted(names):
            require_tall(output[name], n_features, f"{who} returns {name}")

    def components(self, output: Mapping[str, Any]) -> np.ndarray:
        """Return the basis that `shared_basis` finds, as rows."""
        return shared_basis(output).T


class Classification(Task):
    """A network that classifies samples, one for all clients or one for each."""

    fields = ("model",)
    packages = ("torch",)
    labelled = True
    centred = False  # the held-out samples would have to be, too
    twins = False
    printed = ("test_accuracy",)
    problem: ClassVar = {"scale": "unit", "precision": "single", "held_out": 0.2}

    def measures(self, problem: Problem) -> tuple[str, ...]:
        """Return the accuracy on held-out samples or, without any, on the clients' own samples."""
        return ("training_accuracy" if problem.held_out is None else "test_accuracy",)

    def check(self, settings: Any, problem: Problem, *, private: bool) -> None:
        """Accept all data: the network itself checks whether they fit."""

    def check_samples(self, clients: Clients) -> None:
        """Accept all samples."""

    def require(self, output: Any, who: str, n_features: int) -> None:
        """Require that the output is a mapping."""
        if not isinstance(output, Mapping):
            raise InputError(f"{who} returns a {type(output).__name__}: run returns a mapping")

    def components(self, output: Mapping[str, Any]) -> None:
        """Return nothing: a network has no components."""


SUBSPACE, CLASSIFIERS = Subspace(), Classification()


def shared_basis(output: Mapping[str, Any]) -> np.ndarray:
    """Orthonormal basis of the subspace in an algorithm's output, (n_features, n_components)."""
    return output["basis"] if "basis" in output else orth(output["V"])
