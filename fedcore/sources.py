"""Making a problem from its specification: a generator, or a data set split over clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcore import datasets, generators
from fedcore.datasets import partition
from fedcore.errors import ConfigError, nearest
from fedcore.federation import check_clients
from fedcore.problems import Problem, name_key

SCALES = {
    "none": lambda x: np.asarray(x, dtype=np.float64),
    "unit": lambda x: x / 255.0,
    "signed_unit": lambda x: (x / 255.0 - 0.5) / 0.5,
}


def build(name: str, spec: Mapping[str, Any], *, raw: str, seed: int, surrogate: bool) -> Problem:
    """Build a problem from its specification.

    Parameters
    ----------
    name : str
    spec : mapping
        Either ``generator`` and its ``params``, or ``dataset``, ``options``, ``first`` (number of
        leading samples), ``scale`` and ``partition``.
    raw : str
        Folder of the raw data files.
    seed : int
        Master seed; the problem's own stream hangs on its name, not on who uses it.
    surrogate : bool
        Take the data set's offline stand-in; a generator's matrices count as stand-ins, too.

    Raises
    ------
    ConfigError, DataError, InputError
        When the specification is wrong or the data cannot be had.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(name_key(name),)))
    if "generator" in spec:
        clients = check_clients(generators.generate(spec["generator"], rng, spec.get("params", {})))
        if surrogate:  # sizes are not the paper's, so that a result must not pass for its own
            return Problem(name, clients, "surrogate", "drawn at the sizes of this configuration")
        return Problem(name, clients)
    return _from_dataset(name, spec, rng, raw=raw, surrogate=surrogate)


def _from_dataset(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    data = datasets.load(spec["dataset"], raw, surrogate=surrogate, options=spec.get("options"))
    first = spec.get("first", len(data.x))
    if first > len(data.x):
        raise ConfigError(
            f"problem {name}: asks for the first {first} samples, {data.name} has {len(data.x)}"
        )
    scale = spec.get("scale", "none")
    if scale not in SCALES:
        raise ConfigError(f"problem {name}: unknown scale '{scale}': {nearest(scale, SCALES)}")
    x = SCALES[scale](data.x[:first])
    labels = None if data.y is None else data.y[:first]
    parts = partition.split(spec["partition"], first, labels, rng)
    return Problem(name, check_clients([x[p] for p in parts]), data.status, data.note)
