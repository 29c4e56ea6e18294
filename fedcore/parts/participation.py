"""Random choice, without replacement, of the clients that take part in a round."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.validation import real

Participation = Annotated[float, real(above=0, most=1)]


class Participating:
    """Hyper-parameters with a field ``participation``, the share of clients in each round."""

    participation: Participation

    def n_participants(self, n_clients: int) -> int:
        """Return `participation` times `n_clients`, rounded to an integer of at least 1.

        Parameters
        ----------
        n_clients : int
            Number of all clients.
        """
        return max(1, round(self.participation * n_clients))

    def participants(self, n_clients: int, rng: np.random.Generator) -> list[int] | None:
        """Draw the indices of the clients that take part in a round; None means all clients.

        Parameters
        ----------
        n_clients : int
            Number of all clients.
        rng : numpy.random.Generator
            Random generator of the server.
        """
        if self.participation == 1:
            return None
        return sorted(rng.choice(n_clients, self.n_participants(n_clients), replace=False).tolist())
