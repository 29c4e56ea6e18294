"""Factorisation S ≈ U Vᵀ whose V comes from a distributed randomized power iteration.

The method is Algorithm 1 of Philippenko, Scaman & Massoulié (AAAI 2025), here called the paper.
Each client computes the sketch ``Vⁱ = Sⁱᵀ Φⁱ`` of its data Sⁱ with a Gaussian matrix Φⁱ, and sends
it. The server adds up the sketches to obtain V. The server sends V to the clients, the clients
multiply V by ``Sⁱᵀ Sⁱ``, and the server adds up the products. In this way V is multiplied α times
by SᵀS. The result is ``V = (SᵀS)^α Sᵀ Φ`` after α + 1 rounds, where S and Φ stack all Sⁱ and Φⁱ. As
in Theorem 2 of the paper, the method makes m sketches with different Φ, and keeps the one whose V
has the least condition number (see `select` below). As in the paper, V is not orthonormalised
between the multiplications, because the paper needs the singular values of V.

The entries of V therefore grow like ‖S‖^(2α+1), and its condition number like (σ₁/σ_r)^(2α+1),
where σ₁ and σ_r are singular values of S. To avoid overflow, V is divided by a power of two before
every multiplication. This division is exact. At the end V is multiplied by these powers of two,
unless the result would over- or underflow. Scaling does not lower the condition number; only a
smaller α does. Rounding can therefore leave some directions in the range of V with fewer than two
correct digits. The run counts these lost directions, and warns if there are any.

``select="initial"`` compares the condition numbers of the sketches and multiplies only the best
sketch, as in the paper's code. ``select="final"`` multiplies every sketch and compares the
condition numbers of the results, as in the paper's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import InputError, RoundingWarning, warn
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.iterates import ExactFactors
from fedcore.linalg import condition_number, lost_directions
from fedcore.parts.params import Parameters
from fedcore.validation import Count, CountOrZero, one_of

SELECTIONS = ("initial", "final")
COLUMNS = {
    "lost_directions": ("directions", "of V that rounding has spoiled: known to less than 2 digits")
}
ROOM = 16  # powers of two from V's largest entry to over- and underflow


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters of the power initialisation.

    Attributes
    ----------
    n_components : int
        Rank r of the factorisation.
    power : int
        Number α of multiplications by SᵀS after the sketch.
    samples : int
        Number m of sketches; the method keeps the one with the least condition number.
    select : str
        Whether condition numbers are compared before (``initial``) or after (``final``) the
        multiplications.
    start : ndarray of shape (n_features, n_components), optional
        If `start` is given, the product of Sⁱ and `start` is used in the place of the Gaussian
        matrix Φⁱ, and `samples` must be 1.
    """

    power: CountOrZero = 0
    samples: Count = 1
    select: Annotated[str, one_of(SELECTIONS)] = "initial"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start is not None and self.samples > 1:
            raise InputError(
                f"start replaces the random matrices: leave samples at 1, got {self.samples}"
            )


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1 of Philippenko, Scaman & Massoulié (AAAI 2025).

    Returns
    -------
    dict
        The entries ``V`` and ``exponent`` of `Scaled.output`.
    """
    found, counts = power_initialisation(federation, params)
    federation.broadcast(found.V)
    record(0, factors=ExactFactors(found.V), counts=counts)
    return found.output()


class Scaled(NamedTuple):
    """The matrix ``V · 2^exponent``, stored as two parts to avoid overflow.

    Attributes
    ----------
    V : ndarray of shape (d, r)
    exponent : int
    """

    V: np.ndarray
    exponent: int = 0

    def normalised(self) -> Scaled:
        """Return the same matrix, with V scaled such that max |V| is in [½, 1)."""
        return self.shifted(self._size())

    def restored(self) -> Scaled:
        """Return the same matrix, with the exponent as near to 0 as V's number range allows."""
        limits, size = np.finfo(self.V.dtype), self._size()
        lowest, highest = limits.minexp + limits.nmant + ROOM, limits.maxexp - ROOM
        return self.shifted(size - min(max(size + self.exponent, lowest), highest))

    def shifted(self, by: int) -> Scaled:
        """Return the same matrix, with V divided by 2^`by` and `by` added to the exponent."""
        return Scaled(np.ldexp(self.V, -by), self.exponent + by)

    def _size(self) -> int:
        """Return the smallest e with max |V| < 2^e; 0 if V is not finite."""
        largest = np.abs(self.V).max()
        return int(np.frexp(largest)[1]) if np.isfinite(largest) else 0

    def output(self, **more: Any) -> dict[str, Any]:
        """Return a dict of ``V``, ``exponent`` and the entries of `more`.

        The product ``V · 2^exponent`` is (SᵀS)^α SᵀΦ, unless `power_gd` has orthonormalised V. The
        exponent is 0 unless (SᵀS)^α SᵀΦ would overflow or underflow.
        """
        return {"V": self.V, **more, "exponent": np.int64(self.exponent)}


