"""Remark 1 of `fedpower`: the ε of a noisy product and a basis, against integrals and real runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import fedcore
from fedcore.federation.transcript import Transcript
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedpower import bases

NOISE = 0.8


def of_direction(u, mean):
    """Density of the direction u of a Gaussian vector, by an integral over its length."""
    density = lambda r: np.exp(-np.sum((r * u - mean) ** 2) / 2) / (2 * np.pi)  # noqa: E731
    return integrate.quad(lambda r: r * density(r), 0, 20)[0]


def test_densities_of_a_direction_are_integrals_over_the_length():
    directions = bases.unit_vectors()
    for found, G in zip(bases.densities(NOISE), bases.GRAMS, strict=True):
        assert 2 * np.pi * found.mean() == pytest.approx(1, rel=1e-12)
        mean = G @ bases.START / NOISE
        for a in range(0, bases.ANGLES, 37):
            assert found[a] == pytest.approx(of_direction(directions[a], mean), rel=1e-6)


@pytest.mark.parametrize("e", [-1.0, 0.0, 0.5, 3.0])
def test_delta_of_a_gaussian_mechanism_is_the_integral_over_its_outputs(e):
    def excess(x):
        return max(stats.norm.pdf(x - 1.3) - np.exp(e) * stats.norm.pdf(x), 0.0)

    expected = integrate.quad(excess, -12, 14, limit=400, points=[e / 1.3 + 0.65])[0]
    assert bases.gaussian_delta(np.array(e), np.array(1.3)) == pytest.approx(expected, abs=1e-9)


def test_delta_is_the_mean_over_draws():
    """By log likelihood ratios of 200 000 draws; that of Y alone from a mean over other draws."""
    rng, draws = np.random.default_rng(0), 200_000
    G, other = bases.GRAMS
    Y = G @ bases.START + NOISE * rng.standard_normal((draws, 2))
    Z = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    sent = Z @ G + NOISE * rng.standard_normal((draws, 2))
    angles = np.linspace(0, 2 * np.pi, 181)
    grid = np.column_stack([np.cos(angles), np.sin(angles)])
    of_angle = [
        np.log([of_direction(u, H @ bases.START / NOISE) for u in grid]) for H in (G, other)
    ]
    at = np.mod(np.arctan2(Z[:, 1], Z[:, 0]), 2 * np.pi)
    evidence = np.interp(at, angles, of_angle[0] - of_angle[1])
    evidence += (np.sum((sent - Z @ other) ** 2, 1) - np.sum((sent - Z @ G) ** 2, 1)) / 2 / NOISE**2
    few = sent[:2000]
    p, q = (
        np.mean([np.exp(h + stats.norm.logpdf(few, u @ H, NOISE).sum(1))
                 for h, u in zip(of, grid, strict=True)][:-1], axis=0)
        for of, H in zip(of_angle, (G, other), strict=True)
    )  # fmt: skip
    for found, ratio in (
        (bases.with_basis(NOISE), np.exp(-evidence)),
        (bases.without_basis(NOISE), q / p),
    ):
        for e in (0.0, 0.4, 1.0):
            losses = np.maximum(0.0, 1.0 - np.exp(e) * ratio)
            error = 4 * losses.std() / np.sqrt(len(losses))
            assert found(e) == pytest.approx(losses.mean(), abs=error)


def test_what_is_sent_is_what_fedpower_sends():
    """The basis has the direction of the density, and the product the mean G Z."""
    row, sent = np.array([[1.0, 0.0]]), []
    about = {"local_steps": 2, "iterations": 2, "epsilon": 10.0, "calibration": "tight"}
    noise = bases.standard_deviation("tight", 1, 2, 10.0, 1e-4)
    for seed in range(600):
        seen = Transcript()
        fedcore.run("fedpower", [row], 1, seed=seed, transcript=seen, start=bases.START[:, None],
                    **about)  # fmt: skip
        (exchange,) = seen.exchanges
        sent.append(exchange.sent)
    Y, Z = (np.array([pair[i][:, 0] for pair in sent]) for i in (0, 1))
    angles = np.mod(np.arctan2(Z[:, 1], Z[:, 0]), 2 * np.pi)
    steps = np.cumsum(bases.densities(noise)[0]) * 2 * np.pi / bases.ANGLES
    ends = np.arange(1, bases.ANGLES + 1) * 2 * np.pi / bases.ANGLES
    assert stats.kstest(angles, lambda a: np.interp(a, ends, steps)).pvalue > 1e-3
    rest = (Y - Z @ bases.GRAMS[0]) / noise
    assert stats.kstest(rest.ravel(), "norm").pvalue > 1e-3


def test_a_basis_adds_to_what_a_product_tells_and_stays_within_two_products():
    rows = bases.bases()
    assert [row["epsilon"] for row in rows] == list(bases.EPSILONS)
    for row in rows:
        two = accounting.epsilon({Gaussian(row["noise"]): 2}, row["delta"])
        assert row["without_basis"] < row["with_basis"] < two
        assert two == pytest.approx(row["epsilon"], rel=1e-6)
        assert row["additional"] == row["with_basis"] / row["without_basis"] > 1
        assert row["share"] < 1 < row["share_sent"]


def test_little_noise_is_needed_for_no_privacy():
    assert bases.epsilon(lambda e: 1e-5, 1e-4) == 0.0
    assert bases.epsilon(lambda e: np.exp(-e), 1e-4) == pytest.approx(np.log(1e4))
