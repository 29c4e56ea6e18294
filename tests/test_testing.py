"""`fedcore.testing`: fedcore's own algorithms pass it, and one with a fault does not."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from fedcore import algorithms
from fedcore.algorithms import ssi
from fedcore.errors import InputError
from fedcore.testing import CheckFailed, check_algorithm

SUM = "U = federation.sum(gram_product)"
FAULTS = {
    "not orthonormal": ('return {"basis": Z,', 'return {"basis": 2 * Z,', "orthonormal"),
    "forgets half the ledger": (
        "scalars = params.rounds", "scalars = 2 * params.rounds", "ledger says",
    ),
    "holds an array": (
        SUM, "U = federation.sum(lambda data, state, message: data.T @ (data @ Z))",
        "holds an array",
    ),
    "draws anew": (
        "Z = starting_basis(federation, params, rng)",
        "Z = starting_basis(federation, params, np.random.default_rng())",
        "same seed",
    ),
    "works after the end": (
        'return {"basis": Z, **', 'federation.broadcast(Z)\n    return {"basis": Z, **', "run ends",
    ),
}  # fmt: skip


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_method", raising=False)

    def module_of(source):
        (tmp_path / "own_method.py").write_text(source, encoding="utf-8")
        return importlib.import_module("own_method")

    yield module_of
    sys.modules.pop("own_method", None)


@pytest.mark.parametrize("name", algorithms.names())
def test_own_algorithms_pass(name):
    if "n_components" not in algorithms.get(name).task.fields:
        pytest.importorskip("torch", reason="networks need PyTorch, the extra fedcore[deep]")
    report = check_algorithm(name)
    assert report.failed == [] and len(report.findings) >= 10


def test_a_method_of_ones_own_passes(written):
    check_algorithm(written(inspect.getsource(ssi)))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_named(fault, written):
    old, new, said = FAULTS[fault]
    source = inspect.getsource(ssi)
    assert source.count(old) == 1
    with pytest.raises(CheckFailed) as failed:
        check_algorithm(written(source.replace(old, new)))
    assert said in str(failed.value)


def test_an_unknown_key_of_case_is_refused(written):
    module = written(inspect.getsource(ssi) + '\nCASE = {"ranodm": True}\n')
    with pytest.raises(InputError, match=r"ranodm.*random"):
        check_algorithm(module)
