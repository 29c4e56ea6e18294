"""The measures of an eigenspace against their definitions on the data."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore import metrics
from fedcore.iterates import Iterate
from fedcore.metrics import eigenspace
from fedcore.problems.problem import Problem
from fedcore.testing.samples import FEATURES, RANK

NAMES = [metric.name for metric in eigenspace.METRICS]


def value(name, basis, problem):
    return metrics.get(name).function(Iterate(basis=basis), problem)


@pytest.fixture(params=["more samples than features", "fewer"])
def wide_or_tall(request, clients):
    return Problem(
        "data", clients if request.param.startswith("more") else [clients[0][:1], clients[2][:4]]
    )


def test_they_are_their_definitions(wide_or_tall):
    S = np.vstack(wide_or_tall.clients)
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((FEATURES, RANK)))[0]
    A = S.T @ S
    violation = np.linalg.norm(A @ Z - Z @ (Z.T @ A @ Z))
    singular = np.linalg.svd(S @ Z)[1]
    exact = np.linalg.svd(S)[1][:RANK]
    expected = {
        "kkt": violation / np.linalg.norm(S) ** 2,
        "kkt_residual": violation / np.linalg.norm(S, 2) ** 2,
        "captured": sum(np.linalg.norm(client @ Z) ** 2 for client in wide_or_tall.clients),
        "singular_value_error": np.linalg.norm(singular - exact) / np.linalg.norm(exact),
    }
    turned = Z @ np.linalg.qr(np.random.default_rng(1).standard_normal((RANK, RANK)))[0]
    for name, wanted in expected.items():
        assert value(name, Z, wide_or_tall) == pytest.approx(wanted, rel=1e-12), name
        assert value(name, turned, wide_or_tall) == pytest.approx(wanted, rel=1e-12), name


def test_at_the_answer_only_rounding_is_left(problem):
    top = np.linalg.svd(np.vstack(problem.clients))[2][:RANK].T
    rounding = FEATURES * np.finfo(float).eps  # of sums over the features
    assert value("kkt_residual", top, problem) < rounding
    assert value("singular_value_error", top, problem) < rounding
    assert value("captured", top, problem) == pytest.approx(25 + 16 + 9, rel=1e-14)


def test_any_invariant_space_satisfies_kkt_but_captures_less(problem):
    last = np.linalg.svd(np.vstack(problem.clients))[2][-RANK:].T
    assert value("kkt", last, problem) < 1e-15
    assert value("captured", last, problem) == pytest.approx(0.2**2 + 0.1**2 + 0.05**2, rel=1e-12)


def test_a_basis_that_repeats_a_direction_finds_nothing_in_its_place(problem):
    top = np.linalg.svd(np.vstack(problem.clients))[2].T
    # Singular values 5 and 4 of (5, 4, 3) are found, and 0.
    found = value("singular_value_error", top[:, [0, 1, 1]], problem)
    assert found == pytest.approx(3 / np.sqrt(50), rel=1e-12)


@pytest.mark.parametrize("exponent", [-480, -200, 200, 480])
def test_the_size_of_the_data_changes_none_of_them(wide_or_tall, exponent):
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((FEATURES, RANK)))[0]
    scaled = Problem("scaled", [np.ldexp(client, exponent) for client in wide_or_tall.clients])
    for name in NAMES:
        units = 2 * exponent if name == "captured" else 0
        expected = value(name, Z, wide_or_tall)
        # Powers of two round nothing, but the SVD of the reference may scale by others.
        found = np.ldexp(value(name, Z, scaled), -units)
        assert found == pytest.approx(expected, rel=1e-12, abs=0), name
