"""What does not fit is refused in one sentence, by `FederatedPCA` and labels by `fedcore.run`."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import FedcoreError, InputError

PCA = fedcore.FederatedPCA
NAMES = ("a.csv", "b.csv", "c.csv")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((20, 6)) for _ in NAMES]
    return clients, [x[:, 0] + 0.1 * rng.standard_normal(20) for x in clients]


def learn(clients, labels):
    return fedcore.run("fedrep_linear", clients, 2, labels=labels, rounds=2)


def nan(x):
    x[3, 2] = np.nan
    return x


ONE_IS_WRONG = {  # what becomes of client 1, and what is said of it
    "other width": (lambda x: x[:, :4], "client 1 has 4 features, client 0 has 6"),
    "a vector": (lambda x: x[:, 0], "client 1: expected a 2-D (samples, features) array, got 1-D"),
    "NaN": (nan, "client 1 has nan at row 3, feature 2"),
    "no samples": (lambda x: x[:0], "client 1 is empty (shape (0, 6)); drop it or give it samples"),
    "None": (lambda x: None, "client 1 is None; leave it out or give it a matrix"),
    "objects": (lambda x: x.astype(object), "client 1: dtype object is not numeric"),
    "text": (lambda x: x.astype(str), "is not numeric"),
    "complex": (lambda x: x + 1j, "client 1: dtype complex128 is not numeric"),
    "masked": (lambda x: np.ma.masked_greater(x, 1), "client 1 has masked entries: fill them with"),
    "sparse": (scipy.sparse.csr_array, "client 1 is sparse and client 0 is dense: make all"),
    "huge": (lambda x: x * 1e200, "the largest entry of the data is "),
}


@pytest.mark.parametrize("kind", ONE_IS_WRONG)
def test_a_client_that_does_not_fit_is_named(data, kind):
    change, says = ONE_IS_WRONG[kind]
    clients = [data[0][0], change(data[0][1].copy()), data[0][2]]
    with pytest.raises(InputError, match=re.escape(says)):
        PCA(2).fit(clients)
    named = says.replace("client 1", "client 1 ('b.csv')").replace("client 0", "client 0 ('a.csv')")
    with pytest.raises(InputError, match=re.escape(named)) as caught:
        PCA(2).fit(dict(zip(NAMES, clients, strict=True)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("clients", ["abc", 3, [], {}, None])
def test_what_is_no_list_of_clients_is_refused(clients):
    with pytest.raises(
        InputError, match=r"clients (must be a list|is a text)|there are no clients"
    ):
        PCA(2).fit(clients)


@pytest.mark.parametrize("rank", [0, -1, 1.5, "2", True, 7, 100])
def test_a_rank_that_does_not_fit_is_refused(data, rank):
    too_large = isinstance(rank, int) and rank > 6
    says = "is larger than min(n_samples, n_features) = 6" if too_large else "n_components must be"
    with pytest.raises(InputError, match=re.escape(says)):
        PCA(rank).fit(data[0])


def test_unknown_algorithms_and_seeds_are_refused(data):
    with pytest.raises(InputError, match="unknown algorithm 'powr_exact': did you mean 'power_ex"):
        PCA(2, algorithm="powr_exact").fit(data[0])
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0"):
        PCA(2, random_state="x").fit(data[0])
    with pytest.raises(InputError, match="has no parameter 'bogus': known: ") as caught:
        PCA(2, params={"bogus": 1}).fit(data[0])
    assert "finish" not in str(caught.value)  # no option that is refused is proposed


GIVEN = {  # to transform
    "other width": (lambda x: x[:, :4], "x has 4 features, the fitted estimator has 6"),
    "NaN": (nan, "x has nan at row 3, feature 2"),
    "a vector": (lambda x: x[0], "x: expected a 2-D (samples, features) array, got 1-D"),
    "no samples": (lambda x: x[:0], "x is empty (shape (0, 6))"),
    "None": (lambda x: None, "x is None"),
    "text": (lambda x: "a", "x is a text and no matrix"),
    "masked": (lambda x: np.ma.masked_greater(x, 1), "x has masked entries"),
    "several": (lambda x: [x, x], "x is a list of 2 matrices and "),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_transformed_must_fit(data, kind):
    model = PCA(2).fit(data[0])
    change, says = GIVEN[kind]
    with pytest.raises(InputError, match=re.escape(says)):
        model.transform(change(data[0][0].copy()))


def test_nothing_works_before_the_fit(data):
    x = data[0][0]
    for name, *arguments in (
        ("transform", x), ("inverse_transform", x), ("score", x), ("get_covariance",),
        ("get_feature_names_out",),
    ):  # fmt: skip
        with pytest.raises(InputError, match="this FederatedPCA is not fitted yet: call fit"):
            getattr(PCA(2), name)(*arguments)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda y: y[:2], "labels: one vector is needed for each of 3 clients; got 2"),
        (lambda y: [y[0], y[1][:5], y[2]], "the labels of client 1 have shape (5,)"),
        (lambda y: [v[:, None] for v in y], "the labels of client 0 have shape (20, 1)"),
        (lambda y: [y[0], None, y[2]], "the labels of client 1 must be a list"),
        (lambda y: [y[0], y[1].astype(str), y[2]], "the labels of client 1 must hold numbers"),
        (lambda y: [y[0], y[1] * np.inf, y[2]], "the labels of client 1 have "),
        (lambda y: [y[0], [1, [2]], y[2]], "the labels of client 1 must be a list"),
        (lambda y: 3, "labels must be a list with one vector per client, got int"),
        (lambda y: dict(zip(NAMES, y, strict=True)), "and the clients have none: give both"),
    ],
)
def test_labels_that_do_not_fit_are_refused(data, change, says):
    with pytest.raises(InputError, match=re.escape(says)):
        learn(data[0], change(data[1]))


def test_labels_by_names_that_do_not_fit_are_refused(data):
    clients, labels = data
    named = dict(zip(NAMES, clients, strict=True))
    with pytest.raises(InputError, match=r"labels of client 1 \('b.csv'\) have nan at row 3"):
        learn(named, [labels[0], np.where(np.arange(20) == 3, np.nan, labels[1]), labels[2]])
    with pytest.raises(InputError, match=r"labels has no name 'a\.csv', which the clients"):
        learn(named, dict(zip("xyz", labels, strict=True)))


def test_zeros_are_refused():
    for model in (PCA(1), PCA(1, center=False), PCA(1, scale=True)):
        for form in (np.asarray, scipy.sparse.csr_array):
            with pytest.raises(InputError, match="the data of all clients are zero: there is no s"):
                model.fit([form(np.zeros((5, 3)))] * 2)


def test_print_tells_what_a_fit_has_found_and_what_it_cost(data):
    model = PCA(2)
    assert str(model) == repr(model)
    model.fit(data[0])
    assert str(model).startswith(f"{model!r}\n") and str(model).endswith(f"\n{model.ledger_}")
    assert f"hold {model.explained_variance_ratio_.sum():.4g} of" in str(model)


def test_every_refusal_can_be_caught_as_such():
    assert issubclass(InputError, FedcoreError) and issubclass(InputError, ValueError)
