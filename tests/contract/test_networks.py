"""The contract of all registered algorithms that learn classifiers.

Tests that train need PyTorch and are skipped without it.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fedcore
from contract.checks import checks_of, require, settings_of, usable
from contract.networks import CASES, PARAMS
from fedcore import algorithms, metrics, testing
from fedcore.errors import FedcoreError, InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Shape
from fedcore.history import History, units_of
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.problems.tasks import CLASSIFIERS, SUBSPACE
from fedcore.recorder import Recorder, Recording
from fedcore.runs import execute
from fedcore.testing import Case, Draws
from fedcore.testing.samples import FEATURES, held_out, images
from refused import refused

NAMES = [known.name for known in usable() if known.task is CLASSIFIERS]
WITHOUT_SEED = {"fedavg", "fedprox", "per_fedavg", "scaffold"}  # clients keep no network
every_algorithm = pytest.mark.parametrize("name", NAMES)


def case_of(name: str) -> Case:
    """Return the entry of an algorithm; `test_every_algorithm_has_a_contract` asks for one."""
    return CASES[name] if name in CASES else testing.cases.case_of(algorithms.get(name))


every_setting = pytest.mark.parametrize(("name", "setting"), settings_of(NAMES, case_of))
# Sums in another order, some hundred steps deep.
ROUNDING = 1e-12


def needs_torch() -> None:
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")


def run(name: str, seed: int = 5, dtype: Any = np.float64, **options: Any) -> SimpleNamespace:
    """Run an algorithm by the function that library and workflow share."""
    needs_torch()
    run_options = {k: options.pop(k) for k in ("stop", "iterates") if k in options}
    measure = [metrics.get(m) for m in options.pop("measure", ["test_accuracy"])]
    problem = options.pop("problem", None)
    problem = problem or Problem("p", images(dtype=dtype), held_out=held_out(dtype=dtype))
    algorithm, kept = algorithms.get(name), []
    settings = algorithm.params({**PARAMS, **options})
    recording = Recording(
        measure, on_iterate=lambda record, iterate: kept.append(networks(iterate)), **run_options
    )
    recorder, output = execute(algorithm, problem, settings, seed, recording)
    return SimpleNamespace(
        recorder=recorder, output=output, settings=settings, ledger=recorder.ledger,
        columns=recorder.columns(), networks=kept, algorithm=algorithm,
        history=History.from_run(recorder, output, units_of(measure)),
    )  # fmt: skip


def networks(iterate: Any) -> list[np.ndarray]:
    """Parameters of the clients' networks; of one network for all, one vector."""
    found = iterate.classifiers
    found = found.make() if hasattr(found, "make") else found
    parts = found.bodies, found.heads
    several = [len(vectors) for vectors in parts if not isinstance(vectors, np.ndarray)]
    each = [[v] * max(several, default=1) if isinstance(v, np.ndarray) else v for v in parts]
    return [np.concatenate(pair) for pair in zip(*each, strict=True)]


def test_every_algorithm_has_a_contract():
    subspace = [n for n in algorithms.names() if algorithms.get(n).task is SUBSPACE]
    assert sorted(subspace + NAMES) == algorithms.names()
    lacking = [name for name in NAMES if case_of(name).oracle is None]
    assert lacking == [], "write the plain form into its case, or into tests/contract/networks.py"
    assert set(CASES) <= set(NAMES)


# The plain form of a network's method gives networks, and no subspace: it has a test of its own.
SAME = [known for known in checks_of(NAMES, case_of) if "plain_form" not in str(known.id)]


@pytest.mark.parametrize(("check", "name", "case"), SAME)
def test_every_algorithm_keeps_the_contract(check, name, case):
    needs_torch()
    require(check, name, case)


# --- results ------------------------------------------------------------------------------------


@every_setting
@pytest.mark.parametrize("parts", ["one client", "uneven clients", "one class"])
def test_the_networks_are_those_of_the_plain_method(name, setting, parts):
    sizes = (11,) if parts == "one client" else (7, 12, 5, 12)
    setting = {**setting, **({"participation": 1} if parts == "one client" else {})}
    data = images(sizes)
    if parts == "one class":
        data.labels = [np.zeros(len(x)) if i == 1 else data.labels[i] for i, x in enumerate(data)]
    found = run(name, problem=Problem("p", data, held_out=held_out(sizes)), **setting)
    plain = case_of(name).oracle(data, Draws(5, len(sizes)), found.settings)
    ours = found.networks[-1]
    for mine, theirs in zip(ours * (len(plain) if len(ours) == 1 else 1), plain, strict=True):
        assert mine.dtype == np.float64
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=ROUNDING)
    assert np.isfinite(found.columns["test_accuracy"]).all()


