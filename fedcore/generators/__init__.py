"""Synthetic client matrices of the five papers: one module per model.

A module holds ``generate(rng, **params)``, which returns one of

- a list of (n_i, d) arrays, or an iterator of such arrays: a problem's file is then written client
  by client, with only one client in memory;
- a tuple of such a list and the `Reference` of the stacked matrices, if the model knows it;
- `Clients`, if factors replace the rows (`Reduction`);
- a tuple of labelled `Clients` and the `Truth` behind their labels.

Configuration files name the module. Other packages add theirs under the entry-point group
``fedcore.generators``. ``generate`` checks its parameters before the first draw, so that `check`
can check them without drawing.
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
    """Draw client matrices from the model `name`; the module's text lists the results.

    Raises
    ------
    InputError
        For an unknown model or parameter, or a value out of range.
    """
    function = REGISTRY.module(name).generate
    given = list(inspect.signature(function).parameters)[:1]  # rng, whatever the model calls it
    check_names(function, params, f"generator {name}", given=given)
    return function(rng, **params)


def check(name: str, params: Mapping[str, Any]) -> None:
    """Let the model `name` check its parameters, without drawing.

    Raises
    ------
    InputError
        As in `generate`, and for a value with which the model fails by any other error.
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
    """Raised at the first draw, when the model has checked its parameters."""


class _Undrawn:
    """A random generator that raises `_Draws` on every use."""

    def __getattr__(self, name: str) -> Any:
        raise _Draws
