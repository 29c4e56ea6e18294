"""From the arena's file to a paper's: every method on every problem.

A problem is a data set with a partition, or a generator, which brings its own clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedcore.errors import ConfigError, require_known

NAME = "arena"
MAIN, LOST, LEAKAGE, LATE = "contest", "lost", "leakage", "late_leakage"  # experiments
ALONE = "own"  # partition of a generator's clients


def written_as_paper(arena: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arena as a paper's file.

    Parameters
    ----------
    arena : mapping
        The file, checked against ``arena.schema.yaml``.
    where : str
        What error messages call the file.

    Raises
    ------
    ConfigError
        When a part names an unknown partition or method, or a data set takes a problem's name.
    """
    for name in arena["lost"]:
        require_known(name, arena["partitions"], f"{where}, lost: unknown partition")
    if LEAKAGE in arena["data"]:
        raise ConfigError(f"{where}, data: '{LEAKAGE}' is the name of another problem; rename it")
    leakage = arena.get("leakage")
    for name in leakage["methods"] if leakage else []:
        require_known(name, arena["methods"], f"{where}, leakage.methods: unknown method")
    components = {"n_components": arena["components"]}
    problems = dict(_problems(arena, lost=False))
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
    if arena["lost"]:
        fewer = dict(_problems(arena, lost=True))
        experiments[LOST] = {**experiments[MAIN], "problems": list(fewer)}
        problems |= fewer
    if leakage:
        problems[LEAKAGE] = {**leakage["problem"], "tags": _tags(LEAKAGE, ALONE, lost=False)}
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


def _problems(arena: Mapping[str, Any], *, lost: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every problem; with `lost`, those without their last client."""
    for data, spec in arena["data"].items():
        if "dataset" not in spec:
            if not lost:
                yield data, {**spec, "tags": _tags(data, ALONE, lost=False)}
            continue
        for name in arena["lost"] if lost else arena["partitions"]:
            division = arena["partitions"][name]
            merged = {
                **spec,
                "label": f"{spec.get('label', data)}, {division.get('label', name)}"
                + (", one client lost" if lost else ""),
                "partition": division["partition"],
                "tags": _tags(data, name, lost=lost),
            }
            if division.get("quick") is False:
                merged["quick"] = False
            if lost:
                merged |= {"lost": 1, "like": f"{data}_{name}"}
            yield f"{data}_{name}" + ("_lost" if lost else ""), merged


def _tags(data: str, partition: str, *, lost: bool) -> dict[str, Any]:
    return {"data": data, "partition": partition, "lost": lost}


def _runs(methods: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the methods' runs; a variant has the method's name, which tables have as a column."""
    for name, method in methods.items():
        variant = {**method.get("params", {}), "tags": {"method": name}}
        yield {
            "algorithm": method["algorithm"],
            "variants": {name: variant},
            **({"quick": False} if method.get("quick") is False else {}),
        }
