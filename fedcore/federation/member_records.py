"""What a member of a run over NVIDIA FLARE writes into its folder: account, results, uploads."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from fedcore.errors import DataError, RefusedError
from fedcore.federation.site import Site
from fedcore.files import atomic
from fedcore.privacy.events import Event
from fedcore.steps.values import decode, encode

ACCOUNT, LOCK = "account.fed", "account.lock"


class Spent:
    """What a member's records were charged, over all jobs: a file that is written before a reply.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._locked = folder / ACCOUNT, folder / LOCK
        self._held: IO[bytes] | None = None
        self._written: dict[Event, int] = {}

    def lock(self) -> None:
        """Keep the account to this process until it ends, or `unlock`.

        Raises
        ------
        RefusedError
            While another job has it.
        """
        if self._held is not None:
            return
        self._locked.parent.mkdir(parents=True, exist_ok=True)
        held = open(self._locked, "ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held.close()
            raise RefusedError(
                "another job charges the records of this member at the same time: wait for its end"
            ) from error
        self._held = held

    def unlock(self) -> None:
        """Let others have the account."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def events(self) -> dict[Event, int]:
        """Return all events so far.

        Raises
        ------
        DataError
            When the file is damaged: then nothing more is released.
        """
        if not self._path.exists():
            return {}
        try:
            found = decode(self._path.read_bytes(), ("fedcore",))
            self._written = {event: int(n) for event, n in found.items()}
        except Exception as error:
            raise DataError(f"{self._path} is damaged: restore it from a copy ({error})") from error
        return dict(self._written)

    def keep(self, site: Site) -> None:
        """Write the events of a site with a bound of ε, if there are new ones."""
        if site.account is None or site.policy.max_epsilon is None:
            return
        events = dict(site.account.events)
        if events != self._written:
            with atomic.replace(self._path) as temporary:
                temporary.write_bytes(encode(events))
            self._written = events


class Left:
    """What has left a member in a run: how often each step has uploaded, and how much."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}

    def add(self, name: str, scalars: int, size: int) -> None:
        """Count an upload."""
        row = self._rows.setdefault(name, [0, 0, 0])
        self._rows[name] = [row[0] + 1, row[1] + scalars, row[2] + size]

    def text(self) -> str:
        """Return all of it as JSON."""
        names = "times", "scalars", "bytes"
        rows = {step: dict(zip(names, row, strict=True)) for step, row in self._rows.items()}
        return json.dumps(rows, indent=1) + "\n"


def save_results(folder: Path, run: int, results: Mapping[str, Any], left: Left) -> None:
    """Write what is a member's own of a run's results, and what has left it."""
    arrays = {name: np.asarray(value) for name, value in results.items() if _saved(name, value)}
    if arrays:
        with atomic.replace(folder / f"run{run}.npz") as temporary:
            np.savez(temporary, **arrays)  # type: ignore[arg-type]
    with atomic.replace(folder / f"run{run}-left.json") as temporary:
        temporary.write_text(left.text(), encoding="utf-8")


def _saved(name: str, value: Any) -> bool:
    """Return whether a result is an array of numbers, under a name that is no path."""
    return name.isidentifier() and isinstance(value, int | float | np.ndarray | np.generic)
