"""The contract of all registered algorithms that learn classifiers.

Tests that train need PyTorch and are skipped without it.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from contract.checks import checks_of, require, settings_of
from contract.networks import CASES, PARAMS

import fedcore
from fedcore import algorithms, metrics, testing
from fedcore.api import execute
from fedcore.errors import FedcoreError, InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Shape
from fedcore.history import History
from fedcore.metrics import Metric
from fedcore.parts.params import describe
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.tasks import TASKS
from fedcore.testing import Case, Draws
from fedcore.testing.contract import WRONG
from fedcore.testing.samples import FEATURES, held_out, images

NAMES = [n for n in algorithms.names() if algorithms.get(n).task is TASKS["classifiers"]]
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
    keep = Metric("kept", "1", "", lambda iterate, _: float(kept.append(networks(iterate)) or 0))
    settings = algorithm.params({**PARAMS, **options})
    recorder, output = execute(algorithm, problem, settings, seed, [*measure, keep], **run_options)
    return SimpleNamespace(
        recorder=recorder, output=output, settings=settings, ledger=recorder.ledger,
        columns=recorder.columns(), networks=kept, algorithm=algorithm,
        history=History.from_runs([recorder], [output], metrics=measure),
    )  # fmt: skip


def networks(iterate: Any) -> list[np.ndarray]:
    """Parameters of the clients' networks; of one network for all, one vector."""
    found = iterate.classifiers
    found = found.make() if hasattr(found, "make") else found
    parts = found.bodies, found.heads
    several = [len(vectors) for vectors in parts if not isinstance(vectors, np.ndarray)]
    each = [[v] * max(several, default=1) if isinstance(v, np.ndarray) else v for v in parts]
    return [np.concatenate(pair) for pair in zip(*each, strict=True)]


def bytes_of(vectors: list[np.ndarray]) -> list[bytes]:
    return [w.tobytes() for w in vectors]


def test_every_algorithm_has_a_contract():
    subspace = [n for n in algorithms.names() if algorithms.get(n).task is TASKS["subspace"]]
    assert sorted(subspace + NAMES) == algorithms.names()
    lacking = [name for name in NAMES if case_of(name).oracle is None]
    assert lacking == [], "write the plain form into CASE, or into tests/contract/networks.py"
    assert set(CASES) <= set(NAMES)


# The plain form of a network's method gives networks, and no subspace: it has a test of its own.
SAME = [known for known in checks_of(NAMES, case_of) if "plain_form" not in str(known.id)]


@pytest.mark.parametrize(("check", "name", "case"), SAME)
def test_every_algorithm_keeps_the_contract(check, name, case):
    needs_torch()
    require(check, name, case)


# --- results ------------------------------------------------------------------------------------


@every_setting
@pytest.mark.parametrize("parts", ["one client", "uneven clients"])
def test_the_networks_are_those_of_the_plain_method(name, setting, parts):
    sizes = (11,) if parts == "one client" else (7, 12, 5, 12)
    setting = {**setting, **({"participation": 1} if parts == "one client" else {})}
    found = run(name, problem=Problem("p", images(sizes), held_out=held_out(sizes)), **setting)
    plain = case_of(name).oracle(images(sizes), Draws(5, len(sizes)), found.settings)
    ours = found.networks[-1]
    for mine, theirs in zip(ours * (len(plain) if len(ours) == 1 else 1), plain, strict=True):
        assert mine.dtype == np.float64
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=ROUNDING)


@every_algorithm
def test_a_client_with_one_class_trains_as_the_plain_method_does(name):
    data, apart, setting = images(), held_out(), case_of(name).settings[0]
    data.labels = [np.zeros(len(x)) if i == 1 else data.labels[i] for i, x in enumerate(data[:])]
    found = run(name, problem=Problem("p", data, held_out=apart), **setting)
    plain = case_of(name).oracle(data, Draws(5, 4), found.settings)
    ours = found.networks[-1]
    for mine, theirs in zip(ours * (4 if len(ours) == 1 else 1), plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=ROUNDING)
    assert np.isfinite(found.columns["test_accuracy"]).all()


@every_algorithm
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    first, second = run(name, iterates="all"), run(name, iterates="all")
    first.history.save(tmp_path / "first.h5")
    second.history.save(tmp_path / "second.h5")
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()
    assert bytes_of(first.networks[-1]) == bytes_of(second.networks[-1])


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
def test_a_run_leaves_the_data_as_they_were(name):
    problem = Problem("p", images(), held_out=held_out())
    run(name, problem=problem)
    assert Problem("p", images(), held_out=held_out()).checksum == problem.checksum
    del problem.checksum
    assert Problem("p", images(), held_out=held_out()).checksum == problem.checksum


