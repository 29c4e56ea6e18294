"""Make a problem from its specification in a configuration file.

There is one module per kind of source. A problem depends on the module of its own kind, but not on
the others, see `digests`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from fedcore.experiments import fingerprint, from_dataset, from_generator
from fedcore.experiments.combinations import combinations
from fedcore.linalg import gram_matrix
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.seeds import name_key

UNUSED_KEYS = ("label", "tags", "defaults", "mem_mb")  # by its file
# What all problems are made and written with.
COMMON_MODULES = ("fedcore.experiments.combinations", "fedcore.linalg", "fedcore.problems.storage")


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
        Whether to take the data set's offline stand-in; a generated problem does not change.
    draw : int, optional
        Number of the draw, for a problem with several.
    held : bool
        Whether to keep the clients in memory. Otherwise the clients of a data set, or of a
        generator that yields them, are made whenever they are read.
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
    many draws, the combinations one after the other. Parameters and errors are as in `build`.
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


def make(path: str, name: str, spec: Mapping[str, Any], *, code: str = "", **options: Any) -> None:
    """Build a problem as `build_draws` does, and write its file client by client.

    If `code`, the fingerprint of the code, is given, the file holds the problem's `recipe`.
    """
    how = {key: options[key] for key in ("seed", "surrogate")}
    made_from = recipe(name, spec, code=code, **how) if code else ""
    storage.save(build_draws(name, spec, held=False, **options), path, recipe=made_from)


def recipe(name: str, spec: Mapping[str, Any], *, code: str, seed: int, surrogate: bool) -> str:
    """Return one digest of everything on which the file of a problem depends."""
    text = json.dumps([name, data_of(spec), code, seed, surrogate], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def data_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a problem's specification on which its file depends."""
    return {key: value for key, value in spec.items() if key not in UNUSED_KEYS}


def check(spec: Mapping[str, Any]) -> None:
    """Check a specification before any problem is built."""
    _kind(spec).check(spec)


def digests(spec: Mapping[str, Any], *, surrogate: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the names and digests of the modules that a problem of this specification depends on.

    This module imports the modules of all kinds of source. Here only the module of the problem's
    own kind counts, beside the text of this module.
    """
    kind = _kind(spec)
    own = (__name__, fingerprint.digest(__name__))
    plugged = kind.plugged_in(spec, surrogate=surrogate)
    return own, *fingerprint.digests(*COMMON_MODULES, kind.__name__, *plugged)


def described(spec: Mapping[str, Any], *, surrogate: bool = False) -> dict[str, Any]:
    """Return what else a problem depends on: its registry entry, without addresses."""
    return _kind(spec).described(spec, surrogate=surrogate)


def _kind(spec: Mapping[str, Any]) -> ModuleType:
    return from_generator if "generator" in spec else from_dataset
