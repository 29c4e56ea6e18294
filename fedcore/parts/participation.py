"""Choice of the clients that take part in a round, a share drawn without replacement."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.validation import real

Participation = Annotated[float, real(above=0, most=1)]


class Participating:
    """Hyper-parameters with a field ``participation``, the share of clients in a round."""

    participation: Participation

    def n_participants(self, n_clients: int) -> int:
        """Return the number of clients in a round, a rounded share that is at least 1."""
        return max(1, round(self.participation * n_clients))

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the numbers of the clients in a round, or return None for all clients."""
        if self.participation == 1:
            return None
        return sorted(rng.choice(n_clients, self.n_participants(n_clients), replace=False).tolist())
