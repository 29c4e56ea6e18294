"""Record in ``papers/<paper>/test_dates.tsv`` when each item got its present test.

A row has the fingerprint (SHA-256) of an item's test, and the date and commit at which
``tools/verdicts.py`` first recorded this test. The row also has the seed of the runs that had been
seen by that date. A new test needs runs with a new seed, but leaves existing histories valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcore.files import atomic
from fedcore.reports import tables
from fedcore.repro.config.claims import by_id

FILE = "test_dates.tsv"
WORDS = ("absent", "called", "silent")  # keys of a `select` that test nothing


def fingerprints(claims: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each item's test, keyed by the item's id."""
    return {
        name: hashlib.sha256(
            json.dumps(
                ["headline" in item, "panel" in item, _without_words(item["readings"])],
                sort_keys=True,
            ).encode()
        ).hexdigest()
        for name, item in by_id(claims).items()
        if item["readings"]
    }


def _without_words(value: Any) -> Any:
    """Return a part of an item without the keys in `WORDS`, which do not affect the item's test."""
    if isinstance(value, list):
        return [_without_words(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _without_words(one) for key, one in value.items() if key not in WORDS}
    return value


def read(folder: Path) -> list[tables.Row]:
    """Return the rows of ``test_dates.tsv`` in a paper's folder."""
    path = folder / FILE
    return tables.read(path) if path.is_file() else []


def record(folder: Path, claims: Mapping[str, Any], *, date: str, commit: str, seed: int) -> None:
    """Add a row for each item whose test differs from its last recorded test."""
    rows = read(folder)
    last = {row["item"]: row["sha256"] for row in rows}
    new = [
        {"item": name, "sha256": sha, "date": date, "commit": commit, "seed": seed}
        for name, sha in fingerprints(claims).items()
        if last.get(name) != sha
    ]
    if new:
        with atomic.replace(folder / FILE) as draft:
            draft.write_text(tables.text([*rows, *new], FILE), encoding="utf-8")


def remarks(folder: Path, claims: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Return remarks on tests that are new, were changed, or were set after runs with this seed."""
    found: dict[str, str] = {}
    rows = read(folder)
    for name, sha in fingerprints(claims).items() if rows else ():
        mine = [row for row in rows if row["item"] == name]
        if not mine or mine[-1]["sha256"] != sha:
            found[name] = "a new test, which needs new seeds"
            continue
        said = []
        if len(mine) > 1:
            said.append(f"test of {mine[-1]['date']}; an earlier one was dropped")
        if any(row["seed"] == seed for row in mine):
            said.append("test written after runs with these seeds were seen; it needs new seeds")
        if said:
            found[name] = "; ".join(said)
    return found
