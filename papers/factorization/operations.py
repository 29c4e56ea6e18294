"""Table S1 of `factorization`: floating-point operations of three methods at several sizes.

The methods run on drawn matrices, with `factorization.counted_arrays`. The number of operations
depends on sizes alone. A client has at most d/2 samples: with more, LocalPower would multiply by
the client's Gram matrix where that is less work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from factorization.counted_arrays import (
    CLIENTS,
    SERVER,
    Count,
    counted_federation,
    qr_operations,
)
from fedcore.algorithms import local_power, power_gd
from fedcore.federation.federation import Federation
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.repro.tables.results import Results
from fedcore.repro.tables.rows import Rows


class Size(NamedTuple):
    """Sizes of Table S1: N clients of m samples each, n = N m."""

    N: int = 25
    m: int = 40
    d: int = 100
    r: int = 20
    alpha: int = 2
    steps: int = 3  # l of LocalPower, T of the descent

    @property
    def dr(self) -> int:
        """Return dr, the numbers of a block."""
        return self.d * self.r

    @property
    def ndr(self) -> int:
        """Return ndr, with the samples of all clients."""
        return self.N * self.m * self.dr

    @property
    def svd(self) -> float:
        """Return what is taken for C(SVD): the QR factorisation of a d × r matrix."""
        return qr_operations(self.d, self.r)


SIZES = (
    Size(), Size(N=50), Size(N=100), Size(m=20), Size(m=50), Size(d=200), Size(r=10), Size(r=40),
    Size(alpha=1), Size(alpha=4), Size(alpha=8), Size(steps=2), Size(steps=6),
)  # fmt: skip


def run_local_power(federation: Federation, size: Size) -> None:
    """Run LocalPower with α + 1 exchanges and l products before each."""
    params = local_power.Params(
        n_components=size.r, rounds=size.alpha + 1, local_steps=size.steps, schedule="constant"
    )
    recorder = Recorder(Problem("drawn", federation.clients), federation.ledger)
    local_power.run(federation, params, federation.rng, recorder)


def run_power_iteration(federation: Federation, size: Size) -> None:
    """Run Algorithm 1, and orthonormalise V at the server."""
    params = power_gd.Params(n_components=size.r, power=size.alpha, orthonormalise=True)
    power_gd.fixed_basis(federation, params)


def run_descent(federation: Federation, size: Size) -> None:
    """Run Algorithm 1, and T steps of Algorithm 2 as they are printed; γ and U₀ are given."""

    def start(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> None:
        state.rate = 1.0 / float(np.linalg.norm(V, 2)) ** 2
        state.U = state.rng.standard_normal((len(data), V.shape[1])) / np.sqrt(len(data))

    def step(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> None:
        state.U = state.U - state.rate * ((state.U @ V.T - data) @ V)

    power_gd.fixed_basis(federation, power_gd.Params(n_components=size.r, power=size.alpha))
    federation.local(start)
    for _ in range(size.steps):
        federation.local(step)


METHODS: dict[str, Callable[[Federation, Size], None]] = {
    "local_power": run_local_power,
    "power_iteration": run_power_iteration,
    "ours": run_descent,
}


@cache
def counted(method: str, size: Size) -> Count:
    """Return the operations of a run."""
    data = np.random.default_rng(0).standard_normal((size.N, size.m, size.d))
    count = Count()
    with count.watching():
        METHODS[method](counted_federation(list(data), count), size)
    return count


Operations = Callable[[Size], float]
# What Table S1 prints, by method, side and part of the run: all of it, what one more exchange (α)
# adds, or one more step (T). "exchange-4ndr" has for a product with SᵀS what other columns have,
# and "text" what Sections 3 and 4.1 print for all of it.
# The second argument is C(SVD).
PRINTED: dict[tuple[str, str, str], Callable[[Size, float], float]] = {
    ("local_power", SERVER, "all"): lambda s, c: s.N * s.dr * (s.alpha + 1) + c,
    ("local_power", CLIENTS, "all"): lambda s, c: (4 * s.ndr + s.N * c) * s.alpha * s.steps,
    ("local_power", CLIENTS, "exchange"): lambda s, c: (4 * s.ndr + s.N * c) * s.steps,
    ("power_iteration", SERVER, "all"): lambda s, c: s.N * s.dr * (s.alpha + 1) + c,
    ("power_iteration", CLIENTS, "all"): lambda s, c: 4 * s.ndr,
    ("power_iteration", CLIENTS, "exchange"): lambda s, c: 4 * s.ndr,
    ("ours", SERVER, "all"): lambda s, c: s.N * s.dr * (s.alpha + 1),
    ("ours", CLIENTS, "exchange"): lambda s, c: 2 * s.ndr,
    ("ours", CLIENTS, "exchange-4ndr"): lambda s, c: 4 * s.ndr,
    ("ours", CLIENTS, "step"): lambda s, c: 4 * s.ndr,
    ("ours", CLIENTS, "text"): lambda s, c: (4 * s.steps + 2 * s.alpha + 2) * s.ndr,
    ("power_iteration", CLIENTS, "text"): lambda s, c: (
        (2 * s.alpha + 1) * s.ndr + (s.alpha + 1) * s.dr
    ),
}


def part_of(operations: Operations, part: str, size: Size) -> float:
    """Return the operations of a part of a run: of all, or what the last α or T has added."""
    if part in ("all", "text"):
        return operations(size)
    name = "steps" if part == "step" else "alpha"
    return operations(size) - operations(size._replace(**{name: getattr(size, name) - 1}))


def measured(method: str, side: str, multiply_add: float = 2) -> Operations:
    """Return the operations of a side as a function of the size."""
    return lambda size: counted(method, size).operations_of(side, multiply_add=multiply_add)


def moved(method: str, side: str) -> Operations:
    """Return what a side has more where clients orthonormalise each block, as in Table S1.

    LocalPower's server, here, does so once for all of them: α + 1 blocks.
    """
    here = {CLIENTS: lambda s: s.N, SERVER: lambda s: -1}[side]
    blocks = {"local_power": 1}.get(method, 0)
    return lambda s: blocks * (s.alpha + 1) * s.svd * here(s)


def operations(results: Results) -> Rows:
    """Table S1: operations that were counted over those that are printed, a row per size.

    ``multiply_adds`` is the ratio with one operation for a multiplication and its addition.
    LocalPower's orthonormalisations are `moved` to the clients, but for ``as_run``.
    """
    rows: Rows = []
    for (method, side, part), printed in PRINTED.items():
        two, one = measured(method, side), measured(method, side, multiply_add=1)
        for number, size in enumerate(SIZES):
            found, more = (part_of(f, part, size) for f in (two, moved(method, side)))
            formula = printed(size, size.svd)
            rows.append(
                {"method": method, "side": side, "part": part, "status": "synthetic"}
                | {"repeat": number, **size._asdict(), "counted": found + more, "printed": formula}
                | {
                    "ratio": (found + more) / formula,
                    "as_run": found / formula,
                    "multiply_adds": (part_of(one, part, size) + more / 2)
                    / printed(size, size.svd / 2),
                }
            )
    return rows
