"""Metrics of the differences between the heads of a regression; they ignore the iterate."""

from __future__ import annotations

import numpy as np
import scipy

from fedcore.errors import InputError
from fedcore.iterates import Iterate
from fedcore.metrics import metric
from fedcore.problems.problem import Problem


@metric("1", "mean distance of two clients' heads")
def head_distance(iterate: Iterate, problem: Problem) -> float:
    """Return the mean of ``‖w*_i − w*_j‖₂`` over all pairs of clients; 0 for a single client.

    Collins et al. (ICML 2021), Section 2.1, speak of the heterogeneity of the heads but do not
    define it.
    """
    if problem.truth is None:
        raise InputError(f"problem {problem.name}: the model behind its labels is not known")
    distances = scipy.spatial.distance.pdist(problem.truth.heads)
    return float(np.mean(distances)) if len(distances) else 0.0


METRICS = (head_distance,)
