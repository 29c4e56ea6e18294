"""SSI over ranks of MPI: seconds of a round with one rank and with more, on the same clients.

Every number of ranks runs the same problem file, in turns, and so does one process without MPI that
runs steps client by client. A round is timed at rank 0, after some that are not counted. In the
first of two problems a round is work (products with `--size` MB of clients), in the second it is
messages (clients of 3 kB). The exit status is 1 if two results differ in a byte. Without mpi4py
there is nothing to time. See README.md.
"""

# ruff: noqa: E402  (BLAS reads its number of threads when numpy is first imported)

from __future__ import annotations

import os

for _library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_THREADS"] = "1"

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

from fedcore import algorithms
from fedcore.api import execute
from fedcore.federation import mpi
from fedcore.federation.in_process import InProcess
from fedcore.problems import storage

CLIENTS, UNCOUNTED = 16, 3  # rounds at first
ALONE = "no MPI"


class Kind(NamedTuple):
    """A problem: samples of a client, features, components, and rounds that are timed."""

    rows: int
    features: int
    components: int
    rounds: int


def kinds(size: int) -> dict[str, Kind]:
    """Return the problems; `size` is that of the first in MB."""
    rows = round(size * 1e6 / (8 * 800 * CLIENTS))
    return {"work": Kind(rows, 800, 20, 20), "messages": Kind(6, 64, 3, 300)}


def drawn(kind: Kind) -> Iterator[np.ndarray]:
    """Yield clients with some directions above the others."""
    scale = 0.98 ** np.arange(kind.features)
    for i in range(CLIENTS):
        yield np.random.default_rng(i).standard_normal((kind.rows, kind.features)) * scale


def timed(path: str, kind: Kind, found: Callable[[str, Any], None]) -> dict[str, Any]:
    """Return the median seconds of a round, and the basis."""
    problem = storage.load(path)
    found(path, [problem.clients])
    chosen, times = algorithms.get("ssi"), []

    def seen(row: Any) -> bool:
        times.append(time.perf_counter())
        return False

    rounds = kind.rounds + UNCOUNTED
    settings = chosen.params({"n_components": kind.components, "rounds": rounds})
    _, output = execute(chosen, problem, settings, 0, [], stop=seen)
    seconds = median(np.diff(times)[UNCOUNTED:])
    return {"seconds": seconds, "basis": output["basis"].tobytes().hex()}


def be_rank(path: str, kind: Kind) -> None:
    """Time a round as one of the ranks, or alone, and print what was found."""
    if os.environ.get("PMI_SIZE") is None:
        with mpi.everywhere(partial(InProcess, plain=True)):
            print(json.dumps(timed(path, kind, lambda path, draws: None)))
        return
    mpi.lead(lambda team: print(json.dumps(timed(path, kind, team.found))))


def called(ranks: int | str, path: str, kind: Kind) -> dict[str, Any]:
    """Run `be_rank` in processes of its own."""
    own = [sys.executable, __file__, "--path", path, "--kind", json.dumps(kind)]
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = own if ranks == ALONE else [mpiexec, "-n", str(ranks), *own]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def draw(path: str, found: dict[str, dict[int | str, float]]) -> None:
    """Draw the seconds of a round against ranks, and what one rank's would be, shared out."""
    from matplotlib.figure import Figure

    from fedcore.reports.style import COLOURS, style

    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        for axes, (name, seconds) in zip(figure.subplots(1, 2), found.items(), strict=True):
            ranks = [count for count in seconds if count != ALONE]
            values = np.array([seconds[count] for count in ranks])
            ideal = values[0] * ranks[0] / np.array(ranks)
            axes.plot(ranks, 1e3 * values, "o-", color=COLOURS["blue"], label="over MPI")
            axes.plot(ranks, 1e3 * ideal, ":", color=COLOURS["grey"], label="shared out ideally")
            alone = 1e3 * seconds[ALONE]
            axes.axhline(alone, color=COLOURS["vermillion"], ls="--", label="one process, no MPI")
            axes.set(xticks=ranks, xlabel="ranks", title=f"a round that is {name}", ylim=(0, None))
        figure.axes[0].set_ylabel("milliseconds")
        figure.axes[0].legend()
        figure.savefig(path)


@click.command()
@click.option("--ranks", "counts", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--size", type=click.IntRange(min=1), default=256, show_default=True, help="MB.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw this figure.")
@click.option("--path", hidden=True)
@click.option("--kind", hidden=True)
def main(
    counts: tuple[int, ...], size: int, repeats: int, plot: str | None, path: str | None,
    kind: str | None,
) -> None:  # fmt: skip
    """Time a round of SSI over ranks."""
    if path is not None and kind is not None:
        be_rank(path, Kind(*json.loads(kind)))
        return
    if find_spec("mpi4py") is None:
        print("nothing is timed, as mpi4py is not installed: make mpi")
        return
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} before")
    found: dict[str, dict[int | str, float]] = {}
    same = True
    for name, one in kinds(size).items():
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "problem.h5"))
            storage.save_stream(file, name, drawn(one), status="synthetic")
            ways: list[int | str] = [ALONE, *counts]
            turns = [{way: called(way, file, one) for way in ways} for _ in range(repeats)]
        found[name] = {way: median(turn[way]["seconds"] for turn in turns) for way in ways}
        spread = {way: [turn[way]["seconds"] for turn in turns] for way in ways}
        same = same and len({turn[way]["basis"] for turn in turns for way in ways}) == 1
        for way, seconds in found[name].items():
            gain = found[name][counts[0]] / seconds
            low, high = 1e3 * min(spread[way]), 1e3 * max(spread[way])
            print(f"{name:>8}, {way!s:>6} ranks: {1e3 * seconds:8.2f} ms a round "
                  f"[{low:.2f}, {high:.2f}], {gain:.2f} times as fast as one rank")  # fmt: skip
    print(f"equal to the last bit: {same}")
    if plot:
        draw(plot, found)
    sys.exit(not same)


if __name__ == "__main__":
    main()
