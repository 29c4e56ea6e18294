"""A fit in words: how near to the exact answer it is, what it cost, and what it reveals."""

from __future__ import annotations

from math import exp
from typing import Any

from fedcore.privacy.events import NEIGHBOURS
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import SIMULATED


def summary(pca: Any) -> str:
    """Describe a fitted `FederatedPCA` in a few lines."""
    r, d = pca.components_.shape
    share = float(pca.explained_variance_ratio_.sum())
    ledger = pca.ledger_
    lines = [
        f"{_count(r, 'component')} of {_count(d, 'feature')} hold {share:.4g} of the variance",
        f"distance to the exact subspace: {error(pca.error_bound_, pca.error_estimate_)}",
        f"{_count(ledger.rounds, 'round')}, {ledger.bytes_up:,} bytes up, "
        f"{ledger.bytes_down:,} down",
    ]
    return "\n".join(lines + ([] if ledger.privacy is None else [guarantee(ledger.privacy)]))


def error(bound: float, estimate: float | None) -> str:
    """The sine of the angle to the exact subspace: what is proven of it, or else estimated."""
    if bound < 1:
        return f"sine of the angle at most {bound:.2g} (proven, up to rounding)"
    if estimate is not None:
        return f"sine of the angle about {min(estimate, 1.0):.2g} (an estimate; nothing is proven)"
    return "unknown"


def guarantee(privacy: Privacy) -> str:
    """What the ε of a ledger means, in a sentence."""
    epsilon = privacy.epsilon()
    change = NEIGHBOURS[privacy.neighbours]
    said = (
        f"epsilon = {epsilon:.4g} at delta = {privacy.delta:g}: if {change}, no set of messages to "
        f"the server becomes more than e^{epsilon:.4g} = {exp(min(epsilon, 700.0)):.4g} times as "
        f"likely, but for a probability of {privacy.delta:g}"
    )
    return f"{said} ({SIMULATED})" if privacy.simulated else said


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
