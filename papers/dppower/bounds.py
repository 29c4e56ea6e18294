"""Printed bounds and guarantees of `dppower`, evaluated without a run.

A bound of Table 1 hides constants and logarithms; here they are 1. A claim compares two bounds at
points that it names, so that ``share`` is a bound over another, or what its row says.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.repro.tables.rows import Rows

STEPS, EPSILONS, DELTAS = (1, 10, 60), (0.1, 1.0, 10.0), (1e-6, 1e-3)
# d, n, ε and κ̄ where 1/(nε²κ̄), 1/(dκ̄) and (εn)²κ̄⁵/d³ are all 10: the extra term of Theorem 1.2
# is that much above the others.
EXTREME = (2, 128_000_000, 1.25e-4, 0.05)
POINT = dict.fromkeys(("d", "n", "epsilon", "kappa", "coherence"))  # what a comparison may name


def dttz14(d: int, epsilon: float, first: float, kappa: float) -> float:
    """Return ``d/(ε²(σ₁² − σ₂²)²)``; `first` is σ₁²."""
    return d / (epsilon * first * kappa) ** 2


def ours(n: int, d: int, epsilon: float, first: float, kappa: float, top: float) -> float:
    """Return Table 1's row of Corollary 1.1; `top` is (σ₁Υ)²."""
    upsilon = top / first
    factor = min(4.0 * n, d * first) * upsilon + top / kappa + d * top * kappa
    return factor / (epsilon * first * kappa) ** 2


def dn26(n: int, d: int, epsilon: float, first: float, kappa: float, coherence: float) -> float:
    """Return ``nd‖U‖²_∞/(ε²(σ₁ − σ₂)²)``; `coherence` is n‖U‖²_∞."""
    gap = math.sqrt(first) * (1.0 - math.sqrt(1.0 - kappa))
    return d * coherence / (epsilon * gap) ** 2


def hr13(n: int, d: int, epsilon: float, first: float, kappa: float, coherence: float) -> float:
    """Return ``nd‖U‖²_∞σ₁/(ε²(σ₁ − σ₂)³)``, with composition."""
    gap = math.sqrt(first) * (1.0 - math.sqrt(1.0 - kappa))
    return d * coherence * math.sqrt(first) / (epsilon**2 * gap**3)


def lkjo22(n: float, d: int, epsilon: float, kappa: float) -> float:
    """Return ``d/(nκ̄²) + d²/(ε²n²κ̄²)``."""
    return d / (n * kappa**2) + (d / (epsilon * n * kappa)) ** 2


def ours_gaussian(n: float, d: int, epsilon: float, kappa: float) -> float:
    """Return ``d/(nκ̄²) + d²/(ε²n²κ̄²) + d/(ε²n²κ̄³)``, Section 1.1."""
    return lkjo22(n, d, epsilon, kappa) + d / ((epsilon * n) ** 2 * kappa**3)


