"""The methods of the FAPS paper, and what else a server can do with SSI's messages."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fedcore
from cells import cell
from fedcore import metrics
from fedcore.experiments.repeats import run_cell
from fedcore.federation.ledger import Cost
from fedcore.parts.eigensolvers import RULES
from fedcore.problems.problem import Problem
from fedcore.problems.storage import save
from fedcore.problems.tasks import shared_basis
from fedcore.recorder import Recording
from fedcore.runs import execute
from fedcore.testing.samples import FEATURES, RANK, cut, spectrum_matrix

ROUND = 4 * FEATURES * RANK  # scalars of one block of every client of the `clients` fixture
EXACT_INNER = {"inner": "residual", "delta": 0.1}


def run(name, clients, rank=RANK, *, stop=None, measure=("subspace_distance",), **params):
    """Run with a stopping rule, which `fedcore.run` does not take."""
    algorithm = fedcore.algorithms.get(name)
    settings = algorithm.params({"n_components": rank, **params})
    recording = Recording([metrics.get(m) for m in measure], stop=stop)
    problem = Problem("test", clients)
    recorder, output = execute(algorithm, problem, settings, 3, recording)
    return SimpleNamespace(
        basis=shared_basis(output), output=output, ledger=recorder.ledger, **recorder.columns()
    )


def rounds_to(tolerance, name, clients, rank=RANK, **params):
    """Rounds until the sine of the largest angle is below `tolerance`."""
    found = run(
        name, clients, rank, stop=lambda row: row["subspace_distance"] <= tolerance, **params
    )
    assert found.subspace_distance[-1] <= tolerance
    return found.round[-1]


def sine(basis, clients):
    """Distance to the subspace of NumPy's SVD."""
    top = np.linalg.svd(np.vstack(clients))[2][: basis.shape[1]].T
    return np.linalg.norm(top - basis @ (basis.T @ top), 2)


def projection(basis):
    return basis @ basis.T


@pytest.fixture
def close_clients():
    """Eight uneven clients with a gap of 0.02 in the eigenvalues λ₄ and λ₅ of AAᵀ."""
    eigenvalues = np.concatenate([[2.0, 1.6, 1.3, 1.0], 0.98 * 0.97 ** np.arange(56)])
    sizes = (20, 40, 60, 80, 100, 120, 140, 160)
    return cut(spectrum_matrix(sum(sizes), 60, np.sqrt(eigenvalues), seed=4), sizes)


# --- FAPS ---------------------------------------------------------------------------------------


def test_the_multipliers_satisfy_the_optimality_conditions(clients):
    found = run("faps", clients, rounds=400, **EXACT_INNER)
    Z, total, scale = found.basis, np.zeros((FEATURES, RANK)), 25.0  # ‖A‖₂²
    for data, X, W in zip(clients, found.output["X"], found.output["W"], strict=True):
        A = data.T @ data
        P, Q = projection(X), np.eye(FEATURES) - projection(X)
        multiplier = X @ W.T + W @ X.T
        np.testing.assert_allclose(multiplier, -P @ A @ Q - Q @ A @ P, atol=1e-13 * scale)  # (8)
        np.testing.assert_allclose(P, projection(Z), atol=1e-12)  # feasible: (6)
        gamma = -X.T @ A @ X
        np.testing.assert_allclose(A @ X + X @ gamma + multiplier @ X, 0, atol=1e-13 * scale)
        total += multiplier @ Z
    np.testing.assert_allclose(total, 0, atol=1e-12 * scale)  # (7) with Θ = 0


def test_the_rate_of_every_number_of_inner_steps():
    """Clients that are alike: (b + g c^q)/(b + g), c = λ₃/(λ₂ + b), with λ₂ = 0.95, λ₃ = 0.9."""
    alike = [np.diag(np.sqrt([1.0, 0.95, 0.90, 0.5, 0.2])) / 2] * 4
    start = np.random.default_rng(1).standard_normal((5, 2))
    b, g = 0.15, 0.05
    for q in (1, 2, 4, 8):
        rule = {"inner": "fixed", "inner_steps": q, "adapt": False}
        found = run("faps", alike, 2, rounds=100, start=start, **rule)
        distance = found.subspace_distance
        rate = (distance[100] / distance[60]) ** (1 / 40)
        assert rate == pytest.approx((b + g * (0.9 / (0.95 + b)) ** q) / (b + g), rel=1e-3)
        np.testing.assert_allclose(found.penalty[1:], b, rtol=1e-12)
        assert found.penalty[0] == 0


