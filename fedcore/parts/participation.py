"""Which clients take part in a round: a share of them, drawn without replacement."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.validation import real

Participation = Annotated[float, real(above=0, most=1)]


class Participating:
    """Hyper-parameters with a field ``participation``, which says who takes part in a round."""

    participation: Participation

    def n_participants(self, n_clients: int) -> int:
        """Return the number of clients in a round: rounded to the nearest, and at least 1."""
        return max(1, round(self.participation * n_clients))

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the clients of a round; None for all of them."""
        if self.participation == 1:
            return None
        return sorted(rng.choice(n_clients, self.n_participants(n_clients), replace=False).tolist())
