"""LocalPower, Lemma 25 and Example 1 of `fedpower`, see `fedpower.tables`."""

from __future__ import annotations

import math

import numpy as np

from fedcore.repro.tables.results import Results
from fedcore.repro.tables.rows import Rows

FAILURE = 0.05  # ζ of Lemma 25


def identities(results: Results) -> Rows:
    """Return how far Algorithm 2 is from LocalPower, with and without noise; a row per repeat.

    ``difference`` is the largest difference of their distances after a communication, relative to
    LocalPower's. The runs of a repeat have one start.
    """
    rows: Rows = []
    for local in results.runs("without_noise", algorithm="local_power"):
        other = local["projection_distance"]
        for run in results.runs("without_noise", algorithm="fedpower", problem=local.problem):
            apart = np.abs(run["projection_distance"] - other) / other
            rows += run.rows(difference=apart.max(axis=1))
    return rows


def partitions(results: Results) -> Rows:
    """Return η of uniform partitions over the ϵ of Lemma 25 for their size; a row per draw.

    ``share_of_largest`` is η over the ϵ of the partition into the largest machines.
    """
    found = []
    for run in results.runs("partition"):
        spectra = np.asarray(run.history.reference["singular_values"])[: run.history.repeats]
        found.append((run, run.last("dissimilarity"), lemma_25(spectra, run.data)))
    largest = max((run.data["n_samples"] for run, *_ in found), default=0)
    rows: Rows = []
    for run, eta, epsilon in found:
        (least,) = (e for other, _, e in found if other.data["n_samples"] == largest)
        rows += run.rows(
            size=run.data["n_samples"] // run.data["n_clients"],
            eta=eta,
            epsilon=epsilon,
            share=eta / epsilon,
            share_of_largest=eta / least,
        )
    return rows


def lemma_25(singular_values: np.ndarray, data: dict[str, int]) -> np.ndarray:
    """Return the ϵ for which machines of this size are large enough, (draws,).

    Lemma 25 asks for ``3 μ k log(ρ m / ζ) / ϵ²`` rows, k the rank of all rows and μ their
    coherence. Rows of norm 1 have ``μ ≤ n / (k σ_min²)``, which makes ϵ larger. The paper leaves
    out what ρ is; the rank, as k.

    Parameters
    ----------
    singular_values : ndarray of shape (draws, d)
        Of all rows.
    data : dict
        Sizes, as `Run.data` has them.
    """
    rank, m, n = singular_values.shape[-1], data["n_clients"], data["n_samples"]
    coherence = n / (rank * singular_values[..., -1] ** 2)
    asked = 3.0 * coherence * rank * math.log(rank * m / FAILURE)
    return np.asarray(np.sqrt(asked / (n / m)))


def leaks(results: Results) -> Rows:
    """Return the error of A_i as the server rebuilds it from the replies of a run, per repeat.

    ``equations`` are d r T and ``elements`` the d² of A_i.
    """
    rows: Rows = []
    for run in results.runs("onlooker"):
        d = run.data["n_features"]
        rows += run.rows(
            entries=run.params.entries,
            equations=d * run.params.n_components * run.params.iterations,
            elements=d * d,
            error=run.last("leakage"),
            least=np.nanmin(run["leakage"], axis=1),
        )
    return rows
