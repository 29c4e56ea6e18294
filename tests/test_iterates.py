from __future__ import annotations

import numpy as np
import pytest

from fedcore.algorithms import power_gd, power_prox
from fedcore.federation.federation import Federation
from fedcore.iterates import ExactFactors, ExplicitFactors, Iterate, SpectralFactors
from fedcore.metrics import factorization, get
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder, Recording


def gaussian(m: int, k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, k))


def kept_by(clients, V, U):
    """V, and U in the states of clients with these data."""
    federation = Federation(list(clients))
    for state, own in zip(federation.client_states(), U, strict=True):
        state.U = own
    return ExplicitFactors(V, federation.observe)


def drawn(clients, V, seed=0):
    return [gaussian(len(s), V.shape[1], seed + i) for i, s in enumerate(clients)]


DEFICIENT = [gaussian(9, 2, 7) @ gaussian(2, rank, 8) for rank in (3, 5)]


@pytest.mark.parametrize("V", [*(gaussian(9, rank, 3) for rank in (1, 3, 6)), *DEFICIENT])
def test_exact_loss_plus_excess_is_the_direct_residual(problem, clients, V):
    U = drawn(clients, V)
    factors = kept_by(clients, V, U)
    direct = sum(0.5 * np.linalg.norm(s - u @ V.T) ** 2 for s, u in zip(clients, U, strict=True))
    # Two sums of squares of the same size: rounding.
    total = factorization.objective.value(Iterate(factors=factors), problem)
    assert total == pytest.approx(direct, rel=1e-12)
    assert total == pytest.approx(problem.exact_loss(V) + factors.excess().sum(), rel=1e-15)


def test_the_excess_is_the_distance_to_the_least_squares_solution(clients):
    V = gaussian(9, 3, 4)
    U, S = drawn(clients, V), np.vstack(clients)
    best = np.linalg.lstsq(V, S.T, rcond=None)[0].T
    best = np.split(best, np.cumsum([len(u) for u in U])[:-1])
    expected = [0.5 * np.linalg.norm((u - b) @ V.T) ** 2 for u, b in zip(U, best, strict=True)]
    assert kept_by(clients, V, U).excess() == pytest.approx(expected, rel=1e-12)


def test_the_excess_of_the_least_squares_solution_is_zero_to_the_square_of_rounding(clients):
    V = gaussian(9, 3, 5)
    factors = kept_by(clients, V, [np.linalg.lstsq(V, s.T, rcond=None)[0].T for s in clients])
    # ‖·‖² of an error of some 1e-15 per entry; the data have norm 7.
    assert factors.excess().sum() < 1e-28
    assert ExactFactors(V).excess() == 0.0


def test_an_excess_of_1e_20_is_measured_where_the_trace_form_cancels(low_rank_problem):
    clients = low_rank_problem.clients
    S = np.vstack(clients)
    V = S.T @ gaussian(len(S), 3, 6)
    nudge = [gaussian(len(s), 3, 30 + i) for i, s in enumerate(clients)]
    nudge = [e * 1e-10 / np.linalg.norm(np.vstack(nudge) @ V.T) for e in nudge]
    U = [s @ np.linalg.pinv(V).T + e for s, e in zip(clients, nudge, strict=True)]
    ours = factorization.objective.value(Iterate(factors=kept_by(clients, V, U)), low_rank_problem)
    # ½ (1e-10)²; some 1e-14 of rounding in S − UVᵀ against its 1e-10.
    assert ours == pytest.approx(0.5e-20, rel=1e-3, abs=0)


def test_spectral_factors_agree_with_the_matrices_that_they_stand_for(clients):
    V = gaussian(9, 3, 9)
    _, sigma, right_t = np.linalg.svd(V, full_matrices=False)
    remaining = np.array([0.9, 0.1, -0.3])
    U, energy = [], []
    for i, s in enumerate(clients):
        error = gaussian(len(s), 3, 20 + i)  # E₀ in the eigenbasis of VᵀV
        U.append(s @ np.linalg.pinv(V).T + (error * remaining) @ right_t)
        energy.append((error**2).sum(axis=0))
    spectral = SpectralFactors(V, sigma**2 * np.array(energy), remaining)
    # Equal in exact arithmetic; rounding.
    assert spectral.excess() == pytest.approx(kept_by(clients, V, U).excess(), rel=1e-12)


@pytest.mark.parametrize("method", [power_gd, power_prox])
def test_the_excess_of_every_client_is_its_loss_above_its_exact_solution(clients, method):
    problem, federation = Problem("any", clients), Federation(clients, 1)
    recorder = Recorder(problem, federation.ledger, Recording([get("client_excess")]))
    params = method.Params(n_components=3, local_steps=4)
    found = method.run(federation, params, federation.rng, recorder)
    V = found["V"]
    best = V @ np.linalg.pinv(V)
    direct = [
        0.5 * (np.linalg.norm(S - U @ V.T) ** 2 - np.linalg.norm(S - S @ best) ** 2)
        for S, U in zip(clients, found["U"], strict=True)
    ]
    # A subtraction of losses of order one: rounding.
    each = recorder.by_client["client_excess"][-1]
    assert each == pytest.approx(direct, rel=1e-9, abs=1e-12)
    assert recorder.rows[-1]["client_excess"] == pytest.approx(np.mean(each))


def test_metrics_take_a_basis_as_well_as_factors(problem):
    top = np.linalg.svd(np.vstack(problem.clients))[2][:3].T
    floor = 0.5 * (0.4**2 + 0.3**2 + 0.25**2 + 0.2**2 + 0.1**2 + 0.05**2)
    for iterate in (Iterate(basis=top), Iterate(factors=ExactFactors(top * 7))):
        assert get("objective").function(iterate, problem) == pytest.approx(floor, rel=1e-12)
    assert get("kappa").function(Iterate(basis=top), problem) == pytest.approx(1, rel=1e-14)
    assert get("subspace_distance").function(Iterate(basis=top), problem) < 1e-14  # rounding
    other = np.linalg.svd(np.vstack(problem.clients))[2][[0, 1, 5]].T
    distance = get("subspace_distance").function(Iterate(basis=other), problem)
    assert distance == pytest.approx(1, rel=1e-14)  # the third direction is missed entirely
