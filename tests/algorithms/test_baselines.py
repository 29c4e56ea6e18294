"""The methods of Table 2 that are compared with: Ward & Kolda 2023, Ye & Du 2021, and the SVD."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fedcore
from fedcore.algorithms import yd2021
from fedcore.algorithms.wk2023 import spectral_norm_bound
from fedcore.federation.federation import Federation

RANK = 3


def test_ward_and_kolda_never_step_up(low_rank_clients, clients):
    for data in (low_rank_clients, clients):
        history = fedcore.run("wk2023", data, RANK, rounds=500, sigma_max=5.0).history["objective"]
        # Alternating steps below 1/L each; rounding at the end.
        assert (np.diff(history) <= 1e-14 * history[:-1] + 1e-25).all()


def test_the_bound_from_the_clients_is_one_and_costs_one_number_each(clients):
    federation = Federation(clients)
    bound = spectral_norm_bound(federation)
    expected = math.sqrt(sum(np.linalg.svd(s)[1][0] ** 2 for s in clients))
    assert bound == pytest.approx(expected, rel=1e-14)  # rounding
    assert np.linalg.svd(np.vstack(clients))[1][0] <= bound <= np.linalg.norm(np.vstack(clients))
    assert federation.ledger.cost() == fedcore.federation.ledger.Cost(1, len(clients), 0)


def test_the_start_of_ward_and_kolda_has_the_scales_of_the_authors_code():
    rng = np.random.default_rng(0)
    S = rng.standard_normal((300, 60))
    sigma = np.linalg.svd(S)[1][0]
    result = fedcore.run("wk2023", [S], 20, rounds=0, sigma_max=float(sigma))
    step = 9 / (4 * 8 * 0.5 * sigma)
    V, U = result.output["V"], result.output["U"][0]
    phi_v = V / (math.sqrt(step) * sigma * 8 * 0.5 / 9)
    phi_u = np.linalg.lstsq(S, U * math.sqrt(step) * sigma * 8, rcond=None)[0]
    # 1200 squares of relative standard deviation √2: five standard errors.
    assert np.mean(phi_v**2) == pytest.approx(1 / 20**2, rel=5 * math.sqrt(2 / 1200))
    assert np.mean(phi_u**2) == pytest.approx(1 / 60**2, rel=5 * math.sqrt(2 / 1200))


def test_ye_and_dus_constants_are_those_of_the_formulas():
    # σ₁ = 4, σ_r = 2, n = 6, d = 4, r = 4: √(σ₁ r³) = 16, so s = 2 / (16 · 10) = 1/80;
    # η = 2 / 6400 / (m · 64), m = d = r = 4, that is 1 / 819 200.
    for reading in ("aaai", "head"):
        scale, step = yd2021.constants(4.0, 2.0, 6, 4, 4, reading=reading)
        assert scale == pytest.approx(1 / 80, rel=1e-15)
        assert step == pytest.approx(1 / 819_200, rel=1e-15, abs=0)
    # With d = 8 and n = 2 the scale is the same, and η halves for "aaai" alone.
    assert yd2021.constants(4.0, 2.0, 2, 8, 4, reading="aaai")[1] == pytest.approx(
        1 / 1_638_400, rel=1e-15, abs=0
    )
    assert yd2021.constants(4.0, 2.0, 2, 8, 4, reading="head")[1] == pytest.approx(
        1 / 819_200, rel=1e-15, abs=0
    )


@pytest.mark.parametrize("power", [-1020, -680, -340, 340, 680, 1000])
def test_ye_and_dus_constants_have_units_and_no_overflow(power):
    """s is in √(units of S) and η in 1/units; σ₁³ alone leaves the range at 1e103 and 1e-108."""
    for reading in ("aaai", "head"):
        scale, step = yd2021.constants(4.0, 2.0, 6, 4, 4, reading=reading)
        found = yd2021.constants(2.0 ** (power + 2), 2.0 ** (power + 1), 6, 4, 4, reading=reading)
        assert found == (np.ldexp(scale, power // 2), np.ldexp(step, -power))


def test_the_iteration_counts_are_those_of_the_formulas():
    # The same numbers: T = [ln(4·2·80) + ln 2] / (η·2) = 409 600 · ln 1280.
    count = yd2021.iterations_of_theory(4.0, 2.0, 6, 4, 4, reading="aaai")
    assert count == pytest.approx(409_600 * math.log(1280), rel=1e-14)
    # T = ln(r σ_r² / (s·error)) / (η σ_r) = 409 600 · ln(16 · 80 / 0.5).
    count = yd2021.iterations_of_theory(4.0, 2.0, 6, 4, 4, reading="head", error=0.5)
    assert count == pytest.approx(409_600 * math.log(2560), rel=1e-14)


def test_the_synthetic_setting_gives_the_order_that_table_2_prints():
    """Five singular values 1, n = 5000, d = 200, r = 5; printed: at least 1e13."""
    count = yd2021.iterations_of_theory(1.0, 1.0, 5000, 200, 5, reading="aaai")
    # By hand: s = 1 / (√125 · 5200) = 1.72e-5, η = s²/200 = 1.479e-12, ln(200/s) = 16.27.
    assert count == pytest.approx(16.27 / 1.479e-12, rel=1e-3)
    assert count == pytest.approx(1.1e13, rel=0.01)
    # The authors' later code, with the error 10^-5.5 of Table 2.
    later = yd2021.iterations_of_theory(1.0, 1.0, 5000, 200, 5, reading="head", error=10**-5.5)
    assert 1e11 < later < 1.2e12
