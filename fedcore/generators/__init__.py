"""Synthetic client matrices of the five papers: one module per model.

A module holds ``generate(rng, **params) -> list of (n_i, d) arrays``; or a tuple of such a list and
the `Reference` of the stacked matrices, where the model knows it; or `Clients`, where factors stand
for rows (`Reduction`); or a tuple of labelled `Clients` and the `Truth` behind their labels.
Configuration files name the module. Other packages add theirs under the entry-point group
``fedcore.generators``.

``generate`` checks its parameters before it draws for the first time, so that `check` can let it do
so without drawing.
"""

from __future__ import annotations

from collections.abc import Mapping
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
) -> Matrices | Clients | tuple[Matrices, Reference] | tuple[Clients, Truth]:
    """Draw client matrices from the model `name`, with what the model knows of them.

    Raises
    ------
    InputError
        For an unknown model or parameter, or a value out of range.
    """
    function = REGISTRY.module(name).generate
    check_names(function, params, f"generator {name}", given=("rng",))
    return function(rng, **params)


def check(name: str, params: Mapping[str, Any]) -> None:
    """Let the model `name` check its parameters, which it does before it draws.

    Raises
    ------
    InputError
        As `generate`, and for a value that the model cannot work with at all.
    """
    try:
        generate(name, _Undrawn(), params)  # type: ignore[arg-type]
    except (_Draws, MemoryError):  # memory is the job's affair, and its machine's
        return
    except InputError:
        raise
    except Exception as error:  # a value of another type can fail in any way
        raise InputError(f"generator {name} cannot take these parameters: {error}") from error


class _Draws(Exception):
    """The model has checked its parameters and wants to draw."""


class _Undrawn:
    """A random generator that ends what asks it for anything."""

    def __getattr__(self, name: str) -> Any:
        raise _Draws
