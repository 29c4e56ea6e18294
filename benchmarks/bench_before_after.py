"""CPU time of the algorithms in this checkout against that of an earlier commit, in turns.

The earlier commit's package is unpacked into a temporary folder. One process per commit makes the
same data and runs an algorithm when it is told to; the two take turns, so that both meet the same
load of the machine. A turn takes the least of some runs, more on the small data, as a run of
milliseconds is disturbed by anything. The last column is the median of the ratios of a turn, with
their quartiles. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

ROOT = Path(__file__).parents[1]
SIZES = {"small": (20, 100, 30), "large": (8, 4000, 200)}  # clients, samples of each, features
RUNS = {"small": 10, "large": 2}  # of a turn
RANK = 5
CASES: dict[str, dict[str, Any]] = {
    "ssi": {"rounds": 100},
    "block_krylov": {"rounds": 6},
    "local_power": {"rounds": 30},
    "faps": {"rounds": 20},
    "power_gd": {"local_steps": 200},
    "fedpower": {"iterations": 30, "epsilon": 1.0, "delta": 1e-6},
    "analyze_gauss": {"epsilon": 1.0, "delta": 1e-6},
    "noisy_power": {"rounds": 20, "epsilon": 1.0, "delta": 1e-6},
}


def data(size: str) -> list[np.ndarray]:
    """Return clients with rows of norm 1 and some directions above the others."""
    count, samples, features = SIZES[size]
    drawn = np.random.default_rng(0).standard_normal((count, samples, features))
    drawn *= 0.9 ** np.arange(features)
    return list(drawn / np.linalg.norm(drawn, axis=2, keepdims=True))


def serve() -> None:
    """Answer every request on standard input with the CPU seconds of the run."""
    import fedcore

    warnings.simplefilter("ignore")  # runs of a few rounds have not converged
    clients: dict[str, list[np.ndarray]] = {}
    for line in sys.stdin:
        algorithm, size = json.loads(line)
        if size not in clients:
            clients[size] = data(size)
        seconds = []
        for _ in range(RUNS[size]):
            start = time.process_time()
            fedcore.run(algorithm, clients[size], n_components=RANK, seed=1, **CASES[algorithm])
            seconds.append(time.process_time() - start)
        print(json.dumps(min(seconds)), flush=True)


class Commit(NamedTuple):
    """A process in which one commit runs algorithms."""

    process: subprocess.Popen[str]

    @classmethod
    def started(cls, folder: Path) -> Commit:
        """Start it with the package in `folder`."""
        call = [sys.executable, __file__, "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        env = os.environ | {"PYTHONPATH": str(folder)}
        return cls(subprocess.Popen(call, text=True, env=env, cwd=folder, **pipes))

    def seconds(self, algorithm: str, size: str) -> float:
        """Return the CPU seconds of one run; raises when the process has ended."""
        process = self.process
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps([algorithm, size]) + "\n")
        process.stdin.flush()
        if not (answer := process.stdout.readline()):
            raise RuntimeError(f"{algorithm} failed, see above")
        return float(json.loads(answer))


def unpacked(commit: str, folder: Path) -> Path:
    """Write a commit's package into a folder, and return the folder."""
    call = ["git", "-C", str(ROOT), "archive", commit, "fedcore"]
    packed = subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@click.command()
@click.option("--commit", default="HEAD~1", show_default=True, help="The earlier commit.")
@click.option("--turns", type=click.IntRange(min=2), default=9, show_default=True)
@click.option("--serve", "serving", is_flag=True, hidden=True)
def main(commit: str, turns: int, serving: bool) -> None:
    """Compare this checkout with an earlier commit."""
    if serving:
        serve()
        return
    with tempfile.TemporaryDirectory() as folder:
        before, after = Commit.started(unpacked(commit, Path(folder))), Commit.started(ROOT)
        print(f"| algorithm | clients | {commit}, ms | now, ms | ratio |")
        print("| --- | --- | ---: | ---: | ---: |")
        for size in SIZES:
            for algorithm in CASES:
                pairs = np.array(
                    [
                        [side.seconds(algorithm, size) for side in (before, after)]
                        for _ in range(turns + 1)
                    ]
                )[1:]  # the first turn loads what a run needs
                old, new = 1e3 * np.median(pairs, axis=0)
                low, ratio, high = np.quantile(pairs[:, 1] / pairs[:, 0], (0.25, 0.5, 0.75))
                print(
                    f"| `{algorithm}` | {size} | {old:.1f} | {new:.1f} | "
                    f"{ratio:.3f} ({low:.2f} to {high:.2f}) |"
                )
        for side in (before, after):
            side.process.terminate()


if __name__ == "__main__":
    main()
