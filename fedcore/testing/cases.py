"""What the checks must know about an algorithm, and the random streams for its plain form.

An algorithm gives its own case as ``case=`` of its ``ALGORITHM``. The case is a mapping with
parameters of `Case` as keys, so that the algorithm need not import this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import InputError, require_known

Solution = tuple[np.ndarray, np.ndarray | None]  # V, and U of all clients stacked
Oracle = Callable[..., Solution]
# Methods may make thousands of rounds by default; private ones refuse rows that are too long.
USUAL = {"rounds": 8, "clip": True}


class Draws:
    """The documented random streams of a federation: one of the server, two per client id.

    The second stream of a client is for privacy noise, in a simulation seeded by the run's seed.

    Attributes
    ----------
    server : numpy.random.Generator
    clients, noise : list of numpy.random.Generator
    """

    def __init__(self, seed: int, n_clients: int) -> None:
        self.server = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.clients, self.noise = (
            [
                np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(kind, i)))
                for i in range(n_clients)
            ]
            for kind in (1, 2)
        )


@dataclass(frozen=True)
class Case:
    """What the checks must know about an algorithm; each parameter is also an attribute.

    Parameters
    ----------
    oracle : callable, optional
        ``(clients, draws, params) -> (V, U)``, the method in its plainest form, on the stacked
        matrix with NumPy alone; U is None for a method that computes no U.
    floor : callable, optional
        ``(S, r) -> params`` with which the method must reach the Eckart–Young floor.
    needs : callable
        ``(S, r) -> params`` that have no default, or that make the result depend on S alone.
    settings : tuple of mapping
        Each is a set of parameters for runs that are compared with ``communication`` and the
        oracle.
    random : bool, optional
        Whether another seed gives another result; None if that is not known.
    clients_draw_start : bool
        Whether V depends on draws of the clients even when `start` is given.
    depends_on_split : bool, optional
        Whether the result depends on the split of the rows into clients; None if that is not known.
    needs_equal_clients : bool
        Whether the method reaches the centralised answer only when all clients have equal data.
    asymptotic : bool
        Whether the method, even without noise, approaches the answer only as the rows grow in
        number.
    sequential : bool
        Whether clients pass the iterate from one to the next, so that their order matters.
    refused : tuple of (str, value)
        Parameters and values that must be refused although the declared type allows them.
    """

    oracle: Oracle | None = None
    floor: Callable[[np.ndarray, int], dict[str, Any]] | None = None
    needs: Callable[[np.ndarray, int], dict[str, Any]] = lambda S, r: {}
    settings: tuple[Mapping[str, Any], ...] = ({},)
    random: bool | None = True
    clients_draw_start: bool = False
    depends_on_split: bool | None = False
    needs_equal_clients: bool = False
    asymptotic: bool = False
    sequential: bool = False
    refused: tuple[tuple[str, Any], ...] = ()


def case_of(algorithm: Algorithm) -> Case:
    """Return the `case` of an algorithm.

    Missing entries take the defaults of `Case`, except `random` and `depends_on_split`, which are
    None (not known). If a method for subspaces has a parameter ``rounds``, the case gives it a few
    rounds; if it has ``clip``, the case lets it clip the rows.

    Raises
    ------
    InputError
        When the case is no mapping, or has a key that is no parameter of `Case`.
    """
    told = algorithm.case
    where = f"case of ALGORITHM of {algorithm.module.__name__}"
    if not isinstance(told, Mapping):
        raise InputError(f"{where} is a {type(told).__name__}: make it a mapping")
    for key in told:
        require_known(key, [f.name for f in dataclasses.fields(Case)], f"{where}: key", InputError)
    subspace = "n_components" in algorithm.task.fields
    few = {name: value for name, value in USUAL.items() if subspace and algorithm.takes(name)}
    unknown: dict[str, Any] = {"random": None, "depends_on_split": None}
    return Case(**{**unknown, "needs": lambda S, r: few, **told})


def rounded_data(clients: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Return the data with every entry moved by up to one rounding, zeros left as they are."""
    return [x * (1 + np.finfo(x.dtype).eps * rng.uniform(-1, 1, x.shape)) for x in clients]
