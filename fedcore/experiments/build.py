"""Make a problem (client data with the exact answer) from its specification in a configuration.

`digests` lists the Python modules that a problem depends on. A change of the code for data sets
does not affect generated problems, and a change of the code for generators does not affect problems
from data sets.
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
    """Build a problem (client data with the exact answer) from its specification.

    Parameters
    ----------
    name : str
    spec : mapping
        For a generated problem, the keys are ``generator`` and ``params``. For a data set, the keys
        are ``dataset``, ``options``, ``first`` (number of leading samples), ``scale``,
        ``standardise``, ``centre``, ``precision``, ``partition`` and, for classification,
        ``held_out``. If ``gram`` is true, the sum of the clients' Gram matrices is also computed.
        If ``largest_row`` is given, all rows are multiplied by one number so that the longest row
        has this norm.
    raw : str
        Folder of the raw data files.
    seed : int
        Master seed. The problem's random stream depends only on the master seed, `name` and `draw`.
    surrogate : bool
        Whether to use the data set's surrogate, which needs no files. Generated problems ignore
        `surrogate`.
    draw : int, optional
        Number of the draw, if several independent random draws of the problem are made.
    held : bool
        Whether to keep the clients' matrices in memory. If `held` is false, the matrices from a
        data set, or from a generator that yields clients, are computed anew at each read.
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
    """Build ``spec["draws"]`` independent random draws of a problem; without this key, build one.

    The key ``over`` maps parameters of the generator to lists of values. Each combination of these
    values gets ``spec["draws"]`` draws, which are consecutive in the result. `options` are keyword
    arguments of `build`.
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
    """Build a problem as `build_draws` does, and write it to the file `path` client by client.

    `code` is a digest of the code that builds the problem. Unless `code` is empty, the file stores
    the digest that `recipe` returns.
    """
    how = {key: options[key] for key in ("seed", "surrogate")}
    made_from = recipe(name, spec, code=code, **how) if code else ""
    storage.save(build_draws(name, spec, held=False, **options), path, recipe=made_from)


def recipe(name: str, spec: Mapping[str, Any], *, code: str, seed: int, surrogate: bool) -> str:
    """Return one digest of everything that determines a problem file: settings, code and seed."""
    text = json.dumps([name, data_of(spec), code, seed, surrogate], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def data_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a problem's specification that determine the content of its file."""
    return {key: value for key, value in spec.items() if key not in UNUSED_KEYS}


def check(spec: Mapping[str, Any]) -> None:
    """Check a problem's specification before any problem is built."""
    _kind(spec).check(spec)


def digests(spec: Mapping[str, Any], *, surrogate: bool = False) -> tuple[tuple[str, str], ...]:
    """Return name and digest of each module that a problem with this specification depends on.

    The imports of `fedcore.experiments.build` are not followed, because `build` imports the code
    for both generators and data sets.
    """
    kind = _kind(spec)
    own = (__name__, fingerprint.digest(__name__))
    plugged = kind.plugged_in(spec, surrogate=surrogate)
    return own, *fingerprint.digests(*COMMON_MODULES, kind.__name__, *plugged)


def described(spec: Mapping[str, Any], *, surrogate: bool = False) -> dict[str, Any]:
    """Return what a problem depends on besides code, such as the registry entry of its data set."""
    return _kind(spec).described(spec, surrogate=surrogate)


def _kind(spec: Mapping[str, Any]) -> ModuleType:
    return from_generator if "generator" in spec else from_dataset
