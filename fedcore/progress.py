"""Progress bar over the communication rounds of a run, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from fedcore.algorithms import Algorithm
from fedcore.federation.execution import protected
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Shape
from fedcore.validation import FLAG, whole

log = logging.getLogger("fedcore")


class RoundsBar:
    """Progress bar over the communication rounds of all repeats (runs).

    For each row of numbers that a run records, the logger ``fedcore`` also logs a line at level
    INFO.

    Parameters
    ----------
    description : str
        Text in front of the bar.
    rounds : int or None
        Number of rounds of one complete repeat, which the algorithm's ``communication`` predicts. A
        repeat that stops early has fewer rounds.
    repeats : int, default=1
    asked : bool, default=False
        If true, show the bar even if standard error is not a terminal.
    """

    def __init__(
        self, description: str, rounds: int | None, repeats: int = 1, *, asked: bool = False
    ) -> None:
        from tqdm import tqdm

        total = rounds * repeats if rounds else None
        self._description, self._rounds = description, rounds or 0
        self._before: float = 0
        hidden = False if asked else None  # to tqdm, None means: unless it is a terminal
        self._bar = tqdm(total=total, desc=description, unit="round", disable=hidden)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def repeats(self, repeats: Iterable[int]) -> Iterator[int]:
        """Yield the numbers `repeats` of the runs, and close the bar after the last run."""
        with self:
            for number, repeat in enumerate(repeats):
                self._before = number * self._rounds if self._rounds else self._bar.n
                yield repeat

    def seen(self, row: Mapping[str, float]) -> None:
        """Advance the bar to the round in the newest row that a run has recorded."""
        self._bar.set_postfix_str(f"iteration {row['iteration']:g}", refresh=False)
        done, total = self._before + row["round"], self._bar.total or "an unknown number"
        self._bar.update(done - self._bar.n)
        if log.isEnabledFor(logging.INFO):
            self._bar.clear()  # the line would stand behind it
            log.info(
                "%s: round %g of %s, iteration %g", self._description, done, total, row["iteration"]
            )
            self._bar.refresh()

    @protected
    def begun(self, federation: Federation) -> dict[str, Any]:
        """Add the rounds that ran before the algorithm, such as centring, to the bar's total."""
        if self._bar.total:
            self._bar.total += federation.ledger.rounds
        return {}

    def until(
        self, rule: Callable[[Mapping[str, float]], bool] | None
    ) -> Callable[[Mapping[str, float]], bool]:
        """Return a stop rule that advances the bar at every recorded row, and then applies `rule`.

        In a private run, the bar reads only columns that the privacy guarantee covers.
        """

        def noticed(row: Mapping[str, float]) -> bool:
            self.seen(row)
            return rule is not None and rule(row)

        return noticed


def complete_rounds(algorithm: Algorithm, settings: Any, shape: Shape) -> int | None:
    """Return the predicted number of rounds of a complete run, or None if the prediction fails."""
    try:
        return int(algorithm.communication(settings, shape).rounds)
    except Exception:  # a bar without an end is all that is lost
        return None


def wanted(value: Any, name: str) -> bool:
    """Return whether `value`, a flag or a verbosity level as in scikit-learn, requests a bar.

    Raises
    ------
    InputError
        Raised if the value is neither a boolean nor a whole number >= 0.
    """
    if not FLAG.admits(value):
        whole(0)(value, name)
    return bool(value)
