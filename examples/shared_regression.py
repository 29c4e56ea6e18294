"""Linear regression with a representation that clients share, and a model of each client's own.

Run it by ``python examples/shared_regression.py``.

Clients have too few samples to learn alone, but their coefficients lie in one subspace, range(B).
`fedrep_linear` learns B together. A client's own part needs no communication: the least-squares fit
of its labels to the few columns of X B. So a client that comes later needs no round at all.

Features and labels should have variances near 1. Divide them by public numbers if they have not.
"""

from __future__ import annotations

import numpy as np

import fedcore

D, RANK, SAMPLES = 15, 2, 12  # features, columns of B, samples of each client


def learn(clients, labels, rank=RANK, **options):
    """Return B of shape (features, rank), and what crossed the network.

    Each client subtracts its own means, which it keeps.
    """
    options = {"rounds": 300, "measure": []} | options
    result = fedcore.run(
        "fedrep_linear", [X - X.mean(axis=0) for X in clients], rank,
        labels=[y - y.mean() for y in labels], **options,
    )  # fmt: skip
    return result.components.T, result.ledger


def adapt(B, X, y):
    """Return the coefficients and the intercept of one client, of the first ones or a new one."""
    head = np.linalg.lstsq((X - X.mean(axis=0)) @ B, y - y.mean(), rcond=None)[0]
    return B @ head, y.mean() - X.mean(axis=0) @ B @ head


def predict(model, X):
    """Return a client's predictions."""
    coefficients, intercept = model
    return X @ coefficients + intercept


def drawn(rng, B, samples=SAMPLES):
    """A client: samples about a centre of its own, labels, and its true coefficients."""
    coefficients = B @ rng.standard_normal(RANK)
    X = rng.standard_normal((samples, D)) + rng.standard_normal(D)
    return X, X @ coefficients + 3.0 + 0.05 * rng.standard_normal(samples), coefficients


def main():
    """Learn from 20 clients, and predict for one of them and for a new one."""
    rng = np.random.default_rng(0)
    B = np.linalg.qr(rng.standard_normal((D, RANK)))[0]
    clients, labels, truths = zip(*(drawn(rng, B) for _ in range(20)), strict=True)
    found, ledger = learn(clients, labels)
    new_X, new_y, new_truth = drawn(rng, B, samples=6)
    for who, X, y, truth in (
        ("client 0", clients[0], labels[0], truths[0]),
        ("a new client", new_X, new_y, new_truth),
    ):
        fresh = rng.standard_normal((50, D))
        error = predict(adapt(found, X, y), fresh) - (fresh @ truth + 3.0)
        print(f"{who}: {len(y)} samples, {D} features, predicts within {np.std(error):.2g}")
    print(ledger)


if __name__ == "__main__":
    main()
