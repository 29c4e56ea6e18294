"""Problems whose clients are made one by one, while their file is written."""

from __future__ import annotations

import os
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from fedcore import generators
from fedcore.errors import InputError
from fedcore.experiments import build
from fedcore.problems import storage
from processes import python
from refused import refused

IMAGES = {"dataset": "mnist", "partition": {"by": "label"}, "scale": "unit"}
WHITE = {"generator": "white", "params": {"n_features": 4, "n_samples": 50, "n_clients": 3}}
ROWS = {"samples": 40, "n_features": 5, "n_clients": 3, "rank": 2, "reduce": False}
OPTIONS = {"raw": "nowhere", "seed": 3, "surrogate": True}


@pytest.mark.parametrize(
    "spec",
    [
        IMAGES,
        IMAGES | {"centre": True, "first": 900},
        IMAGES | {"precision": "single", "partition": {"by": "even", "clients": 4}},
        IMAGES | {"held_out": 0.2},
        IMAGES | {"held_out": 0.2, "partition": {"by": "even", "clients": 4}},
        IMAGES | {"largest_row": 2.0, "gram": True},
        WHITE,
        WHITE | {"draws": 2, "over": {"n_features": [2, 3]}},
        WHITE | {"gram": True},
        {"generator": "spiked", "params": ROWS},
    ],
    ids=lambda spec: "-".join(map(str, spec.values()))[:40],
)
def test_a_file_written_client_by_client_is_that_of_a_problem_in_memory(spec, tmp_path):
    storage.save(build.build_draws("p", spec, **OPTIONS), tmp_path / "held.h5")
    build.make(str(tmp_path / "made.h5"), "p", spec, **OPTIONS)
    assert (tmp_path / "made.h5").read_bytes() == (tmp_path / "held.h5").read_bytes()


def test_yielded_clients_can_be_read_in_any_order():
    held, made = (build.build("p", WHITE, held=h, **OPTIONS).clients for h in (True, False))
    for i in (2, 0, 0, 1, -1):
        np.testing.assert_array_equal(made[i], held[i])
    assert [len(client) for client in made[1:]] == [17, 16]


def filled(rng):
    matrix = np.empty((5, 3))
    for _ in range(3):
        matrix[:] = rng.standard_normal(matrix.shape)
        yield matrix


def test_a_generator_may_fill_one_array_again_and_again(monkeypatch):
    monkeypatch.setattr(generators, "generate", lambda _, rng, __: filled(rng))
    held, made = (build.build("p", WHITE, held=h, **OPTIONS) for h in (True, False))
    assert len({client.tobytes() for client in held.clients}) == 3
    assert held.checksum == made.checksum


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("differs", ["numbers", "rows", "clients"])
def test_a_generator_that_yields_something_else_when_called_again_is_refused(
    monkeypatch, differs, held
):
    calls = []

    def generate(_, rng, __):
        calls.append(1)
        rows, value, number = 3, 1.0, 3
        if differs == "rows":
            rows += len(calls)
        elif differs == "numbers":
            value += len(calls)
        else:
            number = 9 - len(calls)
        return (np.full((rows, 3), value) for _ in range(number))

    monkeypatch.setattr(generators, "generate", generate)
    with pytest.raises(InputError, match="yields another matrix for client"):
        list(build.build("p", WHITE, held=held, **OPTIONS).clients)


def test_a_generator_that_yields_sparse_clients_is_refused(monkeypatch):
    yielded = scipy.sparse.csr_array(np.eye(3))
    monkeypatch.setattr(generators, "generate", lambda *_: iter([yielded]))
    refused(lambda: build.build("p", WHITE, **OPTIONS), InputError, "dense")


class Frame(np.ndarray):
    """A matrix with names of its columns, as a data frame has."""

    columns = ("a", "b", "c")


@pytest.mark.parametrize("form", [list, iter])
def test_a_generator_that_yields_frames_is_refused(monkeypatch, form, tmp_path):
    frame = np.arange(6.0).reshape(2, 3).view(Frame)
    monkeypatch.setattr(generators, "generate", lambda *_: form([frame]))
    make = partial(build.make, str(tmp_path / "p.h5"), "p", WHITE, **OPTIONS)
    refused(make, InputError, "client 0", "check_clients")
    assert not any(tmp_path.iterdir())


LIMITED = """
import resource, sys
import numpy as np
import scipy.linalg
from fedcore.datasets import reading
from fedcore.experiments import build, from_dataset, from_generator
from fedcore.generators import white

pixels = np.random.default_rng(0).integers(0, 256, (40_000, 784), np.uint8)  # 31 MB, 251 as floats
data = reading.Dataset("mnist", pixels, np.arange(40_000) % 20, "surrogate", "", "")
reading.load = lambda *_, **__: data
even = {"by": "even", "clients": 20}
spec = {
    "dataset": {"dataset": "mnist", "partition": even, "scale": "unit", "centre": True},
    "generator": {
        "generator": "white",  # 160 MB
        "params": {"n_features": 200, "n_samples": 100_000, "n_clients": 20},
    },
}[sys.argv[2]]
from_dataset.BLOCK_ENTRIES = 2**20
own = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1])
resource.setrlimit(resource.RLIMIT_DATA, ((own << 10) + (120 << 20),) * 2)
options = {"raw": "", "seed": 0, "surrogate": True}
build.make(sys.argv[1], "p", spec, **options)
try:
    build.build("p", spec, **options)
except MemoryError:
    print("too large")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dataset", "generator"])
def test_a_problem_larger_than_a_limit_on_memory_is_written(kind, tmp_path):
    if sys.platform != "linux":
        pytest.skip("the limit holds for all of a process's memory on Linux only")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = python("-c", LIMITED, tmp_path / "p.h5", kind, env=environment)
    assert done.stdout == "too large\n"  # in memory
    problem = storage.load(tmp_path / "p.h5")
    S = np.vstack(problem.clients)
    assert S.nbytes > 120 << 20
    np.testing.assert_allclose(
        problem.singular_values, np.linalg.svd(S, compute_uv=False), rtol=1e-11
    )
