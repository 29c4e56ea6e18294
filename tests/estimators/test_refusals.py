"""What does not fit is refused in one sentence, by every estimator alike."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import FedcoreError, InputError

PCA, FACTORS, HEADS = (
    fedcore.FederatedPCA, fedcore.FederatedFactorization, fedcore.SharedRepresentationRegression,
)  # fmt: skip
EVERY = pytest.mark.parametrize("make", [PCA, FACTORS, HEADS])
NAMES = ("a.csv", "b.csv", "c.csv")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((20, 6)) for _ in NAMES]
    return clients, [x[:, 0] + 0.1 * rng.standard_normal(20) for x in clients]


def fit(model, clients, labels=None):
    """Fit with labels where they are learned from."""
    if not isinstance(model, HEADS):
        return model.fit(clients)
    if labels is None:
        try:
            labels = [np.arange(float(np.shape(x)[0])) for x in clients]
        except (IndexError, TypeError):  # the clients are refused first
            labels = []
    return model.fit(clients, labels)


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


@EVERY
@pytest.mark.parametrize("kind", ONE_IS_WRONG)
def test_a_client_that_does_not_fit_is_named(data, make, kind):
    change, says = ONE_IS_WRONG[kind]
    clients = [data[0][0], change(data[0][1].copy()), data[0][2]]
    with pytest.raises(InputError, match=re.escape(says)):
        fit(make(2), clients, data[1])
    named = says.replace("client 1", "client 1 ('b.csv')").replace("client 0", "client 0 ('a.csv')")
    with pytest.raises(InputError, match=re.escape(named)) as caught:
        fit(make(2), dict(zip(NAMES, clients, strict=True)), data[1])
    assert "\n" not in str(caught.value)


@EVERY
@pytest.mark.parametrize("clients", ["abc", 3, [], {}, None])
def test_what_is_no_list_of_clients_is_refused(make, clients):
    with pytest.raises(
        InputError, match=r"clients (must be a list|is a text)|there are no clients"
    ):
        fit(make(2), clients)


@EVERY
@pytest.mark.parametrize("rank", [0, -1, 1.5, "2", True, 7, 100])
def test_a_rank_that_does_not_fit_is_refused(data, make, rank):
    too_large = isinstance(rank, int) and rank > 6
    says = "is larger than min(n_samples, n_features) = 6" if too_large else "n_components must be"
    with pytest.raises(InputError, match=re.escape(says)):
        fit(make(rank), *data)
    if make is not PCA:  # which knows shares and None
        for other in (0.5, None):
            with pytest.raises(InputError, match="n_components must be a whole number"):
                fit(make(other), *data)


@EVERY
def test_unknown_algorithms_and_seeds_are_refused(data, make):
    with pytest.raises(InputError, match="unknown algorithm 'powr_exact': did you mean 'power_ex"):
        fit(make(2, algorithm="powr_exact"), *data)
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0"):
        fit(make(2, random_state="x"), *data)
    with pytest.raises(InputError, match="has no parameter 'bogus': known: ") as caught:
        fit(make(2, params={"bogus": 1}), *data)
    assert "finish" not in str(caught.value)  # no option that is refused is proposed


GIVEN = {  # to transform or predict
    "other width": (lambda x: x[:, :4], "x has 4 features, the fitted estimator has 6"),
    "NaN": (nan, "x has nan at row 3, feature 2"),
    "a vector": (lambda x: x[0], "x: expected a 2-D (samples, features) array, got 1-D"),
    "no samples": (lambda x: x[:0], "x is empty (shape (0, 6))"),
    "None": (lambda x: None, "x is None"),
    "text": (lambda x: "a", "x is a text and no matrix"),
    "masked": (lambda x: np.ma.masked_greater(x, 1), "x has masked entries"),
    "several": (lambda x: [x, x], "x is a list of 2 matrices and "),
}


@EVERY
@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_transformed_or_predicted_must_fit(data, make, kind):
    model = fit(make(2), *data)
    change, says = GIVEN[kind]
    with pytest.raises(InputError, match=re.escape(says)):
        x = change(data[0][0].copy())
        model.predict(x, client=0) if make is HEADS else model.transform(x)


@EVERY
def test_nothing_works_before_the_fit(data, make):
    x, y = data[0][0], data[1][0]
    calls = {
        PCA: [("transform", x), ("inverse_transform", x), ("score", x), ("get_covariance",)],
        FACTORS: [("transform", x), ("inverse_transform", x), ("get_feature_names_out",)],
        HEADS: [("predict", x), ("score", x, y), ("adapt", x, y)],
    }
    for name, *arguments in calls[make]:
        with pytest.raises(InputError, match=f"this {make.__name__} is not fitted yet: call fit"):
            getattr(make(2), name)(*arguments)


def test_inverse_transform_takes_scores(data):
    model = FACTORS(2).fit(data[0])
    for wrong, says in (
        (data[0][0], "x has 6 components, the fitted estimator has 2"),
        (np.full((2, 2), np.nan), "x has nan at row 0, feature 0"),
    ):
        with pytest.raises(InputError, match=says):
            model.inverse_transform(wrong)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda y: None, "requires y to be passed, but the target y is None: give the labels of e"),
        (lambda y: y[:2], "labels: one vector is needed for each of 3 clients; got 2"),
        (lambda y: [y[0], y[1][:5], y[2]], "the labels of client 1 have shape (5,)"),
        (lambda y: [v[:, None] for v in y], "the labels of client 0 have shape (20, 1)"),
        (lambda y: [y[0], None, y[2]], "the labels of client 1 must be a list"),
        (lambda y: [y[0], y[1].astype(str), y[2]], "the labels of client 1 must hold numbers"),
        (lambda y: [y[0], y[1] * np.inf, y[2]], "the labels of client 1 have "),
        (lambda y: [y[0], [1, [2]], y[2]], "the labels of client 1 must be a list"),
        (lambda y: 3, "labels must be a list with one vector per client, got int"),
        (lambda y: dict(zip(NAMES, y, strict=True)), "and the clients have none: give both"),
        (lambda y: [v * 1e200 for v in y], "and its square leaves the range: divide the labels by"),
        (lambda y: [v * 1e-200 for v in y], "and its square leaves the range: divide the labels b"),
        (lambda y: [np.ones(20)] * 3, "the labels of every client are constant"),
    ],
)
def test_labels_that_do_not_fit_are_refused(data, change, says):
    with pytest.raises(InputError, match=re.escape(says)):
        HEADS(2).fit(data[0], change(data[1]))


def test_labels_by_names_and_groups_that_do_not_fit_are_refused(data):
    clients, labels = data
    named = dict(zip(NAMES, clients, strict=True))
    with pytest.raises(InputError, match=r"labels of client 1 \('b.csv'\) have nan at row 3"):
        HEADS(2).fit(named, [labels[0], np.where(np.arange(20) == 3, np.nan, labels[1]), labels[2]])
    with pytest.raises(InputError, match=r"labels has no name 'a\.csv', which the clients"):
        HEADS(2).fit(named, dict(zip("xyz", labels, strict=True)))
    x, y, groups = np.vstack(clients), np.concatenate(labels), np.arange(60) % 3
    with pytest.raises(InputError, match=r"y has shape \(20,\)"):
        HEADS(2).fit(x, labels[0], groups=groups)
    y[25] = np.nan
    with pytest.raises(InputError, match="y has nan at row 25"):
        HEADS(2).fit(x, y, groups=groups)


@pytest.mark.parametrize("algorithm", ["local_linear", "fedavg", "ssi", "analyze_gauss"])
def test_methods_without_a_shared_representation_are_refused(data, algorithm):
    with pytest.raises(InputError, match=r"representation.*: take fedrep_linear"):
        HEADS(2, algorithm=algorithm).fit(*data)


def test_one_sample_and_zeros_are_refused(data):
    with pytest.raises(InputError, match="n_samples = 1: one sample has no slope"):
        HEADS(1).fit([np.ones((1, 3))], [[2.0]])
    for zeros in ([np.zeros((5, 3))] * 2, [np.ones((5, 3))] * 2):  # each less its own mean
        with pytest.raises(InputError, match="zero"):
            HEADS(1).fit(zeros, [np.arange(5.0)] * 2)
    for model in (FACTORS(1), PCA(1), PCA(1, center=False), PCA(1, scale=True)):
        for form in (np.asarray, scipy.sparse.csr_array):
            with pytest.raises(InputError, match="the data of all clients are zero: there is no s"):
                model.fit([form(np.zeros((5, 3)))] * 2)


def test_scores_and_new_clients_need_labels_that_fit(data):
    clients, labels = data
    model = HEADS(2).fit(dict(zip(NAMES, clients, strict=True)), labels)
    for wrong, says in (
        (labels[0][:4], "the labels of x have shape (4,)"),
        (labels[0] * np.nan, "the labels of x have nan at row 0"),
        (["a"] * 20, "the labels of x must hold numbers"),
        (None, "the labels of x must be a list"),
    ):
        for call in (
            lambda wrong=wrong: model.score(clients[0], wrong, client="a.csv"),
            lambda wrong=wrong: model.adapt(clients[0], wrong),
        ):
            with pytest.raises(InputError, match=re.escape(says)):
                call()
    each = "score takes one: write [model.score(c, v, client=i) for i, (c, v) in enumerate(zip("
    with pytest.raises(InputError, match=re.escape(each)):
        model.score(clients, labels)
    with pytest.raises(InputError, match="no private fit: leave epsilon out, or take FederatedPCA"):
        FACTORS(1, epsilon=1.0).fit(clients)
    with pytest.raises(InputError, match="the client is said twice: give client=… or groups=…"):
        model.predict(clients[0], client="a.csv", groups=["b.csv"] * 20)


@EVERY
def test_print_tells_what_a_fit_has_found_and_what_it_cost(make, data):
    clients, labels = data
    model = make(2)
    assert str(model) == repr(model)
    fit(model, clients, labels)
    assert str(model).startswith(f"{model!r}\n") and str(model).endswith(f"\n{model.ledger_}")
    said = {
        PCA: f"hold {model.explained_variance_ratio_.sum():.4g} of" if make is PCA else "",
        FACTORS: "V of 2 columns for 6 features, and U of 3 clients\nerror ‖S − U Vᵀ‖ of all clien",
        HEADS: "2 components of 6 features, and a model of each of 3 clients: predict(x, client=…)",
    }
    assert said[make] in str(model)


def test_the_score_is_that_of_scikit_learn(data):
    r2 = pytest.importorskip("sklearn.metrics").r2_score
    clients, labels = data
    model = HEADS(2).fit(clients, labels)
    found = model.predict(clients[1], client=1)
    for y in (labels[1], np.ones(20), labels[0]):
        assert model.score(clients[1], y, client=1) == pytest.approx(r2(y, found), rel=1e-12)
    zeros = model.adapt(clients[0], np.full(20, 3.0))
    assert model.score(clients[0], np.full(20, 3.0), client=zeros) == 1.0


def test_every_refusal_can_be_caught_as_such():
    assert issubclass(InputError, FedcoreError) and issubclass(InputError, ValueError)
