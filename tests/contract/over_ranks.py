"""Every method at the ranks of an MPI program: the bits of plain steps at all of them.

`test_mpi` runs this file as ``mpiexec -n 2 python -m pytest … --transport mpi``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from contract.cases import case_of
from contract.checks import settings_of, usable
from contract.test_algorithms import NAMES
from fedcore import algorithms, metrics
from fedcore.federation.engine import everywhere
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.engines.mpi import Ranks
from fedcore.problems.tasks import SUBSPACE
from fedcore.recorder import Recording
from fedcore.runs import execute
from fedcore.testing.subject import Subject

NETWORKS = [known.name for known in usable() if known.task is not SUBSPACE]
MEASURES = ("client_size",)  # it looks at what clients keep


def content(value: Any) -> Any:
    """Return all bytes of arrays, lists and mappings."""
    if isinstance(value, dict):
        return {name: content(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [content(part) for part in value]
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def found(name: str, setting: Any, seed: Any, noise: Any) -> str:
    """Return a hash of a run's rows, output, ledger and iterates."""
    subject = Subject(algorithms.get(name), case_of(name))
    clients = subject.clients
    names = [*subject.algorithm.task.printed, *(MEASURES if subject.subspace else ())]
    recording = Recording([metrics.get(one) for one in names], "all", client_iterates=True)
    recorder, output = execute(
        subject.algorithm,
        subject.problem(clients),
        subject.settings(clients, setting),
        seed,
        recording,
        noise=noise,
    )
    kept = [[one.record, one.shared, one.clients] for one in recorder.snapshots.kept]
    ledger = recorder.ledger.snapshot()
    whole = content([recorder.rows, recorder.by_client, output, ledger, kept])
    return hashlib.sha256(repr(whole).encode()).hexdigest()


def require_alike(name: str, setting: Any, ranks: Ranks) -> None:
    def at_all_ranks(value: str) -> set[bytes]:
        return set(ranks.link.gather(value.encode()))

    seed, noise = np.random.SeedSequence(5, spawn_key=(1, 2)), np.random.SeedSequence(3)
    with everywhere(partial(InProcess, plain=True)):
        plain = found(name, setting, seed, noise)
    assert at_all_ranks(found(name, setting, seed, noise)) == {plain.encode()}
    drawn = [at_all_ranks(found(name, setting, np.random.SeedSequence(), None)) for _ in range(2)]
    assert [len(hashes) for hashes in drawn] == [1, 1]


@pytest.mark.parametrize(("name", "setting"), settings_of(NAMES, case_of))
def test_no_bit_depends_on_the_number_of_ranks(name, setting, ranks):
    require_alike(name, setting, ranks)


@pytest.mark.parametrize("name", NETWORKS)
def test_no_bit_of_networks_depends_on_the_number_of_ranks(name, ranks):
    pytest.importorskip("torch", reason="networks need PyTorch, the extra fedcore[deep]")
    takes = algorithms.get(name).takes
    require_alike(name, {"fine_tune": 1} if takes("fine_tune") else {}, ranks)
