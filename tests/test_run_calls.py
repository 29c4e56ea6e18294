"""`fedcore.run` and `FederatedPCA` as they are called: progress, and what `run` does not take."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import FedcoreError, InputError
from refused import refused

PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "bounds": 3.0}


ASKED = {
    "run": lambda clients, on: fedcore.run("ssi", clients, 2, rounds=4, tol=0, progress=on),
    "pca": lambda clients, on: fedcore.FederatedPCA(2, verbose=on).fit(clients),
    "private": lambda clients, on: fedcore.FederatedPCA(2, verbose=on, **PRIVATE).fit(clients),
}


@pytest.mark.parametrize("on", [True, 1, 10])
@pytest.mark.parametrize("name", ASKED)
def test_a_bar_counts_rounds_if_asked_and_else_nothing_is_printed(clients, capsys, name, on):
    ASKED[name](clients, False)
    assert capsys.readouterr() == ("", "")
    ASKED[name](clients, on)
    out, shown = capsys.readouterr()
    last = shown.rstrip("\n").split("\r")[-1]
    assert out == "" and "round" in last and "iteration " in last and shown.endswith("\n")


def test_the_bar_ends_at_the_rounds_of_the_closed_form(clients, capsys):
    fedcore.run("ssi", clients, 2, rounds=4, tol=0, progress=True)
    assert "ssi: 100%" in capsys.readouterr().err
    fedcore.run("ssi", clients, 2, rounds=4, tol=0, center=True, progress=True)
    assert "5/5" in capsys.readouterr().err  # with that of the mean
    params = {"rounds": 4, "tol": 0}
    fedcore.FederatedPCA(2, algorithm="ssi", params=params, scale=True, verbose=True).fit(clients)
    assert "6/6" in capsys.readouterr().err  # and that of the scales
    sparse = [scipy.sparse.csr_array(client) for client in clients]
    fedcore.run("ssi", sparse, 2, rounds=4, tol=0, progress=True)
    assert "4/4" in capsys.readouterr().err


def test_a_logger_has_a_line_for_each_record_beside_the_bar(clients, caplog):
    with caplog.at_level(logging.INFO, logger="fedcore"):
        fedcore.run("ssi", clients, 2, rounds=3, tol=0, progress=True)
    assert [record.args[1:] for record in caplog.records] == [(k, 3, k) for k in range(4)]


def test_lines_of_the_logger_stand_by_themselves(clients, capsys, monkeypatch):
    log = logging.getLogger("fedcore")
    monkeypatch.setattr(log, "handlers", [logging.StreamHandler(sys.stderr)])
    monkeypatch.setattr(log, "level", logging.INFO)
    fedcore.run("ssi", clients, 2, rounds=3, tol=0, progress=True)
    shown = capsys.readouterr().err
    lines = [line.rpartition("\r")[2] for line in shown.split("\n")]
    assert [line for line in lines if "of 3, iteration" in line] == [
        f"ssi: round {k} of 3, iteration {k}" for k in range(4)
    ]


def test_the_bar_changes_nothing_and_a_rule_of_the_users_still_ends_the_run(clients, capsys):
    for options in ({}, {"stop": lambda row: row["iteration"] >= 3}):
        plain, shown = (
            fedcore.run("ssi", clients, 2, rounds=9, tol=0, progress=on, **options)
            for on in (False, True)
        )
        np.testing.assert_array_equal(plain.components, shown.components)
        assert plain.history["round"].tolist() == shown.history["round"].tolist()
    assert plain.history["iteration"][-1] == 3


def method(name="ssi", r=2, given=None, **options):
    return lambda clients: fedcore.run(name, clients if given is None else given, r, **options)


BUDGET = {"epsilon": 1.0, "delta": 1e-5, "clip": True}
SHORT = {int: np.uint8, float: np.longdouble, bool: np.bool_}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ssi", {"rounds": 4, "center": True}),
        ("momentum_power", {"rounds": 4}),
        ("faps", {"inner_steps": 30}),
        ("private_oja", {**BUDGET, "batch": 1, "simulate": True}),
        ("fedpower", {**BUDGET, "local_steps": 2, "simulate": True}),
        ("adaptive_power", {**BUDGET, "simulate": True}),
    ],
)
def test_numbers_of_numpy_are_taken_as_those_of_python(clients, name, options):
    plain = fedcore.run(name, clients, 2, **options)
    short = {option: SHORT[type(value)](value) for option, value in options.items()}
    found = fedcore.run(name, clients, np.uint8(2), **short)
    np.testing.assert_array_equal(found.components, plain.components)
    assert found.ledger == plain.ledger


def nan(clients):
    clients[1][3, 2] = np.nan
    return clients


REFUSED = [  # calls of fedcore.run, and what the message names; of clients: test_federation,
    # of n_components and start: the contract
    (method("pca"), "'pca'"),
    (method("wk2032"), "'wk2032'", "'wk2023'"),
    (method(r=99), "n_components = 99"),
    *((method(seed=seed), "seed") for seed in (-1, 0.5)),
    (method(start=[[1, 2], [3]]), "start"),
    (method(center="yes"), "center"),
    (method(stop=lambda row: np.ones(2)), "stop must return"),
    (method(begin=lambda _: {"basis": 3}), "begin or finish"),
    (method(finish=lambda *_: {"basis": 3}), "begin or finish"),
    (method(progress="yes"), "progress", "'yes'"),
    (method(measure="objective"), "measure=['objective']"),
    (method(measure=["kapa"]), "'kapa'", "'kappa'"),
    (method(iterates="some"), "iterates"),
    (method(rounds=0.5), "rounds"),
    (method(tll=0.1), "'tll'", "'tol'"),
    (method(centre=True), "'centre'", "'center'"),
    (method(mesure=[]), "'mesure'", "'measure'"),
    (method(params={"tol": 0.1}, tol=0.2), "tol", "twice"),
    (method(params={"tol": 0.1, "rounds": 3}), "tol=0.1, rounds=3"),
    (method(params=3), "'params'"),
    (method("yd2021"), "'sigma_max'", "'sigma_r'"),
    (method("fedavg", None), "'model'", "cifar10_cnn"),
    (method("fedavg", None, modl="tiny_mlp"), "'modl'", "'model'"),
    (method("fedavg", model="tiny_mlp"), "'n_components'"),
    (method("analyze_gauss", center=True, clip=True), "mean", "center=False"),
    (method("one_shot", labels=[]), "labels"),
    (lambda clients: fedcore.run("ssi", dict(zip("abcdef", nan(clients), strict=False)), 2), "'b'"),
    *((method(given=given), "client")
      for given in (7, "a", [])),
    *((method(given=given), "[matrix]") for given in (np.ones((3, 2)), scipy.sparse.eye_array(3))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "names"), [(call, names) for call, *names in REFUSED])
def test_what_run_does_not_take(clients, call, names):
    refused(lambda: call(clients), FedcoreError, *names)


LABELS = [
    (lambda y: y[:2], "labels"),
    (lambda y: [y[0], y[1][:5], y[2]], "labels of client 1 have shape (5,)"),
    (lambda y: [v[:, None] for v in y], "labels of client 0 have shape (20, 1)"),
    (lambda y: [y[0], None, y[2]], "labels of client 1"),
    (lambda y: [y[0], y[1].astype(str), y[2]], "labels of client 1"),
    (lambda y: [y[0], y[1] * np.inf, y[2]], "labels of client 1"),
    (lambda y: [y[0], [1, [2]], y[2]], "labels of client 1"),
    (lambda y: 3, "labels"),
    (lambda y: dict(zip("abc", y, strict=True)), "names"),
]


@pytest.mark.parametrize(("change", "name"), LABELS)
def test_labels_that_run_does_not_take(change, name):
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((20, 6)) for _ in range(3)]
    labels = change([x[:, 0] for x in clients])
    learn = method("fedrep_linear", given=clients, labels=labels, rounds=2)
    refused(lambda: learn(None), InputError, name)
