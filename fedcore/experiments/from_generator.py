"""Make a problem (client data with the exact answer) by drawing data from a synthetic model."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fedcore import generators
from fedcore.arrays import check_each, check_matrices
from fedcore.errors import InputError
from fedcore.experiments.combinations import combinations
from fedcore.files.lazy import LazyMatrices
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem, Reference
from fedcore.problems.regression import Truth
from fedcore.sparse import SparseRows, refuse


def make(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    """Draw the clients' data with the generator ``spec["generator"]``; see `build.build`."""

    def draw() -> Any:
        return generators.generate(spec["generator"], copy.deepcopy(rng), spec.get("params", {}))

    drawn = draw()
    if isinstance(drawn, Iterator):
        return Problem(name, _yielded(draw))
    clients, known = drawn if isinstance(drawn, tuple) else (drawn, None)
    problem = Problem(name, clients if isinstance(clients, Clients) else check_matrices(clients))
    if isinstance(known, Truth):
        problem.truth = known
    elif isinstance(known, Reference):
        problem.reference = known  # fills the cached property
    elif known is not None:
        raise InputError(
            f"generator {spec['generator']} returned a {type(known).__name__} beside the matrices: "
            "return a Reference or a Truth there, and put a Reduction into Clients"
        )
    return problem


def _yielded(draw: Callable[[], Iterator[np.ndarray]]) -> Clients:
    """Return clients whose matrices the generator draws again each time they are read."""
    shapes: list[tuple[int, int]] = []
    dtypes, sums = [], []
    for matrix in check_each(draw()):
        shapes.append(matrix.shape)
        dtypes.append(matrix.dtype)
        sums.append(_sum(matrix))
    left: Iterator[tuple[int, np.ndarray]] = iter(())
    last = len(shapes)

    def read(i: int) -> np.ndarray:
        nonlocal left, last
        if i <= last:
            left = enumerate(check_each(draw()))
        last, matrix = next((pair for pair in left if pair[0] == i), (i, None))
        if matrix is None or (matrix.shape, _sum(matrix)) != (shapes[i], sums[i]):
            raise InputError(
                f"the generator yields another matrix for client {i} when it is called again: "
                "take all random numbers from rng, and keep nothing between calls"
            )
        return matrix.copy()  # a generator may fill one array again and again

    return Clients(LazyMatrices(read, len(shapes)), shapes, dtypes)


def _sum(matrix: np.ndarray | SparseRows) -> int:
    """Return a checksum of a dense matrix."""
    if isinstance(matrix, SparseRows):
        refuse("a problem file")
    return zlib.crc32(matrix.data)


def check(spec: Mapping[str, Any]) -> None:
    """Check the generator's parameters for each combination of the values in ``spec["over"]``."""
    for setting in combinations(spec.get("over", {})):
        generators.check(spec["generator"], {**spec.get("params", {}), **setting})


def plugged_in(spec: Mapping[str, Any], *, surrogate: bool) -> list[str]:
    """Return a list with the import path of the generator's module."""
    return [generators.REGISTRY.module_name(spec["generator"])]


def described(spec: Mapping[str, Any], *, surrogate: bool) -> dict[str, Any]:
    """Return an empty dict: a generated problem depends only on specification, seed and code."""
    return {}
