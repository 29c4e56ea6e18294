"""The readers by name, their options, and the choice among a data set's variants."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.loaded import Loaded
from fedcore.datasets.verification import exists, verify
from fedcore.errors import ConfigError, DataError, InputError, require_known
from fedcore.validation import check_annotated, whole
from fedcore.words import counted

# ``module:function``, imported when used: a problem's fingerprint covers its own loader only.
LOADERS = {
    "celeba": "fedcore.datasets.formats.celeba:read",
    "cifar100_pictures": "fedcore.datasets.formats.cifar:read_pictures100",
    "cifar100_python": "fedcore.datasets.formats.cifar:read_python100",
    "cifar10_pictures": "fedcore.datasets.formats.cifar:read_pictures10",
    "cifar10_python": "fedcore.datasets.formats.cifar:read_python10",
    "emnist": "fedcore.datasets.formats.letters:read_emnist",
    "idx": "fedcore.datasets.formats.idx:read",
    "libsvm": "fedcore.datasets.formats.libsvm:read",
    "nist_by_class": "fedcore.datasets.formats.letters:read_by_class",
    "sentiment140": "fedcore.datasets.formats.tweets:read",
}
SURROGATES = {
    "digits": "fedcore.datasets.surrogates:digits",
    "sparse_binary": "fedcore.datasets.surrogates:sparse_binary",
    "photographs": "fedcore.datasets.surrogates:photographs",
    "faces": "fedcore.datasets.surrogates:faces",
    "sentences": "fedcore.datasets.surrogates:sentences",
}
_SPLITS = ("train", "test")
_COMMON = {"samples": whole(1), "shuffle": whole(0)}


def code(entry: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return the code that makes the rows of a registry entry, each as ``module:function``."""
    if surrogate:
        return [_place("surrogate", entry["surrogate"], SURROGATES)] if "surrogate" in entry else []
    names = sorted({source["loader"] for source in entry["sources"]})
    return [_place("loader", name, LOADERS) for name in names]


def _place(kind: str, name: str, table: Mapping[str, str]) -> str:
    """Return the ``module:function`` of a name; ConfigError when the name is unknown."""
    require_known(name, table, f"the registry has an unknown {kind}")
    return table[name]


def _lookup(kind: str, name: str, table: Mapping[str, str]) -> Callable[..., Loaded]:
    """Return a function of the table."""
    module, _, function = _place(kind, name, table).partition(":")
    return getattr(importlib.import_module(module), function)


def _keywords(function: Callable[..., Loaded]) -> set[str]:
    """Return the options that a loader or generator takes: its keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_entry(entry: Mapping[str, Any], what: str) -> None:
    """Refuse an entry of the registry that names an unknown reader, surrogate or file."""
    try:
        if "surrogate" in entry:
            _place("surrogate", entry["surrogate"], SURROGATES)
        for source in entry["sources"]:
            _place("loader", source["loader"], LOADERS)
            there = {file["name"] for file in source["files"]} | set(source.get("folders", ()))
            for split in source["splits"]:
                for part in _parts(source, split):
                    variant = f"split '{split}' of variant '{source['variant']}'"
                    require_known(part, there, f"{variant} has no file")
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from error


def check(name: str, entry: Mapping[str, Any], split: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown split, an option that no variant takes, and a bad value of an option."""
    require_known(split, _SPLITS, "unknown split")
    if not any(split in source["splits"] for source in entry["sources"]):
        raise ConfigError(f"data set '{name}' has no split '{split}'")
    known = set(_COMMON).union(
        *(_keywords(_lookup("loader", s["loader"], LOADERS)) for s in entry["sources"])
    )
    for option in options:
        require_known(option, known, f"data set '{name}' has no option")
    try:
        for option, rule in _COMMON.items():
            if option in options:
                rule(options[option], option)
        for source in entry["sources"]:
            check_annotated(_lookup("loader", source["loader"], LOADERS), options)
    except InputError as error:
        raise ConfigError(f"option {error}") from error


def stand_in(name: str, entry: Mapping[str, Any], split: str, options: Mapping[str, Any]) -> Loaded:
    """Make the surrogate that the registry names; options that it does not take are ignored."""
    if "surrogate" not in entry:
        raise ConfigError(f"data set '{name}' has no surrogate: run it on its own files")
    make = _lookup("surrogate", entry["surrogate"], SURROGATES)
    taken = {key: options[key] for key in _keywords(make) & options.keys()}
    return make(split, entry.get("n_classes", 1), **taken)


def _parts(source: Mapping[str, Any], split: str) -> set[str]:
    """Return the names of files and folders that a split of a variant uses."""
    inside = ("members", "words")  # an archive
    roles = {r: part for r, part in source["splits"][split].items() if r not in inside}
    return {name for part in roles.values() for name in ([part] if isinstance(part, str) else part)}


def _files(source: Mapping[str, Any], split: str) -> list[dict[str, Any]]:
    """Return the registry files that a split of a variant uses."""
    parts = _parts(source, split)
    return [file for file in source["files"] if file["name"] in parts]


def present(entry: Mapping[str, Any], split: str, raw: Path) -> Mapping[str, Any] | None:
    """Return the first variant whose files of this split are all below `raw`, None without one."""
    for source in entry["sources"]:
        if split in source["splits"]:
            needed = [*(f["name"] for f in _files(source, split)), *source.get("folders", ())]
            if all(exists(raw / item) for item in needed):
                return source
    return None


def read(
    entry: Mapping[str, Any],
    source: Mapping[str, Any],
    split: str,
    options: Mapping[str, Any],
    raw: Path,
) -> tuple[Loaded, str]:
    """Check and read the files of one variant."""
    files = _files(source, split)
    used = [(f["name"], verify(raw / f["name"], f)) for f in files]
    reader = _lookup("loader", source["loader"], LOADERS)
    taken = {key: options[key] for key in _keywords(reader) & options.keys()}
    loaded = reader(raw, source["splits"][split], entry["n_features"], **taken)
    if loaded.x.shape[1] != entry["n_features"]:
        raise DataError(
            f"{raw} has {counted(loaded.x.shape[1], 'feature')} in its files and "
            f"{entry['n_features']} in the registry"
        )
    total = hashlib.sha256()
    for name, value in sorted([*used, *loaded.used]):
        total.update(f"{name} {value}\n".encode())
    return loaded, total.hexdigest()
