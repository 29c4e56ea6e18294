"""The command that runs a method as an experiment runs it: pages have names of their own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

DATA = "DATA"  # stands for the reader's


def command(algorithm: str, params: Mapping[str, Any]) -> str:
    """Return the line to type; `DATA` stands for a data set or files."""
    words = ["fedcore", "run", algorithm, DATA]
    for name, value in params.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--components", text] if name == "n_components" else ["--set", f"{name}={text}"]
    return shlex.join(words)


def of_variants(experiment: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row of ``method`` and ``command`` for every variant of an experiment's runs."""
    shared = experiment.get("params", {})
    return [
        {
            "method": name,
            "command": command(
                run["algorithm"],
                shared | run.get("params", {}) | {k: v for k, v in own.items() if k != "tags"},
            ),
        }
        for run in experiment["runs"]
        for name, own in run["variants"].items()
    ]