def bounds() -> Rows:
    """Return every comparison of two printed bounds, a row per point."""
    found: Rows = []

    def add(claim: str, share: float, **point: Any) -> None:
        found.append({"claim": claim} | POINT | point | {"share": share})

    # Rows of length 1: σ₁² = n/d, ‖U‖_∞ = Υ = n^-½.
    for d, n in product((20, 100, 1000), (10_000, 100_000, 1_000_000)):
        theirs = dttz14(d, 1.0, n / d, 0.75)
        add("ours-below-dttz14", ours(n, d, 1.0, n / d, 0.75, 1.0 / d) / theirs, d=d, n=n)
        add("dn26-below-dttz14", dn26(n, d, 1.0, n / d, 0.75, 1.0) / theirs, d=d, n=n)
    for d, coherence in product((20, 100, 1000), ("least", "greatest")):
        n, top = 100_000, 1.0 / d if coherence == "least" else 1.0  # (σ₁Υ)²
        for kappa in (0.75, 2.0 / d):
            share = ours(n, d, 1.0, n / d, kappa, top) / dttz14(d, 1.0, n / d, kappa) / top
            add("by-coherence", share, d=d, n=n, kappa=kappa, coherence=coherence)
        for kappa in (0.5 / d, 0.1 / d):  # the row as Section 1.1 simplifies it
            simple = (d * top + top / kappa) / d
            add("small-gap", 1.0 / simple, d=d, n=n, kappa=kappa, coherence=coherence)
    for d in (100, 1000):
        n = round(0.5 * d**1.5)  # below d^1.5/ε and d²/ε²
        first = n / d
        add("range-dttz14", dttz14(d, 1.0, first, 0.75), d=d, n=n)
        add("range-dn26", dn26(n, d, 1.0, first, 0.75, 1.0), d=d, n=n)
        add("range-ours", ours(n, d, 1.0, first, 0.75, 1.0 / d), d=d, n=n)
    for kappa in (0.05, 0.3, 0.75):
        better = hr13(1000, 20, 1.0, 50.0, kappa, 1.0) / dn26(1000, 20, 1.0, 50.0, kappa, 1.0)
        add("dn26-over-hr13", better * (1.0 - math.sqrt(1.0 - kappa)), kappa=kappa)
    for d, n, epsilon, kappa in product(
        (5, 50), (10**4, 10**6), (0.01, 0.1, 1.0), (0.02, 0.2, 0.75)
    ):
        if kappa >= min(1.0 / d, 1.0 / (n * epsilon**2)):
            point = {"d": d, "n": n, "epsilon": epsilon, "kappa": kappa}
            share = ours_gaussian(n, d, epsilon, kappa) / lkjo22(n, d, epsilon, kappa)
            add("same-as-lkjo22", share, **point)
    for d, kappa in ((2, 0.2), (2, 0.3), (3, 0.25)):
        n = round(2.0 * math.exp(kappa**-2.0))
        epsilon = math.sqrt(0.1 / (n * kappa))  # so that κ̄ is below 1/(nε²)
        share = ours_gaussian(n, d, epsilon, kappa) / lkjo22(n, d, epsilon, kappa) / math.log(n)
        add("worse-by-logarithm", share, d=d, n=n, epsilon=epsilon, kappa=kappa)
    for d, n, epsilon, kappa in ((20, 10**6, 1.0, 0.75), (20, 10**4, 0.1, 0.1), EXTREME):
        extra = (d / (epsilon * n * kappa**2)) ** 4
        theirs = lkjo22(n, d, epsilon, kappa) + extra
        share = ours_gaussian(n, d, epsilon, kappa) / theirs
        add("below-improved-lkjo22", share, d=d, n=n, epsilon=epsilon, kappa=kappa)
    return found


def privacy() -> Rows:
    """Return what T steps of Algorithm 1 with (ε, δ) spend, by exact composition.

    ``share`` is the spent ε at δ over ε (Theorem 1.1), ``share_lemma`` that at δ′ over ε′ of Lemma
    3.1; the noise is that of line 9, or the larger one of the proof of Lemma 3.1.
    """
    found = []
    for T, epsilon, delta in product(STEPS, EPSILONS, DELTAS):
        whole = 2.0 * (T * epsilon**2 + math.sqrt(2.0 * math.log(1.0 / delta) * T) * epsilon)
        for noise, factor in (("line 9", math.sqrt(2.0)), ("proof", 2.0)):
            z = factor * math.sqrt(math.log(2.0 / delta)) / epsilon
            events: dict[Event, int] = {Gaussian(z): T, Bounded(epsilon): T}
            found.append(
                {"noise": noise, "steps": T, "epsilon": epsilon, "delta": delta, "whole": whole}
                | {"share": accounting.epsilon(events, delta) / epsilon}
                | {"share_lemma": accounting.epsilon(events, (T + 1) * delta) / whole}
            )
    return found


def mechanism() -> Rows:
    """Return what one Gaussian release spends over ε, with σ² or σ as Theorem 2.1 has σ²."""
    found = []
    for epsilon, delta in product(EPSILONS, DELTAS):
        printed = math.sqrt(2.0 * math.log(2.0 / delta)) / epsilon  # sensitivity 1
        spent = {
            name: accounting.epsilon({Gaussian(sigma): 1}, delta) / epsilon
            for name, sigma in (("variance", math.sqrt(printed)), ("deviation", printed))
        }
        found.append({"epsilon": epsilon, "delta": delta} | spent)
    return found
