"""Size of a cell's history, and time to write and to read it, at the largest size of faps.

A run of `faps` on 5000 features with 20 components and 32 clients, three repeats, which keeps the
server's iterates (policy ``log``) and those of the first repeat's clients. Its file is compared
with the plain bytes of the same arrays, written and synced by the operating system (the machine's
limit), with `numpy.savez`, and with the same HDF5 data sets packed by shuffle and gzip. The exit
status is 1 when the file is larger than it may be, or what is read differs. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import argparse
import os
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import timing

from fedcore import algorithms, metrics, snapshots
from fedcore.history import History
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute

MOST = 1.1 * snapshots.LIMIT  # with columns, final arrays and the answer


def made(n_features: int, rounds: int, repeats: int) -> History:
    """A cell's history: columns of the rounds, iterates, and the answer."""
    rng = np.random.default_rng(0)
    problem = Problem("white", Clients(list(rng.standard_normal((32, 4, n_features)))))
    algorithm = algorithms.get("faps")
    settings = algorithm.params({"n_components": 20, "rounds": rounds})
    measured = [metrics.get("subspace_distance")]
    runs = [
        execute(algorithm, problem, settings, repeat,
                Recording(measured, "log", client_iterates=repeat == 0))
        for repeat in range(repeats)
    ]  # fmt: skip
    recorders, outputs = zip(*runs, strict=True)
    return History.from_runs(
        recorders, outputs, metrics=measured, counts=algorithm.columns, about={"name": "white"},
        reference=problem.directions(20),
    )  # fmt: skip


def written(history: History, folder: Path) -> dict[str, tuple[Path, object]]:
    """Each form's file and the call that writes it."""
    arrays = {f"{group}/{name}": array for group, name, array, _ in history.arrays()}
    blocks = [np.ascontiguousarray(array) for array in arrays.values()]

    def plain() -> None:
        with open(folder / "plain", "wb") as file:
            for block in blocks:
                file.write(block.data)
            file.flush()
            os.fsync(file.fileno())

    def packed() -> None:
        with h5py.File(folder / "packed.h5", "w") as file:
            for name, array in arrays.items():
                how = {"shuffle": True, "compression": "gzip"} if array.ndim else {}
                file.create_dataset(name, data=array, **how)

    return {
        "bytes, synced": (folder / "plain", plain),
        "numpy.savez": (folder / "a.npz", lambda: np.savez(folder / "a.npz", **arrays)),
        "all packed": (folder / "packed.h5", packed),
        "ours": (folder / "ours.h5", lambda: history.save(folder / "ours.h5")),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--features", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    history = made(asked.features, asked.rounds, asked.repeats)
    shared = history.iterates["shared"].shape
    own = {name: array.shape for name, array in history.client_iterates.items() if array.ndim > 2}
    print(f"faps, {asked.features} features, 20 components, 32 clients, {asked.rounds} rounds")
    print(f"iterates of the server {shared}; of the clients "
          f"{', '.join(f'{name} {shape}' for name, shape in own.items())}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        forms = written(history, Path(folder))
        times = timing.interleaved({name: call for name, (_, call) in forms.items()}, 5)
        print(f"{'':16}{'MB':>8}{'wall s':>9}{'CPU s':>8}{'wall / bytes':>14}")
        for name, (path, _) in forms.items():
            size = path.stat().st_size
            wall, cpu = np.median(times[name].wall), np.median(times[name].cpu)
            ratio = times[name].over(times["bytes, synced"], "wall")
            print(f"{name:16}{size / 1e6:8.2f}{wall:9.3f}{cpu:8.3f}{ratio:14.2f}")
        ours = forms["ours"][0]
        reading = timing.seconds(lambda: History.load(ours), clock="wall")
        print(f"{'ours, read':16}{'':8}{reading:9.3f}")
        read = History.load(ours)
        same = all(
            np.array_equal(getattr(read, group)[name], array, equal_nan=True)
            for group in ("columns", "iterates", "client_iterates", "final")
            for name, array in getattr(history, group).items()
        )
        return int(not same or ours.stat().st_size > MOST)


if __name__ == "__main__":
    sys.exit(main())
