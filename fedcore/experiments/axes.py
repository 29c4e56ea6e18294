"""Run a method in few coordinates: leading singular directions, and the starting matrix.

S stacks the rows Sᵢ of all clients i and has the singular values σ₁ ≥ σ₂ ≥ …. The columns of W_J
are the J right singular vectors of S with ``σ² > cut · σ₁²``. The method's starting matrix has p
columns, and E is an orthonormal basis of the part of this matrix that is outside range(W_J). In the
orthonormal basis [W_J E], the rows Sᵢ of client i become [Sᵢ W_J, 0]. Dropping all other
coordinates changes ``SᵀS`` by at most ``cut · σ₁²`` in the spectral norm. If a client has more than
J + p rows, the triangular factor of their QR factorisation, which has the same Gram matrix,
replaces the rows.

A method commutes with rotations of features and samples if it uses data only through inner
products, products with the data and products with their transpose. Such a method computes the same
iterates in J + p coordinates as in all d features, except for rounding and the dropped coordinates.
If J + p ≥ d, fewer coordinates are not possible, and the run uses all d features.

Metrics are computed from the data in the reduced coordinates. The history (record of the run) keeps
iterates in all d features, and the ledger counts the traffic of all d features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.ssi import starting_basis
from fedcore.errors import ConfigError
from fedcore.federation.federation import Federation
from fedcore.linalg import outside, qr_positive, triangular_factor
from fedcore.privacy.bounded_rows import row_norms
from fedcore.problems.clients import Clients, Reduction
from fedcore.problems.problem import Problem, Reference
from fedcore.recorder import Recorder, Recording
from fedcore.runs import execute

TRAFFIC = ("scalars_up", "scalars_down", "bytes_up", "bytes_down")


def execute_cut(
    algorithm: Algorithm,
    problem: Problem,
    settings: Any,
    seed: np.random.SeedSequence,
    recording: Recording,
    cut: float,
) -> tuple[Recorder, dict[str, Any]]:
    """Run `algorithm` once as `fedcore.runs.execute` does, on data reduced to few coordinates.

    Parameters
    ----------
    algorithm, problem, settings, seed, recording
        Arguments of `fedcore.runs.execute`.
    cut : float
        Singular directions of the data with ``σ² ≤ cut · σ₁²`` are dropped; σ₁ is the largest
        singular value.

    Raises
    ------
    ConfigError
        If the method does not declare that it commutes with rotations.
    """
    if algorithm.commutes is None or not algorithm.commutes(settings):
        raise ConfigError(
            "'cut' needs an algorithm that commutes with rotations of features and samples, and "
            f"{algorithm.name} does not declare this: leave out 'cut'"
        )
    sigma, right = problem.reference
    J = int(np.count_nonzero(sigma**2 > cut * sigma[0] ** 2))
    if J + settings.n_components >= problem.n_features:
        return execute(algorithm, problem, settings, seed, recording)
    federation = Federation(problem.clients, seed, check=False)
    start = starting_basis(federation, settings, federation.rng)
    inside = _in_coordinates(problem, J, settings.n_components)
    axes = right[:, :J]
    E, size = qr_positive(outside(axes, outside(axes, start)))
    settings = replace(settings, start=np.vstack([axes.T @ start, size]))
    recorder, output = execute(algorithm, inside, settings, seed, recording)
    basis = np.hstack([axes, E])  # not before: runs in lockstep would all hold one
    for one in recorder.snapshots.kept:
        one.shared = basis @ one.shared
        one.clients = {name: basis @ blocks for name, blocks in one.clients.items()}
    _count_features(recorder, *basis.shape)
    return recorder, {"basis": basis @ output["basis"]}


def _in_coordinates(problem: Problem, J: int, p: int) -> Problem:
    """Return the problem in the reduced coordinates, stored for later runs on the same data."""
    kept, name = problem.clients.kept, f"in_{J}_and_{p}"
    if not hasattr(kept, name):
        sigma, right = problem.reference
        clients, longest = [], 0.0
        for rows in problem.clients:
            axes = right[:, :J].astype(rows.dtype, copy=False)
            found = np.pad(rows @ axes, ((0, 0), (0, p)))
            longest = max(longest, float(row_norms(found).max()))
            clients.append(found if len(found) <= J + p else triangular_factor([found]))
        samples = tuple(rows for rows, _ in problem.clients.shapes)
        known = problem.clients.reduction or Reduction(samples, longest)
        factors = Clients(clients, reduction=known)
        inside = Problem(problem.name, factors, problem.status, problem.note)
        inside.reference = Reference(np.pad(sigma[:J], (0, p)), np.eye(J + p))
        setattr(kept, name, inside)
    return getattr(kept, name)


def _count_features(recorder: Recorder, n_features: int, coordinates: int) -> None:
    """Multiply the ledger's traffic counts by `n_features` / `coordinates`."""
    for name in TRAFFIC:
        total = getattr(recorder.ledger, name)
        setattr(recorder.ledger, name, total * n_features // coordinates)
        for row in recorder.rows:
            row[name] = row[name] * n_features // coordinates
