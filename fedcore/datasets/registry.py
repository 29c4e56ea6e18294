"""Look up data sets in the registry file, and data sets that other packages add."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fedcore.datasets import loaders
from fedcore.datasets.verification import expected
from fedcore.errors import ConfigError, nearest, require_known
from fedcore.files import schemas

GROUP = "fedcore.datasets"


@functools.lru_cache(maxsize=8)
def _validated(path: Path, stamp: int) -> dict[str, dict[str, Any]]:
    """Parse and validate a registry file that was last changed at `stamp`."""
    from fedcore.files import schemas, strict_yaml

    what = f"the data set registry {path}"
    known = schemas.check(strict_yaml.read_yaml(path), "datasets", what)["datasets"]
    for name, entry in known.items():
        try:
            _check(entry)
        except ConfigError as error:
            raise ConfigError(f"{what}, {name}: {error}") from error
    return known


def _check(entry: Mapping[str, Any]) -> None:
    """Raise an error if a registry entry names an unknown loader, surrogate or file."""
    loaders.place("loader", entry["loader"], loaders.LOADERS)
    if "surrogate" in entry:
        loaders.place("surrogate", entry["surrogate"], loaders.SURROGATES)
    for form in forms(entry):
        there = {file["name"] for file in form["files"]}
        for split, parts in form["splits"].items():
            for name in loaders.files_of(parts):
                require_known(name, there, f"split '{split}' has no file")


def forms(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return one registry entry per file format; CIFAR exists as archives and as pictures."""
    return [entry, {**entry, **entry["pictures"]}] if "pictures" in entry else [entry]


def entries(registry: str | os.PathLike[str] | None = None) -> Mapping[str, dict[str, Any]]:
    """Return the validated registry, a mapping from names of data sets to their entries.

    Parameters
    ----------
    registry : path-like, optional
        Registry file (default: the installed one, else ``config/datasets.yaml`` of the repository).
    """
    if registry is None:
        path = schemas.find_shipped("datasets/datasets.yaml", "config/datasets.yaml")
    else:
        path = Path(registry).resolve()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"there is no data set registry at {path}") from error
    return _validated(path, stamp)


def plugins() -> dict[str, EntryPoint]:
    """Return the third-party data sets (entry-point group ``fedcore.datasets``) by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def loader_of(point: EntryPoint) -> Callable[..., Any]:
    """Return the function that loads a third-party data set, or raise a ConfigError without one."""
    what = f"third-party data set '{point.name}': {point.value}"
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # third-party code can raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{what} cannot be imported: {said}") from error
    if not callable(found):
        raise ConfigError(f"{what} is no function: write the entry point as module:function")
    return found


def find(
    name: str, registry: str | os.PathLike[str] | None = None
) -> tuple[dict[str, Any] | None, EntryPoint | None]:
    """Return a data set's registry entry and None, or None and its entry point.

    A data set of another package has an entry point instead of a registry entry. A registry entry
    takes precedence over an entry point of the same name.
    """
    known = entries(registry)
    if name in known:
        return known[name], None
    outside = plugins()
    if name in outside:
        return None, outside[name]
    hint = nearest(name, {*known, *outside}, "`fedcore list datasets` shows all")
    raise ConfigError(f"unknown data set '{name}': {hint}")


def sums_of(name: str) -> list[Any]:
    """Return the checksums of a data set, as one mapping for each of its file formats.

    A data set of another package has no checksums.
    """
    entry, _ = find(name)
    return [sums(form) for form in forms(entry)] if entry else []


def sums(form: Mapping[str, Any]) -> dict[str, str]:
    """Return ``{file name: "algorithm checksum"}`` for all files of one format."""
    return {file["name"]: " ".join(expected(file)) for file in form["files"]}


def names(registry: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names of the data sets in the registry, then those that other packages add."""
    known = list(entries(registry))
    return known + sorted(set(plugins()) - set(known))


def describe(name: str, registry: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return a copy of a data set's registry entry, or facts about a third-party data set."""
    entry, plugin = find(name, registry)
    if plugin is not None:
        return {"title": name, "description": f"third-party data set {plugin.value}"}
    return copy.deepcopy(entry or {})
