"""Predictions by the networks of a run, against their forward pass in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore
from contract.networks import BODY, PARAMS, SIZE
from fedcore.errors import InputError
from fedcore.testing.samples import CLASSES, FEATURES, images
from refused import refused

pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")


def classes(w, X):
    """Forward pass of ``tiny_mlp``."""
    W, b, V, c = np.split(w, np.cumsum([4 * FEATURES, 4, 4 * CLASSES]))
    hidden = np.maximum(X @ W.reshape(4, FEATURES).T + b, 0)
    return (hidden @ V.reshape(CLASSES, 4).T + c).argmax(axis=1)


def trained(name, **options):
    data = images()
    return fedcore.run(name, data[:], labels=data.labels, **PARAMS, **options)


@pytest.fixture
def X():
    return np.random.default_rng(3).standard_normal((60, FEATURES))


def networks_of(name, output, n_clients):
    if name == "fedrep":
        return [np.concatenate([output["body"], head]) for head in output["heads"]]
    return [output["parameters"]] * n_clients if name == "fedavg" else output["models"]


@pytest.mark.parametrize("name", ["fedrep", "fedavg", "ditto", "local_only"])
def test_every_clients_network_predicts_as_its_forward_pass(name, X):
    result = trained(name)
    own = networks_of(name, result.output, 4)
    assert {w.size for w in own} == {SIZE} and BODY < SIZE
    found = [result.predict(X, client=i) for i in range(4)]
    np.testing.assert_array_equal(found, [classes(w, X) for w in own])
    if name != "fedavg":
        assert any((found[0] != other).any() for other in found)


@pytest.mark.parametrize("name", ["fedavg", "ditto"])
def test_the_servers_network_predicts_without_a_client(name, X):
    result = trained(name)
    expected = classes(result.output["parameters"], X)
    np.testing.assert_array_equal(result.predict(X), expected)
    np.testing.assert_array_equal(result.predict(X[:1]), expected[:1])


def test_fine_tuned_heads_are_those_of_the_clients_and_not_of_the_server(X):
    result = trained("fedavg", fine_tune=5)
    np.testing.assert_array_equal(result.predict(X), classes(result.output["parameters"], X))
    assert any((result.predict(X, client=i) != result.predict(X)).any() for i in range(4))


def test_a_network_that_is_adapted_before_its_use_predicts(X):
    result = trained("per_fedavg")
    assert set(result.predict(X, client=1)) <= set(range(CLASSES))


def test_what_cannot_be_predicted(X):
    result = trained("fedrep")
    for samples, client, name in (
        (X, None, "client=0"),
        (X, 4, "client = 4"),
        (X, -1, "client = -1"),
        (X, True, "client = True"),
        (X, 1.0, "client = 1.0"),
        (X[:, :5], 0, "5 features"),
        (X[0], 0, "1-D"),
        (np.full((2, FEATURES), np.nan), 0, "row 0, feature 0"),
    ):
        refused(lambda s=samples, c=client: result.predict(s, c), InputError, name)
    refused(lambda: fedcore.run("ssi", [X[:30], X[30:]], 2).predict(X), InputError)
