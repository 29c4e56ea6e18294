"""How well a subspace serves the client that it serves worst."""

import numpy as np

from fedcore.linalg import orth
from fedcore.metrics import Metric


def worst_share(iterate, problem):
    """Return the least share ‖Sᵢ Z‖² / ‖Sᵢ‖² that the subspace holds of a client's data."""
    Z = orth(iterate.shared)
    return min(float(np.sum((S @ Z) ** 2) / np.sum(S**2)) for S in problem.clients)


METRICS = (Metric("worst_share", "1", "min ‖Sᵢ Z‖² / ‖Sᵢ‖² over the clients i", worst_share),)
