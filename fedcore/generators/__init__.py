"""Generate the synthetic client matrices of the reproduced papers; each module has one model.

The function ``generate(rng, **params)`` of a module returns a list or an iterator of (n_i, d)
arrays. With an iterator, only one client's matrix is in memory while the matrices are written to a
file. A model that knows the singular values and right singular vectors of the stacked matrices
returns a list, and these values and vectors as a `Reference`. A model that replaces a client's rows
by a smaller matrix with the same Gram matrix returns `Clients` with a `Reduction`, which describes
the rows. A model with labels returns labelled `Clients` and the `Truth`, which is the model that
generated the labels.

Configuration files name a model by its module. Other packages add modules under the entry-point
group ``fedcore.generators``. Each ``generate`` checks its parameters before its first random draw.
The function `check` of this package can therefore check parameters without random draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.plugins import Registry
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Reference
from fedcore.problems.regression import Truth
from fedcore.validation import check_names

Matrices = list[np.ndarray]

REGISTRY = Registry(__name__, __path__, "generator")
names = REGISTRY.names


def generate(
    name: str, rng: np.random.Generator, params: Mapping[str, Any]
) -> Matrices | Iterator[np.ndarray] | Clients | tuple[Matrices, Reference] | tuple[Clients, Truth]:
    """Call ``generate`` of the model `name`, and return the client matrices.

    Raises
    ------
    InputError
        If the model or a parameter is unknown, or a value is out of range.
    """
    function = REGISTRY.module(name).generate
    given = list(inspect.signature(function).parameters)[:1]  # rng, whatever the model calls it
    check_names(function, params, f"generator {name}", given=given)
    return function(rng, **params)


def check(name: str, params: Mapping[str, Any]) -> None:
    """Check the parameters of the model `name` without random draws.

    Raises
    ------
    InputError
        If the model refuses the parameters, or raises any exception except `MemoryError`.
    """
    try:
        generate(name, _Undrawn(), params)  # type: ignore[arg-type]
    except (_Draws, MemoryError):  # the job may run on a machine with more memory
        return
    except InputError:
        raise
    except Exception as error:  # a value of a wrong type can raise anything
        raise InputError(f"generator {name} cannot take these parameters: {error}") from error


class _Draws(Exception):
    """Raised at the first random draw, after the model has checked its parameters."""


class _Undrawn:
    """Stand-in for a random generator; every use raises `_Draws`."""

    def __getattr__(self, name: str) -> Any:
        raise _Draws
