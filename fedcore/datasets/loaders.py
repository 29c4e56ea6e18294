"""Find the functions that read data sets or make stand-ins for them; check their options."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.loaded import Loaded
from fedcore.datasets.verification import verify
from fedcore.errors import ConfigError, DataError, InputError, require_known
from fedcore.validation import check_annotated, whole
from fedcore.words import counted

# ``module:function``, imported when used: a problem depends on the code of its own loader only.
LOADERS = {
    "celeba": "fedcore.datasets.formats.celeba:read",
    "cifar10": "fedcore.datasets.formats.cifar:read10",
    "cifar100": "fedcore.datasets.formats.cifar:read100",
    "idx": "fedcore.datasets.formats.idx:read",
    "libsvm": "fedcore.datasets.formats.libsvm:read",
    "nist_by_class": "fedcore.datasets.formats.letters:read",
    "sentiment140": "fedcore.datasets.formats.tweets:read",
}
SURROGATES = {
    "digits": "fedcore.datasets.surrogates:digits",
    "sparse_binary": "fedcore.datasets.surrogates:sparse_binary",
    "photographs": "fedcore.datasets.surrogates:photographs",
    "faces": "fedcore.datasets.surrogates:faces",
    "sentences": "fedcore.datasets.surrogates:sentences",
}
_COMMON = {"samples": whole(1), "shuffle": whole(0)}


def modules(entry: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return a list with the module that reads a data set or makes its surrogate (stand-in).

    The list is empty if a surrogate is asked for and the data set has none.
    """
    kind, table = ("surrogate", SURROGATES) if surrogate else ("loader", LOADERS)
    return [place(kind, entry[kind], table).partition(":")[0]] if kind in entry else []


def place(kind: str, name: str, table: Mapping[str, str]) -> str:
    """Return the ``module:function`` that `table` has for `name`, or raise a ConfigError."""
    require_known(name, table, f"the registry has an unknown {kind}")
    return table[name]


def _lookup(kind: str, name: str, table: Mapping[str, str]) -> Callable[..., Loaded]:
    module, _, function = place(kind, name, table).partition(":")
    return getattr(importlib.import_module(module), function)


def _keywords(function: Callable[..., Loaded]) -> set[str]:
    """Return the options of a loader, which are the names of its keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check(name: str, entry: Mapping[str, Any], split: str, options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown split, an unknown option, or a wrong value of an option."""
    require_known(split, entry["splits"], f"data set '{name}' has no split")
    loader = _lookup("loader", entry["loader"], LOADERS)
    for option in options:
        require_known(option, {*_COMMON, *_keywords(loader)}, f"data set '{name}' has no option")
    try:
        for option, rule in _COMMON.items():
            if option in options:
                rule(options[option], option)
        check_annotated(loader, options)
    except InputError as error:
        raise ConfigError(f"option {error}") from error


def stand_in(name: str, entry: Mapping[str, Any], split: str, options: Mapping[str, Any]) -> Loaded:
    """Make a data set's surrogate (stand-in), ignoring options that the surrogate does not take."""
    if "surrogate" not in entry:
        raise ConfigError(f"data set '{name}' has no surrogate: run it on its own files")
    make = _lookup("surrogate", entry["surrogate"], SURROGATES)
    taken = {key: options[key] for key in _keywords(make) & options.keys()}
    return make(split, entry.get("n_classes", 1), **taken)


def files_of(parts: Mapping[str, Any]) -> set[str]:
    """Return the names of the files that a split of a data set needs."""
    inside = ("members", "words")  # an archive
    found = [part for role, part in parts.items() if role not in inside]
    return {name for part in found for name in ([part] if isinstance(part, str) else part)}


def read(
    form: Mapping[str, Any], split: str, options: Mapping[str, Any], raw: Path
) -> tuple[Loaded, str]:
    """Check and read the files of a split; return the samples, and one sha256 for all the files."""
    parts, wanted = form["splits"][split], form["n_features"]
    names = files_of(parts)
    used = {f["name"]: verify(raw / f["name"], f) for f in form["files"] if f["name"] in names}
    loader = _lookup("loader", form["loader"], LOADERS)
    taken = {key: options[key] for key in _keywords(loader) & options.keys()}
    loaded = loader(raw, parts, wanted, **taken)
    if loaded.x.shape[1] != wanted:
        raise DataError(
            f"the files in {raw} have {counted(loaded.x.shape[1], 'feature')}, but the registry "
            f"says n_features = {wanted}: correct n_features"
        )
    listed = "".join(f"{name} {value}\n" for name, value in sorted(used.items()))
    return loaded, hashlib.sha256(listed.encode()).hexdigest()