@pytest.mark.parametrize(("start", "each"), [("server", (6, 12, 18)), ("client", (6, 11, 16))])
def test_the_servers_basis_costs_one_more_product_a_round_but_the_first(clients, start, each):
    """One product for the first Wᵢ, then one per inner step."""
    rule = {"inner": "fixed", "inner_steps": 5, "inner_start": start}
    found = run("faps", clients, rounds=3, **rule)
    np.testing.assert_array_equal(found.inner_products, [0, *(4 * n for n in each)])


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_the_penalty_is_a_share_of_the_clients_norms(norm, clients):
    found = run("faps", clients, rounds=7, beta_norm=norm, beta_factor=0.3)
    order = {"spectral": 2, "frobenius": "fro"}[norm]
    first = sum(0.3 * np.linalg.norm(data, order) ** 2 for data in clients)
    np.testing.assert_allclose(found.penalty[1:6], first, rtol=1e-12)
    assert first < found.penalty[6] <= 1.1 * first * (1 + 1e-12)  # (25), after k = 5


def test_the_residual_rule_is_the_one_of_the_theory(clients):
    """(14) for every client in the second round, from the bases before and after it."""
    start = np.random.default_rng(2).standard_normal((FEATURES, RANK))
    one, two = (
        run("faps", clients, rounds=k, start=start, inner="residual", delta=0.2) for k in (1, 2)
    )
    for i, data in enumerate(clients):
        A, X, W, new = data.T @ data, one.output["X"][i], one.output["W"][i], two.output["X"][i]
        beta = 0.15 * np.linalg.norm(data, 2) ** 2
        H = A + X @ W.T + W @ X.T + beta * projection(one.basis)
        before, after = (
            np.linalg.norm((np.eye(FEATURES) - projection(B)) @ H @ B) for B in (X, new)
        )
        assert after <= 0.2 * before


# --- what else SSI's messages allow -------------------------------------------------------------


def test_block_krylov_is_numpys_svd_in_far_fewer_rounds(close_clients):
    krylov = rounds_to(1e-8, "block_krylov", close_clients, 4)
    # 60 columns are exhausted after 15 blocks of 4 at the latest; SSI needs ln(1e8)/0.02 = 900.
    assert krylov <= 15
    assert rounds_to(1e-8, "ssi", close_clients, 4) > 40 * krylov
    found = run("block_krylov", close_clients, 4, rounds=25)
    assert sine(found.basis, close_clients) < 1e-12
    exact = np.linalg.svd(np.vstack(close_clients))[1][:4] ** 2
    np.testing.assert_allclose(found.output["ritz_values"], exact, rtol=1e-13)


@pytest.mark.parametrize("rank", [1, 5, 9])
def test_block_krylov_when_the_space_has_no_room(clients, rank):
    found = run("block_krylov", clients, rank, rounds=60)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(rank), atol=1e-13)
    if rank < FEATURES:
        assert sine(found.basis, clients) < 1e-8  # SSI for rank 5: (0.25/0.3)^120 = 3e-10


def test_data_of_a_lower_rank_than_asked_for_do_no_harm(low_rank_clients):
    """Rank 3, five columns: three of them are the row space, the rest is free."""
    for name in ("ssi", "local_power", "faps", "block_krylov", "momentum_power", "one_shot"):
        params = {} if name == "one_shot" else {"rounds": 200}
        basis = run(name, low_rank_clients, 5, measure=(), **params).basis
        S = np.vstack(low_rank_clients)
        assert np.isfinite(basis).all()
        assert np.linalg.norm(S - S @ basis @ basis.T) < 1e-6 * np.linalg.norm(S), name


def test_momentum_takes_the_square_root_of_ssis_rounds(close_clients):
    ssi = rounds_to(1e-6, "ssi", close_clients, 4)
    known = rounds_to(1e-6, "momentum_power", close_clients, 4, sigma_next=0.98**0.5)
    estimated = rounds_to(1e-6, "momentum_power", close_clients, 4)
    # SSI: ln(1/tol)/0.0202 rounds; momentum: ln(1/tol)/arccosh(1/0.98) = /0.2003. Both begin alike.
    assert known < ssi / 7
    assert estimated < 1.25 * known


def test_the_estimated_momentum_never_exceeds_the_best_one(close_clients):
    beta = [
        run("momentum_power", close_clients, 4, rounds=k).output["beta"] for k in (1, 2, 10, 300)
    ]
    assert beta[0] == 0
    assert np.all(np.diff(beta) > 0)
    # Directions that have lost half of their digits are left out: 1e-8 of their products.
    assert beta[-1] <= (0.98 / 2) ** 2 * (1 + 1e-7)
    assert beta[-1] == pytest.approx((0.98 / 2) ** 2, rel=1e-3)


