"""Section 3.2 of the paper `fedpower`: the aggregate of K drawn machines, in expectation.

No history has an aggregate before its orthonormalisation, of which the identity speaks. Between
machines without a common feature, the orthonormalised aggregate shows it: of one column it is the
aggregate up to its length.
"""

from __future__ import annotations

import numpy as np

from fedcore.repro.tables.results import Results
from fedcore.repro.tables.rows import Rows

BATCHES = 10  # of repeats; the mean of one spreads by a few per cent


def parts(results: Results) -> Rows:
    """Return every machine's part in the first aggregate, a row per machine and batch of repeats.

    A batch has the mean of its repeats; there are `BATCHES` of them.

    ``part`` is what the machine adds to the average over the K drawn ones, over what it adds to the
    average over all m: m/K times its weight w_i. The identity says that its mean is 1.
    ``each_once`` is the same for an average over all machines that have sent, the reference among
    them, in which each counts once.
    """
    rows: Rows = []
    for run in results.runs("draws", drawn=True):
        (whole,) = results.runs("draws", drawn=False)
        m = run.data["n_clients"]
        found = weights(run.history.final["basis"], whole.history.final["basis"], m)
        w = found * run.params.participants / found.sum(axis=1, keepdims=True)
        sent = w > 0.5
        sent[:, 0] = True
        once = sent / sent.sum(axis=1, keepdims=True)
        means = (
            [part.mean(axis=0) for part in np.array_split(shares * m, min(BATCHES, len(shares)))]
            for shares in (w / run.params.participants, once)
        )
        rows += [
            run.row(repeat=batch, entries=run.params.entries, machine=machine,
                    part=float(part[machine]), each_once=float(alone[machine]))
            for batch, (part, alone) in enumerate(zip(*means, strict=True))
            for machine in range(m)
        ]  # fmt: skip
    return rows


def weights(drawn: np.ndarray, whole: np.ndarray, m: int) -> np.ndarray:
    """Return the weights of m machines up to a factor for each repeat, shape (repeats, m).

    Parameters
    ----------
    drawn, whole : ndarray of shape (repeats, d, 1)
        Orthonormalised sums ``Σᵢ wᵢ Yᵢ`` and ``Σᵢ Yᵢ``, machine i with features of its own.
    m : int
    """
    ours, all_ = (Z.reshape(len(Z), m, -1) for Z in (drawn, whole))
    return np.asarray(np.sum(ours * all_, axis=2) / np.sum(all_**2, axis=2))
