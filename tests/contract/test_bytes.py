"""Every client behind the bytes of MPI: equal to plain steps, bit for bit.

Threads take the place of the ranks; with ``--transport mpi``, under mpiexec, they are real ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from contract.cases import case_of
from contract.checks import settings_of
from contract.test_algorithms import NAMES, run
from fedcore import algorithms
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.problems.tasks import SUBSPACE
from fedcore.runs import execute
from fedcore.testing.asserting import takes_a_start, with_start
from fedcore.testing.samples import held_out, images, starting_basis
from fedcore.testing.subject import NETWORK
from federation.threads_link import engine_of, team_of

NETWORKS = [n for n in algorithms.names() if algorithms.get(n).task is not SUBSPACE]
PLAIN = partial(InProcess, plain=True)


@pytest.fixture
def away() -> Iterator[Any]:
    """Return the engine that is compared with one in process."""
    if Federation.engine is not InProcess:
        yield Federation.engine
        return
    with team_of(3, idle=True) as team:
        yield engine_of(team)


def under(engine: Any, call: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Federation, "engine", engine)
        return call()


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, Sequence):
        return [array for part in value for array in flat(part)]
    return [np.asarray(value)]


def require_equal(columns: Any, others: Any, output: Any, other: Any) -> None:
    assert columns.keys() == others.keys() and output.keys() == other.keys()
    for name, values in columns.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)
    for name, value in output.items():
        for ours, theirs in zip(flat(value), flat(other[name]), strict=True):
            assert ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes(), name


@pytest.mark.parametrize(("name", "setting"), settings_of(NAMES, case_of))
def test_bytes_change_no_bit(name, setting, clients, away):
    start = starting_basis() if takes_a_start(setting) else None
    options = {**with_start(start), "iterates": "all", **setting}
    there = under(away, lambda: run(name, clients, **options))
    plain = under(PLAIN, lambda: run(name, clients, **options))
    require_equal(there.columns, plain.columns, there.output, plain.output)
    assert there.ledger == plain.ledger


@pytest.mark.parametrize("name", NETWORKS)
def test_bytes_change_no_bit_of_networks(name, away):
    pytest.importorskip("torch", reason="networks need PyTorch, the extra fedcore[deep]")
    algorithm, data = algorithms.get(name), images()
    given = {k: v for k, v in (NETWORK | {"fine_tune": 1}).items() if algorithm.takes(k)}

    def learned() -> Any:
        clients = Clients(list(data), labels=data.labels)
        apart = held_out([len(c) for c in clients], dtype=clients.dtypes[0])
        problem = Problem("contract", clients, held_out=apart)
        return execute(algorithm, problem, algorithm.params(given), 5)

    (there, output), (plain, other) = under(away, learned), under(PLAIN, learned)
    require_equal(there.columns(), plain.columns(), output, other)
    assert there.ledger == plain.ledger
