"""Linear regressions of many clients with a shared representation and one head per client.

The source is Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Sections 4 and 5.1 and Appendix
A.1:

    y = ⟨w*_i, B*ᵀ x⟩ + e,   x ~ N(0, I_d),   e ~ N(0, σ²).

The columns of B* are orthonormal; B* is the factor Q in the QR factorisation of a Gaussian d × k
matrix. The rows of the n × k matrix W* are the heads w*_i of the n clients. The paper and its
notebook define W* in four ways. A fifth way, ``conditioned``, serves to test what the paper's
theory states about the condition number of W*.

``scaled``
    W* is √k times the factor Q of a Gaussian matrix (Appendix A.1). The root mean square norm of a
    head, k/√n, falls as the number of clients grows.
``orthonormal``
    W* is the factor Q of a Gaussian matrix (the authors' notebook, Figure 3).
``unit_rows``
    W* is the factor Q of a Gaussian matrix, with rows scaled to length 1 (the notebook, Figure 1).
``assumption``
    W* has Gaussian rows scaled to length √k (Assumption 3 of the theory).
``conditioned``
    W* has rows of length √k, and the singular values of ``W*/√n`` form a geometric sequence whose
    first term is κ times the last. To find W*, a Gaussian matrix is projected alternately on two
    sets: the matrices with these singular values, and the matrices with rows of length √k (Tropp,
    Dhillon, Heath & Strohmer, *Designing structured tight frames via an alternating projection
    method*, IEEE Transactions on Information Theory 2005).

The notebook divides features by √m, where m is the number of samples per client, and then adds
noise of standard deviation s to the labels. If the labels are multiplied by √m, this is the model
above with σ = s √m.
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
        f"{n} heads of length √{k} with condition = {condition:g} were not found in {TURNS} turns: "
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
    """Draw the clients' samples and the true model.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features, rank : int
        Numbers of clients n, of samples per client m, of features d, and rank k.
    noise : float
        Standard deviation σ of the noise of the labels.
    heads : str
        Distribution of the heads W*, as described in the module's docstring.
    condition : float
        Condition number κ of W* for ``conditioned`` heads.
    test_samples : int
        Number of test samples per client.
    test_noise : float
        Standard deviation of the noise that the metric `noisy_test_error` adds to test labels.
    new_clients, new_samples : int
        Number of clients that join after training, and number of samples of each. New clients have
        heads from N(0, I_k) and labels with noise σ.

    Returns
    -------
    clients : Clients
        Clients with labels.
    truth : Truth
        Model that generated the labels, with the test samples and the new clients' samples.

    Raises
    ------
    InputError
        If a value is out of range, or the rank is above the number of clients or features. If
        `condition` does not fit `heads` or `rank`, or no heads with this condition number are
        found.
    """
    if rank > min(n_clients, n_features):
        raise InputError(
            f"rank = {rank} is larger than min(n_clients, n_features) = "
            f"{min(n_clients, n_features)}"
        )
    if condition != 1.0 and heads != "conditioned":
        raise InputError(f"condition = {condition:g} needs heads = 'conditioned', got {heads!r}")
    if condition < 1.0 or (rank == 1 and condition != 1.0):
        raise InputError(f"condition must be at least 1, and 1 if rank = 1, got {condition:g}")
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