@every_algorithm
def test_the_history_counts_up_and_keeps_the_accuracy_of_every_client(name, tmp_path):
    found = run(name)
    columns = found.columns
    assert columns["iteration"].tolist() == [0, 1, 2, 3]
    for count in ("round", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        assert (np.diff(columns[count]) >= 0).all()
    assert all(np.isfinite(values).all() for values in columns.values())
    found.history.save(tmp_path / "h.h5")
    each = History.load(tmp_path / "h.h5").clients["test_accuracy"]
    assert each.shape == (1, 4, 4)
    np.testing.assert_allclose(each.mean(axis=2), found.history["test_accuracy"], rtol=1e-15)


@every_algorithm
@pytest.mark.parametrize("last", [0, 2])
def test_nothing_is_done_or_charged_after_the_recorder_has_said_so(name, last):
    tuned = {"fine_tune": 2} if algorithms.get(name).takes("fine_tune") else {}
    whole = run(name, **tuned)
    cut = run(name, stop=lambda row: row["iteration"] >= last, **tuned)
    for column, values in cut.columns.items():
        np.testing.assert_array_equal(values, whole.columns[column][: last + 1])
    assert cut.ledger.snapshot() == {c: cut.columns[c][-1] for c in cut.ledger.snapshot()}
    assert bytes_of(cut.networks[-1]) == bytes_of(whole.networks[last])


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
        recorder = Recorder(problem, federation.ledger, [metrics.get("test_accuracy")])
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
    seeds = 0 if name in WITHOUT_SEED else 4  # of 8 bytes each
    assert found.ledger.bytes_up == width * found.ledger.scalars_up
    assert found.ledger.bytes_down == width * (found.ledger.scalars_down - seeds) + 8 * seeds
    assert all(w.dtype == dtype for w in found.networks[-1])


# --- what goes wrong ----------------------------------------------------------------------------


def refuse(name: str, clients: Any, labels: Any, apart: Any = None, **params: Any) -> str:
    with pytest.raises(FedcoreError) as caught:
        fedcore.run(name, clients, labels=labels, held_out=apart, **{**PARAMS, **params})
    assert "\n" not in str(caught.value)
    return str(caught.value)


@every_algorithm
def test_a_run_that_diverges_ends_with_a_mark(name):
    tuned = {"fine_tune": 2} if algorithms.get(name).takes("fine_tune") else {}
    found = run(name, rate=1e200, rounds=40, participation=1, **tuned)
    assert found.columns["diverged"][-1] == 1 and not found.columns["diverged"][:-1].any()
    assert len(found.columns["iteration"]) < 10
    assert np.isnan(found.columns["test_accuracy"][-1])
    assert np.isnan(found.history.clients["test_accuracy"][0, -1]).all()


@every_algorithm
def test_data_that_do_not_fit_are_refused_with_their_place(name):
    needs_torch()
    data = images()
    X, y = data[:], data.labels
    assert f"{name} learns from labels and these data have none" in refuse(name, X, None)
    assert "client 2 has 5 samples, fewer than batch = 6" in refuse(name, X, y, batch=6)
    wrong = [*y[:3], np.full(12, 3.0)]
    assert "client 3 has the label 3 at row 0: tiny_mlp takes the classes 0 to 2" in refuse(
        name, X, wrong
    )
    assert "has the label 0.5 at row 0" in refuse(name, X, [np.full(7, 0.5), *y[1:]])
    says = refuse(name, X, y, model="cifar10_cnn")
    assert "cifar10_cnn takes samples of 3 × 32 × 32 numbers, and these have 9" in says
    assert "client 1 is empty" in refuse(name, [X[0], np.empty((0, 9))], y[:2])
    assert "client 3 is measured on a sample with the label 7: the classes are 0 to 2" in refuse(
        name, X, y, (X, [*y[:3], np.full(12, 7.0)])
    )
    bad = X[1].copy()
    bad[4, 2] = np.nan
    assert "client 1 has nan at row 4, feature 2" in refuse(name, [X[0], bad], y[:2])


@every_algorithm
def test_what_only_a_subspace_has_is_refused(name):
    needs_torch()
    data = images()
    with pytest.raises(InputError, match=f"{name} has no parameter 'n_components'"):
        fedcore.run(name, data[:], 2, labels=data.labels, **PARAMS)
    with pytest.raises(InputError, match=f"{name} takes samples as they are"):
        fedcore.run(name, data[:], labels=data.labels, center=True, **PARAMS)
    with pytest.raises(InputError, match="needs a subspace, and the algorithm learns classifiers"):
        fedcore.run(name, data[:], labels=data.labels, measure=["subspace_distance"], **PARAMS)


@every_algorithm
def test_a_result_has_accuracies_and_no_components(name):
    needs_torch()
    data, apart = images(), held_out()
    result = fedcore.run(name, data[:], labels=data.labels, **PARAMS)
    assert result.components is None and "training_accuracy" in result.history
    assert repr(result).startswith("Result(4 records of iteration")
    given = (apart[:], apart.labels)
    assert (
        "test_accuracy"
        in fedcore.run(name, data[:], labels=data.labels, held_out=given, **PARAMS).history
    )


@every_algorithm
def test_without_pytorch_it_says_in_one_sentence_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in ("training", "evaluation", "networks"):
        monkeypatch.delitem(sys.modules, f"fedcore.deep.{module}", raising=False)
    data = images()
    assert refuse(name, data[:], data.labels) == (
        "networks need PyTorch: install it with pip install torch, or pip install '.[deep]' in "
        "fedcore's checkout"
    )


# --- parameters ---------------------------------------------------------------------------------


@every_algorithm
def test_every_parameter_is_declared_and_described_and_states_no_default(name):
    for known in describe(algorithms.get(name).module.Params):
        assert "default" not in known.sentence, known
        assert known.kind.startswith(tuple(WRONG)), known
    for owner in algorithms.get(name).module.Params.__mro__:
        assert "default" not in (inspect.getdoc(owner) or "") or owner is object


@every_algorithm
def test_an_algorithm_says_what_it_is(name):
    algorithm = algorithms.get(name)
    assert algorithm.title.endswith(".") and "\n" not in algorithm.title
    assert algorithm.paper == "fedrep"
    with pytest.raises(InputError, match=f"{name} needs the parameter 'model'"):
        algorithm.params({})
    with pytest.raises(InputError, match="no parameter 'modl': did you mean 'model'"):
        algorithm.params({"modl": "tiny_mlp"})
    assert len(inspect.getsource(algorithm.module).splitlines()) <= 120
