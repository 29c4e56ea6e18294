"""The examples on `fedcore.run`: its bits, and what they make of them."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import fedcore

EXAMPLES = Path(__file__).parents[1] / "examples"
FACTORS, SHARED = (
    runpy.run_path(str(EXAMPLES / name)) for name in ("factorization.py", "shared_regression.py")
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert "client 0" in capsys.readouterr().out


def test_factors_are_those_of_run_and_of_new_rows_least_squares(rng):
    truth = rng.standard_normal((8, 3))
    clients = [FACTORS["drawn"](rows, rng, truth) for rows in (20, 15, 25)]
    U, V, ledger = FACTORS["factorize"](clients)
    expected = fedcore.run("power_exact", clients, 3, power=3, measure=[])
    np.testing.assert_array_equal(V, expected.output["V"])
    np.testing.assert_array_equal(np.vstack(U), np.vstack(expected.output["U"]))
    assert ledger == expected.ledger
    floor = np.linalg.norm(np.linalg.svd(np.vstack(clients), compute_uv=False)[3:])
    error = np.linalg.norm(np.vstack(clients) - np.vstack(U) @ V.T)
    assert floor * (1 - 1e-12) <= error < floor * (1 + 1e-3)
    np.testing.assert_allclose(FACTORS["project"](clients[1], V), U[1], rtol=1e-6, atol=1e-12)


def test_models_of_clients_old_and_new_come_from_the_representation_of_run(rng):
    draw, adapt, predict = (SHARED[name] for name in ("drawn", "adapt", "predict"))
    truth = np.linalg.qr(rng.standard_normal((SHARED["D"], SHARED["RANK"])))[0]
    clients, labels, models = zip(*(draw(rng, truth) for _ in range(20)), strict=True)
    B, ledger = SHARED["learn"](clients, labels)
    expected = fedcore.run(
        "fedrep_linear", [X - X.mean(axis=0) for X in clients], 2,
        labels=[y - y.mean() for y in labels], rounds=300, measure=[],
    )  # fmt: skip
    np.testing.assert_array_equal(B, expected.components.T)
    assert ledger == expected.ledger
    fresh = rng.standard_normal((50, SHARED["D"]))
    new = draw(rng, truth, samples=6)
    for X, y, model in (*zip(clients, labels, models, strict=True), new):
        own = np.column_stack([X, np.ones(len(X))])
        alone = np.linalg.lstsq(own, y, rcond=None)[0]
        exact = fresh @ model + 3.0
        together, apart = predict(adapt(B, X, y), fresh), fresh @ alone[:-1] + alone[-1]
        assert np.std(together - exact) < 0.2 * np.std(exact)
        assert np.std(together - exact) < np.std(apart - exact) / 3
