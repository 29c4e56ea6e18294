"""Progress of a run: a bar over its communication rounds, on standard error."""

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
    """Bar over the communication rounds of all repeats, and lines for the logger ``fedcore``.

    Each record is a line of level INFO, which Python shows if the program asks for it.

    Parameters
    ----------
    description : str
    rounds : int or None
        Rounds of one complete repeat, as the algorithm's ``communication`` predicts them; a repeat
        may end earlier.
    repeats : int, default=1
    asked : bool, default=False
        Whether to show the bar wherever standard error goes; by default only on a terminal.
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
        """Yield the repeats; after the last one the bar ends."""
        with self:
            for number, repeat in enumerate(repeats):
                self._before = number * self._rounds if self._rounds else self._bar.n
                yield repeat

    def seen(self, row: Mapping[str, float]) -> None:
        """Take notice of a recorded row."""
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
        """Add rounds before the algorithm to the bar's total; for ``begin=`` of `runs.execute`."""
        if self._bar.total:
            self._bar.total += federation.ledger.rounds
        return {}

    def until(
        self, rule: Callable[[Mapping[str, float]], bool] | None
    ) -> Callable[[Mapping[str, float]], bool]:
        """Return a stop rule that takes notice of every row and then asks `rule`.

        In a private run, the bar reads only released columns.
        """

        def noticed(row: Mapping[str, float]) -> bool:
            self.seen(row)
            return rule is not None and rule(row)

        return noticed


def complete_rounds(algorithm: Algorithm, settings: Any, shape: Shape) -> int | None:
    """Return the predicted rounds of a complete run; None if a plug-in fails to predict them."""
    try:
        return int(algorithm.communication(settings, shape).rounds)
    except Exception:  # a bar without an end is all that is lost
        return None


def wanted(value: Any, name: str) -> bool:
    """Whether a value asks for a bar: a flag, or a level of verbosity as in scikit-learn.

    Raises
    ------
    InputError
        If the value is neither a flag nor a whole number.
    """
    if not FLAG.admits(value):
        whole(0)(value, name)
    return bool(value)
