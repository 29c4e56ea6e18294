"""Checkpoints let a killed run continue and write the same bytes as an uninterrupted run.

An experiment runs an algorithm several times; each of these runs is a repeat. A finished repeat
that took more than `LONG_REPEAT` CPU seconds is saved as a separate history file, and is not run
again if more repeats are requested later. Shorter repeats, and private repeats with real (not
simulated) noise, are not saved.

A checkpoint holds the server's parameters, the clients' states, all random streams, the ledger of
messages and the rows recorded so far. After every round, `fedcore.deep.rounds` passes its state
through the recorder to `Checkpoint`, which writes a file if the last write was at least `INTERVAL`
seconds ago. A checkpoint is valid only for the same cell (algorithm, parameters and problem), data
and code. A run ignores damaged checkpoints and the checkpoints of other runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.errors import HistoryError
from fedcore.federation.federation import Federation
from fedcore.files import hdf5
from fedcore.history import History, read_seconds, save_seconds
from fedcore.recorder import Recorder

TOTALS = ("rounds", "scalars_up", "scalars_down", "bytes_up", "bytes_down")
# Of a client's state: from its data, or saved apart.
DERIVED_STATE = ("kept", "rng", "_root", "_id")
INTERVAL = 60.0  # seconds; a write takes a tenth of a second per 100 MB
LONG_REPEAT = 1.0  # CPU seconds; to keep a repeat takes some hundredths


class Checkpoint:
    """The checkpoint file of one run, which the run's `Recorder` writes and reads."""

    def __init__(self, path: str | os.PathLike[str], key: str, every: float = INTERVAL) -> None:
        self.path, self._key, self._every = Path(path), key, every
        self._written = time.monotonic()

    def keep(self, record: Recorder, federation: Federation, held: np.ndarray) -> None:
        """Write a checkpoint if the last one was written at least `every` seconds ago."""
        if time.monotonic() - self._written >= self._every:
            self._write(record, federation, held)
            self._written = time.monotonic()

    def resume(
        self, record: Recorder, federation: Federation, held: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """Restore recorder and federation; return how many rounds are done, and the server's array.

        If there is no usable checkpoint, return 0 and the argument `held`.
        """
        try:
            with hdf5.read(self.path) as file:
                about = json.loads(file["about"][()].tobytes())
                if about["key"] != self._key:
                    print(f"{self.path} is of another run: this one begins anew.", file=sys.stderr)
                    return 0, held
                states = {name: data[()] for name, data in file["clients"].items()}
                by_client = {name: list(data[()]) for name, data in file["by_client"].items()}
                held = file["held"][()]
        except FileNotFoundError:
            return 0, held
        except (OSError, KeyError, ValueError) as error:
            print(f"{self.path} is damaged ({error}): this run begins anew.", file=sys.stderr)
            return 0, held
        federation.rng.bit_generator.state = about["server"]
        for i, state in enumerate(federation.client_states()):
            for name, values in states.items():
                setattr(state, name, values[i].copy())
            if (stream := about["streams"][i]) is not None:
                state.rng.bit_generator.state = stream
        for name in TOTALS:
            setattr(federation.ledger, name, about["ledger"][name])
        record.restore(about["record"], by_client)
        print(f"Goes on after round {about['round']}, from {self.path}.", file=sys.stderr)
        return about["round"], held

    def finished(self) -> History | None:
        """Return this run's history (its record) if an earlier process has saved it, else None."""
        try:
            found = History.load(self._finished)
            if found.about.pop("key") != self._key:
                return None
            found.seconds = read_seconds(self._finished.with_suffix(".tsv"))
        except (HistoryError, KeyError):
            return None
        return found

    def finish(self, history: History, seconds: float) -> None:
        """Save the history (record) of this run if it took more than `LONG_REPEAT` CPU seconds."""
        if seconds > LONG_REPEAT:
            save_seconds(history, self._finished.with_suffix(".tsv"))
            kept = replace(history, about={**history.about, "key": self._key})
            kept.save(self._finished, force=True)

    def remove(self) -> None:
        """Delete the checkpoint file, but keep the history that `finish` saved."""
        self.path.unlink(missing_ok=True)

    @property
    def _finished(self) -> Path:
        return self.path.with_suffix(".finished.h5")

    def _write(self, record: Recorder, federation: Federation, held: np.ndarray) -> None:
        states = federation.client_states()
        streams = [
            state.rng.bit_generator.state if "rng" in vars(state) else None for state in states
        ]
        about: dict[str, Any] = {
            "key": self._key,
            "round": record.rows[-1]["iteration"],
            "server": federation.rng.bit_generator.state,
            "streams": streams,
            "ledger": {name: getattr(federation.ledger, name) for name in TOTALS},
            "record": record.progress(),
        }
        names = sorted(vars(states[0]).keys() - set(DERIVED_STATE))
        with hdf5.create(self.path) as file:
            text = json.dumps(about, default=_plain).encode()
            file.create_dataset("about", data=np.frombuffer(text, np.uint8))
            file.create_dataset("held", data=held)
            for group in ("clients", "by_client"):
                file.create_group(group)
            for name in names:
                file[f"clients/{name}"] = np.stack([vars(state)[name] for state in states])
            for name, values in record.by_client.items():
                file[f"by_client/{name}"] = np.array(values)


def _plain(number: Any) -> Any:
    """Convert a NumPy number to a Python number."""
    return number.item()
