"""Programs of several ranks, started by the mpiexec of this environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

MPIEXEC = Path(sys.executable).with_name("mpiexec")
PATIENCE = 300.0  # seconds, on a machine with fewer cores than ranks
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or not MPIEXEC.is_file(),
    reason="needs mpi4py and an MPI in this environment: make env EXTRAS=mpi",
)


def start(count: int, *words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start ``python *words`` as so many ranks."""
    return subprocess.Popen(
        [str(MPIEXEC), "-n", str(count), sys.executable, *map(str, words)],
        cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for the end, and return status and output; end a program that takes too long."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        pytest.fail(f"the ranks did not end: {out}{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(count: int, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return finish(start(count, *words, cwd=cwd))


def alive(process: int) -> bool:
    """Return whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def below(ancestor: int) -> list[int]:
    """Return all processes that a process has started, directly or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found = [ancestor]
    for one in found:
        found += [pid for pid, parent in parents.items() if parent == one]
    return found[1:]


def ranks_below(ancestor: int) -> dict[int, int]:
    """Return the processes of the ranks, by rank."""
    found = {}
    for pid in below(ancestor):
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(b"PMI_RANK="):
                found[int(variable.partition(b"=")[2])] = pid
    return found


def kill(ancestor: int, rank: int) -> None:
    """Kill a rank of a running program."""
    os.kill(ranks_below(ancestor)[rank], signal.SIGKILL)


def wait_for(condition: object, process: subprocess.Popen[str]) -> None:
    """Wait until a condition holds; fail when the program ends before."""
    until = time.monotonic() + PATIENCE
    while not condition() and process.poll() is None and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
