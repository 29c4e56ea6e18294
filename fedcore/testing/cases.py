"""Facts that the checks of an algorithm need, and random streams for its plain implementation.

An algorithm's module declares ``ALGORITHM = Algorithm(…, case={…})``. The keys of the mapping
`case` are names of parameters of `Case`, so the module need not import this package.
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
    """Random streams of a run: one for the server, and two for each client.

    A client's second stream draws simulated privacy noise.

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
    """Facts that the checks must know about an algorithm; each parameter is also an attribute.

    Parameters
    ----------
    oracle : callable, optional
        Function ``(clients, draws, params) -> (V, U)``, a plain implementation of the method, where
        ``draws`` is a `Draws`. U is None for a method that computes no U.
    floor : callable, optional
        Function ``(S, r) -> params`` of the stacked samples S and the number r of components. It
        returns parameters with which the method must reach the smallest possible loss (the
        Eckart–Young floor).
    needs : callable
        Function ``(S, r) -> params``, like `floor`, that returns values for the parameters without
        a default, and values that make the result depend only on S.
    settings : tuple of mapping
        Sets of parameters for the runs whose costs are compared with ``communication``, and whose
        results are compared with the oracle.
    random : bool, optional
        True if another seed gives another result, and None if this is unknown.
    clients_draw_start : bool
        True if V depends on random numbers of the clients even with a starting basis `start`.
    depends_on_split : bool, optional
        True if the result depends on the split of the rows into clients, None if this is unknown.
    needs_equal_clients : bool
        True if the method reaches the centralised answer only for clients with equal data.
    asymptotic : bool
        True if the method, even without noise, only approaches the answer as the number of rows
        grows.
    sequential : bool
        True if each client passes the iterate to the next client, so that the order matters.
    refused : tuple of (str, value)
        Pairs of a parameter and a value that must be refused although the parameter's type allows
        the value.
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
    """Return an algorithm's `Case`.

    Missing entries take the defaults of `Case`, except `random` and `depends_on_split`, which
    become None. If the case has no entry ``needs``, a subspace method runs with ``rounds=8`` and
    ``clip=True``, if it has these parameters.

    Raises
    ------
    InputError
        Raised if the case is not a mapping, or has a key that is not a parameter of `Case`.
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
    """Return the data with every non-zero entry changed at random by up to one rounding."""
    return [x * (1 + np.finfo(x.dtype).eps * rng.uniform(-1, 1, x.shape)) for x in clients]
