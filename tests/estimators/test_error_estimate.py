"""error_estimate_ against exact arithmetic, by the program that writes its page."""

from __future__ import annotations

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fedcore import ConvergenceWarning, FederatedPCA

pytest.importorskip("mpmath")


@pytest.fixture(scope="module")
def script(tool):
    return tool("error_estimate")


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_what_has_converged_is_off_by_a_hundred_times_the_estimate_at_most(script, data, seed):
    kind = data.draw(st.sampled_from(sorted(script.ROWS)))
    level = data.draw(st.sampled_from(script.ROWS[kind]))
    found = script.outcome(script.drawn(kind, level, np.random.default_rng(seed)))
    assert 0 <= found.estimate <= 1
    assert not found.wrong, found


def test_the_reference_is_exact(script):
    """Three samples whose covariance has eigenvalues 2 and 8e-30, off the origin by 2⁵⁰."""
    with script.mpmath.workdps(script.DIGITS):
        small, far = 2.0**-49, 2.0**50
        rows = np.array([[1.0, small], [-1.0, small], [0.0, -2 * small]])
        shifted = rows * 2.0**-2 + [far, 0.0]  # exact
        for given_, factor in ((rows, 1.0), (shifted, 0.25)):
            values, vectors = script.eigenpairs(given_, np.ones(2), center=True)
            ratio = values[1] / values[0]
            assert float(ratio) == pytest.approx(3 * small**2, rel=1e-12), factor
        angle = 1e-20
        Z = np.array([[1.0, angle]])
        assert script.true_sine(Z, values, vectors) == pytest.approx(angle, rel=1e-12)
        equal = [script.mpmath.mpf(1) / 2] * 2  # any direction is right
        assert script.true_sine(Z, equal, vectors) == 0.0


@pytest.mark.parametrize("algorithm", ["ssi", "momentum_power", "block_krylov"])
@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("columns", [None, 0, 1, 2])
@pytest.mark.parametrize("gap", [1e-1, 1e-6, 1e-9])
def test_a_start_without_any_direction_that_is_wanted(algorithm, r, columns, gap):
    """The covariance maps it to itself, so that nothing but other columns finds the rest."""
    values = np.array([*(2 - gap * np.arange(r)), *np.linspace(1, 0.5, 8 - r)])
    rows, start = np.diag(values), np.eye(8)[:, -r:]
    params = {"start": start} | ({} if columns is None else {"n_oversamples": columns})
    for seed in range(10):
        model = FederatedPCA(r, algorithm=algorithm, center=False, params=params, random_state=seed)
        model.fit([rows])
        assert model.converged_
        sine = np.linalg.norm(model.components_[:, r:], 2)
        assert sine <= 100 * model.error_estimate_
    width = r + max(r, columns or 0)  # what it costs
    assert model.ledger_.scalars_up == model.n_iter_ * width * 8 + r * r + 1


def test_rounds_that_use_up_few_directions_are_not_taken_for_convergence():
    """Two rounds of two columns use up five directions, so they hold one axis of an equal pair.

    Where the random start holds little of the other one, nothing shows it before the third round.
    """
    rng = np.random.default_rng(0)
    for seed in range(600):
        axes = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        rows = np.array([1.0, 1 - 1e-9, 0.7, 0.6, 0.5])[:, None] * axes.T
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = FederatedPCA(1, center=False, random_state=seed).fit([rows])
        sine = np.linalg.norm(model.components_ @ axes[:, 1:])
        assert model.converged_ and sine <= 100 * model.error_estimate_, seed


@pytest.mark.parametrize("gap", [0.1, 0.03])
def test_so_many_patients_bring_the_estimate_of_a_private_fit_to_a_half(script, gap):
    pytest.importorskip("dp_accounting")
    rng, found = np.random.default_rng(0), []
    for seed in range(15):
        variances = np.repeat([0.1 + gap, 0.1], [2, 6])
        x = rng.uniform(-1, 1, (int(script.patients(gap, 1.0)), 8)) * np.sqrt(3 * variances)
        model = FederatedPCA(2, epsilon=1.0, delta=script.DELTA, bounds=(-1.0, 1.0),
                             params={"simulate": True}, random_state=seed)  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(model.fit([x]).error_estimate_)
    assert 0.35 < np.median(found) < 0.7
