"""Problems with labels and held-out rows in a large file: a memory map, client by client."""

from __future__ import annotations

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

from cells import cell
from fedcore import algorithms, metrics
from fedcore.errors import DataError
from fedcore.experiments.repeats import run_repeats
from fedcore.files import hdf5
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute
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
    monkeypatch.setattr(hdf5, "LARGE", 1000)
    monkeypatch.setattr(hdf5, "PIECE", 512)
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


def spans(path):
    """Return the first byte and the size of every client in a problem's file, side by side."""
    with h5py.File(path) as file:
        for group in (file, file["held_out"]) if "held_out" in file else (file,):
            found = group["clients"]
            items = [found] if isinstance(found, h5py.Dataset) else list(found.values())
            number = len(found) // len(items)
            sizes = [item.id.get_storage_size() // number for item in items for _ in range(number)]
            starts = [item.id.get_offset() + j * item.id.get_storage_size() // number
                      for item in items for j in range(number)]  # fmt: skip
            yield list(zip(starts, sizes, strict=True))


def test_a_client_is_read_and_checked_when_it_is_used(problem, path):
    whole = path.read_bytes()
    for side, places in enumerate(spans(path)):
        start, size = places[1]
        harmed = bytearray(whole)
        harmed[start + size // 2] ^= 1
        path.write_bytes(harmed)
        clients = sides(storage.load(path))[side]  # nothing has read client 1 yet
        np.testing.assert_array_equal(clients[0], sides(problem)[side][0])
        refused(lambda of=clients: of[1], DataError, "large.h5", "delete")
        np.testing.assert_array_equal(clients[2], sides(problem)[side][2])
        assert clients[0] is clients[0] and not clients[0].flags.writeable
        assert clients[0].flags.c_contiguous and clients[0].flags.aligned
        if clients.uniform and clients.gram is None:
            refused(lambda of=clients: of.stack, DataError, "large.h5", "delete")


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


CELL = cell("local_linear", {"n_components": 2}, metrics=["training_loss"])


@pytest.fixture
def opened(path):
    """A problem whose file is older than anything that a test does to it."""
    os.utime(path, (1e9, 1e9))
    return storage.load(path)


@pytest.mark.parametrize("read", [True, False], ids=["after it was read", "before"])
def test_nothing_is_kept_that_was_computed_from_a_file_overwritten_in_place(opened, path, read):
    if read:  # and checked, so that only the end of the run can notice
        list(map(list, sides(opened)))
    with open(path, "r+b") as raw:
        raw.seek(list(spans(path))[-1][-1][0])  # the last client
        raw.write(bytes(8))
    refused(lambda: run_repeats(CELL, [opened]), DataError, "large.h5", "run again")


def test_a_new_time_or_another_file_of_that_name_is_no_fault(problem, opened, path):
    list(map(list, sides(opened)))
    os.utime(path)
    path.rename(path.with_name("other.h5"))
    path.write_bytes(b"another file")
    ours, theirs = (run_repeats(CELL, [own])["training_loss"] for own in (opened, problem))
    np.testing.assert_array_equal(ours, theirs)


LIMITED = """
import resource, sys
import numpy as np
from fedcore import algorithms, metrics
from fedcore.runs import execute
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import LazyMatrices
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
        call = [sys.executable, "-c", LIMITED, kind, str(tmp_path / "big.h5"), role]
        done = subprocess.run(call, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, done.stderr))
    assert said[0][1] == "too large\n"  # the data do not fit
    assert said[0][0] == said[1][0]