def power_initialisation(federation: Federation, params: Any) -> tuple[Scaled, dict[str, int]]:
    """Return V = (SᵀS)^α SᵀΦ for the best random Φ, and the number of lost directions of V.

    The best of `params.samples` matrices Φ is the one with the least condition number of SᵀΦ or of
    V, as `params.select` says. A direction of V is lost if rounding leaves it with fewer than two
    correct digits.

    Warns
    -----
    RoundingWarning
        If some of V's directions are lost.
    """
    early = params.select == "initial"
    candidates = []
    for _ in range(params.samples):
        found = _sketch(federation, params)
        candidates.append(found if early else _multiply(federation, found, params.power))
    best = candidates[0]
    if len(candidates) > 1:
        best = min(candidates, key=lambda found: condition_number(found.V))
    if early:
        best = _multiply(federation, best, params.power)
    best = best.normalised().restored()
    lost = lost_directions(best.V)
    if lost and np.isfinite(best.V).all():  # otherwise the run is recorded as diverged
        _warn(lost, best.V, params.power)
    return best, {"lost_directions": lost}


def _warn(lost: int, V: np.ndarray, power: int) -> None:
    advice = ["fewer components", "a method that orthonormalises in every round (block_krylov)"]
    advice += ["a smaller power"] if power else []
    advice += ["float64 data"] if V.dtype == np.float32 else []
    warn(
        f"rounding leaves fewer than two correct digits in {lost} of the {V.shape[1]} directions "
        f"of V = (SᵀS)^{power} SᵀΦ, because the singular values of the data fall too fast for "
        f"{V.dtype}: take {' or '.join(advice)}",
        RoundingWarning,
    )


def communication(params: Any, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    For m sketches and the power α, the run has m + α rounds, or m(α + 1) with ``select="final"``.
    In each round, every client uploads one d×r matrix. Every client downloads one matrix for each
    multiplication by SᵀS, one at the end, and one for the sketch if `start` is given. The download
    at the end does not count as a round.
    """
    block = shape.n_clients * shape.n_features * params.n_components
    multiplications = params.power * (1 if params.select == "initial" else params.samples)
    uploads = params.samples + multiplications
    downloads = multiplications + 1 + (params.start is not None)
    return Cost(uploads, uploads * block, downloads * block)


def _sketch(federation: Federation, params: Any) -> Scaled:
    if params.start is not None:
        return _multiply(federation, Scaled(params.start), 1)

    def sketch(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return data.T @ state.rng.standard_normal((len(data), params.n_components))

    return Scaled(federation.sum(sketch))


def _multiply(federation: Federation, found: Scaled, times: int) -> Scaled:
    for _ in range(times):
        found = found.normalised()
        federation.broadcast(found.V)
        found = Scaled(federation.sum(gram_product), found.exponent)
    return found


def gram_product(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> np.ndarray:
    """Client step: return the product ``Sⁱᵀ (Sⁱ V)``."""
    return data.T @ (data @ V)


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    columns=COLUMNS,
    citation=(
        "Philippenko, Scaman & Massoulié, *In-depth analysis of low-rank matrix factorisation in "
        "a federated setting* (AAAI 2025), Algorithm 1"
    ),
    look=("orange", "solid"),
)
