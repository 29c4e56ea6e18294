"""Linear regressions with one representation, and heads of a given condition number.

The model of `fedcore.generators.shared_heads` without noise, from Collins, Hassani, Mokhtari &
Shakkottai (ICML 2021), Section 4. Heads have length √k (their Assumption 3), and ``W*/√n`` has the
singular values of a geometric sequence with quotient κ of the first to the last. Gaussian rows are
projected in turn on the matrices with these singular values and on those with rows of this length
(Tropp, Dhillon, Heath & Strohmer, *Designing structured tight frames via an alternating projection
method*, IEEE Transactions on Information Theory 2005).
"""

from __future__ import annotations

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import haar
from fedcore.problems.clients import Clients
from fedcore.problems.regression import Truth, predict
from fedcore.validation import Count, Positive, checked

TURNS = 10_000  # of the two projections; some ten are needed for a digit
CLOSE = 1e-12  # relative difference of the length of a row before the last projection


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 100,
    samples: Count = 5,
    n_features: Count = 10,
    rank: Count = 2,
    condition: Positive = 1.0,
) -> tuple[Clients, Truth]:
    """Draw linear regressions with one representation and a head per client.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features, rank : int
        n, m (samples of each client), d and k.
    condition : float
        κ, largest over smallest singular value of W*.

    Returns
    -------
    clients : Clients
        With labels.
    truth : Truth

    Raises
    ------
    InputError
        For a value out of range, a rank above the number of clients or features, a condition below
        1, or other than 1 for heads of one number.
    """
    if rank > min(n_clients, n_features):
        raise InputError(
            f"rank = {rank} is larger than min(n_clients, n_features) = "
            f"{min(n_clients, n_features)}"
        )
    if condition < 1.0 or (rank == 1 and condition != 1.0):
        raise InputError(f"condition is at least 1, and 1 for rank = 1, got {condition:g}")
    W, B = heads(n_clients, rank, condition, rng), haar(n_features, rank, rng)
    X = rng.standard_normal((n_clients, samples, n_features))
    truth = Truth(
        representation=B,
        heads=W,
        noise=np.array(0.0),
        test_features=np.zeros((n_clients, 0, n_features)),
        test_noise=np.zeros((n_clients, 0)),
        new_heads=np.zeros((0, rank)),
        new_features=np.zeros((0, 0, n_features)),
        new_labels=np.zeros((0, 0)),
    )
    return Clients(X, labels=predict(X, W @ B.T)), truth


def heads(n: int, k: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """Draw W*, shape (n, k), with rows of length √k and the condition number `condition`.

    Raises
    ------
    InputError
        When the projections find none; there always are some (Schur and Horn).
    """
    sizes = np.geomspace(condition, 1.0, k)
    sizes *= np.sqrt(n * k) / np.linalg.norm(sizes)
    W = rng.standard_normal((n, k))
    for _ in range(TURNS):
        U, _, Vt = np.linalg.svd(W, full_matrices=False)
        W = (U * sizes) @ Vt
        lengths = np.linalg.norm(W, axis=1, keepdims=True) / np.sqrt(k)
        W /= lengths
        if np.abs(lengths - 1.0).max() <= CLOSE:
            return W
    raise InputError(
        f"no {n} heads of length √{k} with condition {condition:g} were found in {TURNS} turns: "
        "take a smaller condition or more clients"
    )
