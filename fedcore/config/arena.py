"""From the arena's file to a paper's: every method on every problem.

A problem is a data set with a partition, or a generator, which brings its own clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedcore.errors import ConfigError, require_known

NAME = "arena"
# Experiments
MAIN, LOST, STRAGGLERS, LEAKAGE, LATE = "contest", "lost", "stragglers", "leakage", "late_leakage"
ALONE = "own"  # partition of a generator's clients


def written_as_paper(arena: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arena as a paper's file."""
    _check_names(arena, where)
    late, leakage = arena.get("stragglers"), arena.get("leakage")
    components = {"n_components": arena["components"]}
    problems = dict(_problems(arena))
    shared = {"repeats": arena["repeats"], "quick": arena.get("quick", {})}
    experiments: dict[str, Any] = {
        MAIN: {
            "reproduces": "nothing: it compares the methods",
            "problems": list(problems),
            "metrics": ["subspace_distance", "captured"],
            "runs": list(_runs(arena["methods"])),
            **shared,
        }
    }
    for name, harder in (
        (LOST, dict(_lost(arena))),
        (STRAGGLERS, dict(_straggling(arena, late)) if late else {}),
    ):
        if harder:
            experiments[name] = {**experiments[MAIN], "problems": list(harder)}
            problems |= harder
    if leakage:
        problems[LEAKAGE] = {**leakage["problem"], "tags": _tags(LEAKAGE, ALONE)}
        chosen = {name: arena["methods"][name] for name in leakage["methods"]}
        for attack in (LEAKAGE, LATE):
            experiments[attack] = {
                "reproduces": "what the server learns of a client from what the client sends",
                "problems": [LEAKAGE],
                "metrics": ["subspace_distance"],
                "audit": attack,
                "runs": list(_runs(chosen)),
                **shared,
            }
    for spec in problems.values():
        spec["defaults"] = components | spec.get("defaults", {})
    return {
        "title": arena["title"],
        "citation": "",
        "judged": False,
        "problems": problems,
        "experiments": experiments,
        "tables": arena["tables"],
        "figures": arena["figures"],
    }


def _check_names(arena: Mapping[str, Any], where: str) -> None:
    """Refuse names of what is not there, and a problem's name given to a data set."""
    late = arena.get("stragglers", {})
    for part, names in (("lost", arena["lost"]), ("stragglers", late.get("partitions", []))):
        for name in names:
            require_known(name, arena["partitions"], f"{where}, {part}: unknown partition")
    for name in late.get("data", []):
        known = [data for data, spec in arena["data"].items() if "dataset" in spec]
        require_known(name, known, f"{where}, stragglers.data: unknown data set")
    if LEAKAGE in arena["data"]:
        raise ConfigError(f"{where}, data: '{LEAKAGE}' is the name of another problem; rename it")
    for name in arena.get("leakage", {}).get("methods", []):
        require_known(name, arena["methods"], f"{where}, leakage.methods: unknown method")


Problems = Iterator[tuple[str, dict[str, Any]]]


def _problems(arena: Mapping[str, Any]) -> Problems:
    """Yield every problem."""
    for data, spec in arena["data"].items():
        if "dataset" not in spec:
            yield data, {**spec, "tags": _tags(data, ALONE)}
            continue
        for name in arena["partitions"]:
            yield f"{data}_{name}", _divided(arena, data, name, "", {}, {})


def _lost(arena: Mapping[str, Any]) -> Problems:
    """Yield problems without their last client."""
    for data, name in _pairs(arena, arena["lost"]):
        changes = {"lost": 1, "like": f"{data}_{name}"}
        tags = {"lost": True}
        yield f"{data}_{name}_lost", _divided(arena, data, name, ", one client lost", changes, tags)


def _straggling(arena: Mapping[str, Any], late: Mapping[str, Any]) -> Problems:
    """Yield problems whose clients are late at times."""
    share = late["share"]
    for data, name in _pairs(arena, late["partitions"], late.get("data")):
        changes = {"stragglers": share, "like": f"{data}_{name}"}
        words, tags = f", {share:g} of the clients late", {"stragglers": share}
        yield f"{data}_{name}_stragglers", _divided(arena, data, name, words, changes, tags)


def _pairs(
    arena: Mapping[str, Any], partitions: Sequence[str], data: Sequence[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield data sets, all or those in `data`, with these partitions."""
    for name, spec in arena["data"].items():
        if "dataset" in spec and (data is None or name in data):
            yield from ((name, partition) for partition in partitions)


def _divided(
    arena: Mapping[str, Any],
    data: str,
    partition: str,
    words: str,
    changes: Mapping[str, Any],
    tags: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a data set with a partition and `changes`, which `words` and `tags` tell."""
    spec, division = arena["data"][data], arena["partitions"][partition]
    return {
        **spec,
        "label": f"{spec.get('label', data)}, {division.get('label', partition)}{words}",
        "partition": division["partition"],
        "tags": {**_tags(data, partition), **tags},
        **({"quick": False} if division.get("quick") is False else {}),
        **changes,
    }


def _tags(data: str, partition: str) -> dict[str, Any]:
    return {"data": data, "partition": partition, "lost": False}


def _runs(methods: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the methods' runs; a variant has the method's name, which tables have as a column."""
    for name, method in methods.items():
        variant = {**method.get("params", {}), "tags": {"method": name}}
        yield {
            "algorithm": method["algorithm"],
            "variants": {name: variant},
            **({"quick": False} if method.get("quick") is False else {}),
        }
