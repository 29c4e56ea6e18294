"""Linear regressions of many clients with one representation and a head each.

Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Sections 4 and 5.1 and Appendix A.1:

    y = ⟨w*_i, B*ᵀ x⟩ + e,   x ~ N(0, I_d),   e ~ N(0, σ²),

with B* the orthonormal Q of a Gaussian d × k matrix. The paper and its notebook define the n × k
matrix W* of heads in four ways, and a fifth is for tests of the theory's statement on the condition
number of W*:

``scaled``
    √k times the Q of a Gaussian matrix (Appendix A.1). The root mean square norm of a head is k/√n,
    so that signals shrink with the number of clients.
``orthonormal``
    Q itself (the authors' notebook, Figure 3).
``unit_rows``
    Q with every row scaled to length 1 (the notebook, Figure 1).
``assumption``
    Gaussian rows scaled to length √k, Assumption 3 of the theory.
``conditioned``
    Rows of length √k as well; the singular values of ``W*/√n`` form a geometric sequence whose
    first term is κ times the last. Gaussian rows are projected in turn on the matrices with these
    singular values and on those with rows of this length (Tropp, Dhillon, Heath & Strohmer,
    *Designing structured tight frames via an alternating projection method*, IEEE Transactions on
    Information Theory 2005).

The notebook also divides features by √m before it adds noise of standard deviation s to the labels.
Up to the unit of the labels this is the model above with σ = s √m.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import haar
from fedcore.problems.clients import Clients
from fedcore.problems.regression import Truth, predict
from fedcore.validation import Count, CountOrZero, NonNegative, Positive, checked, one_of

TURNS = 10_000  # of the two projections; some ten are needed for a digit
CLOSENESS = 1e-12  # relative difference of the length of a row before the last projection


def _rows_of_length(matrix: np.ndarray, length: float) -> np.ndarray:
    return length * matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def _conditioned(n: int, k: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    sizes = np.geomspace(condition, 1.0, k)
    sizes *= np.sqrt(n * k) / np.linalg.norm(sizes)
    W = rng.standard_normal((n, k))
    for _ in range(TURNS):
        U, _, Vt = np.linalg.svd(W, full_matrices=False)
        W = (U * sizes) @ Vt
        lengths = np.linalg.norm(W, axis=1, keepdims=True) / np.sqrt(k)
        W /= lengths
        if np.abs(lengths - 1.0).max() <= CLOSENESS:
            return W
    raise InputError(  # there always are some (Schur and Horn)
        f"no {n} heads of length √{k} with condition {condition:g} were found in {TURNS} turns: "
        "take a smaller condition or more clients"
    )


HEADS = {
    "scaled": lambda n, k, _, rng: np.sqrt(k) * haar(n, k, rng),
    "orthonormal": lambda n, k, _, rng: haar(n, k, rng),
    "unit_rows": lambda n, k, _, rng: _rows_of_length(haar(n, k, rng), 1.0),
    "assumption": lambda n, k, _, rng: _rows_of_length(rng.standard_normal((n, k)), np.sqrt(k)),
    "conditioned": _conditioned,
}


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 100,
    samples: Count = 5,
    n_features: Count = 10,
    rank: Count = 2,
    noise: NonNegative = 0.0,
    heads: Annotated[str, one_of(HEADS)] = "scaled",
    condition: Positive = 1.0,
    test_samples: CountOrZero = 0,
    test_noise: NonNegative = 0.0,
    new_clients: CountOrZero = 0,
    new_samples: CountOrZero = 0,
) -> tuple[Clients, Truth]:
    """Draw linear regressions with one representation and a head per client.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features, rank : int
        n, m (samples of each client), d and k.
    noise : float
        σ, standard deviation of the noise of the labels.
    heads : str
        Distribution of W*; see the module's text.
    condition : float
        κ of conditioned heads, largest over smallest singular value of W*.
    test_samples : int
        Test samples of every client.
    test_noise : float
        Standard deviation of the noise that `noisy_test_error` adds to their labels.
    new_clients, new_samples : int
        Clients that take no part in the training, with heads from N(0, I_k), and the samples of
        each (with noise σ).

    Returns
    -------
    clients : Clients
        With labels.
    truth : Truth

    Raises
    ------
    InputError
        For a value out of range, a rank above the number of clients or features, a condition that
        no heads of this kind and rank have, or when the projections find none.
    """
    if rank > min(n_clients, n_features):
        raise InputError(
            f"rank = {rank} is larger than min(n_clients, n_features) = "
            f"{min(n_clients, n_features)}"
        )
    if condition != 1.0 and heads != "conditioned":
        raise InputError(f"condition = {condition:g} is for heads: conditioned, not for {heads!r}")
    if condition < 1.0 or (rank == 1 and condition != 1.0):
        raise InputError(f"condition is at least 1, and 1 for rank = 1, got {condition:g}")
    W, B = HEADS[heads](n_clients, rank, condition, rng), haar(n_features, rank, rng)
    X = rng.standard_normal((n_clients, samples, n_features))
    y = predict(X, W @ B.T) + noise * rng.standard_normal((n_clients, samples))
    W_new = rng.standard_normal((new_clients, rank))
    X_new = rng.standard_normal((new_clients, new_samples, n_features))
    truth = Truth(
        representation=B,
        heads=W,
        noise=np.array(noise),
        test_features=rng.standard_normal((n_clients, test_samples, n_features)),
        test_noise=test_noise * rng.standard_normal((n_clients, test_samples)),
        new_heads=W_new,
        new_features=X_new,
        new_labels=predict(X_new, W_new @ B.T)
        + noise * rng.standard_normal((new_clients, new_samples)),
    )
    return Clients(X, labels=y), truth
