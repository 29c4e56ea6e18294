"""What `FederatedPCA` does not take: the error names it, and nothing has crossed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA, NotFittedError
from fedcore.federation.transcript import Transcript
from refused import refused

GROUPS = np.arange(60) % 3
NAMES = ("a.csv", "b.csv", "c.csv")


@pytest.fixture
def clients():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((20, 6)) for _ in NAMES]


PARAMETERS = [  # of FederatedPCA, and what the message names
    *(({"n_components": r}, "n_components") for r in (0, -1, 1.5, "2", True)),
    *(({"n_components": r}, "min(n_samples, n_features) = 6") for r in (7, 100)),
    ({"algorithm": "powr_exact"}, "powr_exact", "'power_exact'"),
    ({"algorithm": None}, "algorithm"),
    ({"algorithm": "fedavg"}, "fedavg", "block_krylov"),
    *(({"random_state": seed}, "random_state") for seed in (-1, True, "x")),
    ({"center": "yes"}, "center"),
    ({"verbose": "yes"}, "verbose", "'yes'"),
    ({"tol": -1.0}, "tol"),
    ({"algorithm": "power_exact", "tol": 0.1}, "power_exact", "'tol'"),
    ({"params": {"round": 1}}, "'round'", "'rounds'"),
    ({"params": {"tol": 0.1}, "tol": 0.2}, "tol", "twice"),
    *(({"params": params}, "params") for params in ([1], 3)),
    ({"params": {"bogus": 1}}, "'bogus'"),
    ({"params": {"progress": True}}, "'progress'", "verbose="),
    ({"params": {"center": True}}, "'center'", "center="),
    ({"params": {"seed": 1}}, "'seed'", "random_state="),
    ({"params": {"clients": []}}, "'clients'", "fit(clients)"),
    *(({"params": {name: None}}, name, "fedcore.run") for name in ("labels", "finish")),
    ({"params": {"start": np.ones((8, 3))}}, "start", "(8, 3)"),
    ({"params": {"start": np.ones(6)}}, "start", "(6,)"),
    ({"params": {"start": 3}}, "start", "()"),
    *(({"params": {name: 2}}, "params", repr(name)) for name in (1, None)),
    *(({"algorithm": name}, "epsilon", "bounds") for name in ("noisy_power", "fedpower")),
    ({"bounds": 3.0}, "epsilon"),
]
PRIVATE = [  # of a private fit
    ({"bounds": None}, "bounds"),
    ({"delta": None}, "delta"),
    *(({"n_components": r}, "n_components") for r in (None, 0.9)),
    *(({"algorithm": name}, name, "analyze_gauss") for name in ("block_krylov", "fedpower")),
    *(({"params": {name: None}}, f"'{name}'")
      for name in ("clip", "round", "protects", "measure", "iterates", "stop")),
    *(({"bounds": bounds}, "bounds") for bounds in (
        (1.0, 0.0), (0.0, np.inf), (1.0, 1.0), ([0.0, 1.0], 2.0), -1.0, "wide", 1e200,
        (-1e308, 1e308), 1e-200, True, np.True_, np.array(True),
    )),
    *(({"epsilon": epsilon}, "epsilon", str(epsilon)) for epsilon in (-1.0, 1e-8, 2e4, 1e300)),
    ({"params": {"start": np.ones((2, 2))}}, "start", "(2, 2)"),
    ({"params": {"start": np.zeros((3, 2))}}, "start", "rank 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "names"), [(c, names) for c, *names in PARAMETERS])
def test_parameters(clients, changes, names):
    refused(lambda: FederatedPCA(**{"n_components": 2, **changes}).fit(clients), InputError, *names)


@pytest.mark.parametrize(("changes", "names"), [(c, names) for c, *names in PRIVATE])
def test_parameters_of_a_private_fit_before_anything_crosses(clients, changes, names):
    seen = Transcript()
    plain = {"n_components": 2, "epsilon": 1.0, "delta": 1e-5, "bounds": 3.0}
    plain["algorithm"] = "noisy_power"
    params = {"transcript": seen, **changes.get("params", {})}
    model = FederatedPCA(**{**plain, **changes, "params": params})
    refused(lambda: model.fit([x[:, :3] for x in clients]), InputError, *names)
    assert not seen.exchanges


def hole(x):
    x = x.copy()
    x[3, 2] = np.nan
    return x


CLIENT = {  # what becomes of client 1, and what is said besides its name; more: test_federation
    "other width": (lambda x: x[:, :4], "4 features"),
    "NaN": (hole, "row 3", "feature 2"),
    "None": (lambda x: None,),
    "masked": (lambda x: np.ma.masked_greater(x, 1), "masked"),
    "sparse": (scipy.sparse.csr_array, "sparse"),
    "structured": (lambda x: np.rec.fromarrays(x.T, names="a,b,c,d,e,f"), "structured", "'f'"),
}
CLIENTS = [  # what is given in their place
    *((given, "clients") for given in ("abc", 3, None, [], {}, (), np.empty((0, 4, 3)))),
    ([np.full((3, 2), 7.0), np.full((4, 2), 7.0)], "equal"),
    ([np.zeros((5, 3))] * 2, "zero"),
    ([scipy.sparse.csr_array((5, 3))] * 2, "zero"),
]  # fmt: skip


@pytest.mark.parametrize("kind", CLIENT)
def test_a_client_that_does_not_fit_is_named(clients, kind):
    change, *names = CLIENT[kind]
    clients[1] = change(clients[1])
    refused(lambda: FederatedPCA(2).fit(clients), InputError, "client 1", *names)
    named = dict(zip(NAMES, clients, strict=True))
    refused(lambda: FederatedPCA(2).fit(named), InputError, "client 1 ('b.csv')", *names)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(("given", "name"), CLIENTS)
def test_clients_that_are_none_or_have_no_variance(given, name, scale):
    refused(lambda: FederatedPCA(1, scale=scale).fit(given), InputError, name)


@pytest.mark.parametrize("scale", [1e200, 1e160, 1e-160, 1e-300])
def test_numbers_whose_squares_are_none(clients, scale):
    big = [scale * x for x in clients]
    refused(lambda: FederatedPCA(2).fit(big), InputError, "largest entry", "float64")
    if scale == 1e-160:
        single = [(1e-20 * x).astype(np.float32) for x in clients]
        refused(lambda: FederatedPCA(2).fit(single), InputError, "largest entry", "float32")
        near = [1e-150 + 1e-165 * x for x in clients]
        for call in (FederatedPCA(2).fit, lambda c: fedcore.run("ssi", c, 2, center=True)):
            refused(lambda call=call: call(near), InputError, "less their mean")


def test_a_run_that_diverges_is_not_blamed_on_the_size_of_the_data(clients):
    pca = FederatedPCA(2, algorithm="wk2023", params={"C": 1e-9, "rounds": 300})
    refused(lambda: pca.fit(clients), InputError, "diverged")


@pytest.mark.parametrize(
    ("groups", "name"),
    [("ward", "'ward'"), (GROUPS[:5], "(5,)"), (np.where(GROUPS == 1, np.nan, 1.0), "missing"),
     ([None, "a"] * 30, "missing")],
)  # fmt: skip
def test_groups(clients, groups, name):
    refused(lambda: FederatedPCA(2).fit(np.vstack(clients), groups=groups), InputError, name)
    refused(lambda: FederatedPCA(2).fit(clients, groups=GROUPS), InputError, "groups")


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array])
def test_the_row_of_the_matrix_that_was_given_is_named(clients, form):
    bad = np.vstack(clients)
    bad[40, 3] = np.nan  # the 14th of its group
    groups = np.array(["north", "south", "east"])[GROUPS]
    names = "client 2 ('south')", "row 40", "feature 3"
    refused(lambda: FederatedPCA(2).fit(form(bad), groups=groups), InputError, *names)


AFTER = {  # what is given to transform
    "other width": (lambda x: x[:, :4], "4 features"),
    "NaN": (hole, "row 3", "feature 2"),
    "a vector": (lambda x: x[0], "1-D"),
    "None": (lambda x: None, "None"),
    "text": (lambda x: "a", "text"),
    "masked": (lambda x: np.ma.masked_greater(x, 1), "masked"),
    "several": (lambda x: [x, x], "[model.transform(c) for c in clients]"),
}


@pytest.mark.parametrize("kind", AFTER)
def test_what_is_transformed(clients, kind):
    model = FederatedPCA(2).fit(clients)
    change, *names = AFTER[kind]
    refused(lambda: model.transform(change(clients[0])), InputError, "x", *names)


def test_scores(clients):
    model = FederatedPCA(2).fit(clients)
    for wrong, name in ((np.ones((2, 6)), "6 components"), ([np.ones((2, 2))] * 2, "inverse_tr")):
        refused(lambda wrong=wrong: model.inverse_transform(wrong), InputError, name)


def test_nothing_works_before_the_fit(clients):
    x, model = clients[0], FederatedPCA(2)
    for call in (
        lambda: model.transform(x), lambda: model.inverse_transform(x), lambda: model.score(x),
        model.get_covariance, model.get_feature_names_out,
    ):  # fmt: skip
        refused(call, NotFittedError, "fit")
    assert issubclass(NotFittedError, InputError) and issubclass(NotFittedError, AttributeError)


def test_names_of_clients_and_columns(clients):
    pandas = pytest.importorskip("pandas")
    columns = ["age", *"bcdef"]
    frames = {name: pandas.DataFrame(x, columns=columns)
              for name, x in zip(NAMES, clients, strict=True)}  # fmt: skip
    holed = {**frames, "c.csv": frames["c.csv"].copy()}
    holed["c.csv"].loc[4, "age"] = np.nan
    refused(
        lambda: FederatedPCA(2).fit(holed), InputError, "client 2 ('c.csv')", "row 4", column="age"
    )
    whole = pandas.concat(frames.values(), ignore_index=True)
    pca = FederatedPCA(2).fit(whole, groups=GROUPS)
    refused(lambda: pca.transform(whole.replace(whole["b"][7], np.inf)), InputError, "row 7", "'b'")
    for changed, name in ((whole.drop(columns=["c", "d"]), "'c'"), (whole.assign(z=1.0), "'z'")):
        refused(lambda changed=changed: pca.transform(changed), InputError, "x", name)
    less = {**frames, "b.csv": frames["b.csv"].drop(columns="c")}
    for given in (less, dict(reversed(less.items()))):
        refused(lambda given=given: FederatedPCA(2).fit(given), InputError, "client 1", "'c'")


def test_a_library_of_frames_that_is_not_there(clients, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)  # as if it were not installed
    refused(lambda: FederatedPCA(2).set_output(transform="polars"), InputError, "polars")
    refused(lambda: FederatedPCA(2).set_output(transform="excel"), InputError, "pandas")


def test_a_private_fit_takes_dense_clients_alone(clients):
    model = FederatedPCA(2, epsilon=1.0, delta=1e-5, bounds=3.0)
    sparse = [scipy.sparse.csr_array(x) for x in clients]
    refused(lambda: model.fit(sparse), InputError, ".toarray()")
