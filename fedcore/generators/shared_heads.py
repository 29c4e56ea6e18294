"""Linear regressions of many clients with one representation and a head each.

Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Sections 4 and 5.1 and Appendix A.1:

    y = ⟨w*_i, B*ᵀ x⟩ + e,   x ~ N(0, I_d),   e ~ N(0, σ²),

with B* the orthonormal Q of a Gaussian d × k matrix. The paper and its notebook define the n × k
matrix W* of heads in four ways:

``scaled``
    √k times the Q of a Gaussian matrix (Appendix A.1). The root mean square norm of a head is k/√n,
    so that signals shrink with the number of clients.
``orthonormal``
    Q itself (the authors' notebook, Figure 3).
``unit_rows``
    Q with every row scaled to length 1 (the notebook, Figure 1).
``assumption``
    Gaussian rows scaled to length √k, Assumption 3 of the theory.

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
from fedcore.validation import Count, CountOrZero, NonNegative, checked, one_of


def _rows_of_length(matrix: np.ndarray, length: float) -> np.ndarray:
    return length * matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


HEADS = {
    "scaled": lambda n, k, rng: np.sqrt(k) * haar(n, k, rng),
    "orthonormal": haar,
    "unit_rows": lambda n, k, rng: _rows_of_length(haar(n, k, rng), 1.0),
    "assumption": lambda n, k, rng: _rows_of_length(rng.standard_normal((n, k)), np.sqrt(k)),
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
        For a value out of range, or a rank above the number of clients or features.
    """
    if rank > min(n_clients, n_features):
        raise InputError(
            f"rank = {rank} is larger than min(n_clients, n_features) = "
            f"{min(n_clients, n_features)}"
        )
    W, B = HEADS[heads](n_clients, rank, rng), haar(n_features, rank, rng)
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
