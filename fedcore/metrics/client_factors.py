"""Metrics of the factor U in S ≈ U Vᵀ, where S stacks the samples; client i keeps its rows Uᵢ.

For each metric, every client computes numbers or a Gram matrix from its own Uᵢ. The metrics are NaN
if the algorithm does not store the matrices Uᵢ, for example because the algorithm computes the
error of U in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedcore.iterates import ExplicitFactors, Iterate
from fedcore.metrics import metric
from fedcore.problems.problem import Problem


@metric("1", "mean over the clients of the rank of U_i", finite=False)
def client_rank(iterate: Iterate, problem: Problem) -> float:
    """Return the mean rank of the clients' matrices Uᵢ, by `numpy.linalg.matrix_rank`."""
    ranks = _answers(iterate, rank_of)
    return float(np.mean(ranks)) if ranks else np.nan


@metric("1", "rank of U, the stacked U_i", finite=False)
def stacked_rank(iterate: Iterate, problem: Problem) -> float:
    """Return the rank of U, which stacks all Uᵢ, from the sum of the Gram matrices of the Uᵢ.

    A Gram matrix contains squares. In double precision, rounding therefore hides singular values
    below about 1e−7 of the largest singular value; these values count as zero.
    """
    grams = _answers(iterate, gram_of)
    return _rank(sum(grams), hermitian=True) if grams else np.nan


@metric("1", "share of zeros among the entries of all U_i", finite=False)
def client_zeros(iterate: Iterate, problem: Problem) -> float:
    """Return the share of the entries of all Uᵢ that are exactly zero."""
    counts = _answers(iterate, zeros_of)
    zeros, entries = np.sum(counts, axis=0) if counts else (np.nan, np.nan)
    return float(zeros / entries)


@metric("data units", "‖U‖_F, U the stacked U_i", finite=False)
def client_size(iterate: Iterate, problem: Problem) -> float:
    """Return the Frobenius norm of U, which stacks all Uᵢ."""
    squares = _answers(iterate, square_of)
    return float(np.sqrt(np.sum(squares))) if squares else np.nan


def _rank(matrix: np.ndarray, hermitian: bool = False) -> float:
    """Return the rank of a matrix, or NaN if some entry is not finite."""
    finite = np.isfinite(matrix).all()
    return float(np.linalg.matrix_rank(matrix, hermitian=hermitian)) if finite else np.nan


def rank_of(data: np.ndarray, state: Any, message: None) -> float:
    """At a client, return the rank of its matrix Uᵢ."""
    return _rank(state.U)


def gram_of(data: np.ndarray, state: Any, message: None) -> np.ndarray:
    """At a client, return the Gram matrix ``UᵢᵀUᵢ`` of its matrix Uᵢ, shape (r, r)."""
    return np.asarray(state.U.T @ state.U)


def zeros_of(data: np.ndarray, state: Any, message: None) -> tuple[int, int]:
    """At a client, return the number of zeros and the number of entries of its matrix Uᵢ."""
    return int(np.sum(state.U == 0)), state.U.size


def square_of(data: np.ndarray, state: Any, message: None) -> float:
    """At a client, return the squared norm ``‖Uᵢ‖²_F`` of its matrix Uᵢ."""
    return float(np.linalg.norm(state.U) ** 2)


def _answers(iterate: Iterate, step: Callable[..., Any]) -> Sequence[Any]:
    """Run the function `step` at every client; return the results, or () if clients keep no Uᵢ."""
    factors = iterate.factors
    return factors.look(step, None) if isinstance(factors, ExplicitFactors) else ()


METRICS = (client_rank, stacked_rank, client_zeros, client_size)
