"""Problems with labels and held-out rows in a large file: a memory map, client by client."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from fedcore import algorithms, metrics
from fedcore.errors import DataError
from fedcore.files import hdf5
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute
from processes import python
from refused import refused

METHODS = [
    ("fedrep_linear", {"rounds": 5, "init": "moments"}),
    ("fedrep_linear", {"rounds": 5, "init": "pgd", "participation": 0.5}),
    ("fedsgd_linear", {"rounds": 5, "init": "random"}),
    ("local_linear", {}),
    ("ssi", {"rounds": 5}),
]


def labelled(rows, seed, *, single=False):
    rng = np.random.default_rng(seed)
    kind = np.float32 if single else np.float64
    matrices = [rng.standard_normal((n, 16)).astype(kind) for n in rows]
    return Clients(matrices, labels=[x @ np.ones(16, kind) for x in matrices])


@pytest.fixture(params=["equal", "unequal", "single", "held out", "gram"])
def problem(request):
    kind = request.param
    equal = kind != "unequal"
    clients = labelled([40, 40, 40, 40] if equal else [40, 41, 60, 50], 0, single=kind == "single")
    held_out = labelled([20, 20, 20, 20], 1) if kind == "held out" else None
    if kind == "gram":
        clients.gram = sum(c.T @ c for c in clients)
    return Problem("labelled", clients, held_out=held_out)


@pytest.fixture
def path(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "LARGE_FILE", 1000)
    storage.save(problem, tmp_path / "large.h5")
    return tmp_path / "large.h5"


def sides(problem):
    return [side for side in (problem.clients, problem.held_out) if side is not None]


def test_what_is_read_is_what_was_written(problem, path):
    for read, written in zip(sides(storage.load(path)), sides(problem), strict=True):
        assert read.shapes == written.shapes and read.dtypes == written.dtypes
        for found, given in ((read, written), (read.labels, written.labels)):
            for ours, theirs in zip(found, given, strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)
        np.testing.assert_array_equal(read.gram, written.gram)
        assert read.uniform == written.uniform
        if read.uniform:
            for ours, theirs in zip(read.labelled_stack, written.labelled_stack, strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)
    again = path.with_name("again.h5")
    storage.save(storage.load(path), again)
    assert again.read_bytes() == path.read_bytes()


def test_an_array_is_read_and_checked_when_it_is_used(problem, path):
    """All others are damaged meanwhile, which nobody notices who does not use them."""
    with h5py.File(path) as file:
        found = file["clients"]
        stack = isinstance(found, h5py.Dataset)
        places = [(d.id.get_offset(), d.id.get_storage_size())
                  for d in ([found] if stack else found.values())]  # fmt: skip
    whole = bytearray(path.read_bytes())
    for start, size in places[1:] or places:
        whole[start + size // 2] ^= 1
    path.write_bytes(whole)
    clients = storage.load(path).clients
    for i in range(len(clients)):
        if i or stack:
            refused(lambda at=i: clients[at], DataError, "large.h5", "delete")
        else:
            np.testing.assert_array_equal(clients[0], problem.clients[0])
            assert clients[0] is clients[0] and not clients[0].flags.writeable
            assert clients[0].flags.c_contiguous and clients[0].flags.aligned


@pytest.mark.parametrize(("name", "params"), METHODS, ids=lambda value: str(value)[:40])
def test_runs_on_maps_and_on_arrays_give_the_same_bytes(problem, path, name, params):
    if name == "ssi" and problem.held_out is not None:
        pytest.skip("these have no reference in the file")
    chosen, found = algorithms.get(name), []
    settings = chosen.params({"n_components": 2, **params})
    shown = [metrics.get("objective" if name == "ssi" else "training_loss")]
    for own in (problem, storage.load(path)):
        recorder, output = execute(chosen, own, settings, 0, Recording(shown))
        columns = {key: column.tobytes() for key, column in recorder.columns().items()}
        found.append((columns, {k: np.asarray(v).tobytes() for k, v in output.items()}))
    assert found[0] == found[1]


LIMITED = """
import resource, sys
import numpy as np
from fedcore import algorithms, metrics
from fedcore.runs import execute
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.files.lazy import LazyMatrices
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording

def client(i):
    return np.random.default_rng(i).standard_normal((rows[i], 200))

def made(first, number):  # clients of 16 MB
    matrices = LazyMatrices(lambda i: client(first + i), number)
    labels = [np.arange(rows[first + i]) % 7.0 for i in range(number)] if kind != "plain" else None
    shapes = [(rows[first + i], 200) for i in range(number)]
    return Clients(matrices, shapes, [np.dtype(float)] * number, labels=labels)

def model(problem):
    plain = kind == "plain"
    chosen = algorithms.get("ssi" if plain else "fedrep_linear")
    settings = chosen.params({"n_components": 2, "rounds": 2} | ({} if plain else random))
    loss = "objective" if plain else "training_loss"
    recorder, output = execute(chosen, problem, settings, 0, Recording([metrics.get(loss)]))
    seen = [x.sum() for x in problem.held_out or []]
    return output["basis" if plain else "V"].tobytes(), recorder.columns()[loss], seen

kind, path, role = sys.argv[1:]
random = {"init": "random"}
rows = [10_000 + (i if kind == "unequal" else 0) for i in range(20)]
import fedcore.algorithms.fedrep_linear, scipy.linalg
if role == "limited":
    resource.setrlimit(resource.RLIMIT_DATA, (250 << 20,) * 2)
parts = (10, 10) if kind == "held out" else (20, 0)
problem = Problem("p", made(0, parts[0]), held_out=made(parts[0], parts[1]) if parts[1] else None)
if role == "limited":
    storage.save(problem, path)
    print(model(storage.load(path)))
    try:
        problem.clients.hold(), problem.held_out and problem.held_out.hold()
    except MemoryError:
        print("too large", file=sys.stderr)
else:
    problem.clients.hold()
    print(model(problem))
"""


@pytest.mark.parametrize("kind", ["plain", "equal", "unequal", "held out"])
def test_data_larger_than_a_limit_on_memory(kind, tmp_path):
    if sys.platform != "linux":
        pytest.skip("the limit holds for all of a process's memory on Linux only")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    said = []
    for role in ("limited", "free"):
        done = python("-c", LIMITED, kind, tmp_path / "big.h5", role, env=environment)
        said.append((done.stdout, done.stderr))
    assert said[0][1] == "too large\n"  # the data do not fit
    assert said[0][0] == said[1][0]


def mapped() -> int:
    """Bytes of files in this process's memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("RssFile:"))
    return int(line.split()[1]) << 10


def test_a_first_pass_over_all_arrays_takes_the_memory_of_one(tmp_path):
    if sys.platform != "linux":
        pytest.skip("other systems do not say how much of a file is in memory")
    path = tmp_path / "large.h5"
    storage.save(Problem("p", [np.ones((10_000 + i, 200)) for i in range(10)]), path)
    clients, most = storage.load(path).clients, 0
    before = mapped()
    for rows in clients:
        assert rows.sum() == rows.size
        most = max(most, mapped() - before)
    assert 0 < most < 3 * clients[0].nbytes
    assert all((rows == 1).all() for rows in clients)  # also when they are read again
