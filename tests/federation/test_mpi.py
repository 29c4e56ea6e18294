"""The ranks of an MPI program: a federation at all of them, and how they end."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedcore.errors import InputError
from fedcore.federation.engines import mpi_link
from fedcore.federation.engines.mpi import edges
from mpiexec import needs_mpi, run
from refused import refused


@needs_mpi
@pytest.mark.in_process  # of itself; the ranks are started here
def test_a_federation_at_three_ranks():
    tests = Path(__file__).with_name("over_ranks.py")
    options = "-n", "0", "-q", "--transport", "mpi", "-p", "no:cacheprovider"
    done = run(3, "-m", "pytest", tests, *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 9])
def test_ranks_have_consecutive_clients_with_samples_as_equal_as_can_be(ranks):
    rng = np.random.default_rng(ranks)
    for _ in range(20):
        rows = rng.integers(1, 50, rng.integers(1, 40))
        found = edges([(n, 3) for n in rows], ranks)
        assert found[0] == 0 and found[-1] == len(rows) and found == sorted(found)
        shares = [rows[a:b].sum() for a, b in itertools.pairwise(found)]
        assert max(shares) <= rows.sum() / ranks + rows.max()


PROGRAM = """
import sys
import time
import numpy as np
from fedcore.federation.engines import mpi
from fedcore.federation.federation import Federation

def quits(data, state, message):
    if len(data) == 5:
        sys.exit(3)
    return data[0]

def first_row(data, state, message):
    return data[0]

def program(ranks):
    federation = Federation([np.ones((rows, 3)) for rows in (4, 5)])
    {body}
    ranks.rank or print("rank 0 is done")

mpi.on_all_ranks(program)
"""
ENDS = {  # what a program does, and what is said; nothing if all is well
    "a step ends its process": ("federation.sum(quits)", "rank 1 left in the middle"),
    "another order": (
        "(federation.sum if ranks.rank else federation.gather)(first_row)", "another exchange"
    ),
    "another shape": (
        "federation.broadcast(np.ones(3 + ranks.rank)); federation.sum(first_row)",
        "another exchange",
    ),
    "one more": ("ranks.rank or federation.sum(first_row)", "rank 1 left before rank 0"),
    "an error at one": ("ranks.rank and 1 / 0; federation.sum(first_row)", "ZeroDivisionError"),
    "one less": ("ranks.rank and federation.sum(first_row)", ""),  # rank 0's end ends all
}  # fmt: skip


@needs_mpi
@pytest.mark.parametrize("kind", ENDS)
def test_ranks_that_part_end_with_one_sentence(kind, tmp_path):
    body, said = ENDS[kind]
    (tmp_path / "program.py").write_text(PROGRAM.replace("{body}", body))
    done = run(2, "program.py", cwd=tmp_path)
    assert (done.returncode == 0) == (not said), done.stderr
    assert done.stderr.count("Error: ") == bool(said) + ("ZeroDivision" in said)
    assert said in done.stderr
    assert ("rank 0 is done" in done.stdout) == (not said)


CELL = """
from functools import partial
import numpy as np
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_repeats
from fedcore.federation.engine import everywhere
from fedcore.federation.engines import mpi
from fedcore.federation.engines.in_process import InProcess
from fedcore.history import History
from fedcore.problems.problem import Problem

rng = np.random.default_rng(0)
problem = Problem("p", [rng.standard_normal((rows, 8)) for rows in (9, 12, 10)])
cell = Cell(
    "", "", "local_power", "", "p", {"n_components": 2, "rounds": 4}, 7, ["objective"], "all", 1,
    share_products=True, twin="rounding",
)

def never(self, protocol):
    raise TypeError("a history crosses")

History.__reduce_ex__ = never

def found():
    return {f"{group}/{name}": array.tobytes()
            for group, name, array, _ in run_repeats(cell, [problem]).arrays()}

with everywhere(partial(InProcess, plain=True)):
    plain = found()

def program(ranks):
    assert found() == plain and ranks.rank == 0
    print("equal")

mpi.on_all_ranks(program)
"""


@needs_mpi
def test_starts_that_share_products_run_alone_over_ranks_and_rank_0_makes_their_history(tmp_path):
    (tmp_path / "program.py").write_text(CELL)
    done = run(2, "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr


def test_without_mpi4py_or_with_a_launcher_of_another_mpi(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    refused(mpi_link.connect, InputError, "mpi4py", "make env EXTRAS=mpi")
    world = SimpleNamespace(Get_size=lambda: 1, Get_rank=lambda: 0)
    fake = SimpleNamespace(COMM_WORLD=world, Get_library_version=lambda: "MPICH 5\nmore")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=fake))
    assert mpi_link.connect().size == 1
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    refused(mpi_link.connect, InputError, "4 processes", "MPICH 5)")


def test_the_rank_of_a_process_is_known_before_mpi_is_there(monkeypatch):
    for name in mpi_link.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert mpi_link.started_as() == 0
    monkeypatch.setenv("PMI_RANK", "2")
    assert mpi_link.started_as() == 2
