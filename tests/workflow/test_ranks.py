"""A cell over MPI: the rule that runs it, its history, and what a killed rank leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from importlib.util import find_spec

import pytest
from mpiexec import PATIENCE, alive, kill, needs_mpi, ranks_below, wait_for

from fedcore.errors import ConfigError, FedcoreError, InputError
from fedcore.experiments import expectation, ranks
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import Cell
from fedcore.federation.engine import everywhere
from fedcore.federation.in_process import InProcess
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.testing.samples import uneven_clients

OVER_RANKS = """
  third:
    reproduces: nothing
    problems: [easy]
    repeats: 2
    metrics: [objective]
    runs:
      - algorithm: ssi
        params: {rounds: 5}
        engine: mpi
        ranks: 3
        variants: {far: {}}
      - algorithm: ssi
        params: {rounds: 5}
        variants: {near: {}}

tables:
"""
CELL = "histories/tiny/third/ssi/easy-far.h5"
PLUGIN = "snakemake_executor_plugin_slurm"
plain = partial(InProcess, plain=True)


@pytest.fixture
def checkout(fresh):
    """A copy in which an experiment of the paper has a cell over MPI and one in one process."""
    fresh.edit("config/papers/tiny.yaml", "\ntables:\n", OVER_RANKS)
    return fresh


def spec_of(**changes):
    """The cell of `OVER_RANKS`, as it would be run in one process."""
    about = {
        "paper": "tiny", "experiment": "third", "algorithm": "ssi", "name": "easy-far",
        "problem": "easy", "params": {"n_components": 2, "rounds": 5}, "repeats": 2,
        "metrics": ["objective"], "iterates": "last", "seed": 0,
    }  # fmt: skip
    return Cell(**about | changes).spec()


def test_a_cell_over_mpi_has_a_rule_of_its_own(checkout):
    target = f"results/tiny/{CELL}"
    near = target.replace("far", "near")
    dry = checkout.snakemake("-n", target, near, cores=4)
    assert dry.status == 0, dry.text
    rules = {name: rule for name, rule in checkout.planned(target, near).items() if "third" in name}
    assert rules == {CELL: "ranks_ssi", CELL.replace("far", "near"): "run_ssi"}
    over = dry.text.partition("rule ranks_ssi:")[2].partition("\nrule ")[0]
    assert "tasks=3" in over and "mpi=mpiexec" in over and "threads: 3" in over


def test_a_rank_that_a_fault_ends_says_which_one():
    code = """
import os, signal
from fedcore.experiments import ranks
ranks.mpi.lead = lambda run: os.kill(os.getpid(), signal.SIGBUS)
ranks.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGBUS and "Bus error" in done.stderr


@pytest.mark.skipif(find_spec(PLUGIN) is None, reason="needs the plugin for SLURM: make cluster")
def test_on_slurm_every_rank_is_a_task_with_a_core(checkout):
    profile = ("--workflow-profile", "workflow/profiles/slurm")
    dry = checkout.snakemake("-n", *profile, f"results/tiny/{CELL}", cores=4)
    assert dry.status == 0, dry.text
    over = dry.text.partition("rule ranks_ssi:")[2].partition("\nrule ")[0]
    assert "tasks=3" in over and "mpi=mpiexec" in over and "turn=1" in over
    assert "threads:" not in over  # one


@needs_mpi
@pytest.mark.slow
def test_a_cell_over_mpi_has_the_bytes_of_one_that_runs_client_by_client(checkout):
    target = f"results/tiny/{CELL}"
    done = checkout.snakemake(target)
    assert done.status == 0, done.text
    root = checkout.root
    found = History.load(root / target)
    seed, code = found.about["seed"]["master"], found.about["code"]
    with everywhere(plain):
        run_cell(
            spec_of(seed=seed), root / "data/clients/tiny/tiny/easy.h5", root / "own.h5", code=code
        )
    assert (root / target).read_bytes() == (root / "own.h5").read_bytes()
    assert (root / "results/tiny/seconds/tiny/third/ssi/easy-far.tsv").is_file()
    _, memory = expectation.measured(root / "results/tiny/benchmarks/tiny/third/ssi/easy-far.tsv")
    assert memory > 3 * 30  # MB, of all ranks: an interpreter with NumPy takes more than 30
    # With sums in a chain, the number of ranks is nothing that a history depends on.
    checkout.edit("config/papers/tiny.yaml", "ranks: 3", "ranks: 2")
    assert "Nothing to be done" in checkout.snakemake(target).text
    checkout.edit("config/papers/tiny.yaml", "ranks: 2", "ranks: 2\n        order: any")
    assert CELL in checkout.planned(target)
    checkout.edit("config/papers/tiny.yaml", "engine: mpi", "engine: in-process")
    refused = checkout.snakemake("-n", target)
    assert refused.status == 1 and "'ranks' is for 'engine: mpi'" in refused.text


