"""FederatedPCA against numpy's SVD, and its manners against scikit-learn's."""

import copy

import numpy as np
import pytest

import fedcore
from fedcore import algorithms
from fedcore.errors import FedcoreError, InputError
from fedcore.estimators import FederatedPCA, NotFittedError

SIGMA = np.array([9.0, 5.0, 3.0, 1.0, 0.1, 0.05, 0.02, 0.01])


@pytest.fixture
def clients():
    rng = np.random.default_rng(7)
    left = np.linalg.qr(rng.standard_normal((60, 8)))[0]
    right = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    return np.split((left * SIGMA) @ right.T, [10, 25, 40])


def clone(estimator):
    """What sklearn.base.clone does: a new object from deep copies of the parameters."""
    params = {name: copy.deepcopy(v) for name, v in estimator.get_params(deep=False).items()}
    new = type(estimator)(**params)
    for name, value in new.get_params(deep=False).items():
        assert value is params[name]  # scikit-learn insists on identity
    return new


def test_agrees_with_the_svd(clients):
    stacked = np.vstack(clients)
    _, sigma, right_t = np.linalg.svd(stacked, full_matrices=False)
    pca = FederatedPCA(3, power=8).fit(clients)

    np.testing.assert_allclose(pca.singular_values_, sigma[:3], rtol=1e-10)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(3), atol=1e-14)
    signs = np.sign(np.sum(pca.components_ * right_t[:3], axis=1))
    np.testing.assert_allclose(pca.components_, signs[:, None] * right_t[:3], atol=1e-7)
    np.testing.assert_allclose(
        pca.explained_variance_, np.mean(pca.transform(stacked) ** 2, axis=0), rtol=1e-12
    )
    assert pca.n_features_in_ == 8


def test_nothing_is_centred():
    rng = np.random.default_rng(0)
    shifted = [100.0 + rng.standard_normal((20, 4)) for _ in range(3)]
    pca = FederatedPCA(1, power=5).fit(shifted)
    np.testing.assert_allclose(pca.components_[0], np.full(4, 0.5), atol=1e-2)


def test_signs_and_order_depend_on_the_subspace_only(clients):
    rng = np.random.default_rng(3)
    one, other = (
        FederatedPCA(3, power=9, start=rng.standard_normal((8, 3))).fit(clients) for _ in range(2)
    )
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-5)
    for row in one.components_:
        assert row[np.argmax(np.abs(row))] > 0
    assert np.all(np.diff(one.explained_variance_) <= 0)


def test_the_last_round_is_charged(clients):
    plain = fedcore.run("power_exact", clients, 3, power=2).ledger
    pca = FederatedPCA(3, power=2).fit(clients)
    n_clients, d, r = len(clients), 8, 3
    assert pca.ledger_.rounds == plain.rounds + 1
    assert pca.ledger_.scalars_up == plain.scalars_up + n_clients * r * r
    assert pca.ledger_.scalars_down == plain.scalars_down + n_clients * d * r
    assert pca.history_["round"][-1] == plain.rounds


def test_same_seed_same_bits(clients):
    pca = FederatedPCA(2, random_state=5)
    first = pca.fit(clients).components_.tobytes()
    assert pca.fit(clients).components_.tobytes() == first
    assert clone(pca).fit(clients).components_.tobytes() == first
    assert FederatedPCA(2, random_state=6).fit(clients).components_.tobytes() != first
    sequence = np.random.SeedSequence(5)
    assert FederatedPCA(2, random_state=sequence).fit(clients).components_.tobytes() == first


def test_transform_and_back(clients):
    pca = FederatedPCA(8, algorithm="centralized_svd").fit(clients)
    scores = pca.transform(clients[1])
    assert scores.shape == (15, 8)
    np.testing.assert_allclose(pca.inverse_transform(scores), clients[1], atol=1e-12)


def test_float32_clients(clients):
    pca = FederatedPCA(2, power=6).fit([client.astype(np.float32) for client in clients])
    np.testing.assert_allclose(pca.singular_values_, SIGMA[:2], rtol=1e-5)


def test_params_go_round():
    pca = FederatedPCA(2, algorithm="power_gd", local_steps=7, momentum=True)
    assert pca.get_params() == {
        "n_components": 2, "algorithm": "power_gd", "random_state": 0,
        "local_steps": 7, "momentum": True,
    }  # fmt: skip
    copied = clone(pca)
    assert copied.set_params(local_steps=9, n_components=3) is copied
    assert (copied.n_components, copied.params["local_steps"]) == (3, 9)
    assert pca.params["local_steps"] == 7
    assert not hasattr(copied, "components_")


def test_clone_keeps_a_start():
    pca = clone(FederatedPCA(1, start=np.ones((4, 1))))
    assert repr(pca) == "FederatedPCA(n_components=1, start=<array of shape (4, 1)>)"


def test_repr_is_the_call():
    assert repr(FederatedPCA(2)) == "FederatedPCA(n_components=2)"
    pca = FederatedPCA(2, algorithm="power_gd", random_state=1, momentum=True)
    assert eval(repr(pca)).get_params() == pca.get_params()


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted yet") as caught:
        getattr(FederatedPCA(2), method)(np.ones((3, 2)))
    assert isinstance(caught.value, FedcoreError | AttributeError)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"n_components": 99}, "larger than min"),
        ({"n_components": 1.5}, "whole number"),
        ({"algorithm": "power_exakt"}, "did you mean 'power_exact'"),
        ({"algorithm": None}, "name of one"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": True}, "random_state"),
        ({"powr": 1}, "did you mean 'power'"),
        ({"seed": 1}, "random_state"),
        ({"finish": print}, "no parameter 'finish'"),
        ({"start": np.ones((8, 3))}, "start has shape"),
    ],
)
def test_refuses_parameters_at_fit(clients, changes, says):
    pca = FederatedPCA(2).set_params(**changes)
    with pytest.raises(InputError, match=says):
        pca.fit(clients)


def test_refuses_data(clients):
    bad = [client.copy() for client in clients]
    bad[2][3, 4] = np.nan
    with pytest.raises(InputError, match="client 2 has nan at row 3, feature 4"):
        FederatedPCA(2).fit(bad)
    pca = FederatedPCA(2).fit(clients)
    with pytest.raises(InputError, match="x has nan at row 3, feature 4"):
        pca.transform(bad[2])
    with pytest.raises(InputError, match="x has 5 features, the fitted estimator has 8"):
        pca.transform(np.ones((2, 5)))
    with pytest.raises(InputError, match="x has 8 components, the fitted estimator has 2"):
        pca.inverse_transform(np.ones((2, 8)))
    with pytest.raises(InputError, match="x: expected a 2-D"):
        pca.transform(np.ones(8))


@pytest.mark.parametrize("algorithm", ["centralized_svd", "power_exact", "power_gd", "wk2023"])
def test_any_algorithm_of_the_registry(clients, algorithm):
    assert algorithm in algorithms.names()
    pca = FederatedPCA(2, algorithm=algorithm).fit(clients)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-12)
