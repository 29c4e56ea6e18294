"""The workflow on a real SLURM of one node, which `make test-cluster` sets up: see onenode.py."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from cluster.onenode import OneNode
from mpiexec import needs_mpi

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
PROBLEM = "data/clients/tiny/tiny/other.h5"
# The smallest paper, 45 cells.
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


def local_steps(checkout):
    return History.load(checkout.root / CELL).about["params"]["local_steps"]


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def queue():
    """State by number of the jobs that wait or run."""
    return dict(line.split() for line in ask("squeue", "-h", "-o", "%A %T").splitlines())


def submitted():
    return set(ask("squeue", "-h", "--states=all", "-o", "%A").split())


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


def snakemake(checkout, *args):
    call = ["-m", "snakemake", *PROFILE, *SOON, *args]
    return checkout.python(*call, stderr=subprocess.STDOUT)


def tiny(checkout, *args, target=CELL):
    return snakemake(checkout, "--configfile", "tiny.yaml", *args, "--", target)


@pytest.mark.fault(
    "cluster",
    "SLURM without accounting, and with it",
    told="sacct does not answer here",
)
@pytest.mark.parametrize("node", [False, True], indirect=True, ids=["alone", "accounting"])
def test_finished_jobs_are_noticed(node, fresh):
    """With accounting and without; the profile finds out which."""
    done = tiny(fresh)
    assert done.returncode == 0, done.stdout
    assert History.load(fresh.root / CELL).repeats == 3
    without = "sacct does not answer here" in done.stdout
    assert without == (not node.accounting)


def test_the_old_profile_waits_for_ever_without_accounting(node, fresh):
    args = ["--configfile", "tiny.yaml", "--slurm-status-command", "sacct", "--", CELL]
    with started(fresh, *args) as run:
        problem = fresh.root / PROBLEM
        wait_for(problem.exists)
        wait_for(lambda: not queue())
        time.sleep(10)  # five looks
        assert run.poll() is None and not queue() and not (fresh.root / CELL).exists()


@pytest.mark.fault(
    "cluster",
    "SLURM: kill −9 of Snakemake with jobs queued and running",
    told="… had left … in the queue …: cancelled.",
)
@pytest.mark.parametrize("node", [False, True], indirect=True, ids=["alone", "accounting"])
def test_killed_and_resumed_is_the_local_run(node, fresh, local):
    whole = histories(local)
    with started(fresh, *QUICK) as run:
        wait_for(lambda: len(histories(fresh)) >= 3 and "RUNNING" in queue().values())
        run.kill()
        run.wait()
    left = queue()
    assert left and len(histories(fresh)) < len(whole)
    assert snakemake(fresh, *QUICK, "--unlock").returncode == 0
    resumed = snakemake(fresh, *QUICK)
    assert resumed.returncode == 0, resumed.stdout
    said = re.search(r"had left (\d+) jobs? in the queue .*: cancelled\.", resumed.stdout)
    assert said and 1 <= int(said[1]) <= len(left)  # one may have ended meanwhile
    assert len(whole) > 30 and histories(fresh) == whole
    tables = "results/quick/tables/**/*.tsv"
    assert fresh.files(tables) == local.files(tables)
    # Cells share jobs: 45 of them and 9 others, and some of them again.
    assert len(submitted()) <= 30 < len(whole)


@pytest.mark.fault(
    "cluster",
    "SLURM: a job of a killed run that nobody could cancel",
    told="… which was killed, and a later run has begun",
)
def test_a_job_of_a_killed_run_does_nothing_after_the_next(node, fresh):
    """Even one that nobody could cancel: here its script is submitted once more, by hand."""
    assert tiny(fresh, target=PROBLEM).returncode == 0
    ask("scontrol", "update", "PartitionName=debug", "State=DOWN")  # jobs wait
    # The seed would do as well, but the problem depends on it and would be the job that waits.
    change = "overrides: {tiny: {experiments: {second: {params: {local_steps: 5}}}}}\n"
    (fresh.root / "changed.yaml").write_text(change)
    old = ["--configfile", "tiny.yaml", "changed.yaml", "--", CELL]
    with started(fresh, *old) as run:
        (job,) = wait_for(queue)
        run.kill()
        run.wait()
    script = fresh.root / "late.sh"
    ask("scontrol", "write", "batch_script", job, str(script))
    ask("scontrol", "hold", job)
    ask("scontrol", "update", "PartitionName=debug", "State=UP")
    (mark,) = (fresh.root / ".snakemake/runs").glob("fedcore-*")
    assert tiny(fresh, "--unlock").returncode == 0
    resumed = tiny(fresh)
    assert resumed.returncode == 0, resumed.stdout
    assert "left 1 job in the queue (0 running): cancelled" in resumed.stdout
    made = (fresh.root / CELL).read_bytes()
    assert local_steps(fresh) == 4

    def late():
        log = fresh.root / "late.log"
        environment = fresh.environment | {"FEDCORE_RUN": str(mark)}
        subprocess.run(
            ["sbatch", "--wait", "--export=ALL", f"--output={log}", str(script)],
            cwd=fresh.root, env=environment, capture_output=True,
        )  # fmt: skip
        return log.read_text()

    assert "which was killed, and a later run has begun" in late()
    assert (fresh.root / CELL).read_bytes() == made
    mark.with_name(f"{mark.name}.over").unlink()  # without the guard it replaces the newer one
    late()
    assert local_steps(fresh) == 5


@pytest.mark.fault("cluster", "SLURM: scancel of a job, and Ctrl-C of Snakemake", times=2)
def test_a_job_that_is_cancelled_and_a_run_that_is_interrupted(node, fresh):
    assert tiny(fresh, target=PROBLEM).returncode == 0
    ask("scontrol", "update", "PartitionName=debug", "State=DOWN")  # jobs wait
    with started(fresh, "--configfile", "tiny.yaml", "--", CELL) as run:
        (job,) = wait_for(queue)
        ask("scancel", job)
        assert run.wait(900) == 1
    with started(fresh, "--configfile", "tiny.yaml", "--", CELL) as run:
        wait_for(queue)
        run.send_signal(signal.SIGINT)
        assert run.wait(900) != 0
    assert not queue()
    ask("scontrol", "update", "PartitionName=debug", "State=UP")
    again = tiny(fresh)  # both let go of the lock
    assert again.returncode == 0, again.stdout
    assert History.load(fresh.root / CELL).repeats == 3


@pytest.mark.fault("cluster", "SLURM: an error in a configuration", told="n_components")
def test_users_errors_are_not_repeated(node, fresh):
    fresh.edit(
        "config/papers/tiny.yaml",
        "rank: 3}\n    defaults: {n_components: 2}",
        "rank: 3}\n    defaults: {n_components: 99}",
    )
    assert tiny(fresh, target=PROBLEM).returncode == 0
    counts = []
    for retries in ("0", "1"):  # as in the profile; as it was
        before = submitted()
        args = [] if retries == "0" else ["--retries", retries]
        failed = tiny(fresh, *args)
        assert failed.returncode == 1 and "n_components" in failed.stdout
        counts.append(len(submitted() - before))
    assert counts == [1, 2]


@needs_mpi
def test_ranks_of_mpi_are_tasks_of_a_job(node, fresh):
    cell = "results/tiny/histories/tiny/third/ssi/easy-far.h5"
    fresh.edit(
        "config/papers/tiny.yaml",
        "\ntables:\n",
        """
  third:
    reproduces: nothing
    problems: [easy]
    repeats: 1
    metrics: [objective]
    runs: [{algorithm: ssi, params: {rounds: 5}, engine: mpi, ranks: 2, variants: {far: {}}}]

tables:
""",
    )
    done = tiny(fresh, target=cell)
    assert done.returncode == 0, done.stdout
    jobs = ask("squeue", "-h", "--states=all", "-o", "%A").split()
    tasks = [re.search(r"NumTasks=(\d+)", ask("scontrol", "show", "job", job))[1] for job in jobs]
    assert sorted(tasks) == ["1", "2"]  # the problem, and the cell
    assert History.load(fresh.root / cell).repeats == 1