@needs_mpi
@pytest.mark.slow
def test_what_the_first_rank_says_is_the_jobs_sentence(checkout):
    checkout.edit("config/papers/tiny.yaml", "ranks: 3", "ranks: 4")
    done = checkout.snakemake(f"results/tiny/{CELL}")
    assert done.status == 1
    log = checkout.root / "results/tiny/logs/run/tiny/third/ssi/easy-far.log"
    said = [line for line in log.read_text().splitlines() if line.startswith("Error: ")]
    assert len(said) == 1 and "there are 4 ranks and only 3 clients" in said[0]
    assert not (checkout.root / f"results/tiny/{CELL}").exists()


@pytest.mark.parametrize(
    ("run", "spec", "said"),
    [
        ({"engine": "mpi"}, {}, "'engine: mpi' needs 'ranks'"),
        ({"ranks": 2}, {}, "'ranks' is for 'engine: mpi'"),
        ({"engine": "in-process", "order": "any"}, {}, "'order' is for 'engine: mpi'"),
        ({"engine": "mpi", "ranks": 2}, {"together": True}, "'together' is for one process"),
    ],
)
def test_what_does_not_fit_together_is_one_sentence(run, spec, said):
    with pytest.raises(ConfigError, match=f"here: {said}"):
        ranks.asked(run, spec, "here")


def test_a_run_that_does_not_ask_for_mpi_is_in_one_process():
    assert ranks.asked({}, {"together": True}, "here") == (0, "chain")
    assert ranks.asked({"engine": "mpi", "ranks": 4}, {"together": False}, "") == (4, "chain")


def test_without_mpiexec_a_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(ranks.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="pip install mpi4py mpich, or make mpi in fedcore's"):
        ranks._launcher()
    own = tmp_path / "mpiexec"
    own.touch(0o755)
    assert ranks._launcher() == str(own)


@needs_mpi
@pytest.mark.slow
@pytest.mark.fault(
    "killed", "kill −9 of a rank of a cell over MPI", told="the ranks of MPI ended with …"
)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_job_and_leaves_nothing(tmp_path, rank):
    problem, started = tmp_path / "problem.h5", time.monotonic()
    storage.save(Problem("easy", uneven_clients()), problem)
    files = [str(tmp_path / name) for name in ("h.h5", "s.tsv")]
    spec = spec_of(params={"n_components": 2, "rounds": 10**6})
    own = os.getpid()
    killed = []

    def kill_one():
        while time.monotonic() - started < PATIENCE and len(ranks_below(own)) < 3:
            time.sleep(0.05)
        time.sleep(3)
        kill(own, rank)
        killed.append(time.monotonic())

    threading.Thread(target=kill_one).start()
    with pytest.raises(FedcoreError, match=r"the ranks of MPI ended with .*: one was killed"):
        ranks.launch(
            spec, str(problem), *files, ranks=(3, "chain"), code="", used=str(tmp_path / "b")
        )
    assert time.monotonic() - killed[0] < 20
    assert [path.name for path in tmp_path.iterdir()] == ["problem.h5"]
    assert not ranks_below(own)


JOB = """
import json, sys
from fedcore.experiments import job, ranks

with job.logged("job.log"):
    files = "problem.h5", "h.h5", "s.tsv"
    ranks.launch(json.loads(sys.argv[1]), *files, ranks=(2, "chain"), code="", used="b")
"""


@needs_mpi
@pytest.mark.slow
@pytest.mark.fault(
    "failed",
    "the job of a cell over MPI ended by a signal",
    told="the job was ended before it was done, by …",
)
def test_a_job_that_is_ended_ends_its_ranks(tmp_path):
    storage.save(Problem("easy", uneven_clients()), tmp_path / "problem.h5")
    spec = json.dumps(spec_of(params={"n_components": 2, "rounds": 10**6}))
    process = subprocess.Popen([sys.executable, "-c", JOB, spec], cwd=tmp_path, text=True)
    wait_for(lambda: len(ranks_below(process.pid)) == 2, process)
    time.sleep(2)
    theirs = list(ranks_below(process.pid).values())
    process.terminate()
    assert process.wait(PATIENCE) != 0
    log = (tmp_path / "job.log").read_text()
    assert "the job was ended before it was done, by KeyboardInterrupt SIGTERM" in log
    until = time.monotonic() + 20
    while any(map(alive, theirs)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, theirs))
    assert not (tmp_path / "h.h5").exists() and not (tmp_path / "s.tsv").exists()
