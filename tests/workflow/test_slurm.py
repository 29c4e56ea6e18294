"""The workflow on a real SLURM of one node, which tests/cluster/onenode.py sets up."""

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

from cluster.onenode import OneNode
from fedcore.history import History

pytestmark = [
    pytest.mark.skipif(
        "FEDCORE_TEST_CLUSTER" not in os.environ,
        reason="needs the daemons of SLURM, as root: tests/cluster/onenode.py installs them",
    ),
    pytest.mark.slow,
]

PROFILE = ["--workflow-profile", "workflow/profiles/slurm"]
SOON = [
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
    *("--latency-wait", "10", "--cores", "2", "--slurm-no-account"),
]
SQUEUE = ("--slurm-status-command", "squeue")  # where sacct does not answer
CELL = "results/tiny/histories/tiny/second/power_gd/other-plain.h5"
PROBLEM = "data/clients/tiny/tiny/other.h5"
# The smallest paper.
QUICK = ["--configfile", "config/quick.yaml", "--config", "papers=[factorization]"]


@pytest.fixture(params=[False], ids=["without accounting"])
def node(request):
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        with OneNode(folder, accounting=request.param, min_job_age=3600) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def local(pristine, tmp_path_factory):
    """The paper's quick run on this machine, without SLURM."""
    checkout = pristine.copy(tmp_path_factory.mktemp("slurm") / "local")
    done = checkout.python("-m", "snakemake", "--cores", "1", *QUICK, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return checkout


def histories(checkout):
    return checkout.files("results/quick/histories/**/*.h5")


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def queue():
    """State by number of the jobs that wait or run."""
    return dict(line.split() for line in ask("squeue", "-h", "-o", "%A %T").splitlines())


@contextlib.contextmanager
def started(checkout, *args):
    """A run in the background; killed at the end, without its jobs. It hears an interrupt also
    where this process was started to hear none, as a shell's `&` does."""
    log = open(checkout.root / "controller.log", "w")
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *PROFILE, *SOON, *args],
        cwd=checkout.root, env=checkout.environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        yield run
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        log.close()


def wait_for(what, seconds=900):  # on a loaded machine
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come to this")


def snakemake(checkout, *args, status=0):
    done = checkout.python("-m", "snakemake", *PROFILE, *SOON, *args, stderr=subprocess.STDOUT)
    assert done.returncode == status, done.stdout
    return done.stdout


def tiny(checkout, *args, target=CELL, status=0):
    return snakemake(checkout, "--configfile", "tiny.yaml", *args, "--", target, status=status)


@pytest.mark.parametrize("node", [False, True], indirect=True, ids=["alone", "accounting"])
def test_a_job_runs_to_its_end(node, fresh):
    """With accounting as the profile is, and without it as docs/cluster.md says."""
    options = () if node.accounting else SQUEUE
    tiny(fresh, *options)
    assert History.load(fresh.root / CELL).repeats == 3


def test_killed_and_resumed_is_the_local_run(node, fresh, local):
    """A user cancels what is left in the queue; what is missed does no harm."""
    whole = histories(local)
    with started(fresh, *SQUEUE, *QUICK) as run:
        wait_for(lambda: len(histories(fresh)) >= 3 and "RUNNING" in queue().values())
        run.kill()
        run.wait()
    left = queue()
    assert left and len(histories(fresh)) < len(whole)
    ask("scancel", "--me")
    snakemake(fresh, *QUICK, "--unlock")
    snakemake(fresh, *SQUEUE, *QUICK)
    assert len(whole) > 20 and histories(fresh) == whole
    tables = "results/quick/tables/**/*.tsv"
    assert fresh.files(tables) == local.files(tables)


def test_a_late_job_of_a_killed_run_is_never_taken_for_a_new_one(node, fresh):
    """Even one that nobody could cancel: here its script is submitted once more, by hand."""
    cell = "results/tiny/histories/tiny/first/wk2023/easy-default.h5"
    table = "results/tiny/tables/tiny/ends.tsv"

    def repeats():
        return History.load(fresh.root / cell).repeats

    tiny(fresh, *SQUEUE, target=PROBLEM.replace("other", "easy"))
    ask("scontrol", "update", "PartitionName=debug", "State=DOWN")  # jobs wait
    change = "overrides: {tiny: {experiments: {first: {repeats: 3}}}}\n"
    (fresh.root / "changed.yaml").write_text(change)
    old = [*SQUEUE, "--configfile", "tiny.yaml", "changed.yaml", "--", cell]
    with started(fresh, *old) as run:
        (job,) = wait_for(queue)
        run.kill()
        run.wait()
    script = fresh.root / "late.sh"
    ask("scontrol", "write", "batch_script", job, str(script))
    ask("scancel", job)
    ask("scontrol", "update", "PartitionName=debug", "State=UP")
    tiny(fresh, "--unlock")
    tiny(fresh, *SQUEUE, target=table)
    made = (fresh.root / table).read_bytes()
    assert repeats() == 2
    subprocess.run(["sbatch", "--wait", str(script)], cwd=fresh.root, capture_output=True)
    assert repeats() == 3
    refused = tiny(fresh, *SQUEUE, "--retries", "0", target=table, status=1)
    assert f"{cell} is not what is planned (" in refused
    (fresh.root / cell).unlink()
    tiny(fresh, *SQUEUE, target=table)
    assert repeats() == 2 and (fresh.root / table).read_bytes() == made


def test_a_job_that_is_cancelled_and_a_run_that_is_interrupted(node, fresh):
    tiny(fresh, *SQUEUE, target=PROBLEM)
    ask("scontrol", "update", "PartitionName=debug", "State=DOWN")  # jobs wait
    with started(fresh, *SQUEUE, "--configfile", "tiny.yaml", "--retries", "0", "--", CELL) as run:
        (job,) = wait_for(queue)
        ask("scancel", job)
        assert run.wait(900) == 1
    with started(fresh, *SQUEUE, "--configfile", "tiny.yaml", "--retries", "0", "--", CELL) as run:
        wait_for(queue)
        run.send_signal(signal.SIGINT)
        assert run.wait(900) != 0
    assert not queue()
    ask("scontrol", "update", "PartitionName=debug", "State=UP")
    tiny(fresh, *SQUEUE)  # both let go of the lock
    assert History.load(fresh.root / CELL).repeats == 3
