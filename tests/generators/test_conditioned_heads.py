"""Heads of a given condition number, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.errors import InputError
from fedcore.generators import generate, shared_heads
from refused import refused


def draw(seed=0, **params):
    sizes = {"n_clients": 30, "samples": 4, "n_features": 9, "rank": 2}
    heads = {"heads": "conditioned", "condition": 3.0}
    return generate("shared_heads", np.random.default_rng(seed), sizes | heads | params)


@pytest.mark.parametrize(
    ("n", "k", "condition"), [(30, 2, 1.0), (30, 2, 5.0), (5, 2, 1.5), (40, 4, 2.0), (7, 1, 1.0)]
)
def test_heads_have_one_length_and_the_given_condition(n, k, condition):
    _, truth = draw(n_clients=n, rank=k, condition=condition)
    np.testing.assert_allclose(np.sum(truth.heads**2, axis=1), k, rtol=1e-12)
    values = truth.head_singular_values
    assert np.linalg.cond(truth.heads) == pytest.approx(condition, rel=1e-9)
    assert np.sum(values**2) == pytest.approx(k, rel=1e-12)  # κ and the lengths fix both of two
    np.testing.assert_allclose(
        values[1:] / values[:-1], condition ** (-1 / max(k - 1, 1)), rtol=1e-9
    )


def test_labels_are_those_of_the_heads_and_the_representation():
    clients, truth = draw()
    B = truth.representation
    np.testing.assert_allclose(B.T @ B, np.eye(2), atol=1e-12)
    for X, y, w in zip(clients, clients.labels, truth.heads, strict=True):
        assert X.shape == (4, 9)
        np.testing.assert_allclose(y, X @ (B @ w), rtol=1e-12, atol=1e-12)


def test_heads_differ_from_draw_to_draw_and_from_client_to_client():
    one, other = (draw(seed)[1].heads for seed in (0, 1))
    assert len(np.unique(one.round(6), axis=0)) == 30
    assert np.abs(one - other).max() > 0.1


def test_heads_that_are_not_found_are_told(monkeypatch):
    monkeypatch.setattr(shared_heads, "TURNS", 2)
    refused(draw, InputError, "condition")
