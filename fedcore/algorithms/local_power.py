"""LocalPower: subspace iteration with several local steps between communications.

LocalPower is FedPower (Guo et al., Machine Learning 2024) without noise, with all clients in every
round. Wang, Liu & Zhang (JOTA 2024) compare their method with LocalPower with q = 8 local steps in
the first round; after every round q is halved, down to 1. In a round with q local steps, client i
with its samples as columns of Aᵢ computes Yᵢ, and the server computes Z:

    Zᵢ ← Z;  q − 1 times  Zᵢ ← orth(AᵢAᵢᵀ Zᵢ);  Yᵢ = AᵢAᵢᵀ Zᵢ;     Z ← orth(Σᵢ Yᵢ Dᵢ).

As in the code of Li, Wang, Chen & Zhang (ICML 2021), q includes the last multiplication of a round.
The client sends the result Yᵢ of the last multiplication without orthonormalising Yᵢ. With q = 1
the method is subspace iteration (`ssi`). The rotation Dᵢ aligns Zᵢ with the first client's Z₁
before the sum. With the alignment ``none``, Dᵢ is the identity. With ``sign``, Dᵢ flips each column
of Zᵢ whose inner product with the same column of Z₁ is negative. With ``procrustes``, Dᵢ is the
orthogonal matrix that minimises ‖Zᵢ Dᵢ − Z₁‖_F. With the alignments ``sign`` and ``procrustes``, a
client sends Zᵢ in addition to Yᵢ, as in FedPower. A round with q = 1 sends no Zᵢ, because all Zᵢ
are equal. Wang, Liu & Zhang do not mention an alignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm, ssi
from fedcore.algorithms.ssi import starting_basis
from fedcore.federation.execution import of_runs
from fedcore.federation.federation import Federation, Step, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth, procrustes
from fedcore.parts.gram_products import gram_product, local_gram_product
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, one_of

SCHEDULES = {
    "constant": lambda q, k: q,
    "linear": lambda q, k: max(q - k, 1),
    "halving": lambda q, k: max(q >> k, 1),
}
ALIGNMENTS = {  # of bases of shape (…, n, p)
    "none": lambda Z, target: np.eye(Z.shape[-1], dtype=Z.dtype),
    "sign": lambda Z, target: (
        np.where(np.sum(Z * target, axis=-2) < 0, -1, 1)[..., None] * np.eye(Z.shape[-1], dtype=int)
    ),
    "procrustes": procrustes,
}


@dataclass(frozen=True)
class Params(ssi.Rounds):
    """Hyper-parameters that LocalPower adds to those of `ssi.Rounds`.

    Attributes
    ----------
    local_steps : int
        Number q of multiplications by AᵢAᵢᵀ in the first round.
    schedule : str
        Rule for the number of multiplications in round k = 0, 1, …: q (``constant``), q − k
        (``linear``) or ⌊q/2ᵏ⌋ (``halving``). The number is never below one.
    alignment : str
        Rule for the matrix Dᵢ that aligns client i's basis Zᵢ with the first client's Z₁. Unless
        `alignment` is ``none``, the method's result depends on which client is first.
    """

    local_steps: Count = 8
    schedule: Annotated[str, one_of(SCHEDULES)] = "halving"
    alignment: Annotated[str, one_of(ALIGNMENTS)] = "none"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run LocalPower.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """

    def held() -> dict[str, Any]:
        """Return the clients' bases Zᵢ, for history files that store them."""
        return {"Z": federation.client_state("Z")}

    Z = starting_basis(federation, params, rng)
    record(0, basis=Z)
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        q = steps_of(params, k)
        Z = orth(aggregate(federation, q, params.alignment))
        record(k, basis=Z, clients=held if q > 1 else None)
    return {"basis": Z}


def steps_of(params: Params, k: int) -> int:
    """Return the number q of local steps in round k, counted from 1."""
    return SCHEDULES[params.schedule](params.local_steps, k - 1)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every client downloads the n×p matrix Z and uploads its product Yᵢ. In rounds
    that align the bases, every client also uploads its basis Zᵢ.
    """
    block = shape.n_clients * shape.n_features * params.n_components
    aligned = params.alignment != "none"
    twice = aligned * sum(steps_of(params, k + 1) > 1 for k in range(params.rounds))
    return Cost(params.rounds, (params.rounds + twice) * block, params.rounds * block)


def aggregate(
    federation: Federation,
    q: int,
    alignment: str,
    *,
    product: Step = local_gram_product,
    single: Step = gram_product,
    weights: Mapping[int, int] | None = None,
) -> np.ndarray:
    """Run a round with `q` local steps, and return the weighted sum ``Σᵢ wᵢ Yᵢ Dᵢ``.

    Yᵢ is the last product of client i, and the matrix Dᵢ aligns the client's basis Zᵢ with the
    first client's. If q > 1, each client keeps Zᵢ in ``state.Z``.

    Parameters
    ----------
    federation : Federation
        Federation whose server has broadcast the common basis Z to the clients.
    q : int
    alignment : str
        A key of `ALIGNMENTS`.
    product, single : client step
        Client steps that compute ``AᵢAᵢᵀ Z``, `single` if q = 1 and `product` otherwise.
    weights : mapping of int to int, optional
        Mapping from the index i of each client that replies to its weight wᵢ. All bases are aligned
        with the basis of the first client in the mapping. By default all clients reply, with weight
        1.

    Returns
    -------
    ndarray of shape (n_features, n_components)
    """

    def local_power(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> Any:
        for _ in range(q - 1):
            Z = orth(product(data, state, Z))
        state.Z = Z
        return product(data, state, Z), derived(state, Z)

    def product_alone(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        return local_power(data, state, Z)[0]

    def both(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        return np.stack(local_power(data, state, Z), axis=-3)

    of, two = None if weights is None else list(weights), both
    if getattr(product, "stacked", False):
        product_alone, two = of_runs(stacked(product_alone)), of_runs(stacked(both))
    else:
        two = local_power  # with noise, a client sends what its mechanisms returned
    if q == 1 or alignment == "none":
        step = single if q == 1 else product_alone
        if weights is None:
            return federation.sum(step)
        turned = federation.gather(step, of=of)
    else:
        Y, Z = (np.array(parts) for parts in zip(*federation.gather(two, of=of), strict=True))
        turned = Y @ ALIGNMENTS[alignment](Z, Z[0])
    return sum(w * Y for w, Y in zip(weights_of(federation, weights), turned, strict=True))


def weights_of(federation: Federation, weights: Mapping[int, int] | None) -> list[int]:
    """Return the weights of the clients that reply; if `weights` is None, all weights are 1."""
    return [1] * federation.shape.n_clients if weights is None else list(weights.values())


def align(bases: Sequence[np.ndarray], alignment: str) -> list[np.ndarray]:
    """Return the products ``Zᵢ Dᵢ``, where Dᵢ aligns the basis Zᵢ with the first of the bases."""
    return [Z @ ALIGNMENTS[alignment](Z, bases[0]) for Z in bases]


ALGORITHM = Algorithm(
    paper="fedpower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    steps=steps_of,
    citation=(
        "Li, Wang, Chen & Zhang, *Communication-efficient distributed SVD via local power "
        "iterations* (ICML 2021)"
    ),
    look=("vermillion", "dashed"),
)
