"""error_estimate_ against exact arithmetic, by the program that writes its page."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fedcore import FederatedPCA
from fedcore.estimators import exact_fit
from fedcore.federation import centring
from fedcore.parts import residuals

pytest.importorskip("mpmath")
PAGE = Path(__file__).parents[2] / "docs" / "error_estimate.md"


@pytest.fixture(scope="module")
def script(docs_script):
    return docs_script("error_estimate")


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_what_has_converged_is_off_by_a_hundred_times_the_estimate_at_most(script, data, seed):
    kind = data.draw(st.sampled_from(sorted(script.ROWS)))
    level = data.draw(st.sampled_from(script.ROWS[kind]))
    found = script.outcome(script.drawn(kind, level, np.random.default_rng(seed)))
    assert 0 <= found.estimate <= 1
    assert not found.wrong, found


@pytest.mark.parametrize(
    ("kind", "level", "owner", "name", "value"),
    [
        ("offset", 1e12, centring, "FAR", np.inf),
        ("offset, sparse", 1e12, centring, "FAR", np.inf),
        ("relative gap", 1e-9, exact_fit, "OVERSAMPLES", 0),
        ("share of the variance", 0.5, exact_fit, "_where_cut", lambda *cut: 0.0),
    ],
)
def test_each_rule_is_what_keeps_fits_from_being_wrong(
    script, monkeypatch, kind, level, owner, name, value
):
    draws = 100
    assert not any(one.wrong for one in script.outcomes(kind, level, draws))
    monkeypatch.setattr(owner, name, value)
    assert sum(one.wrong for one in script.outcomes(kind, level, draws)) > 1


def test_the_page_has_every_row_and_no_wrong_fit(script):
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[0:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    rows = [[kind, f"{level:g}"] for kind, levels in script.ROWS.items() for level in levels]
    assert [row[:2] for row in cells] == rows, "run `make estimate`"
    assert {row[-1] for row in cells} == {"0"}
    assert set(script.KINDS) == set(script.ROWS)


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


def test_a_residual_met_at_once_does_not_end_a_run_that_has_seen_one_block():
    shape = type("Shape", (), {"n_samples": 9, "n_features": 4})
    test = residuals.Residual(1e-8, shape, 2)
    told = 1e-12, np.array([2.0, 1.0]), (0.5, 1e-12), np.dtype(float)
    assert not test.met(*told)
    assert test.met(*told)


@pytest.mark.parametrize("algorithm", ["ssi", "momentum_power", "block_krylov"])
@pytest.mark.parametrize("r", [1, 2, 3])
def test_a_start_without_any_direction_that_is_wanted(algorithm, r):
    """The covariance maps it to itself, so that nothing but other columns finds the rest."""
    rows, start = np.diag(np.arange(8.0, 0.0, -1.0)), np.eye(8)[:, -r:]
    model = FederatedPCA(r, algorithm=algorithm, center=False, params={"start": start})
    model.fit([rows])
    assert model.converged_
    sine = np.linalg.norm(model.components_[:, r:], 2)
    assert sine <= 100 * model.error_estimate_
