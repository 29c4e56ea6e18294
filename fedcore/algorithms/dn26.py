"""Private PCA by Gaussian noise on singular vectors, scaled by a private coherence estimate.

The rows of A are the samples. The method adds Gaussian noise to the top eigenvectors of the
symmetrised matrix (0 A; Aᵀ 0). The noise is proportional to a private estimate of the eigenvectors'
coherence, which is defined below. Two texts describe the method without its constants: the abstract
of d'Orsi & Novikov (SODA 2026), and Table 1 of Nguyen, Ene & Nguyen (arXiv:2602.11454). The
constants below were derived for fedcore.

Let γ = σ_k − σ_{k+1} be the gap of the singular values of A. Let U_k and V_k hold the k leading
left and right singular vectors, and let Z = (U_k; V_k)/√2 be the top eigenvectors. Let m be the
coherence of the eigenvectors, the largest norm of a row of U_k or V_k. For neighbouring data A′ = A
+ E, ‖E‖₂ ≤ 1, and ‖EZ‖_F ≤ b m for the symmetrised E. The constant b is 1 if neighbours differ in
one entry. If neighbours differ in one row, b is √d by composition over the d entries of the row
(the model of Table 1 of Nguyen, Ene & Nguyen). By Davis & Kahan and by Weyl, ``‖sin Θ(Z, Z′)‖_F ≤ b
m/(γ − 1)`` for the top eigenvectors Z′ of A′.

Step 1 estimates γ by ``γ̂ = γ + Lap(2/ε₁) − (2/ε₁) log(1/2δ₁)``, which is below γ with probability
1 − δ₁. Two neighbours' gaps γ differ by at most 2.

Step 2 estimates m by ``m̂ = m exp(Lap(s/ε₂) + (s/ε₂) log(1/2δ₁))``, which is above m with
probability 1 − δ₁. The values of log m of two neighbours differ by at most
``s = log(1 + 2b/(γ̂ − 3))``.

Step 3 multiplies Z by a random rotation, adds Gaussian noise, and releases the result. After a
suitable rotation, the matrices Z of two neighbours differ by at most √2 b m̂/(γ̂ − 1). The code
computes only the block V_k of Z.

If γ̂ ≤ 4, the mechanism stops after step 1 and returns a random basis. Steps 1 and 2 have the
parameters ε₁ = ε₂ = ε/4 and δ₁ = δ/8. With ``calibration="tight"``, the noise multiplier of step 3
is the least with which, by the privacy accountant, the three steps are (ε, δ)-DP together. With
``calibration="paper"``, the noise multiplier of step 3 is √(2 log(2/δ₃))/ε₃ with ε₃ = ε/2 and δ₃ =
δ/2; the method then refuses ε > 2.

With several clients, each client releases a noisy basis for its own rows. The server takes the top
eigenvectors of the average of the clients' projections. The result is good only if the clients' top
subspaces agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm
from fedcore.algorithms.one_shot import communication
from fedcore.federation.federation import Federation
from fedcore.linalg import haar, orth, triangular_factor
from fedcore.parts.budget import Budgeted
from fedcore.privacy import calibration
from fedcore.privacy.bounded_rows import product, row_blocks, row_norms
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.privacy.mechanisms import derived
from fedcore.validation import one_of

RELATIONS = {"entry": "change_entry", "row_by_entries": "add_or_remove_one"}


@dataclass(frozen=True)
class Params(Budgeted):
    """Hyper-parameters that the method adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    protects : str
        What the privacy guarantee protects: with ``entry``, single entries of the data; with
        ``row_by_entries``, whole rows, by composition over the entries of a row.
    start : None
        The method ignores `start`, because it computes singular vectors directly.
    """

    protects: Annotated[str, one_of(RELATIONS)] = "row_by_entries"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_small_epsilon(2.0)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Average the subspaces of the noisy top right singular vectors that the clients release.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, RELATIONS[params.protects], bounded=params.protects != "entry")
    d, k = federation.shape.n_features, params.n_components
    b = math.sqrt(d) if params.protects == "row_by_entries" else 1.0
    multiplier = None if params.epsilon is None else noise_multiplier(params)

    def release(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        V, gap, coherence = leading(data, factor(data, state), k)
        if params.epsilon is None or multiplier is None:
            return V
        quarter, delta = params.epsilon / 4.0, params.delta / 8.0
        # The bounds of steps 1 and 2 may fail, on each of two neighbours.
        state.privacy.bounded(0.0, 4.0 * delta, "failure of the bounds")
        margin = math.log(1.0 / (2.0 * delta)) / quarter
        gap = state.privacy.laplace(gap, sensitivity=2.0, noise_multiplier=1.0 / quarter)
        gap -= 2.0 * margin
        if gap <= 4.0:
            return derived(state, haar(d, k, state.privacy.hidden))
        s = math.log1p(2.0 * b / (gap - 3.0))
        log_m = math.log(coherence) + s * margin
        log_m = state.privacy.laplace(log_m, sensitivity=s, noise_multiplier=1.0 / quarter)
        turned = V @ haar(k, k, state.privacy.hidden)
        # √2 b m/(γ − 1) on Z is √2 times that on V.
        moved = 2.0 * b * math.exp(log_m) / (gap - 1.0)
        return state.privacy.gaussian(turned, sensitivity=moved, noise_multiplier=multiplier)

    bases = [orth(reply) for reply in federation.gather(release)]
    left = scipy.linalg.svd(np.hstack(bases), full_matrices=False, check_finite=False)[0]
    V = np.ascontiguousarray(left[:, :k])
    record(0, basis=V)
    return {"basis": V}


def noise_multiplier(params: Params) -> float:
    """Return the noise multiplier of the Gaussian mechanism in step 3."""
    assert params.epsilon is not None
    epsilon, delta = params.epsilon, params.delta
    if params.calibration == "paper":
        return math.sqrt(2.0 * math.log(4.0 / delta)) / (epsilon / 2.0)
    pure: dict[Event, int] = {Bounded(epsilon / 4.0): 2, Bounded(0.0, delta / 2.0): 1}
    return calibration.calibrate(lambda z: {Gaussian(z): 1, **pure}, epsilon, delta)


def factor(data: np.ndarray, state: SimpleNamespace) -> np.ndarray:
    """Return R with RᵀR = SᵢᵀSᵢ in double precision, where Sᵢ are the client's data.

    R has at most d rows, and each client computes it only once. The code uses R instead of the Gram
    matrix SᵢᵀSᵢ, whose condition number is the square of R's. If ‖Sᵢ‖ = 10⁸ σ_k, for example,
    rounding errors of the Gram matrix are as large as σ_k².
    """
    if not hasattr(state.kept, "factor"):
        blocks = (block.astype(np.float64, copy=False) for block in row_blocks(data))
        state.kept.factor = triangular_factor(blocks)
    return state.kept.factor


def leading(data: np.ndarray, R: np.ndarray, k: int) -> tuple[np.ndarray, float, float]:
    """Return the data's k leading right singular vectors, the gap σ_k − σ_{k+1}, and the coherence.

    The coherence is the largest norm of a row of U_k or V_k, the matrices of the k leading left and
    right singular vectors. R is the result of `factor`.
    """
    _, sigma, rotation = scipy.linalg.svd(R, check_finite=False)
    sigma = np.append(sigma, np.zeros(data.shape[1] + 1 - len(sigma)))
    V = np.ascontiguousarray(rotation[:k].T)
    U = product(data, V / sigma[:k]) if sigma[k - 1] > 0 else np.ones((1, k))
    norms = (float(row_norms(M).max()) for M in (U, V))
    return V, float(sigma[k - 1] - sigma[k]), max(norms)


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    citation=(
        "After d'Orsi & Novikov, *Tight differentially private PCA via matrix coherence* (SODA "
        "2026)"
    ),
    look=("purple", "dash-dotted"),
)