@pytest.mark.parametrize("sigma_next", [1e150, 1e200])
def test_momentum_with_a_value_out_of_all_proportion_diverges_without_a_traceback(
    close_clients, sigma_next
):
    """Its fourth power, or its square, is no number."""
    with pytest.warns(fedcore.ConvergenceWarning, match="diverged"):
        found = fedcore.run("momentum_power", close_clients, 4, rounds=9, sigma_next=sigma_next)
    assert found.history["diverged"][-1] == 1


def test_one_shot_is_exact_for_clients_that_are_alike(clients):
    S = np.vstack(clients)
    assert sine(run("one_shot", [S, 3 * S, S[::-1]]).basis, [S]) < 1e-14
    assert sine(run("one_shot", clients).basis, clients) > 1e-2  # and only for those


def test_one_shot_takes_clients_with_fewer_samples_than_components(clients):
    S = np.vstack(clients)
    alone = run("one_shot", [S]).basis
    with_small = run("one_shot", [S, S[:1], S]).basis
    # The mean of 2 P + a projection of rank one: a row of S lies close to its top space.
    assert np.linalg.norm(projection(with_small) - projection(alone), 2) < 0.1


# --- all of them --------------------------------------------------------------------------------

ROUNDS_OF_ONE_BLOCK = ("ssi", "local_power", "faps", "block_krylov", "momentum_power")


@pytest.mark.parametrize("name", ROUNDS_OF_ONE_BLOCK)
def test_a_round_is_one_block_down_and_one_up_for_every_client(name, clients):
    found = run(name, clients, rounds=9)
    assert found.ledger.cost() == Cost(9, 9 * ROUND, 9 * ROUND)
    np.testing.assert_array_equal(found.scalars_up, np.arange(10) * ROUND)
    if name == "local_power":  # aligned rounds send two blocks: q = 8, 4, 2, then 1
        found = run(name, clients, rounds=9, local_steps=8, alignment="procrustes")
        assert found.ledger.cost() == Cost(9, (9 + 3) * ROUND, 9 * ROUND)


def test_all_of_them_begin_with_the_same_basis(clients):
    begin = {run(name, clients, rounds=0).basis.tobytes() for name in ROUNDS_OF_ONE_BLOCK}
    assert len(begin) == 1


def test_a_cell_knows_the_spectrum_that_momentum_may_ask_for(clients, tmp_path):
    save(Problem("small", clients), tmp_path / "problem.h5")
    for rank, sigma in ((RANK, 0.4), (FEATURES, 0.0)):
        params = {"n_components": rank, "rounds": 3, "sigma_next": "reference"}
        spec = cell("momentum_power", params)
        history = run_cell(spec, tmp_path / "problem.h5", tmp_path / "history.h5")
        assert history.final["beta"] == pytest.approx((sigma**2 / 2) ** 2, rel=1e-12)


def test_a_large_client_without_any_entry_takes_part(matrix_with):
    """‖Aᵢ‖₂ of a client is asked for by Lanczos iterations above 64 x 64, which zeros end."""
    S = matrix_with(120, 80, 0.5 ** np.arange(8), seed=7)
    found = fedcore.run("faps", [S, np.zeros((100, 80))], 3, rounds=200, inner="residual")
    top = np.linalg.svd(S)[2][:3].T
    Z = found.components.T
    assert np.linalg.norm(top - Z @ (Z.T @ top), 2) < 1e-6


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_the_rule_of_decrease_asks_for_the_spectral_norm_whatever_beta_starts_from(
    norm, clients, monkeypatch
):
    """(13) has ‖Aᵢ‖₂² + βᵢ, in every round, and βᵢ is 0.15 of the square of the norm chosen."""
    seen, real = [], RULES["decrease"]
    monkeypatch.setitem(
        RULES, "decrease", lambda limits, *a: seen.append(limits) or real(limits, *a)
    )
    options = {"inner": "decrease", "beta_norm": norm, "adapt": False, "rounds": 2}
    fedcore.run("faps", clients, 3, **options)
    order = {"spectral": 2, "frobenius": "fro"}[norm]
    expected = [np.linalg.norm(s, 2) ** 2 + 0.15 * np.linalg.norm(s, order) ** 2 for s in clients]
    np.testing.assert_allclose([limits.scale for limits in seen], expected * 2, rtol=1e-12)
