"""A federation in which, in every exchange, some clients do not answer in time.

Before every upload a share of the clients that are asked is drawn, anew and by the run's seed. They
do not run the step: they send nothing, their state stays, and a private client is charged nothing.
The server goes on with the others. `sum` and `mean` scale what arrives, so that the expectation
over the draws is the sum of all: with n clients asked and m answers by n/m. `gather` returns the
replies that came if the method says that it goes on with them (``partial=True``). Otherwise, and
where a state is read that a client has not made yet, a `LateError` says that the method cannot go
on without a client.

The number of late clients is the share times the number of those asked, rounded up or down at
random, so that the share holds on average. Local steps and looks from outside the protocol reach
all clients. Who is late depends on the seed and the number of the upload alone: methods on one seed
meet the same stragglers, and a run goes on from a checkpoint with those that it would have met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from fedcore.errors import InputError, LateError
from fedcore.federation.execution import Step, name_of
from fedcore.federation.federation import Federation
from fedcore.federation.state import MissingState
from fedcore.seeds import LATE, child, root_of
from fedcore.validation import real

SHARE = real(least=0, below=1)


class StragglingFederation(Federation):
    """Federation with stragglers; see the module's text.

    Parameters
    ----------
    clients, seed, **options
        As of `Federation`.
    share : float
        Share of the clients that are late in an exchange, at least 0 and below 1.

    Raises
    ------
    InputError
        As `Federation`, and for another share.
    """

    def __init__(
        self,
        clients: Sequence[np.ndarray],
        seed: int | np.random.SeedSequence = 0,
        *,
        share: float,
        **options: Any,
    ) -> None:
        SHARE(share, "stragglers")
        super().__init__(clients, seed, **options)
        self._share, self._root = share, root_of(seed)

    def center(self) -> np.ndarray:
        """Refuse: the mean of all samples needs every client."""
        raise InputError(
            "the mean of all samples needs every client, and some are late: leave out center=True"
        )

    def gather(
        self, step: Step, *, of: Sequence[int] | None = None, partial: bool = False
    ) -> Sequence[Any]:
        """Return the replies that come; a method that is not `partial` needs all of them."""
        there, missing, _ = self._in_time(of)
        if missing and not partial:
            raise LateError(
                f"the step {name_of(step)} cannot go on without a client: client {missing[0]} does "
                "not answer in time, and the method reads single replies; gather(step, "
                "partial=True) takes those that come, of the clients federation.answered"
            )
        with self._states_needed():
            return super().gather(step, of=there, partial=partial)

    def sum(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Return the sum of the replies that come, scaled to the number of clients asked."""
        there, missing, scale = self._in_time(of)
        with self._states_needed():
            total = super().sum(step, of=there)
        return total * scale if missing else total

    def client_state(self, name: str, *, of: Iterable[int] | None = None) -> Sequence[Any]:
        """Return ``state.<name>`` of all clients, or those in `of`; see `Federation`."""
        with self._states_needed():
            return super().client_state(name, of=of)

    def _in_time(
        self, of: Sequence[int] | None
    ) -> tuple[Sequence[int] | None, Sequence[int], float]:
        """Draw who answers: positions, those missing, and the factor of a sum."""
        asked = self._positions(of)
        distinct = list(dict.fromkeys(asked))
        rng = np.random.default_rng(child(self._root, LATE, self.ledger.rounds))
        number = int(self._share * len(distinct) + rng.random())
        missing = sorted(rng.permutation(distinct)[:number].tolist())
        if not missing:
            return of, [], 1.0
        if len(missing) == len(distinct):
            asked_for = ", ".join(map(str, missing))
            raise LateError(
                f"this method cannot go on without a client: it asks client {asked_for} and nobody "
                "else, who does not answer in time; ask several, or none that may be late"
            )
        there = [i for i in asked if i not in missing]
        return there, missing, len(distinct) / (len(distinct) - len(missing))

    @contextmanager
    def _states_needed(self) -> Iterator[None]:
        """Say of a missing state that a client has not answered yet."""
        try:
            yield
        except MissingState as error:
            if not self._is_made(error.part):  # by nobody: the method is wrong
                raise
            raise LateError(
                f"this method cannot go on without a client: state.{error.part} of one that was "
                "late is missing; make it by a local step before the first exchange"
            ) from error

    def _is_made(self, part: str) -> bool:
        """Whether a client has this part of the state."""
        for i in range(self.shape.n_clients):
            with suppress(MissingState):
                super().client_state(part, of=[i])
                return True
        return False
