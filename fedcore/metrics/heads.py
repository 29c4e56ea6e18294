"""Metric of the differences between the clients' true regression heads.

The metric does not depend on what the algorithm learns.
"""

from __future__ import annotations

import numpy as np
import scipy

from fedcore.errors import InputError
from fedcore.iterates import Iterate
from fedcore.metrics import metric
from fedcore.problems.problem import Problem


@metric("1", "mean distance of two clients' heads")
def head_distance(iterate: Iterate, problem: Problem) -> float:
    """Return the mean distance ``‖w*_i − w*_j‖₂`` of the true heads over all pairs of clients.

    For a single client, the result is 0. Collins, Hassani, Mokhtari & Shakkottai (ICML 2021),
    Section 2.1, mention the heterogeneity of the heads, but do not define it.
    """
    if problem.truth is None:
        raise InputError(
            f"the model behind the labels of problem {problem.name} is not known: take another "
            "metric"
        )
    distances = scipy.spatial.distance.pdist(problem.truth.heads)
    return float(np.mean(distances)) if len(distances) else 0.0


METRICS = (head_distance,)
