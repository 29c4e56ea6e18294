"""`fedcore.run` and `FederatedPCA` as they are called: progress, and names given wrongly."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import InputError

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
    sparse = [scipy.sparse.csr_array(client) for client in clients]
    fedcore.run("ssi", sparse, 2, rounds=4, tol=0, progress=True)
    assert "4/4" in capsys.readouterr().err


def test_the_bar_changes_nothing_and_a_rule_of_the_users_still_ends_the_run(clients, capsys):
    for options in ({}, {"stop": lambda row: row["iteration"] >= 3}):
        plain, shown = (
            fedcore.run("ssi", clients, 2, rounds=9, tol=0, progress=on, **options)
            for on in (False, True)
        )
        np.testing.assert_array_equal(plain.components, shown.components)
        assert plain.history["round"].tolist() == shown.history["round"].tolist()
    assert plain.history["iteration"][-1] == 3


@pytest.mark.parametrize("name", ["run", "pca"])
def test_what_is_no_flag_is_refused(clients, name):
    said = "progress" if name == "run" else "verbose"
    with pytest.raises(InputError, match=f"{said} must be a whole number of at least 0, got 'yes'"):
        ASKED[name](clients, "yes")


def test_unfit_clients_are_refused_as_without_a_bar(clients, capsys):
    for wrong in (clients[0], [], [np.ones(3)], [np.ones((3, 2)), np.ones((3, 3))], 7):
        said = []
        for on in (False, True):
            with pytest.raises(InputError) as caught:
                fedcore.run("ssi", wrong, 1, progress=on)
            said.append(str(caught.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("progress", [False, True])
def test_a_warning_shows_the_users_line(clients, progress):
    with pytest.warns(fedcore.ConvergenceWarning) as caught:
        fedcore.run("ssi", clients, 2, rounds=1, progress=progress)
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"params": {"tol": 0.1}, "tol": 0.2}, "tol is given twice, in params and as tol=…"),
        ({"params": {"tol": 0.1, "rounds": 3}}, "keywords: write tol=0.1, rounds=3 in the place"),
        ({"params": 3}, "ssi has no parameter 'params'"),
        ({"tll": 0.1}, "ssi has no parameter 'tll': did you mean 'tol'"),
        ({"centre": True}, "ssi has no parameter 'centre': did you mean 'center'"),
        ({"mesure": []}, "ssi has no parameter 'mesure': did you mean 'measure'"),
        (
            {"verbos": 1, "tol": 0.1},
            "ssi has no parameter 'verbos': known: n_components, n_oversamples, rounds, st",
        ),
    ],
)
def test_names_that_run_does_not_have_are_refused(clients, params, says):
    with pytest.raises(InputError, match=re.escape(says)):
        fedcore.run("ssi", clients, 2, **params)


PCA = fedcore.FederatedPCA


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PCA(2, params={"tol": 0.1}, tol=0.2), "tol is given twice, in params and as tol"),
        (lambda: PCA(2, params={"rounds": 3}, rounds=4), "rounds is given twice, in params and as"),
        (lambda: PCA(2, params={"progress": True}), "no entry 'progress': use verbose=…"),
        (lambda: PCA(2, params={"labels": []}), "no entry 'labels': use fedcore.run"),
        (lambda: PCA(2, params={"center": True}), "no entry 'center': use center=…"),
        (lambda: PCA(2, params={"seed": 1}), "no entry 'seed': use random_state=…"),
        (lambda: PCA(2, params={"finish": None}), "no entry 'finish': use fedcore.run"),
        (lambda: PCA(2, params={"clients": []}), "no entry 'clients': use fit(clients)"),
        (lambda: PCA(2, params=[1]), "params must be a mapping of names to values, got [1]"),
        (lambda: PCA(2, params=3), "params must be a mapping of names to values, got 3"),
        (lambda: PCA(2, rond=1), "no parameter 'rond': did you mean 'rounds'"),
    ],
)
def test_names_that_an_estimator_does_not_take_there_are_refused(clients, make, says):
    with pytest.raises(InputError, match=re.escape(says)):
        make().fit(clients)


class Frame:
    """What is needed of a data frame: columns with names, and the way to an array."""

    ndim = 2

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize("name", [*ASKED, "mapping"])
def test_columns_of_one_name_are_refused(clients, name):
    names = [f"f{i}" for i in range(9)]
    frames = [Frame(client, names) for client in clients]
    frames[1] = Frame(clients[1], [*names[:4], "f2", *names[5:]])
    says = r"client 1 has 2 columns named 'f2', at positions 2, 4: rename or drop"
    if name == "mapping":
        frames = {f"{chr(97 + i)}.csv": frame for i, frame in enumerate(frames)}
        says = says.replace("client 1", r"client 1 \('b.csv'\)")
    with pytest.raises(InputError, match=says):
        ASKED["pca" if name == "mapping" else name](frames, False)


def test_columns_of_one_name_are_refused_afterwards(clients):
    names = [f"f{i}" for i in range(9)]
    pandas = pytest.importorskip("pandas")
    model = fedcore.FederatedPCA(2).fit(clients)
    for frame in (Frame, pandas.DataFrame):
        twice = frame(clients[1], columns=[*names[:8], "f7"])
        for call in (model.transform, model.score, lambda x: PCA(2).fit(x)):
            with pytest.raises(InputError, match=r"has 2 columns named 'f7', at positions 7, 8"):
                call(twice)


def test_a_library_of_frames_that_is_not_there_is_one_sentence(clients, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)  # as if it were not installed
    says = "set_output: polars is not installed: pip install polars, or take transform"
    with pytest.raises(InputError, match=says):
        PCA(2).set_output(transform="polars")
    model = PCA(2).fit(clients)
    sklearn = pytest.importorskip("sklearn")
    with sklearn.config_context(transform_output="polars"):
        with pytest.raises(InputError, match=says):
            model.transform(clients[0])


def test_all_parameters_that_lack_are_named_at_once_with_what_they_may_be(clients):
    with pytest.raises(InputError) as refused:
        fedcore.run("yd2021", clients, 2)
    assert str(refused.value) == (
        "yd2021 needs the parameters 'sigma_max' (a finite number above 0) and 'sigma_r' (a finite "
        "number above 0): give them as NAME=VALUE"
    )
    with pytest.raises(InputError, match=r"needs the parameter 'model' \(one of cifar10_cnn, "):
        fedcore.run("fedavg", clients)
    with pytest.raises(InputError, match="has no parameter 'modl': did you mean 'model'"):
        fedcore.run("fedavg", clients, modl="tiny_mlp")


def test_a_rank_for_networks_is_refused_with_the_reason(clients):
    says = "fedavg has no parameter 'n_components', as it learns no subspace: leave it out"
    with pytest.raises(InputError, match=says):
        fedcore.run("fedavg", clients, 2, model="tiny_mlp")
    with pytest.raises(InputError, match="fedavg learns no subspace: take block_krylov"):
        fedcore.FederatedPCA(2, algorithm="fedavg").fit(clients)
