"""SSI over ranks of MPI: seconds of a round with one rank and with more, on the same clients.

Every number of ranks runs the same problem file, in turns, and so does one process without MPI that
runs steps client by client. A round is timed at rank 0, after some that are not counted. In the
first of three problems a round is work (products with `--size` MB of clients), in the second it is
messages (clients of 3 kB), in the third it is 10,000 clients. Beside the time that has passed stand
the CPU seconds of the rank that used most: about what a round would take if no other job had the
cores. Then come the kB of a round that all ranks send, and the memory of the rank that has most.
The exit status is 1 if two results differ in a byte. Without mpi4py there is nothing to time. See
README.md.

`--kept FILE --plot FIGURE` times nothing and draws what an earlier run printed.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

from fedcore import algorithms
from fedcore.federation.engines import mpi
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.engines.mpi import Ranks
from fedcore.files.lazy import LazyMatrices
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute

CLIENTS, UNCOUNTED = 16, 3  # rounds at first
UNIT = 1024**2 if sys.platform == "darwin" else 1024  # of `resource` in a MiB
ALONE = "no MPI"


class Kind(NamedTuple):
    """A problem: clients and their samples, features, components, and rounds that are timed."""

    clients: int
    rows: int
    features: int
    components: int
    rounds: int


def kinds(size: int) -> dict[str, Kind]:
    """Return the problems; `size` is that of the first in MB."""
    rows = round(size * 1e6 / (8 * 800 * CLIENTS))
    return {
        "work": Kind(CLIENTS, rows, 800, 20, 20),
        "messages": Kind(CLIENTS, 6, 64, 3, 300),
        "many clients": Kind(10_000, 2, 200, 4, 10),
    }


def drawn(kind: Kind) -> Clients:
    """Return clients with some directions above the others, each drawn when it is read."""
    n, shape = kind.clients, (kind.rows, kind.features)
    scale = 0.98 ** np.arange(kind.features)
    made = LazyMatrices(lambda i: np.random.default_rng(i).standard_normal(shape) * scale, n)
    return Clients(made, [shape] * n, [np.dtype(float)] * n)


def timed(path: str, kind: Kind, ranks: Ranks | None = None) -> None:
    """Print the median seconds of a round, what the ranks have used, and the basis."""
    problem, chosen = storage.load(path), algorithms.get("ssi")
    times, used = [], []
    last = kind.rounds + UNCOUNTED

    def seen(record: int, iterate: Any) -> None:
        sent = 0 if ranks is None else ranks.link.sent
        times.append(time.perf_counter())
        used.append((time.process_time(), sent))

    settings = chosen.params({"n_components": kind.components, "rounds": last})
    _, output = execute(chosen, problem, settings, 0, Recording(on_iterate=seen))
    spent = (np.array(used[last]) - used[UNCOUNTED]) / kind.rounds
    mine = [*spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT]
    every = [mine]
    if ranks is not None:
        every = [json.loads(part) for part in ranks.link.gather(json.dumps(mine).encode())]
    cpu, sent, memory = np.transpose(every)
    found = {"wall": median(np.diff(times)[UNCOUNTED:-1]), "cpu": max(cpu), "sent": sum(sent)}
    found |= {"memory": max(memory), "basis": output["basis"].tobytes().hex()}
    if ranks is None or ranks.rank == 0:
        print(json.dumps(found))


def be_rank(path: str, kind: Kind) -> None:
    """Time a round as one of the ranks, or alone, and print what was found."""
    if os.environ.get("PMI_SIZE") is None:
        with mpi.everywhere(partial(InProcess, plain=True)):
            timed(path, kind)
        return
    mpi.on_all_ranks(partial(timed, path, kind))


def called(ranks: int | str, path: str, kind: Kind) -> dict[str, Any]:
    """Run `be_rank` in processes of its own."""
    own = [sys.executable, __file__, "--path", path, "--kind", json.dumps(kind)]
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = own if ranks == ALONE else [mpiexec, "-n", str(ranks), *own]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def printed(text: str) -> dict[str, dict[Any, dict[str, float]]]:
    """Return what `main` printed, in seconds: kind of round, way, wall or cpu."""
    found: dict[str, dict[Any, dict[str, float]]] = {}
    for line in text.splitlines():
        if head := re.match(r"a round that is ([\w ]+), in ms", line):
            ways = found.setdefault(head[1], {})
        elif row := re.match(r" +(no MPI|\d+) rank\(s\): wall +([\d.]+) .*; cpu +([\d.]+) ", line):
            way = ALONE if row[1] == ALONE else int(row[1])
            ways[way] = {"wall": float(row[2]) / 1e3, "cpu": float(row[3]) / 1e3}
    return found


def draw(path: str, found: dict[str, dict[Any, dict[str, float]]], source: str = "") -> None:
    """Draw the seconds of a round against ranks; the file says from where they are."""
    from matplotlib.figure import Figure

    from fedcore.reports.curve_styles import COLOURS
    from fedcore.reports.plotting import style

    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        for axes, name in zip(figure.subplots(1, 2), ("work", "messages"), strict=True):
            ways = found[name]
            ranks = [way for way in ways if way != ALONE]
            wall, cpu = (1e3 * np.array([ways[r][k] for r in ranks]) for k in ("wall", "cpu"))
            axes.plot(ranks, wall, "o-", color=COLOURS["blue"], label="by the clock")
            axes.plot(ranks, cpu, "s-", color=COLOURS["green"], label="CPU, busiest rank")
            axes.plot(ranks, cpu[0] / np.array(ranks), ":", color=COLOURS["grey"],
                      label="CPU, shared out ideally")  # fmt: skip
            axes.axhline(1e3 * ways[ALONE]["cpu"], color=COLOURS["vermillion"], ls="--",
                         label="CPU, one process, no MPI")  # fmt: skip
            axes.set(xticks=ranks, xlabel="ranks", title=f"a round that is {name}", ylim=(0, None))
        for axes in figure.axes:
            axes.set_ylabel("milliseconds a round")
        figure.axes[0].legend(loc="upper right")
        figure.savefig(path, metadata={"Source": source} if source else None)


@click.command()
@click.option("--ranks", "counts", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--size", type=click.IntRange(min=1), default=256, show_default=True, help="MB.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw this figure.")
@click.option("--kept", type=click.Path(exists=True, dir_okay=False), help="Draw its numbers.")
@click.option("--path", hidden=True)
@click.option("--kind", hidden=True)
def main(
    counts: tuple[int, ...], size: int, repeats: int, plot: str | None, kept: str | None,
    path: str | None, kind: str | None,
) -> None:  # fmt: skip
    """Time a round of SSI over ranks."""
    if path is not None and kind is not None:
        be_rank(path, Kind(*json.loads(kind)))
        return
    if kept is not None:
        if plot is None:
            raise click.UsageError("--kept draws what a run printed: name the figure with --plot")
        text = Path(kept).read_text(encoding="utf-8")
        draw(plot, printed(text), source=text.splitlines()[1])
        return
    if find_spec("mpi4py") is None:
        print("nothing is timed, as mpi4py is not installed: make env EXTRAS=mpi")
        return
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} before")
    found: dict[str, dict[Any, dict[str, float]]] = {}
    same = True
    for name, one in kinds(size).items():
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "problem.h5"))
            storage.save(Problem(name, drawn(one)), file)
            ways: list[int | str] = [ALONE, *counts]
            turns = [{way: called(way, file, one) for way in ways} for _ in range(repeats)]
        same = same and len({turn[way]["basis"] for turn in turns for way in ways}) == 1
        found[name] = {
            way: {
                what: median(turn[way][what] for turn in turns)
                for what in ("wall", "cpu", "sent", "memory")
            }
            for way in ways
        }
        print(f"a round that is {name}, in ms [least, most of {repeats}]")
        for way in ways:
            told = []
            for what in ("wall", "cpu"):
                values = [1e3 * turn[way][what] for turn in turns]
                gain = found[name][counts[0]][what] / found[name][way][what]
                told.append(f"{what} {median(values):7.2f} [{min(values):.2f}, {max(values):.2f}],"
                            f" {gain:.2f} times as fast")  # fmt: skip
            told.append(f"sent {found[name][way]['sent'] / 1e3:.1f} kB")
            told.append(f"memory {found[name][way]['memory']:.0f} MiB")
            print(f"  {way!s:>6} rank(s): {'; '.join(told)}")
    print(f"equal to the last bit: {same}")
    if plot:
        draw(plot, found)
    sys.exit(not same)


if __name__ == "__main__":
    main()
