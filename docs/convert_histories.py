"""Brings kept histories of schema 1 to the present schema, once: ``python docs/convert_histories.py``.

What they lack, iterates and final arrays, is marked as not kept, and each says the commit that
keeps it, whose code made it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import h5py

from fedcore.history import History

ROOT = Path(__file__).parents[1]


def converted(path: Path) -> History:
    """Read a history of schema 1."""
    with h5py.File(path) as file:
        groups = {
            group: {name: data[()] for name, data in file[group].items()}
            for group in ("history", "final", "reference", "twin", "clients")
            if group in file
        }
        stored = file["history"].items()
        units = {n: (str(d.attrs["units"]), str(d.attrs["description"])) for n, d in stored}
        marks = {n: d.attrs["privacy"] for n, d in stored if "privacy" in d.attrs}
        about = json.loads(file.attrs["about"])
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%h", "--", str(path)]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    about |= {"commit": commit, "iterates": {"policy": "not kept"}}
    return History(
        groups["history"], groups.get("final", {}), {}, groups.get("reference", {}), about, units,
        frozenset(n for n in marks if marks[n] == "released") if marks else None,
        groups.get("twin", {}), groups.get("clients", {}),
    )  # fmt: skip


for path in sorted((ROOT / "docs" / "histories").rglob("*.h5")):
    with h5py.File(path) as file:
        old = int(file.attrs["schema"]) == 1
    if old:
        converted(path).save(path, force=True)
        print(path.relative_to(ROOT))
