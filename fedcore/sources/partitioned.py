"""Problems that are a data set split over clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedcore import datasets
from fedcore.clients import check_clients
from fedcore.datasets import partition
from fedcore.errors import ConfigError, nearest
from fedcore.privacy.rows import clip_rows
from fedcore.problems import Problem

SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda x: np.asarray(x, dtype=np.float64),
    "unit": lambda x: x / 255.0,
    "signed_unit": lambda x: (x / 255.0 - 0.5) / 0.5,
    "unit_rows": lambda x: clip_rows(np.asarray(x, dtype=np.float64), 1.0),  # longer ones cut to 1
}


def make(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    """Load, scale and split the samples of ``spec["dataset"]``; see `sources.build`."""
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


def check(spec: Mapping[str, Any]) -> None:
    """Check the options of the data set and the partition; see `sources.check`."""
    datasets.check(spec["dataset"], spec.get("options", {}))
    partition.check(spec["partition"])


def plugged_in(spec: Mapping[str, Any]) -> list[str]:
    """Return nothing, as all code is reached by imports, if the data set is known."""
    datasets.describe(spec["dataset"])
    return []
