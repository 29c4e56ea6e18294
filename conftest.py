"""Small low-rank problems shared by the tests: those of `fedcore.testing`, made by NumPy alone."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import hypothesis
import numpy as np
import pytest

from fedcore import algorithms
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.engines.mpi import Mpi, Ranks
from fedcore.federation.engines.mpi_link import connect
from fedcore.federation.federation import Federation
from fedcore.files import hdf5
from fedcore.problems.problem import Problem
from fedcore.testing.samples import (
    FEATURES,
    RANK,
    SIZES,
    SPECTRUM,
    cut,
    spectrum_matrix,
    uneven_clients,
)

TORCH = importlib.util.find_spec("torch") is not None
ENGINES: dict[str, Any] = {"in-process": InProcess}  # and, under mpiexec, "mpi"

# Whether an example is quick enough depends on what else the machine does.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


FEDCORE = Path(__file__).parent / "fedcore"
DEEP = [FEDCORE / "deep"] * (not TORCH)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the doctests of what imports PyTorch, where it is missing.

    No other import may fail: pytest's own option for that passes over files of tests, too.
    """
    config.option.ignore = [*(config.option.ignore or []), *map(str, DEEP)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--transport``."""
    parser.addoption(
        "--transport", choices=[*ENGINES, "mpi"], default="in-process",
        help="what carries messages to clients in every federation of the tests; mpi asks for "
        "mpiexec -n 3 python -m pytest, and every rank runs the same tests",
    )  # fmt: skip


class Failures:
    """Prints what fails on a rank that prints nothing else."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure to the standard error."""
        if report.failed:
            print(f"rank {self.rank}: {report.nodeid}\n{report.longreprtext}", file=sys.stderr)


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Join the ranks of an MPI program: the first prints as usual, others what fails alone."""
    if config.getoption("--transport", default=None) != "mpi":
        return
    ranks = Ranks(connect())
    if ranks.rank:
        sys.stdout = open(os.devnull, "w")
        config.pluginmanager.register(Failures(ranks.rank))
    config.add_cleanup(ranks.leave)
    ENGINES["mpi"] = partial(Mpi, ranks=ranks)
    hypothesis.settings.register_profile("alike", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("alike")


@pytest.fixture(autouse=True)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every federation use the engine that the command line names."""
    name = request.config.getoption("--transport", default="in-process")
    if name != "in-process":
        if request.node.get_closest_marker("in_process"):
            pytest.skip("about what only a transport in one process does")
        monkeypatch.setattr(Federation, "engine", ENGINES[name])


@pytest.fixture
def ranks() -> Ranks:
    """Return the ranks of this MPI program."""
    return ENGINES["mpi"].keywords["ranks"]


@pytest.fixture
def matrix_with() -> Callable[..., np.ndarray]:
    """Return the function ``(n, d, sigma, seed) -> matrix`` with given singular values."""
    return spectrum_matrix


@pytest.fixture(scope="session")
def installed() -> Callable[[Path, str, str], None]:
    """Return a function that leaves in a folder what an installer does: name and entry points."""

    def install(folder: Path, package: str, entries: str) -> None:
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)

    return install


@pytest.fixture
def resealed() -> Callable[[Path, Callable[[h5py.File], None]], None]:
    """Return a function that edits a sealed file and seals it again, as another program might."""

    def edit(path: Path, change: Callable[[h5py.File], None]) -> None:
        path.write_bytes(path.read_bytes()[: -hdf5.TAIL])
        with h5py.File(path, "r+") as file:
            change(file)
        whole = path.read_bytes()
        seal = hdf5.LABEL + hashlib.sha256(whole).hexdigest().encode()
        path.write_bytes(whole + seal.ljust(hdf5.TAIL, b"\0"))

    return edit


@pytest.fixture
def clients() -> list[np.ndarray]:
    """Uneven clients, full rank with a gap after the third singular value."""
    return uneven_clients()


@pytest.fixture
def low_rank_clients() -> list[np.ndarray]:
    """Uneven clients of exact rank 3, without noise."""
    return cut(spectrum_matrix(sum(SIZES), FEATURES, SPECTRUM[:RANK], seed=2), SIZES)


@pytest.fixture
def problem(clients: list[np.ndarray]) -> Problem:
    """Return the problem of the uneven clients."""
    return Problem("gap", clients)


@pytest.fixture
def low_rank_problem(low_rank_clients: list[np.ndarray]) -> Problem:
    """Return the problem of exact rank 3."""
    return Problem("low-rank", low_rank_clients)


@pytest.fixture
def redeclared(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give an algorithm, by its name, other parts of its declaration until the test ends."""

    def change(name: str, **parts: Any) -> None:
        known = algorithms.get(name)
        monkeypatch.setattr(known.module, "ALGORITHM", dataclasses.replace(known, **parts))

    return change


@pytest.fixture(scope="session")
def tool() -> Callable[[str], ModuleType]:
    """Import a program of tools/ by its name."""

    def load(name: str) -> ModuleType:
        tools = Path(__file__).parent / "tools"
        path = tools / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"tools_{name}", path)
        module = importlib.util.module_from_spec(spec)
        with pytest.MonkeyPatch.context() as patch:
            for folder in (tools, path.parent):  # as when it is run: it may import another
                patch.syspath_prepend(folder)
            spec.loader.exec_module(module)
        return module

    return load
