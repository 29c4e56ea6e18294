"""`fedcore run` on problem files, client by client, and over ranks that mpiexec has started."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import commands
from fedcore.cli import running
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from mpiexec import alive, below, finish, kill, needs_mpi, ranks_below, run, start, wait_for

FEDCORE = ("-m", "fedcore", "run")
MPI = ("--engine", "mpi")


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((n, 12)) * 0.8 ** np.arange(12) for n in (30, 11, 45, 22, 17)]
    path = tmp_path_factory.mktemp("mpi") / "problem.h5"
    storage.save(Problem("small", clients), path)
    return path


def call(*words):
    return commands.call("run", *words)


def alone(problem, out, *words):
    commands.ran("run", "ssi", problem, "-r", "2", "--set", "rounds=20", "--out", out, *words)
    return out.read_bytes()


def test_a_problem_file_is_data(problem, tmp_path):
    alone(problem, tmp_path / "h.h5")
    found = History.load(tmp_path / "h.h5")
    S = np.vstack(storage.load(problem).clients[:])
    best = 0.5 * np.sum(np.linalg.svd(S)[1][2:] ** 2)
    assert best <= found["objective"][0, -1] < 1.05 * best
    assert found.about["problem"]["name"] == "small"


def test_all_draws_of_a_problem_file_are_run(problem, tmp_path):
    clients = storage.load(problem).clients[:]
    path = tmp_path / "draws.h5"
    storage.save([Problem("two", clients), Problem("two", [2 * x for x in clients])], path)
    words = ("-r", "2", "--repeats", "2", "--set", "rounds=80", "--set", "tol=0")
    commands.ran("run", "ssi", path, *words, "--out", tmp_path / "h.h5")
    first, second = History.load(tmp_path / "h.h5")["objective"][:, -1]
    assert second == pytest.approx(4 * first)


@pytest.mark.parametrize("words", [["--engine", "mpi"], ["--engine=mpi"]])
@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_rank_alone_prints_what_is_wrong_with_a_command(words, rank, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedcore", "run", *words])
    monkeypatch.setenv("PMI_RANK", str(rank))
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    before = sys.stderr
    running.mute_other_ranks()
    assert (sys.stderr is before) == (rank == 0)
    if rank:
        sys.stderr.close()


@needs_mpi
@pytest.mark.parametrize("count", [1, 3])
def test_over_ranks_a_run_writes_the_bytes_of_one_process(problem, tmp_path, count):
    expected = alone(problem, tmp_path / "plain.h5", "--engine", "plain")
    words = ("ssi", problem, "-r", "2", "--set", "rounds=20", "--out", "mpi.h5", *MPI)
    done = run(count, *FEDCORE, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ledger, all clients together") == 1  # one rank prints
    assert (tmp_path / "mpi.h5").read_bytes() == expected


@needs_mpi
def test_tables_and_data_sets_are_data_of_all_ranks(problem, tmp_path):
    files = []
    for i, samples in enumerate(storage.load(problem).clients):
        np.save(tmp_path / f"{i}.npy", samples)
        files.append(f"{i}.npy")
    words = ("ssi", *files, "-r", "2", "--set", "rounds=20", "--center")
    done = run(1, *FEDCORE, *words, "--engine", "plain", "--out", "plain.h5", cwd=tmp_path)
    over = run(2, *FEDCORE, *words, *MPI, "--out", "mpi.h5", cwd=tmp_path)
    assert (done.returncode, over.returncode) == (0, 0), over.stderr
    assert (tmp_path / "plain.h5").read_bytes() == (tmp_path / "mpi.h5").read_bytes()


@needs_mpi
@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (["-r", "2", *MPI, "--out", "no/h.h5"], "no/h.h5", 1),
        (["-r", "200", *MPI], "n_components = 200", 1),
        (["-r", "2", *MPI, "--nonsense"], "--nonsense", 2),
        (["-r", "2", *MPI, "--set", "rounds=3", "--metric", "nothing"], "'nothing'", 1),
    ],
)
def test_an_error_ends_all_ranks_with_one_sentence(problem, tmp_path, words, said, status):
    done = run(3, *FEDCORE, "ssi", problem, *words, cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr.count("Error: ") == 1 and said in done.stderr
    assert not done.stdout and not list(tmp_path.iterdir())


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_killed_rank_ends_all_ranks_at_once(problem, tmp_path, rank):
    words = ("ssi", problem, "-r", "2", "--set", "rounds=1000000", "--set", "tol=0")
    words += ("--out", "h.h5", *MPI)
    process = start(3, *FEDCORE, *words, cwd=tmp_path)
    wait_for(lambda: len(ranks_below(process.pid)) == 3, process)
    time.sleep(3)  # they are in the middle of their rounds, or still begin
    everybody = below(process.pid)
    assert process.poll() is None
    began = time.monotonic()
    kill(process.pid, rank)
    done = finish(process)
    assert done.returncode != 0 and time.monotonic() - began < 20
    assert "EXIT CODE: 9" in done.stdout + done.stderr  # of mpiexec
    assert not list(tmp_path.iterdir())
    until = time.monotonic() + 20
    while any(map(alive, everybody)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, everybody))
