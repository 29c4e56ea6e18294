"""Make a problem from its specification in a configuration file.

There is one module per kind of source, imported when needed, so that the fingerprint of a generated
problem does not cover the code for data sets, or the reverse.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from fedcore.experiments.combinations import combinations
from fedcore.linalg import gram_matrix
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.seeds import name_key

KINDS = {
    "generator": "fedcore.experiments.from_generator",
    "dataset": "fedcore.experiments.from_dataset",
}
UNUSED = ("label", "tags", "defaults", "mem_mb")  # by its file
WRITTEN = "fedcore.problems.storage:save"


def build(
    name: str,
    spec: Mapping[str, Any],
    *,
    raw: str,
    seed: int,
    surrogate: bool,
    draw: int | None = None,
    held: bool = True,
) -> Problem:
    """Build a problem from its specification.

    Parameters
    ----------
    name : str
    spec : mapping
        Either ``generator`` and its ``params``, or ``dataset``, ``options``, ``first`` (number of
        leading samples), ``scale``, ``standardise``, ``precision``, ``partition`` and, for
        classification, ``held_out``. With ``gram``, the sum of the clients' Gram matrices is
        computed, too. With ``largest_row``, all rows are multiplied by one number, so that the
        longest has this norm.
    raw : str
        Folder of the raw data files.
    seed : int
        Master seed; the problem's random stream depends on this seed, the name and the draw only.
    surrogate : bool
        Take the data set's offline stand-in; a generated problem is what it is.
    draw : int, optional
        Number of the draw, for a problem with several.
    held : bool
        Keep the clients in memory; else those of a data set, or of a generator that yields them,
        are made whenever they are read.
    """
    key = (name_key(name),) if draw is None else (name_key(name), draw)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    problem: Problem = _kind(spec).make(name, spec, rng, raw=raw, surrogate=surrogate)
    if spec.get("largest_row"):
        problem = problem.with_largest_row(spec["largest_row"])
    if spec.get("gram"):
        problem.clients.gram = gram_matrix(problem.clients)
    for samples in filter(None, (problem.clients, problem.held_out) if held else ()):
        samples.hold()
    return problem


def build_draws(name: str, spec: Mapping[str, Any], **options: Any) -> Problem | list[Problem]:
    """Build ``spec["draws"]`` independent draws of a problem, or one problem without this key.

    ``over`` lists values by parameter of the generator. Each combination of these values gets that
    many draws, the combinations one after the other. Parameters and errors are those of `build`.
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


def make(path: str, name: str, spec: Mapping[str, Any], **options: Any) -> None:
    """Build a problem as `build_draws` does, and write its file client by client."""
    storage.save(build_draws(name, spec, held=False, **options), path)


def data_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a problem's specification on which its file depends."""
    return {key: value for key, value in spec.items() if key not in UNUSED}


def check(spec: Mapping[str, Any]) -> None:
    """Check a specification before any problem is built."""
    _kind(spec).check(spec)


def modules(spec: Mapping[str, Any], *, surrogate: bool = False) -> list[str]:
    """Return the code that a problem of this specification depends on, for `fingerprint`."""
    kind = _kind(spec)
    plugged = kind.plugged_in(spec, surrogate=surrogate)
    return [f"{__name__}:build_draws", f"{kind.__name__}:make", WRITTEN, *plugged]


def described(spec: Mapping[str, Any], *, surrogate: bool = False) -> dict[str, Any]:
    """Return what else a problem depends on: its registry entry, without addresses."""
    return _kind(spec).described(spec, surrogate=surrogate)


def _kind(spec: Mapping[str, Any]) -> ModuleType:
    return importlib.import_module(KINDS["generator" if "generator" in spec else "dataset"])
