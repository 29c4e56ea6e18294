"""Make a problem (client data) from a data set, whose samples are divided among clients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fedcore.arrays import check_array, check_labels_of
from fedcore.datasets import loaders, partition, reading, registry
from fedcore.errors import ConfigError, require_known
from fedcore.experiments.fingerprint import data_files
from fedcore.files.lazy import LazyMatrices
from fedcore.privacy.bounded_rows import clip_rows
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.words import client, counted

# Partitions that deal two sets with the same labels alike, from the same state of the generator.
PAIRED_PARTITIONS = ("identity", "label", "shards", "shuffled")

BLOCK_ENTRIES = 2**24  # of a block of rows of which a mean is made

Rows = Callable[[Any], np.ndarray]  # of a data set, by their numbers

SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda x: np.asarray(x, dtype=np.float64),
    "unit": lambda x: x / 255.0,
    "signed_unit": lambda x: (x / 255.0 - 0.5) / 0.5,
    "unit_rows": lambda x: clip_rows(np.asarray(x, dtype=np.float64), 1.0),  # norms over 1 become 1
}


def make(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    """Load the samples of ``spec["dataset"]``, prepare and split them; see `build.build`."""
    load = partial(
        reading.load, spec["dataset"], raw, surrogate=surrogate, options=spec.get("options")
    )
    data = load()
    first = spec.get("first", len(data.x))
    if first > len(data.x):
        raise ConfigError(
            f"problem {name}: first = {first} is more than the {counted(len(data.x), 'sample')} of "
            f"{data.name}: lower 'first'"
        )
    rows = _rows(name, spec, data.x[:first])
    labels, owners = (None if a is None else a[:first] for a in (data.y, data.owners))
    if "held_out" not in spec:
        parts = partition.split(spec["partition"], first, labels, rng, owners)
        return Problem(name, _clients(rows, parts), data.status, data.note)
    if labels is None:
        raise ConfigError(
            f"problem {name}: {data.name} has no labels, which 'held_out' needs: leave out "
            "'held_out'"
        )
    deal = copy.deepcopy(rng)
    parts, note = partition.split(spec["partition"], first, labels, rng, owners), data.note
    if spec["held_out"] == "test":
        _require_paired(spec["partition"]["by"])
        test = load(split="test")
        if test.y is None or set(test.y) != set(labels):
            raise ConfigError(
                f"problem {name}: test and training samples of {data.name} differ in their "
                "classes: give 'held_out' as a share"
            )
        # From the same state the partition deals the same classes.
        alike = partition.split(spec["partition"], len(test.x), test.y, deal, test.owners)
        clients = _clients(rows, parts, labels)
        apart = _clients(_rows(name, spec, test.x), alike, test.y)
        note += "" if test.note == note else f" Held out: {test.note}"
    else:
        pairs = [partition.held_out(part, spec["held_out"], rng) for part in parts]
        clients, apart = (_clients(rows, side, labels) for side in zip(*pairs, strict=True))
    return Problem(name, clients, data.status, note, held_out=apart)


def _scaled(name: str, spec: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    """Scale and standardise samples, in the floating-point precision that `spec` asks for."""
    scale = spec.get("scale", "none")
    require_known(scale, SCALES, f"problem {name}: unknown scale")
    x = SCALES[scale](x)
    if "standardise" in spec:
        mean, deviation = (np.array(spec["standardise"][key]) for key in ("mean", "deviation"))
        if len(mean) != len(deviation) or x.shape[1] % len(mean):
            raise ConfigError(
                f"problem {name}: give 'standardise' one mean and one deviation per channel; the "
                f"number of channels must divide the {x.shape[1]} features"
            )
        pixels = x.shape[1] // len(mean)
        x = (x - np.repeat(mean, pixels)) / np.repeat(deviation, pixels)
    return x.astype(np.float32) if spec.get("precision") == "single" else x


def _rows(name: str, spec: Mapping[str, Any], x: np.ndarray) -> Rows:
    """Return a function that maps row numbers to prepared (scaled, standardised, centred) rows."""

    def scaled(part: np.ndarray | slice) -> np.ndarray:
        return _scaled(name, spec, x[part])

    if not spec.get("centre"):
        return scaled
    step = max(1, BLOCK_ENTRIES // x.shape[1])
    blocks = (scaled(slice(start, start + step)) for start in range(0, len(x), step))
    mean = sum(block.sum(axis=0) for block in blocks) / len(x)
    return lambda part: scaled(part) - mean


def _clients(rows: Rows, parts: Iterable[np.ndarray], labels: np.ndarray | None = None) -> Clients:
    """Return clients; client i has the rows ``parts[i]``, which are computed when they are read."""
    parts = list(parts)
    matrices = LazyMatrices(lambda i: check_array(rows(parts[i]), client(i)), len(parts))
    first = matrices[0]
    shapes = [(len(part), first.shape[1]) for part in parts]
    own = (
        None
        if labels is None
        else [check_labels_of(labels[part], client(i), first.dtype) for i, part in enumerate(parts)]
    )
    return Clients(matrices, shapes, [first.dtype] * len(parts), labels=own)


def _require_paired(by: str) -> None:
    """Refuse a partition that may test a client on classes on which it does not train."""
    if by not in PAIRED_PARTITIONS:
        raise ConfigError(
            f"partition '{by}' could test a client on classes on which it does not train: give "
            f"'held_out' as a share, or take the partition {' or '.join(PAIRED_PARTITIONS)}"
        )


def check(spec: Mapping[str, Any]) -> None:
    """Check the options of the data set and the partition; see `build.check`."""
    reading.check(spec["dataset"], spec.get("options", {}))
    partition.check(spec["partition"])
    if spec.get("held_out") == "test":
        _require_paired(spec["partition"]["by"])
        reading.check(spec["dataset"], spec.get("options", {}), split="test")
    if "held_out" in spec and spec.get("centre"):
        raise ConfigError("held-out samples would not be centred: take 'standardise', not 'centre'")


def plugged_in(spec: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return the names of the modules that load the data set or, if `surrogate`, its stand-in."""
    entry, plugin = registry.find(spec["dataset"])
    if plugin is not None:
        return [plugin.module]
    return loaders.modules(entry or {}, surrogate=surrogate)


def described(spec: Mapping[str, Any], *, surrogate: bool) -> dict[str, Any]:
    """Return the parts of a data set's registry entry that determine the problem's samples."""
    entry, plugin = registry.find(spec["dataset"])
    if plugin is not None:
        return {"plugin": plugin.value, "files": data_files(plugin.module)}
    entry = entry or {}
    if surrogate:
        return {key: entry.get(key) for key in ("title", "surrogate", "n_classes")}
    keys = ("n_features", "status", "note", "loader", "splits")
    return {
        "forms": [
            {key: form[key] for key in keys} | {"files": registry.sums(form)}
            for form in registry.forms(entry)
        ]
    }