@every_algorithm
def test_samples_of_any_precision_and_read_only_ones_will_do(name):
    """Clients of mixed precisions compute in the larger one."""
    mixed = [x.astype(np.float32) if i == 1 else x for i, x in enumerate(images()[:])]
    apart = [x.astype(np.float32) for x in held_out()[:]]
    for x in [*mixed, *apart]:
        x.flags.writeable = False
    clients = Clients(mixed, labels=images().labels)
    measured = Clients(apart, labels=held_out().labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(name, problem=Problem("p", clients, held_out=measured))
    same = [x.astype(np.float64) for x in mixed]
    exact = run(name, problem=Problem("p", Clients(same, labels=clients.labels)), measure=[])
    for mine, theirs in zip(found.networks[-1], exact.networks[-1], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert np.isfinite(found.columns["test_accuracy"]).all()


@every_algorithm
def test_the_order_of_clients_does_not_matter_when_their_ids_move_along(name):
    needs_torch()
    algorithm, data, apart = algorithms.get(name), images(), held_out()
    settings = algorithm.params({**PARAMS, "participation": 1})

    def ordered(order: list[int]) -> np.ndarray:
        clients, own = (
            Clients([c[i] for i in order], labels=[c.labels[i] for i in order])
            for c in (data, apart)
        )
        federation = Federation(clients, 3, ids=order, check=False, labelled=True)
        problem = Problem("ordered", clients, held_out=own)
        recorder = Recorder(problem, federation.ledger, Recording([metrics.get("test_accuracy")]))
        algorithm.run(federation, settings, federation.rng, recorder)
        return np.array(recorder.by_client["test_accuracy"])

    straight, order = ordered([0, 1, 2, 3]), [2, 0, 3, 1]
    np.testing.assert_array_equal(ordered(order), straight[:, order])


# --- communication ------------------------------------------------------------------------------


@every_setting
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_ledger_says_what_the_closed_form_says(name, setting, dtype):
    found = run(name, dtype=dtype, measure=[], **setting)
    assert found.ledger.cost() == found.algorithm.communication(
        found.settings, Shape(4, 36, FEATURES)
    )
    width = np.dtype(dtype).itemsize
    keeps = name not in WITHOUT_SEED or setting.get("form") == "sum"
    seeds = 4 if keeps else 0  # of 8 bytes each
    assert found.ledger.bytes_up == width * found.ledger.scalars_up
    assert found.ledger.bytes_down == width * (found.ledger.scalars_down - seeds) + 8 * seeds
    assert all(w.dtype == dtype for w in found.networks[-1])


# --- what goes wrong ----------------------------------------------------------------------------


@every_algorithm
def test_a_run_that_diverges_ends_with_a_mark(name):
    tuned = {"fine_tune": 2} if algorithms.get(name).takes("fine_tune") else {}
    found = run(name, rate=1e200, rounds=40, participation=1, **tuned)
    assert found.columns["diverged"][-1] == 1 and not found.columns["diverged"][:-1].any()
    assert len(found.columns["iteration"]) < 10
    assert np.isnan(found.columns["test_accuracy"][-1])
    assert np.isnan(found.history.clients["test_accuracy"][0, -1]).all()


BAD = images()[1].copy()
BAD[4, 2] = np.nan
WRONG_CALLS = {  # samples, labels, and whatever else, given in the place of those of `images`
    "no labels": ({"labels": None}, "labels"),
    "a batch that is too large": ({"batch": 6}, "client 2 has 5 samples", "batch = 6"),
    "a class too many": ({3: np.full(12, 3.0)}, "client 3", "label 3", "row 0"),
    "half a class": ({0: np.full(7, 0.5)}, "client 0", "label 0.5", "row 0"),
    "another shape": ({"model": "cifar10_cnn"}, "3 × 32 × 32", "9"),
    "no samples": ({"clients": [images()[0], np.empty((0, 9))]}, "client 1 is empty"),
    "NaN": ({"clients": [images()[0], BAD]}, "client 1 has NaN", "row 4, feature 2"),
    "another held-out class": (
        {"held_out": (images()[:], [*images().labels[:3], np.full(12, 7.0)])}, "client 3", "7"),
    "a rank": ({"n_components": 2}, "'n_components'"),
    "a mean": ({"center": True}, "samples as they are"),
    "a measure of subspaces": ({"measure": ["subspace_distance"]}, "subspace", "classifiers"),
}  # fmt: skip


@every_algorithm
@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_what_every_method_refuses(name, wrong):
    needs_torch()
    changes, *names = WRONG_CALLS[wrong]
    changes = dict(changes)
    labels = [changes.pop(i, own) for i, own in enumerate(images().labels)]
    clients = changes.pop("clients", images()[:])
    given = {"labels": labels[: len(clients)], **PARAMS, **changes}
    refused(lambda: fedcore.run(name, clients, **given), InputError, *names)


def test_without_pytorch_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in ("training", "evaluation", "networks"):
        monkeypatch.delitem(sys.modules, f"fedcore.deep.{module}", raising=False)
    call = partial(fedcore.run, "fedavg", images()[:], labels=images().labels, **PARAMS)
    refused(call, FedcoreError, "PyTorch", "pip install torch")


def test_a_result_has_accuracies_and_no_components():
    needs_torch()
    call = partial(fedcore.run, "fedavg", images()[:], labels=images().labels, **PARAMS)
    result, apart = call(), (held_out()[:], held_out().labels)
    assert result.components is None and "training_accuracy" in result.history
    assert "test_accuracy" in call(held_out=apart).history


# --- parameters ---------------------------------------------------------------------------------
