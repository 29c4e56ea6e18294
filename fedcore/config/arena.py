"""From the arena's file to a paper's: every method on every problem.

A problem is a data set with a partition, or a generator, which brings its own clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedcore.errors import ConfigError, require_known

NAME = "arena"
# Experiments
MAIN, LEAKAGE, LATE = "contest", "leakage", "late_leakage"
ALONE = "own"  # partition of a generator's clients


def written_as_paper(arena: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arena as a paper's file."""
    _check_names(arena, where)
    leakage = arena.get("leakage")
    components = {"n_components": arena["components"]}
    problems = dict(_problems(arena))
    experiments: dict[str, Any] = {
        MAIN: {
            "reproduces": "nothing: it compares the methods",
            "problems": list(problems),
            "metrics": ["subspace_distance", "captured"],
            "runs": list(_runs(arena["methods"])),
            "repeats": arena["repeats"],
        }
    }
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
                "repeats": arena["repeats"],
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
    if LEAKAGE in arena["data"]:
        raise ConfigError(f"{where}, data: '{LEAKAGE}' is the name of another problem; rename it")
    for name in arena.get("leakage", {}).get("methods", []):
        require_known(name, arena["methods"], f"{where}, leakage.methods: unknown method")


def _problems(arena: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every problem: each data set with each partition, and each generator."""
    for data, spec in arena["data"].items():
        if "dataset" not in spec:
            yield data, {**spec, "tags": _tags(data, ALONE)}
            continue
        for partition, division in arena["partitions"].items():
            yield (
                f"{data}_{partition}",
                {
                    **spec,
                    "label": f"{spec.get('label', data)}, {division.get('label', partition)}",
                    "partition": division["partition"],
                    "tags": _tags(data, partition),
                },
            )


def _tags(data: str, partition: str) -> dict[str, str]:
    return {"data": data, "partition": partition}


def _runs(methods: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the methods' runs; a variant has the method's name, which tables have as a column."""
    for name, method in methods.items():
        variant = {**method.get("params", {}), "tags": {"method": name}}
        yield {
            "algorithm": method["algorithm"],
            "variants": {name: variant},
        }
