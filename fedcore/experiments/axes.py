"""Runs in coordinates of the answer, without the coordinates in which the data nearly vanish.

S stacks the rows Sᵢ of all clients and has the singular values σ₁ ≥ σ₂ ≥ …; W_J are the right
singular vectors with ``σ² > cut · σ₁²``. A start Z with p columns can be written as [W_J E] z,
where E is an orthonormal basis of the part of Z outside range(W_J), and z holds the coordinates. In
the coordinates [W_J E] a client's rows are [Sᵢ W_J, 0]. Dropping the other coordinates changes
``SᵀS`` by at most ``cut · σ₁²`` in the spectral norm.

A method commutes with rotations of the features if its steps take products with the data and with
their transposes, and inner products, but look at no single feature. Such a method makes the same
iterates in J + p coordinates as in d features, up to the dropped coordinates and to rounding. For a
geometric spectrum J does not depend on d. If J + p coordinates are no fewer than d, the run uses
the features as they are.

Measures are computed from the data in these coordinates. Iterates are kept as blocks of features,
and the ledger counts all d features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.ssi import starting_basis
from fedcore.errors import ConfigError
from fedcore.federation.federation import Federation
from fedcore.linalg import outside, qr_positive
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
    """Run `algorithm` once as `fedcore.runs.execute` does, in coordinates of the answer.

    Parameters
    ----------
    algorithm, problem, settings, seed, recording
        As in `fedcore.runs.execute`.
    cut : float
        Directions whose σ² is at most this share of σ₁² are dropped.

    Raises
    ------
    ConfigError
        For a method that does not say that it commutes with rotations of the features.
    """
    if algorithm.commutes is None or not algorithm.commutes(settings):
        raise ConfigError(
            f"{algorithm.name} does not say that it commutes with rotations of the features: leave "
            "out 'cut'"
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
    basis = np.hstack([axes, E])
    settings = replace(settings, start=np.vstack([axes.T @ start, size]))
    recorder, output = execute(algorithm, inside, settings, seed, recording)
    for one in recorder.snapshots.kept:
        one.shared = basis @ one.shared
        one.clients = {name: basis @ blocks for name, blocks in one.clients.items()}
    _count_features(recorder, *basis.shape)
    return recorder, {"basis": basis @ output["basis"]}


def _in_coordinates(problem: Problem, J: int, p: int) -> Problem:
    """Return the problem in J + p coordinates; it is kept with the data for other repeats."""
    kept, name = problem.clients.kept, f"in_{J}_and_{p}"
    if not hasattr(kept, name):
        sigma, right = problem.reference
        clients = [np.pad(rows @ right[:, :J], ((0, 0), (0, p))) for rows in problem.clients]
        inside = Problem(problem.name, clients, problem.status, problem.note)
        inside.reference = Reference(np.pad(sigma[:J], (0, p)), np.eye(J + p))
        setattr(kept, name, inside)
    return getattr(kept, name)


def _count_features(recorder: Recorder, n_features: int, coordinates: int) -> None:
    """Scale the ledger's counts from the coordinates of blocks to the features they stand for."""
    for name in TRAFFIC:
        total = getattr(recorder.ledger, name)
        setattr(recorder.ledger, name, total * n_features // coordinates)
        for row in recorder.rows:
            row[name] = row[name] * n_features // coordinates
