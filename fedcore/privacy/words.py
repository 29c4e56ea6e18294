"""What the ε of a ledger means, in a sentence."""

from __future__ import annotations

import math

from fedcore.privacy.events import NEIGHBOURS
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import SIMULATED


def guarantee(privacy: Privacy) -> str:
    """Say what is guaranteed to a record whose owner does not trust the server."""
    epsilon, change = privacy.epsilon(), NEIGHBOURS[privacy.neighbours]
    if math.isinf(epsilon):
        return f"epsilon is infinite at delta = {privacy.delta:g}: nothing is guaranteed"
    said = (
        f"epsilon = {epsilon:.4g} at delta = {privacy.delta:g}: if {change}, no set of messages to "
        f"the server becomes more than e^{epsilon:.4g} = {math.exp(min(epsilon, 700)):.4g} times "
        f"as likely, but for a probability of {privacy.delta:g}"
    )
    return f"{said} ({SIMULATED})" if privacy.simulated else said
