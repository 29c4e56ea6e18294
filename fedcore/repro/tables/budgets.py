"""What a run costs its clients, what it protects, and how much there is to find."""

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
    """Return the number of products of AᵢAᵢᵀ with a block that each client has made so far.

    A direct method, which sends its own answer, counts as one product. The other methods make one
    product in each of their iterations and at least one in a round, unless they count themselves.

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
    """Return a run's privacy: "none", or ε, δ and the change of the data that is hidden."""
    claim = run.history.about.get("privacy")
    if claim is None:
        return PLAIN
    change = CHANGES.get(claim["neighbours"], claim["neighbours"])
    return f"ε = {run.params.epsilon:g}, δ = {claim['delta']:g}, {change}"


def sum_of_squares(run: Run) -> float | None:
    """Return ``‖S‖_F²`` of all clients' samples, of which the metric ``captured`` is a part.

    None for a run without an exact answer.
    """
    known = run.history.reference.get("singular_values")
    return None if known is None else float(np.sum(known**2))
