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

from fedcore.federation import lockstep
from fedcore.federation.federation import summed
from fedcore.linalg import gram_matrix
from fedcore.privacy.rows import row_blocks
from fedcore.problems.clients import Clients


def _sum_of_products(clients: Clients, memory: SimpleNamespace, Z: np.ndarray) -> np.ndarray | None:
    """Twin of `gram_product`: ``(Σ SᵢᵀSᵢ) Z``, once the columns seen pay for the matrix."""
    gram = clients.gram
    if gram is None:
        gram = _gram(clients, memory, clients.kept, Z)
    if gram is None:
        return None
    return lockstep.product((id(clients.kept), "Gram"), gram.__matmul__, Z)


@summed(_sum_of_products)
def gram_product(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Client step ``Sᵢᵀ(Sᵢ Z)`` for `Federation.sum` and `Federation.mean`.

    The sum over all clients needs only the d × d matrix ``Σ SᵢᵀSᵢ``. It comes with the clients, or
    is made when that costs no more than the products so far have cost (see `gram_pays_off`).
    """
    return data.T @ (data @ Z)


def local_gram_product(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """``SᵢᵀSᵢ Z`` for local iterations and replies that are looked at one by one.

    The client makes its own Gram matrix when that pays, and keeps it. At most twice the memory of
    the data.
    """
    gram = None
    if 2 * len(data) > data.shape[1]:  # else it never pays
        if not hasattr(state, "gram_memory"):
            state.gram_memory = SimpleNamespace()
        gram = _gram([data], state.gram_memory, state.kept, Z)
    if gram is None:
        return lockstep.product((id(state.kept), "data"), lambda block: data.T @ (data @ block), Z)
    return lockstep.product((id(state.kept), "Gram"), gram.__matmul__, Z)


def local_gram(data: np.ndarray, state: SimpleNamespace) -> np.ndarray:
    """Return the client's Gram matrix SᵢᵀSᵢ in double precision, shape (d, d).

    It is made once and kept with the data. What is released with noise is made of it: see
    `fedcore.privacy.rows` on sums in single precision.
    """
    if not hasattr(state.kept, "double_gram"):
        blocks = [data] if data.dtype == np.float64 else row_blocks(data)
        state.kept.double_gram = gram_matrix(blocks, np.dtype(np.float64))
    return state.kept.double_gram


def local_gram_product_in_double(
    data: np.ndarray, state: SimpleNamespace, Z: np.ndarray
) -> np.ndarray:
    """``SᵢᵀSᵢ Z`` in double precision, as a reply needs it that noise is to be added to."""
    if data.dtype == np.float64:
        return local_gram_product(data, state, Z)
    return lockstep.product(
        (id(state.kept), "double Gram"), local_gram(data, state).__matmul__, Z.astype(np.float64)
    )


def gram_pays_off(n_samples: int, n_features: int, columns: int) -> bool:
    """Whether, after products with `columns` vectors, a Gram matrix should be made.

    Making it costs n d² operations, a product then 2 d² per vector in the place of 4 n d: it never
    pays for n ≤ d/2, and otherwise from ``n d / (4 n − 2 d)`` vectors on. Made at that moment, and
    not before, a short run does not pay for it, and no run pays more than twice the least.
    """
    return columns * (4 * n_samples - 2 * n_features) >= n_samples * n_features


def _gram(
    clients: Sequence[np.ndarray], memory: SimpleNamespace, kept: SimpleNamespace, Z: np.ndarray
) -> np.ndarray | None:
    """Return the Gram matrix, or None while it does not pay.

    `memory` counts the columns of this run, so that a run takes the same way whether or not another
    one has made the matrix, which is in `kept`.
    """
    columns = getattr(memory, "columns", 0)
    memory.columns = columns + Z.shape[1]
    if not gram_pays_off(sum(map(len, clients)), len(Z), columns):
        return None
    if not hasattr(kept, "gram"):
        kept.gram = gram_matrix(clients, np.result_type(*clients, Z))
    return kept.gram
