"""Problems that are a data set split over clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedcore.datasets import partition, reading, registry, variants
from fedcore.errors import ConfigError, require_known
from fedcore.experiments.fingerprint import data_files
from fedcore.privacy.bounded_rows import clip_rows
from fedcore.problems.clients import check_clients
from fedcore.problems.problem import Problem

SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda x: np.asarray(x, dtype=np.float64),
    "unit": lambda x: x / 255.0,
    "signed_unit": lambda x: (x / 255.0 - 0.5) / 0.5,
    "unit_rows": lambda x: clip_rows(np.asarray(x, dtype=np.float64), 1.0),  # norms over 1 become 1
}


def make(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    """Load, scale, centre and split the samples of ``spec["dataset"]``; see `build.build`."""
    data = reading.load(spec["dataset"], raw, surrogate=surrogate, options=spec.get("options"))
    first = spec.get("first", len(data.x))
    if first > len(data.x):
        raise ConfigError(
            f"problem {name} asks for the first {first} samples, but {data.name} has {len(data.x)}"
        )
    scale = spec.get("scale", "none")
    require_known(scale, SCALES, f"problem {name}: unknown scale")
    x = SCALES[scale](data.x[:first])
    if spec.get("centre"):
        x = x - x.mean(axis=0)
    labels = None if data.y is None else data.y[:first]
    parts = partition.split(spec["partition"], first, labels, rng)
    return Problem(name, check_clients([x[p] for p in parts]), data.status, data.note)


def check(spec: Mapping[str, Any]) -> None:
    """Check the options of the data set and the partition; see `build.check`."""
    reading.check(spec["dataset"], spec.get("options", {}))
    partition.check(spec["partition"])


def plugged_in(spec: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return the loaders of the data set, or the generator of its stand-in, as import paths."""
    entry, plugin = registry.find(spec["dataset"])
    if plugin is not None:
        return [plugin.module]
    return variants.code(entry or {}, surrogate=surrogate)


def described(spec: Mapping[str, Any], *, surrogate: bool) -> dict[str, Any]:
    """Return what the rows depend on beside code: the registry entry, without addresses."""
    entry, plugin = registry.find(spec["dataset"])
    if plugin is not None:
        return {"plugin": plugin.value, "files": data_files(plugin.module)}
    entry = entry or {}
    if surrogate:
        return {key: entry.get(key) for key in ("title", "surrogate", "n_classes")}
    return {
        "n_features": entry["n_features"],
        "sources": [
            {key: value for key, value in source.items() if key not in ("files", "manual")}
            | {"files": registry.sums(source)}
            for source in entry["sources"]
        ],
    }
