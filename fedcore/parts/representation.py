"""Linear regression with a shared representation: starting matrix, parameters, batches and cost.

Client i has m samples (x, y) and a head wᵢ, and predicts y by ``xᵀ B wᵢ`` with the shared (d, k)
matrix B. The parameter ``init`` chooses the starting matrix B⁰:

``moments``
    takes the k leading eigenvectors of ``(1/n) Σᵢ Zᵢ`` over the n clients, where ``Zᵢ = (1/m) Σ y²
    x xᵀ`` sums over the client's samples (Collins et al., ICML 2021, Algorithm 2). In one round,
    each client sends the d² numbers of Zᵢ.
``pgd``
    performs projected gradient descent on the matrix of all clients' coefficients, one row per
    client (Tu et al. 2016, Algorithm 1, cited by Collins et al. in Appendix A.1). Each of
    ``init_rounds`` rounds takes a gradient step on every row and projects the matrix to rank k. In
    a round, each client sends its row of d numbers. The server sends the k leading right singular
    vectors V of the matrix to the clients, and each client projects its own row. B⁰ is the V of the
    last round, and the first head of a client with row θ is ``Vᵀ θ``.
``random``
    orthonormalises a Gaussian matrix. Each client draws its first head from N(0, s² I_k), with
    s = ``init_heads``.

If the parameter `start` is given, B⁰ is `start`, orthonormalised. With `start` or ``moments``, the
first heads are zero. If `batch` is given, ``moments`` and ``pgd`` use only the first `batch`
samples of each client. With ``fresh``, no later round uses these samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import haar, orth, top_eigenvectors
from fedcore.parts.params import Parameters
from fedcore.parts.participation import Participating, Participation
from fedcore.problems.clients import Labelled
from fedcore.problems.regression import model_gradient, predict
from fedcore.validation import Count, CountOrZero, NonNegative, Positive, one_of
from fedcore.words import counted

METHODS = ("moments", "pgd", "random")


@dataclass(frozen=True)
class Params(Participating, Parameters):
    """Hyper-parameters of linear regression with a shared representation B.

    Attributes
    ----------
    n_components : int
        Number k of columns of B.
    rounds : int
        Number T of rounds after the computation of B⁰.
    step : float
        Product η σ̄² of the step size η on the representation B and the square of σ̄ =
        `head_sigma`.
    head_sigma : float
        Scale σ̄ of the heads, in units of the labels. For the matrix W* of the n clients' true
        heads, σ̄ is σ_max(W*)/√n. With σ̄ = 1, `step` is equal to η.
    head_step : float
        Size α of a gradient step on a client's head.
    participation : float
        Share r of the clients that take part in a round, drawn without replacement. The number of
        participants is rounded, and is at least 1.
    batch : int, optional
        Number of samples that a client uses in a round, by default all samples.
    fresh : bool
        If true, each round uses the next `batch` samples, and no sample is used twice.
    init : str
        Method that computes the starting matrix B⁰; `fedcore.parts.representation` describes the
        methods.
    init_rounds : int
        Number of rounds of ``init="pgd"``.
    init_step : float
        Step size of ``init="pgd"`` on the loss ‖X θ − y‖²/2m, as in the notebook of Collins et al.
    init_heads : float
        Standard deviation of the first heads of ``init="random"``, in units of the labels.
    start : ndarray of shape (n_features, n_components), optional
        Starting matrix B⁰, which the method orthonormalises first. If given, `init` has no effect.
    """

    rounds: CountOrZero = 200
    step: Positive = 0.25
    head_sigma: Positive = 1.0
    head_step: Positive = 0.25
    participation: Participation = 1.0
    batch: Count | None = None
    fresh: bool = False
    init: Annotated[str, one_of(METHODS)] = "moments"
    init_rounds: Count = 10
    init_step: Positive = 0.1
    init_heads: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fresh and self.batch is None:
            raise InputError("fresh = true needs batch, the number of samples per round")

    @property
    def eta(self) -> float:
        """Return the step η = `step` / σ̄² on the representation B."""
        return self.step / self.head_sigma**2

    def batch_of(self, data: Labelled, t: int) -> Labelled:
        """Return the samples that a client uses in round t ≥ 1 or, if t = 0, for computing B⁰.

        Raises
        ------
        InputError
            Raised if the client has too few samples.
        """
        if self.batch is None:
            return data
        first = t * self.batch if self.fresh else 0
        if first + self.batch > data.X.shape[-2]:
            raise InputError(
                f"round {t} needs {first + self.batch} samples of every client, but one client has "
                f"{data.X.shape[-2]}: take a smaller batch or, if fresh = true, fewer rounds"
            )
        used = slice(first, first + self.batch)
        return Labelled(data.X[..., used, :], data.y[..., used])


def communication(params: Params, shape: Shape, rows: int) -> Cost:
    """Return the cost of the whole run, including the computation of B⁰.

    In each round, every participant downloads one matrix of shape (`rows`, k) and uploads one.
    """
    start = start_communication(params, shape)
    block = params.n_participants(shape.n_clients) * rows * params.n_components
    moved = params.rounds * block
    return Cost(start.rounds + params.rounds, start.scalars_up + moved, start.scalars_down + moved)


def local_models(federation: Federation, B: np.ndarray) -> np.ndarray:
    """Return all coefficients ``B wᵢ``, shape (n_clients, d), without sending a message."""
    return np.asarray(federation.client_state("w")) @ B.T


def starting_representation(
    federation: Federation, params: Any, rng: np.random.Generator
) -> np.ndarray:
    """Return the starting (d, k) matrix B⁰, and set the clients' heads ``state.w``.

    Raises
    ------
    InputError
        Raised if there are fewer than k clients for ``pgd``, or if a client has fewer samples than
        a batch. Raised for ``moments`` if squared labels times squared data overflow or underflow,
        or if all labels are zero.
    """
    k = params.n_components
    if params.start is None and params.init == "pgd":
        return _projected_descent(federation, params)

    def at_zero(data: Labelled, state: Any, message: Any) -> None:
        state.w = np.zeros((*data.X.shape[:-2], k), data.X.dtype)

    def gaussian(data: Labelled, state: SimpleNamespace, message: Any) -> None:
        state.w = (params.init_heads * state.rng.standard_normal(k)).astype(data.X.dtype)

    @stacked
    def moments(data: Labelled, state: Any, message: Any) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        return np.swapaxes((y**2)[..., None] * X, -1, -2) @ X / X.shape[-2]

    if params.start is None and params.init == "random":
        federation.local(gaussian)
        return haar(federation.shape.n_features, k, rng)
    federation.local(stacked(at_zero))
    if params.start is not None:
        return orth(params.start)
    mean = federation.mean(moments)
    if not np.finfo(mean.dtype).tiny <= np.abs(mean).max() <= np.finfo(mean.dtype).max:
        raise InputError(
            "init = 'moments': the squares of labels times the squares of data leave the range of "
            f"{mean.dtype}, or all labels are zero: scale data and labels to the order of 1, or "
            "choose init = 'random'"
        )
    return top_eigenvectors(mean, k)


def start_communication(params: Any, shape: Shape) -> Cost:
    """Return the communication cost of `starting_representation`."""
    n, d, k = shape.n_clients, shape.n_features, params.n_components
    if params.start is not None or params.init == "random":
        return Cost(0, 0, 0)
    if params.init == "moments":
        return Cost(1, n * d * d, 0)
    rounds = params.init_rounds
    return Cost(rounds, rounds * n * d, rounds * n * d * k)


def _projected_descent(federation: Federation, params: Any) -> np.ndarray:
    """Return the starting matrix B⁰ that projected gradient descent (``pgd``) finds.

    In each round, every client makes a gradient step for its coefficients θ, which are zero at
    first, and uploads θ. The server stacks all θ as the rows of a matrix, and broadcasts V, the k
    leading right singular vectors of this matrix. At the next step, the clients first project θ on
    the range of V. The last V is B⁰, and ``Vᵀθ`` is a client's first head.
    """

    @stacked
    def first_step(data: Labelled, state: Any, message: Any) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        state.theta = params.init_step * model_gradient(X, y)  # from θ = 0
        return state.theta

    @stacked
    def step(data: Labelled, state: Any, V: np.ndarray) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        theta = (state.theta @ V) @ V.T
        gradient = model_gradient(X, predict(X, theta) - y)
        state.theta = theta - params.init_step * gradient
        return state.theta

    @stacked
    def first_head(data: Labelled, state: Any, V: np.ndarray) -> None:
        state.w = state.theta @ V

    n, k = federation.shape.n_clients, params.n_components
    if n < k:
        raise InputError(
            f"init = 'pgd' needs at least {counted(k, 'client')} to find {counted(k, 'direction')}"
            f", got {n}: choose init = 'moments' or 'random'"
        )
    for t in range(params.init_rounds):
        rows = np.asarray(federation.gather(step if t else first_step))
        V = top_eigenvectors(rows.T @ rows, k)
        federation.broadcast(V)
    federation.local(first_head)
    return V
