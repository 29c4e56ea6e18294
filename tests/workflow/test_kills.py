"""A run that is killed leaves no half file under a final name, and the next one finishes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from fedcore import problems
from fedcore.errors import HistoryError
from fedcore.history import History

# Imported by every Python process of the run before anything else: at one file operation it says
# that it is there and stops for good. A temporary file that is opened to be read (for its checksum)
# is cut in half first, which is what a process leaves that dies while it writes.
HANG = """
import os, sys, time

OPERATION, FOLDER, NAME = os.environ["HANG_AT"].split(":")

def hook(event, args):
    if event != OPERATION:
        return
    path = str(args[1] if event == "os.rename" else args[0])
    if not (FOLDER in path and NAME in path):
        return
    if event == "open":
        if args[1] != ("r" if ".tmp" in path else "w"):
            return
        if ".tmp" in path:
            os.truncate(path, os.path.getsize(path) // 2)
    os.mkdir(os.environ["HANG_MARK"])
    time.sleep(60)

sys.addaudithook(hook)
"""

# What is made from what; a run makes again what lies below the first that is missing.
CHAIN = [
    "data/clients/tiny/tiny/other.h5",
    "results/tiny/histories/tiny/second/power_gd/other-plain.h5",
    "results/tiny/tables/tiny/ends.tsv",
    "results/tiny/verdicts/tiny.tsv",
]

# File operation at which the run is killed, links of the chain that are there before, and how many
# temporary files stay behind.
POINTS = {
    "history half written": ("open:/.other-plain.:.tmp.h5", 1, 1),
    "history there, Snakemake not told": ("open:benchmarks:other-plain.tsv", 1, 0),
    "table there, notebook not": ("os.rename:tables/:ends.md", 2, 2),
    "verdicts written, not renamed": ("os.rename:verdicts/:tiny.tsv", 3, 2),
}


@contextlib.contextmanager
def hung(checkout, at):
    """Start a run and wait until it is at the file operation; in the end kill it and its jobs."""
    folder, mark = checkout.root / "hang", checkout.root / "there"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HANG)
    environment = checkout.environment | {"HANG_AT": at, "HANG_MARK": str(mark)}
    environment["PYTHONPATH"] += f"{os.pathsep}{folder}"
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"],
        cwd=checkout.root, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        patience = time.monotonic() + 600
        while not mark.exists() and run.poll() is None and time.monotonic() < patience:
            time.sleep(0.02)
        assert mark.exists(), "the run did not come to this point"
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


@pytest.mark.parametrize("point", POINTS)
def test_killed(first_run, done, point):
    at, there, temporary = POINTS[point]
    for name in CHAIN[there:]:
        (done.root / name).unlink()
    with hung(done, at):
        pass

    for name in done.files("data/clients/**/*.h5"):
        problems.load(done.root / name)
    for name in done.files("results/**/*.h5"):
        History.load(done.root / name)
    left = list(done.root.glob("*/**/.*.tmp.*"))
    assert len(left) == temporary
    if "half" in point:
        with pytest.raises(HistoryError, match="is not a whole"):
            History.load(left[0])

    resumed = done.snakemake()
    assert resumed.status == 0, resumed.text
    assert "Going on where the last run was killed" in resumed.text
    assert "tiny: 1 reproduced, 1 not run (of 2 published values)" in resumed.text
    assert done.payload() == first_run[0].payload()


def test_the_lock_of_a_run_that_is_alive_is_respected(first_run, done):
    (done.root / CHAIN[3]).unlink()
    with hung(done, POINTS["verdicts written, not renamed"][0]):
        second = done.snakemake()
        assert second.status == 1
        assert "Directory cannot be locked" in second.text
        assert "Going on where" not in second.text
    assert done.snakemake().status == 0
