"""A fit in words: how near to the exact answer it is, what it cost, and what it reveals."""

from __future__ import annotations

from typing import Any

from fedcore.words import counted


def summary(pca: Any) -> str:
    """Describe a fitted `FederatedPCA` in a few lines."""
    r, d = pca.components_.shape
    share = float(pca.explained_variance_ratio_.sum())
    return (
        f"{counted(r, 'component')} of {counted(d, 'feature')} hold {share:.4g} of the "
        f"variance\ndistance to the exact subspace: {error(pca.error_estimate_)}"
        f"\n{pca.ledger_}"
    )


def error(estimate: float | None) -> str:
    """The sine of the angle to the exact subspace."""
    return "unknown" if estimate is None else f"sine of the angle about {estimate:.2g}, an estimate"
