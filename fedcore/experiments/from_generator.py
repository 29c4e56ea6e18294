"""Problems drawn from a synthetic model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcore import generators
from fedcore.errors import InputError
from fedcore.experiments.combinations import combinations
from fedcore.problems.clients import Clients, check_clients
from fedcore.problems.problem import Problem, Reference
from fedcore.problems.regression import Truth


def make(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    """Draw the clients of ``spec["generator"]`` with its ``params``; see `build.build`."""
    drawn = generators.generate(spec["generator"], rng, spec.get("params", {}))
    clients, known = drawn if isinstance(drawn, tuple) else (drawn, None)
    problem = Problem(name, clients if isinstance(clients, Clients) else check_clients(clients))
    if isinstance(known, Truth):
        problem.truth = known
    elif isinstance(known, Reference):
        problem.reference = known  # fills the cached property
    elif known is not None:
        raise InputError(
            f"generator {spec['generator']} returned a {type(known).__name__} beside the matrices: "
            "return a Reference or a Truth, and a Reduction within Clients"
        )
    return problem


def check(spec: Mapping[str, Any]) -> None:
    """Check the generator's parameters for every draw; see `build.check`."""
    for setting in combinations(spec.get("over", {})):
        generators.check(spec["generator"], {**spec.get("params", {}), **setting})


def plugged_in(spec: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return the import path of the generator's module."""
    return [generators.REGISTRY.module_name(spec["generator"])]


def described(spec: Mapping[str, Any], *, surrogate: bool) -> dict[str, Any]:
    """Return nothing: a drawn problem depends on its specification, the seed and code only."""
    return {}
