"""Cells of experiments: a cell is an algorithm with fixed parameters on one problem.

A problem is the clients' data with the exact answer. A parameter may have the value ``reference``.
This value stands for a quantity of the problem, such as its largest singular value, which some
theorems and baselines assume to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np

from fedcore import algorithms, metrics
from fedcore.errors import ConfigError, require_known
from fedcore.problems.problem import Problem
from fedcore.problems.regression import Truth
from fedcore.seeds import name_key

AUDITS = {
    "canary": "fedcore.audits.epsilon_bound",
    "leakage": "fedcore.audits.leakage",
    "late_leakage": "fedcore.audits.late_leakage",
}

NEWCOMERS = "fedcore.deep.newcomers"  # imported where a cell has some, because it needs PyTorch
NO_SETTINGS = ("tags", "mem_mb", "recipes", "code")  # no settings that its history depends on


@dataclass(frozen=True)
class Cell:
    """An algorithm with fixed parameters on one problem; `repeats.run_repeats` runs it.

    If ``center`` is true, the clients first subtract the mean of all samples. If ``simulate`` is
    true, privacy noise comes from the seed, so that the cell's results can be reproduced. If
    ``simulate`` is false, privacy noise comes from the operating system's entropy. If ``cut`` is
    given, the cell runs on data reduced to few coordinates; see `fedcore.experiments.axes`.
    ``recipes`` lists the digest that `build.recipe` returned for each problem file (stored client
    data) of the cell. ``code`` is a digest of the modules that run the cell.
    """

    paper: str
    experiment: str
    algorithm: str
    name: str
    problem: str
    params: dict[str, Any]
    repeats: int
    metrics: list[str]
    iterates: str
    seed: int
    stop: dict[str, dict[str, float]] = field(default_factory=dict)
    audit: str | None = None
    tune: dict[str, Any] | None = None
    share_products: bool = False
    cut: float | None = None
    twin: str = "none"
    noise_factor: float | None = None
    measured: dict[str, int] = field(default_factory=dict)
    tags: dict[str, Any] = field(default_factory=dict)
    mem_mb: int | None = None
    newcomers: dict[str, Any] | None = None
    client_iterates: bool = False
    center: bool = False
    simulate: bool = True
    recipes: list[str] = field(default_factory=list)
    code: str = ""

    @classmethod
    def read(cls, given: Any) -> Self:
        """Return the cell that a parsed JSON object describes.

        Raises
        ------
        ConfigError
            If a key is unknown, a required key is missing, or `given` is not a JSON object.
        """
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"a cell must be a JSON object with its settings by name, got {given!r}"
            )
        known = {one.name: one for one in fields(cls)}
        for key in given:
            require_known(key, known, "a cell takes no key")
        for key, one in known.items():
            if key not in given and one.default is MISSING and one.default_factory is MISSING:
                raise ConfigError(f"a cell has no '{key}': add '{key}', which every cell needs")
        return cls(**given)

    @property
    def path(self) -> str:
        """Path of the cell's history file in the folder of history files, without the suffix."""
        return f"{self.paper}/{self.short}"

    @property
    def short(self) -> str:
        """Path within the paper's folder, by which configuration files select the cell."""
        return f"{self.experiment}/{self.algorithm}/{self.name}"

    @property
    def variant(self) -> str:
        """The cell's name without the problem's name at its beginning."""
        return self.name.removeprefix(f"{self.problem}-")

    @property
    def problems(self) -> list[str]:
        """Names of the cell's problem and, if any, of the problem of clients that join later."""
        return [self.problem, *([self.newcomers["problem"]] if self.newcomers else [])]

    @property
    def modules(self) -> list[str]:
        """Names of the modules that run the cell, such as the modules of its method and metrics."""
        measured = [*self.metrics, *([self.tune["by"]] if self.tune else [])]
        return [
            *modules_of(self.algorithm),
            *metrics.modules(measured),
            *([AUDITS[self.audit]] if self.audit else []),
            *([NEWCOMERS] if self.newcomers else []),
        ]

    @property
    def seed_key(self) -> int:
        """Integer key of the cell's seeds, different for each paper, experiment and problem."""
        return name_key(f"{self.paper}/{self.experiment}/{self.problem}")

    def repeat_seed(self, repeat: int) -> np.random.SeedSequence:
        """Derive the seed of repeat (run) number `repeat` from master seed and `seed_key`."""
        return np.random.SeedSequence(self.seed, spawn_key=(self.seed_key, repeat))

    def spec(self) -> dict[str, Any]:
        """Return the settings that determine the cell's results: all except `NO_SETTINGS`."""
        return {k: v for k, v in asdict(self).items() if k not in NO_SETTINGS}


def modules_of(algorithm: str) -> list[str]:
    """Return the names of the modules that run an algorithm in every experiment."""
    return ["fedcore.experiments.repeats", algorithms.REGISTRY.module_name(algorithm)]


REFERENCES: dict[str, Callable[[Problem, int], float]] = {
    "sigma_max": lambda problem, rank: float(problem.singular_values[0]),
    "sigma_r": lambda problem, rank: float(problem.singular_values[rank - 1]),
    "sigma_next": lambda problem, rank: float(np.append(problem.singular_values, 0.0)[rank]),
    "head_sigma": lambda problem, rank: float(_truth(problem).head_singular_values[0]),
}


def resolve(params: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the parameters, with the problem's quantity in place of each value ``reference``."""
    resolved = dict(params)
    for name, value in params.items():
        if value == "reference":
            if name not in REFERENCES:
                raise ConfigError(
                    f"'{name}: reference' is not possible: give {name} as a number, as only "
                    f"{', '.join(sorted(REFERENCES))} have a reference"
                )
            rank, most = params.get("n_components"), min(problem.n_samples, problem.n_features)
            if not isinstance(rank, int) or not 1 <= rank <= most:
                raise ConfigError(
                    f"'{name}: reference' needs n_components from 1 to {most}, got {rank!r}"
                )
            resolved[name] = REFERENCES[name](problem, rank)
    return resolved


def _truth(problem: Problem) -> Truth:
    if problem.truth is None:
        raise ConfigError(
            f"problem {problem.name} has no known model of its labels: give head_sigma as a number"
        )
    return problem.truth
