"""Computation costs, privacy and sum of squares of a run, for tables and plots."""

from __future__ import annotations

import numpy as np

from fedcore import algorithms
from fedcore.history import History
from fedcore.repro.tables.results import Run

PLAIN = "none"
CHANGES = {
    "add_or_remove_one": "a row added or removed",
    "replace_one": "a row replaced",
    "change_entry": "an entry changed",
    "zero_out_one": "a row set to zero",
}


def products(run: Run, history: History) -> np.ndarray:
    """Return how many products of AᵢAᵢᵀ with a matrix a client has computed so far.

    The result has one value per recorded iteration. If a method records its products, the value is
    their mean over the clients. If a method declares its products per round by ``steps``, the value
    is their sum over the rounds. For all other methods, the value is the number of iterations or of
    rounds, whichever is larger.

    Returns
    -------
    ndarray of shape (repeats, records)
    """
    rounds = history["round"]
    if "inner_products" in history.columns:  # FAPS counts them itself, over all clients
        return np.asarray(history["inner_products"] / run.data["n_clients"])
    steps = algorithms.get(run.algorithm).steps
    if steps is not None:  # an iteration is not one product
        last = int(np.nanmax(rounds))
        made = np.cumsum([0.0, *(steps(run.params, k) for k in range(1, last + 1))])
        return np.asarray(np.interp(rounds, np.arange(len(made)), made))
    return np.maximum(rounds, history["iteration"])


def privacy(run: Run) -> str:
    """Return the ε, δ and neighbouring relation of a run, or "none" for a run without privacy."""
    claim = run.history.about.get("privacy")
    if claim is None:
        return PLAIN
    change = CHANGES.get(claim["neighbours"], claim["neighbours"])
    return f"ε = {run.params.epsilon:g}, δ = {claim['delta']:g}, {change}"


def sum_of_squares(run: Run) -> float | None:
    """Return ``‖S‖_F²`` for the matrix S of all clients' samples; None if no exact answer is kept.

    The metric ``captured`` is the part of ``‖S‖_F²`` that a subspace captures.
    """
    known = run.history.reference.get("singular_values")
    return None if known is None else float(np.sum(known**2))
