"""Remark 1 of the paper `fedpower`: what a server learns from the bases that are sent for OPT.

With p = 2 a machine makes ``Y₁ = G z + N(0, s²)``, keeps ``Z₁ = orth(Y₁)``, and sends ``Y₂ = G Z₁ +
N(0, s²)``, with OPT also Z₁. One machine with one row in two dimensions and one column is the
smallest case. Its row is e₁ or e₂, which moves every product by as much as a row can, and z is the
same for both, so that one is the mirror image of the other and δ(ε) is the same both ways. It is an
integral over the angle of Z₁ and over Y₂, and needs no draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when they are used: half a second of every start

from fedcore.algorithms.fedpower import standard_deviation
from fedcore.repro.tables.rows import Rows

PRODUCTS, DELTA = 2, 1e-4  # p, and the δ of Section 5
EPSILONS = (0.1, 0.5, 1.0, 10.0)  # those of Figures 3b and 4b, and a smaller one
ANGLES = 512
FAR, STEP = 8.5, 0.1  # of the grid of Y₂, in units of the noise
GRAMS = (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
START = np.full(2, 0.5**0.5)
LARGEST = 100.0  # ε above which there is no bound

Delta = Callable[[float], float]


def bases() -> Rows:
    """Return the ε of Y₂ with Z₁ and without, a row per stated ε, with the least noise for it.

    ``additional`` is their ratio, ``share`` the ε with Z₁ over the stated one, and ``share_sent``
    the same with noise for the one product that is sent.
    """
    rows: Rows = []
    for stated in EPSILONS:
        noise, less = (
            standard_deviation("tight", 1, steps, stated, DELTA) for steps in (PRODUCTS, 1)
        )
        both, product = (epsilon(made(noise), DELTA) for made in (with_basis, without_basis))
        rows.append(
            {
                "status": "synthetic",
                "epsilon": stated,
                "delta": DELTA,
                "noise": noise,
                "with_basis": both,
                "without_basis": product,
                "additional": both / product,
                "share": both / stated,
                "share_sent": epsilon(with_basis(less), DELTA) / stated,
            }
        )
    return rows


def epsilon(delta_of: Delta, delta: float) -> float:
    """Return the smallest ε at which δ(ε) is at most `delta`; 0 if it always is."""
    if delta_of(0.0) <= delta:
        return 0.0
    return float(scipy.optimize.brentq(lambda e: delta_of(e) - delta, 0.0, LARGEST))


def with_basis(noise: float) -> Delta:
    """Return δ(ε) of Z₁ and Y₂ together.

    Given Z₁, the log likelihood ratio of Y₂ is that of one Gaussian mechanism, and that of Z₁ is
    added to it.
    """
    directions, (f, other) = unit_vectors(), densities(noise)
    moved = np.linalg.norm(directions @ (GRAMS[0] - GRAMS[1]), axis=1) / noise
    evidence = np.log(f / other)

    def delta_of(e: float) -> float:
        return float(2.0 * math.pi * np.mean(f * gaussian_delta(e - evidence, moved)))

    return delta_of


def without_basis(noise: float) -> Delta:
    """Return δ(ε) of Y₂ alone, whose density is a mean over Z₁."""
    directions = unit_vectors()
    far = 1.0 / noise + FAR
    axis = np.arange(-far, far, STEP)
    p, other = (
        2.0 * math.pi / ANGLES
        * np.einsum("a,ai,aj->ij", f, *map(scipy.stats.norm.pdf, axis - means.T[..., None]))
        for f, means in zip(densities(noise), (directions @ G / noise for G in GRAMS), strict=True)
    )  # fmt: skip

    def delta_of(e: float) -> float:
        return float(np.maximum(p - math.exp(e) * other, 0.0).sum() * STEP**2)

    return delta_of


def densities(noise: float) -> list[np.ndarray]:
    """Return the density of the angle of ``Z₁ = Y₁/‖Y₁‖`` for both rows, at `ANGLES` angles.

    A Gaussian vector with mean μ and unit variances has the direction u with the density
    ``exp(−‖μ‖²/2) (1 + t Φ(t)/φ(t)) / 2π``, t = ⟨u, μ⟩.
    """
    found = []
    for G in GRAMS:
        mean = G @ START / noise
        t = unit_vectors() @ mean
        heights = 1.0 + t * scipy.stats.norm.cdf(t) / scipy.stats.norm.pdf(t)
        found.append(math.exp(-0.5 * mean @ mean) * heights / (2.0 * math.pi))
    return found


def gaussian_delta(e: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return δ(ε) of Gaussian mechanisms that move the mean by `moved` units of the noise."""
    alarms = np.exp(e + scipy.stats.norm.logcdf(-0.5 * moved - e / moved))
    return np.asarray(scipy.stats.norm.cdf(0.5 * moved - e / moved) - alarms)


def unit_vectors() -> np.ndarray:
    """Return unit vectors at equally spaced angles, shape (`ANGLES`, 2)."""
    angles = (np.arange(ANGLES) + 0.5) * (2.0 * math.pi / ANGLES)
    return np.column_stack([np.cos(angles), np.sin(angles)])
