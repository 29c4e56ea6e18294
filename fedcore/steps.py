"""Client steps that several algorithms share.

Both compute ``SᵢᵀSᵢ Z``, and both go over to a Gram matrix when that has become the cheaper way.
A Gram matrix squares the condition number: products come out accurate to ``eps ‖S‖²``, as the
dominant eigenspace needs, and not to ``eps ‖S‖ ‖S Z‖``. A method that relies on directions of small
singular values takes the two products one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import scipy.linalg

from fedcore.federation import summed


def _sum_of_products(
    clients: Sequence[np.ndarray], memory: SimpleNamespace, Z: np.ndarray
) -> np.ndarray | None:
    """Twin of `gram_product`: ``(Σ SᵢᵀSᵢ) Z``, once the columns seen pay for the matrix."""
    return _by_gram(clients, memory, Z)


@summed(_sum_of_products)
def gram_product(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Client step ``Sᵢᵀ(Sᵢ Z)`` for `Federation.sum` and `Federation.mean`.

    The sum over all clients needs only the d × d matrix ``Σ SᵢᵀSᵢ``, which is made when that costs
    no more than the products so far have cost (see `worth`).
    """
    return data.T @ (data @ Z)


def local_gram_product(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """``SᵢᵀSᵢ Z`` for local iterations and replies that are looked at one by one.

    The client makes its own Gram matrix when that pays, and keeps it in its state. At most twice
    the memory of the data.
    """
    product = None
    if 2 * len(data) > data.shape[1]:  # else it never pays
        if not hasattr(state, "gram_memory"):
            state.gram_memory = SimpleNamespace()
        product = _by_gram([data], state.gram_memory, Z)
    return data.T @ (data @ Z) if product is None else product


def worth(n_samples: int, n_features: int, columns: int) -> bool:
    """Whether, after products with `columns` vectors, a Gram matrix should be made.

    Making it costs n d² operations, a product then 2 d² per vector in the place of 4 n d: it never
    pays for n ≤ d/2, and otherwise from ``n d / (4 n − 2 d)`` vectors on. Made at that moment, and
    not before, a short run does not pay for it, and no run pays more than twice the least.
    """
    return columns * (4 * n_samples - 2 * n_features) >= n_samples * n_features


def gram_matrix(clients: Sequence[np.ndarray], dtype: np.dtype | None = None) -> np.ndarray:
    """Return ``Σ SᵢᵀSᵢ``, shape (d, d).

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
    dtype : data-type, optional
        Precision to compute in; the default is that of the clients.
    """
    dtype = np.result_type(*clients) if dtype is None else dtype
    syrk = scipy.linalg.get_blas_funcs("syrk", dtype=dtype)
    gram = np.zeros((clients[0].shape[1],) * 2, dtype, order="F")
    for client in clients:
        # The transpose of C-contiguous data is what BLAS reads without a copy.
        gram = syrk(1.0, client.T.astype(dtype, copy=False), beta=1.0, c=gram, overwrite_c=True)
    gram += np.triu(gram, 1).T
    return gram


def _by_gram(
    clients: Sequence[np.ndarray], memory: SimpleNamespace, Z: np.ndarray
) -> np.ndarray | None:
    """Product with the Gram matrix in `memory`, or None while it does not pay."""
    if not hasattr(memory, "gram"):
        columns = getattr(memory, "columns", 0)
        if not worth(sum(map(len, clients)), len(Z), columns):
            memory.columns = columns + Z.shape[1]
            return None
        memory.gram = gram_matrix(clients, np.result_type(*clients, Z))
    return memory.gram @ Z
