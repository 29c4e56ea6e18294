"""What the start by the method of moments tells, against its definition and messages of runs."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore
from fedcore import metrics
from fedcore.errors import InputError
from fedcore.federation.transcript import Transcript
from fedcore.generators import generate
from fedcore.iterates import Iterate
from fedcore.metrics.moments import ruled_out
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from refused import refused


def draw(samples, n_features=6, n_clients=8):
    sizes = {"n_clients": n_clients, "rank": 2, "heads": "assumption"}
    clients, truth = generate("shared_heads", np.random.default_rng(0),
                              sizes | {"samples": samples, "n_features": n_features})  # fmt: skip
    return Problem("drawn", clients, truth=truth)


def measured(name, problem):
    return metrics.get(name).function(Iterate(np.eye(2)), problem)


@pytest.mark.parametrize("samples", [2, 6, 9, 30])
def test_a_sample_is_ruled_out_if_what_is_left_has_a_negative_eigenvalue(samples):
    """Also when samples are fewer than features, where M has no inverse."""
    rng = np.random.default_rng(1)
    own, others = rng.standard_normal((samples, 6)), rng.standard_normal((200, 6))
    M = own.T @ own
    found = ruled_out(M, others)
    expected = [np.linalg.eigvalsh(M - np.outer(v, v))[0] < -1e-9 for v in others]
    np.testing.assert_array_equal(found, expected)
    assert not ruled_out(M, own).any()
    assert found.any() and (samples < 7 or not found.all())


def test_the_message_is_that_of_the_algorithm():
    """Client 2 sends (1/m) Σ y² x xᵀ first; that it is a mean changes nothing."""
    problem, seen = draw(3), Transcript(clients=[2])
    clients = problem.clients
    fedcore.run("fedrep_linear", list(clients), 2, labels=list(clients.labels), rounds=0,
                transcript=seen)  # fmt: skip
    (exchange,) = seen.exchanges
    X, y = problem.clients.labelled(2)
    vectors = y[:, None] * X
    np.testing.assert_allclose(3 * exchange.sent, vectors.T @ vectors, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("samples", "low", "high"), [(1, 1, 1), (5, 1, 1), (12, 0.2, 0.8),
                                                      (200, 0, 0.02)])  # fmt: skip
def test_fewer_samples_than_features_tell_all_and_many_tell_little(samples, low, high):
    assert low <= measured("membership_advantage", draw(samples)) <= high


def test_the_advantage_is_the_share_of_others_that_cannot_be_in_the_sum():
    problem = draw(9)
    vectors = [np.diag(y) @ X for X, y in map(problem.clients.labelled, range(8))]
    shares = [
        np.mean([np.linalg.eigvalsh(own.T @ own - np.outer(v, v))[0] < -1e-9
                 for j in range(8) if j != i for v in vectors[j]])
        for i, own in enumerate(vectors)
    ]  # fmt: skip
    assert measured("membership_advantage", problem) == pytest.approx(np.mean(shares), rel=1e-12)
    assert 0.3 < np.mean(shares) < 0.99


def test_a_sample_that_rounding_hides_counts_against_the_advantage():
    """With the label 1e-9, y² x xᵀ is below the rounding errors of the other sample's."""
    rows = np.random.default_rng(3).standard_normal((4, 6))
    clients = Clients([rows[:2], rows[2:]], labels=[np.array([1.0, 1e-9])] * 2)
    assert measured("membership_advantage", Problem("faint", clients)) == 0.5


def test_the_rebuilt_sample_is_the_leading_singular_vector():
    """Of the rows y x; with a single row it is that row up to its length."""
    assert measured("rebuilt_sample", draw(1)) == pytest.approx(1, abs=1e-12)
    problem, found = draw(4), []
    for X, y in map(problem.clients.labelled, range(len(problem.clients))):
        guess = np.linalg.svd(np.diag(y) @ X)[2][0]
        found.append(max(abs(x @ guess) / np.linalg.norm(x) for x in X))
    assert measured("rebuilt_sample", problem) == pytest.approx(np.mean(found), rel=1e-9)
    assert np.mean(found) < 0.99


@pytest.mark.parametrize(
    "clients", [[np.eye(3), np.eye(3)], Clients([np.eye(3)], labels=[np.ones(3)])]
)
@pytest.mark.parametrize("name", ["membership_advantage", "rebuilt_sample"])
def test_two_clients_with_labels_are_needed(name, clients):
    refused(lambda: measured(name, Problem("few", clients)), InputError, "two clients")
