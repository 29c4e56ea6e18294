"""Factors of the clients' matrices, Sᵢ ≈ Uᵢ Vᵀ: all share V, and each client keeps its own Uᵢ.

Run it by ``python examples/factorization.py``.
"""

from __future__ import annotations

import numpy as np

import fedcore

RANK = 3


def factorize(clients, rank=RANK, algorithm="power_exact", **options):
    """Return Uᵢ of each client, the shared V, and what crossed the network.

    Samples are taken as they are, without centring. `power` is the number of products with SᵀS
    after the sketch: with more, UVᵀ is nearer to the best approximation.
    """
    options = {"power": 3, "measure": []} | options
    result = fedcore.run(algorithm, clients, rank, **options)
    return list(result.output["U"]), result.output["V"], result.ledger


def project(rows, V):
    """Return the U of rows that no client had, by least squares; this needs no communication."""
    return np.linalg.lstsq(V, rows.T, rcond=None)[0].T


def drawn(rows, rng, V):
    """Return rows that lie near range(V)."""
    return rng.standard_normal((rows, RANK)) @ V.T + 0.01 * rng.standard_normal((rows, len(V)))


def main():
    """Factor three drawn clients, and print sizes, errors and costs."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((8, RANK))
    clients = [drawn(rows, rng, truth) for rows in (20, 15, 25)]
    U, V, ledger = factorize(clients)
    print(f"V of all clients has the shape {V.shape}")
    for i, (S, u) in enumerate(zip(clients, U, strict=True)):
        error = np.linalg.norm(S - u @ V.T) / np.linalg.norm(S)
        print(f"client {i}: U has the shape {u.shape}, relative error {error:.2g}")
    new = drawn(5, rng, truth)
    error = np.linalg.norm(new - project(new, V) @ V.T) / np.linalg.norm(new)
    print(f"rows that no client had: relative error {error:.2g}")
    print(ledger)


if __name__ == "__main__":
    main()
