"""FederatedFactorization: both factors, their error, and transform as least squares."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import InputError
from fedcore.estimators import FederatedFactorization

SIGMA = 0.6 ** np.arange(8)


@pytest.fixture
def parts(matrix_with):
    return np.split(matrix_with(60, 8, SIGMA, seed=4), [20, 35])


@pytest.mark.parametrize("algorithm", ["power_exact", "power_gd", "power_prox", "wk2023"])
def test_the_error_is_that_of_the_factors_and_never_below_the_floor(parts, algorithm):
    model = FederatedFactorization(3, algorithm=algorithm).fit(parts)
    direct = [S - U @ model.components_ for S, U in zip(parts, model.factors_, strict=True)]
    expected = np.linalg.norm(np.vstack(direct))
    np.testing.assert_allclose(model.reconstruction_err_, expected, rtol=1e-10)
    floor = np.linalg.norm(SIGMA[3:])
    assert model.reconstruction_err_ >= floor * (1 - 1e-12)
    assert model.reconstruction_err_ < np.linalg.norm(SIGMA)


def test_more_products_bring_the_best_approximation(parts):
    floor = np.linalg.norm(SIGMA[3:])
    errors = [FederatedFactorization(3, power=p).fit(parts).reconstruction_err_ for p in (0, 3, 6)]
    assert errors[0] > errors[1] > errors[2] >= floor * (1 - 1e-12)
    # The subspace's error falls like (σ₄/σ₃)^(2α+1), the excess like its square.
    assert errors[2] < floor * (1 + 1e-3)


def test_transform_is_least_squares_and_fit_transform_gives_the_factors(parts):
    model = FederatedFactorization(3)
    scores = model.fit_transform(parts)
    for S, U, factor in zip(parts, scores, model.factors_, strict=True):
        expected = np.linalg.lstsq(model.components_.T, S.T, rcond=None)[0].T
        np.testing.assert_allclose(U, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_allclose(factor, U, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(
        model.inverse_transform(scores[0]), scores[0] @ model.components_, rtol=1e-12
    )
    grouped = FederatedFactorization(3).fit(
        np.vstack(parts), groups=np.repeat([0, 1, 2], [20, 15, 25])
    )
    np.testing.assert_array_equal(grouped.components_, model.components_)


def test_the_last_round_is_charged(parts):
    plain = fedcore.run("power_exact", parts, 3, power=3).ledger
    ledger = FederatedFactorization(3).fit(parts).ledger_
    assert ledger.rounds == plain.rounds + 1
    assert ledger.scalars_up == plain.scalars_up + 6 and ledger.bytes_up == plain.bytes_up + 48
    assert ledger.scalars_down == plain.scalars_down


def test_sparse_clients(parts):
    kept = [np.where(np.abs(S) > 0.05, S, 0.0) for S in parts]
    dense = FederatedFactorization(3).fit(kept)
    sparse = FederatedFactorization(3).fit([scipy.sparse.csr_array(S) for S in kept])
    np.testing.assert_allclose(sparse.reconstruction_err_, dense.reconstruction_err_, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["block_krylov", "analyze_gauss", "fedrep_linear"])
def test_algorithms_without_both_factors_are_refused(parts, algorithm):
    with pytest.raises(InputError, match=r"no factors|private or learns from labels"):
        FederatedFactorization(3, algorithm=algorithm).fit(parts)


def test_an_error_above_that_of_zero_is_told(parts):
    """The steps suit data of norm 1: a hundredfold scale lets them grow without a bound."""
    large = [100.0 * S for S in parts]
    total = np.linalg.norm(np.vstack(large))
    with pytest.warns(fedcore.ConvergenceWarning, match="power_gd ends at an error of .* zero mod"):
        model = FederatedFactorization(3, algorithm="power_gd").fit(large)
    assert model.reconstruction_err_ > total
    with pytest.warns(fedcore.ConvergenceWarning, match=f"larger than the {total:.3g} of a zero"):
        FederatedFactorization(3, algorithm="power_gd").fit(
            [scipy.sparse.csr_array(S) for S in large]
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FederatedFactorization(3).fit(large)
        FederatedFactorization(3, algorithm="power_gd").fit(parts)
