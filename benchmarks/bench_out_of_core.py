"""SSI on clients larger than a limit on memory: the same bytes as in memory, and how fast it reads.

It writes a problem file client by client, and runs SSI on it in a process whose data may take
`--limit` MiB (``ulimit -d``). The clients are wide, so that every round reads all data twice. Then
another process without a limit runs SSI on copies in memory. The file's pages are dropped from the
system's memory before each of the passes that are timed, which are compared with a plain read of
the file. The exit status is 1 if the two results differ in a byte, or if the data would have
fitted into the limit. `--size 20000 --limit 2000` is the run on 20 GB. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from fedcore import algorithms
from fedcore.api import execute
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.made import Made
from fedcore.problems.problem import Problem, Reference

ROWS, FEATURES = 2000, 500  # of a client, 8 MB


def drawn(count: int) -> Clients:
    """Return clients with some directions above the others, each drawn when it is read."""
    shape, scale = (ROWS, FEATURES), 0.98 ** np.arange(FEATURES)
    made = Made(lambda i: np.random.default_rng(i).standard_normal(shape) * scale, count)
    return Clients(made, [shape] * count, [np.dtype(float)] * count)


def dropped(path: str) -> None:
    """Ask the system to forget the file's pages."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_rate(path: str) -> float:
    """Return the bytes per second of a plain read of the file."""
    dropped(path)
    start, buffer = time.perf_counter(), bytearray(1 << 22)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return os.path.getsize(path) / (time.perf_counter() - start)


def run(path: str, rounds: int, in_memory: bool) -> dict[str, float | str]:
    """Run SSI in this process, and time one more pass of its products."""
    start = time.perf_counter()
    problem = storage.load(path)
    opened = time.perf_counter() - start
    clients = problem.clients
    if in_memory:
        held = Problem("held", [np.array(client) for client in clients])
        held.reference = Reference(*problem.reference)
        problem, clients = held, held.clients
    chosen = algorithms.get("ssi")
    settings = chosen.params({"n_components": 2, "rounds": rounds})
    start = time.perf_counter()
    _, output = execute(chosen, problem, settings, 0, [])
    seconds = time.perf_counter() - start
    if not in_memory:
        content = clients[0]
        while not isinstance(content, memoryview):
            content = content.base
        content.obj.madvise(mmap.MADV_DONTNEED)  # pages of a map are not dropped otherwise
        dropped(path)
    return {
        "basis": output["basis"].tobytes().hex(), "open": opened, "run": seconds,
        "pass": one_pass(clients, output["basis"]),
    }  # fmt: skip


def one_pass(clients: Clients, Z: np.ndarray) -> float:
    """Return the seconds of Σ SᵢᵀSᵢ Z, in which every client's data are read."""
    start = time.perf_counter()
    total = np.zeros_like(Z)
    for client in clients:
        total += client.T @ (client @ Z)
    return time.perf_counter() - start


@click.command()
@click.option("--size", type=click.IntRange(min=16), default=480, show_default=True, help="MB.")
@click.option("--limit", type=click.IntRange(min=64), default=300, show_default=True, help="MiB.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--folder", type=click.Path(exists=True), help="Where to write the file.")
@click.option("--memory/--no-memory", default=True, help="Compare with a run in memory.")
@click.option("--role", type=click.Choice(["mapped", "memory", "write"]), hidden=True)
@click.option("--path", hidden=True)
def main(
    size: int, limit: int, rounds: int, folder: str | None, memory: bool, role: str | None,
    path: str,
) -> None:  # fmt: skip
    """Run SSI on a file larger than the limit."""
    if role is not None:
        if role != "memory":
            resource.setrlimit(resource.RLIMIT_DATA, (limit << 20, limit << 20))
        if role == "write":
            storage.save(Problem("large", drawn(size // 8)), path)
        else:
            print(json.dumps(run(path, rounds, role == "memory")))
        return

    def called(role: str, file: str) -> str:
        options = {"--size": size, "--limit": limit, "--rounds": rounds, "--path": file}
        words = [str(word) for pair in options.items() for word in pair]
        call = [sys.executable, __file__, "--role", role, *words]
        return subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout

    with tempfile.TemporaryDirectory(dir=folder) as own:
        file = str(Path(own, "large.h5"))
        start = time.perf_counter()
        called("write", file)
        held = os.path.getsize(file)
        print(f"written in {time.perf_counter() - start:.1f} s, {held / 1e6:.0f} MB of clients")
        dropped(file)
        mapped = json.loads(called("mapped", file))
        rate = disk_rate(file)
        ratio = held / mapped["pass"] / rate
        print(f"limit {limit} MiB: opened in {mapped['open']:.3f} s, {rounds} rounds in "
              f"{mapped['run']:.1f} s with the checks of the seal")  # fmt: skip
        print(f"one pass {held / mapped['pass'] / 1e6:.0f} MB/s, the disk {rate / 1e6:.0f} MB/s: "
              f"ratio {ratio:.2f}")  # fmt: skip
        same = True
        if memory:
            plain = json.loads(called("memory", file))
            same = plain["basis"] == mapped["basis"]
            speed = held / plain["pass"] / 1e6
            print(f"in memory: {rounds} rounds in {plain['run']:.1f} s, one pass {speed:.0f} MB/s")
            print(f"equal to the last bit: {same}")
    sys.exit(not same or held < limit << 20)


if __name__ == "__main__":
    main()
