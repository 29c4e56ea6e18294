"""Making a problem from its specification in a configuration file.

One module per kind of source, imported when it is needed, so that the code of one is no part of
the other's fingerprint.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from fedcore.experiments.combinations import combinations
from fedcore.linalg import gram_matrix
from fedcore.problems.problem import Problem
from fedcore.seeds import name_key

KINDS = {
    "generator": "fedcore.experiments.from_generator",
    "dataset": "fedcore.experiments.from_dataset",
}
WRITTEN = "fedcore.problems.storage:save"


def build(
    name: str,
    spec: Mapping[str, Any],
    *,
    raw: str,
    seed: int,
    surrogate: bool,
    draw: int | None = None,
) -> Problem:
    """Build a problem from its specification.

    Parameters
    ----------
    name : str
    spec : mapping
        Either ``generator`` and its ``params``, or ``dataset``, ``options``, ``first`` (number of
        leading samples), ``scale`` and ``partition``. With ``gram``, the sum of the clients' Gram
        matrices is made, too.
    raw : str
        Folder of the raw data files.
    seed : int
        Master seed; the problem's own stream hangs on its name, not on who uses it.
    surrogate : bool
        Take the data set's offline stand-in; a generator's matrices count as stand-ins, too.
    draw : int, optional
        Number of the draw, of a problem of several.

    Raises
    ------
    ConfigError, DataError, InputError
        When the specification is wrong or the data cannot be had.
    """
    key = (name_key(name),) if draw is None else (name_key(name), draw)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    problem: Problem = _kind(spec).make(name, spec, rng, raw=raw, surrogate=surrogate)
    if spec.get("gram"):
        problem.clients.gram = gram_matrix(problem.clients)
    return problem


def build_draws(name: str, spec: Mapping[str, Any], **options: Any) -> Problem | list[Problem]:
    """Build as many independent draws of a problem as ``spec["draws"]`` says, or else the one.

    With ``over``, lists of values by parameter of the generator, as many for each combination of
    them, the combinations one after the other. Parameters and errors are those of `build`.
    """
    if "draws" not in spec:
        return build(name, spec, **options)
    problems: list[Problem] = []
    for setting in combinations(spec.get("over", {})):
        varied = {**spec, "params": {**spec.get("params", {}), **setting}}
        for _ in range(spec["draws"]):
            problems.append(build(name, varied, draw=len(problems), **options))
            problems[-1].setting = setting
    return problems


def check(spec: Mapping[str, Any]) -> None:
    """Refuse a specification that the making of the problem would refuse, before anything is made.

    Raises
    ------
    ConfigError, InputError
        As `build`, as far as it can be known without the data.
    """
    _kind(spec).check(spec)


def modules(spec: Mapping[str, Any], *, surrogate: bool = False) -> list[str]:
    """Return the code that a problem of this specification depends on, for `fingerprint`."""
    kind = _kind(spec)
    plugged = kind.plugged_in(spec, surrogate=surrogate)
    return [f"{__name__}:build_draws", f"{kind.__name__}:make", WRITTEN, *plugged]


def described(spec: Mapping[str, Any], *, surrogate: bool = False) -> dict[str, Any]:
    """Return what else it depends on: the data set's entry in the registry, but for addresses."""
    return _kind(spec).described(spec, surrogate=surrogate)


def _kind(spec: Mapping[str, Any]) -> ModuleType:
    return importlib.import_module(KINDS["generator" if "generator" in spec else "dataset"])
