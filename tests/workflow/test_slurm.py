"""The workflow on a real SLURM of one node, which `make test-cluster` sets up: see onenode.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from cluster.onenode import OneNode

from fedcore.history import History

pytestmark = [
    pytest.mark.skipif(
        "FEDCORE_TEST_CLUSTER" not in os.environ,
        reason="needs the daemons of SLURM, as root: `make test-cluster` sets them up",
    ),
    pytest.mark.slow,
]

PROFILE = ["--workflow-profile", "workflow/profiles/slurm"]
SOON = [
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
    *("--latency-wait", "10"),
]
CELL = "results/tiny/histories/tiny/second/power_gd/other-plain.h5"
TARGET = CELL  # the one cell that a small run makes, and its problem
PAPER = "factorization"  # the smallest one, 45 cells


@pytest.fixture(params=[False], ids=["without accounting"])
def node(request):
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        with OneNode(folder, accounting=request.param) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def queue():
    """State by number of the jobs that wait or run."""
    return dict(line.split() for line in ask("squeue", "-h", "-o", "%A %T").splitlines())


def submitted():
    return set(ask("squeue", "-h", "--states=all", "-o", "%A").split())


@contextlib.contextmanager
def started(checkout, *args):
    """A run in the background; killed at the end, without its jobs."""
    log = open(checkout.root / "controller.log", "w")
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *PROFILE, *SOON, *args],
        cwd=checkout.root, env=checkout.environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield run
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        log.close()


def wait_for(what, seconds=240):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come to this")


def snakemake(checkout, *args):
    call = ["-m", "snakemake", *PROFILE, *SOON, *args]
    return checkout.python(*call, stderr=subprocess.STDOUT)


def tiny(checkout, *args, target=TARGET):
    return snakemake(checkout, "--configfile", "tiny.yaml", *args, "--", target)


@pytest.mark.parametrize("node", [False, True], indirect=True, ids=["alone", "accounting"])
def test_finished_jobs_are_noticed(node, fresh):
    """With accounting and without; the profile finds out which."""
    done = tiny(fresh)
    assert done.returncode == 0, done.stdout
    assert History.load(fresh.root / CELL).repeats == 3
    without = "sacct does not answer here" in done.stdout
    assert without == (not node.accounting)


def test_the_old_profile_waits_for_ever_without_accounting(node, fresh):
    args = ["--configfile", "tiny.yaml", "--slurm-status-command", "sacct", "--", TARGET]
    with started(fresh, *args) as run:
        problem = fresh.root / "data/clients/tiny/tiny/other.h5"
        wait_for(problem.exists)
        wait_for(lambda: not queue())
        time.sleep(10)  # five looks
        assert run.poll() is None and not queue() and not (fresh.root / CELL).exists()


def test_killed_and_resumed_is_the_local_run(node, fresh, tmp_path):
    config = ["--configfile", "config/quick.yaml", "--config", f"papers=[{PAPER}]"]
    local = fresh.copy(tmp_path / "local")
    done = local.python("-m", "snakemake", "--cores", "1", *config, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout

    def histories(checkout):
        return checkout.files("results/quick/histories/**/*.h5")

    with started(fresh, *config) as run:
        wait_for(lambda: len(histories(fresh)) >= 3 and "RUNNING" in queue().values())
        run.kill()
        run.wait()
    left = queue()
    assert left and len(histories(fresh)) < 45
    assert snakemake(fresh, *config, "--unlock").returncode == 0
    resumed = snakemake(fresh, *config)
    assert resumed.returncode == 0, resumed.stdout
    assert f"left {len(left)} job" in resumed.stdout and "cancelled" in resumed.stdout
    whole = histories(local)
    assert len(whole) == 45 and histories(fresh) == whole
    tables = "results/quick/tables/**/*.tsv"
    assert fresh.files(tables) == local.files(tables)
    assert len(submitted()) <= 35  # of 45 cells and 10 other jobs, some twice
    # Nothing is run twice at once: a job that was cancelled has ended before its second begins.
    assert not queue()
