"""SharedRepresentationRegression on drawn clients, against least squares and the truth."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import InputError
from fedcore.estimators import SharedRepresentationRegression

D, K, N, M = 15, 2, 20, 12  # fewer samples than features: no client can learn alone


class Drawn:
    """Clients whose coefficients share a subspace, with offsets and units of their own."""

    def __init__(self, noise: float = 0.0) -> None:
        self.rng = np.random.default_rng(5)
        self.B = np.linalg.qr(self.rng.standard_normal((D, K)))[0]
        self.units = 10.0 ** self.rng.uniform(-2, 2, D)
        self.clients, self.labels, self.coefs = [], [], []
        for _ in range(N):
            x, y, coef = self.client(M, noise)
            self.clients.append(x), self.labels.append(y), self.coefs.append(coef)

    def client(self, m: int, noise: float = 0.0):
        rng = self.rng
        coef = 50.0 * (self.B @ rng.standard_normal(K)) / self.units
        x = (rng.standard_normal((m, D)) + rng.standard_normal(D)) * self.units
        return x, x @ coef + 300.0 + noise * rng.standard_normal(m), coef


@pytest.fixture(scope="module")
def drawn():
    return Drawn()


@pytest.fixture(scope="module")
def model(drawn):
    return SharedRepresentationRegression(K, params={"rounds": 600}).fit(
        drawn.clients, drawn.labels
    )


def test_it_finds_the_models_though_no_client_could_alone(drawn, model):
    for i in range(N):
        fresh = (drawn.rng.standard_normal((50, D))) * drawn.units
        exact = fresh @ drawn.coefs[i] + 300.0
        assert model.score(fresh, exact, client=i) > 0.99
        x, y = drawn.clients[i], drawn.labels[i]
        alone = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(), rcond=None)[0]
        own = (fresh - x.mean(axis=0)) @ alone + y.mean()
        assert np.std(own - exact) > 3 * np.std(model.predict(fresh, client=i) - exact)
    # The scales are those of all clients' samples, so that B is the drawn one but for them.
    found = model.components_.T / model.scale_[:, None] * drawn.units[:, None]
    q = np.linalg.qr(found)[0]
    assert np.linalg.norm(drawn.B - q @ (q.T @ drawn.B), 2) < 0.1


def test_a_new_client_needs_few_samples_and_no_round(drawn, model):
    before = model.ledger_.rounds
    x, y, coef = drawn.client(6)
    head = model.adapt(x, y)
    fresh = drawn.rng.standard_normal((40, D)) * drawn.units
    exact = fresh @ coef + 300.0
    assert model.score(fresh, exact, client=head) > 0.98
    features = ((x - x.mean(axis=0)) / model.scale_) @ model.components_.T
    w = np.linalg.lstsq(features, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(head.coef * model.scale_, model.components_.T @ w, rtol=1e-8)
    assert model.ledger_.rounds == before
    known = model.adapt(drawn.clients[2], drawn.labels[2])
    np.testing.assert_allclose(known.coef, model.models_[2].coef, rtol=1e-10)


def test_the_ledger_has_the_scales_and_the_rounds(drawn):
    model = SharedRepresentationRegression(K, params={"rounds": 7}).fit(drawn.clients, drawn.labels)
    plain = fedcore.run(
        "fedrep_linear", drawn.clients, K, labels=drawn.labels, rounds=7, measure=()
    ).ledger
    assert model.ledger_.rounds == plain.rounds + 1 and model.n_iter_ == 7
    assert model.ledger_.scalars_up == plain.scalars_up + N * (D + 2)
    assert model.ledger_.scalars_down == plain.scalars_down + N * (D + 1)
    assert model.history_["round"][-1] == model.ledger_.rounds
    x = np.vstack([c - c.mean(axis=0) for c in drawn.clients])
    np.testing.assert_allclose(model.scale_, np.sqrt(np.mean(x**2, axis=0)), rtol=1e-12)


def test_clients_by_group_and_by_name(drawn):
    params = {"rounds": 20}
    names = [f"h{i:02d}" for i in range(N)]
    listed = SharedRepresentationRegression(K, params=params).fit(drawn.clients, drawn.labels)
    x, y, groups = np.vstack(drawn.clients), np.concatenate(drawn.labels), np.repeat(names, M)
    order = np.random.default_rng(0).permutation(len(x))
    grouped = SharedRepresentationRegression(K, params=params)
    grouped.fit(x[order], y[order], groups=groups[order])
    assert grouped.client_names_ == names
    found = grouped.predict(x[order], groups=groups[order])
    expected = np.concatenate([listed.predict(c, client=i) for i, c in enumerate(drawn.clients)])
    # Another order of the rows rounds differently.
    np.testing.assert_allclose(found, expected[order], rtol=1e-7, atol=1e-6)
    assert grouped.score(x, y, groups=groups) > 0.5
    named = SharedRepresentationRegression(K, params=params).fit(
        dict(zip(names, drawn.clients, strict=True)), dict(zip(names, drawn.labels, strict=True))
    )
    np.testing.assert_array_equal(named.models_[3].coef, listed.models_[3].coef)
    np.testing.assert_array_equal(named.predict(x, client="h03"), listed.predict(x, client=3))


def test_what_does_not_fit_is_refused(drawn, model):
    for client in (N, -1, "h99", 1.5):
        with pytest.raises(InputError, match="was not in the fit"):
            model.predict(drawn.clients[0], client=client)
    bad = [y.copy() for y in drawn.labels]
    bad[1][3] = np.nan
    names = dict(zip("abcdefghijklmnopqrst", drawn.clients, strict=True))
    with pytest.raises(InputError, match=r"labels of client 1 \('b'\) have nan at row 3"):
        SharedRepresentationRegression(K).fit(names, bad)
    with pytest.raises(InputError, match="labels of every client are constant"):
        SharedRepresentationRegression(K).fit(drawn.clients, [np.ones(M)] * N)
    with pytest.raises(InputError, match="block_krylov learns no representation from labels"):
        SharedRepresentationRegression(K, algorithm="block_krylov").fit(drawn.clients, drawn.labels)
    with pytest.raises(InputError, match="labels has no name 'a', which the clients have"):
        SharedRepresentationRegression(K).fit(names, {"x": drawn.labels[0]})
    with pytest.raises(InputError, match="not fitted yet"):
        SharedRepresentationRegression(K).predict(drawn.clients[0])


def test_it_is_a_regressor_to_scikit_learn(drawn):
    base = pytest.importorskip("sklearn.base")
    estimator = SharedRepresentationRegression(K, params={"rounds": 3})
    assert base.is_regressor(estimator)
    copied = base.clone(estimator)
    assert copied.get_params() == estimator.get_params() and copied is not estimator
    one = copied.fit(drawn.clients[0], drawn.labels[0])  # one matrix is one client
    assert len(one.models_) == 1 and one.predict(drawn.clients[0]).shape == (M,)


def test_sparse_samples_are_predicted_and_not_learned_from(drawn, model):
    sparse = [scipy.sparse.csr_array(x) for x in drawn.clients]
    says = r"learns from dense samples, and client 0 \('a'\) is sparse: call \.toarray\(\) on it"
    with pytest.raises(InputError, match=says):
        SharedRepresentationRegression(K).fit(
            dict(zip("abcdefghijklmnopqrst", sparse, strict=True)), drawn.labels
        )
    with pytest.raises(InputError, match="dense samples, and x is sparse"):
        model.adapt(sparse[0], drawn.labels[0])
    np.testing.assert_allclose(
        model.predict(sparse[1], client=1), model.predict(drawn.clients[1], client=1), rtol=1e-9
    )


def test_the_client_of_a_prediction_must_be_said(drawn, model):
    x, y = drawn.clients[0], drawn.labels[0]
    for ask in (lambda: model.predict(x), lambda: model.score(x, y)):
        with pytest.raises(InputError, match=f"the fit had {N} clients, .* give client=…, its num"):
            ask()
    advice = "[model.predict(c, client=i) for i, c in enumerate(clients)]"
    with pytest.raises(InputError, match=re.escape(advice)):
        model.predict(drawn.clients)
    with pytest.raises(
        InputError, match=re.escape("adapt(c, v) for c, v in zip(clients, labels)]")
    ):
        model.adapt(drawn.clients, drawn.labels)
    followed = eval(advice, {"model": model, "clients": drawn.clients[:2]})
    np.testing.assert_array_equal(followed[1], model.predict(drawn.clients[1], client=1))


def test_groups_that_are_numbers_are_names(drawn):
    groups = np.repeat(np.arange(5, 5 + N), M)
    x, y = np.vstack(drawn.clients), np.concatenate(drawn.labels)
    model = SharedRepresentationRegression(K, params={"rounds": 3}).fit(x, y, groups=groups)
    expected = model.predict(x, groups=groups)
    for client in (5, "5", np.int64(5)):  # the first, not the sixth
        found = model.predict(drawn.clients[0], client=client)
        np.testing.assert_allclose(found, expected[:M], rtol=1e-9)
    with pytest.raises(InputError, match="client 3 was not in the fit"):  # nor is it the fourth
        model.predict(drawn.clients[3], client=3)
