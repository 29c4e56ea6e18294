"""What commands print: text for people, or JSON; and progress on standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def emit(value: Any, text: Callable[[], str], as_json: bool) -> None:
    """Print `value` as JSON, or the text."""
    click.echo(json.dumps(plain(value), indent=1, ensure_ascii=False) if as_json else text())


def plain(value: Any) -> Any:
    """Return a value as JSON can say it: NumPy's numbers as Python's, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in (sorted(value) if isinstance(value, set) else value)]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


class Rounds:
    """Bar over the communication rounds of all repeats, on a terminal's standard error.

    Parameters
    ----------
    description : str
    rounds : int or None
        Of one complete repeat, by the closed form; a repeat may end earlier.
    repeats : int
    """

    def __init__(self, description: str, rounds: int | None, repeats: int) -> None:
        from tqdm import tqdm

        total = rounds * repeats if rounds else None
        self._rounds, self._before = rounds or 0, 0.0
        self._bar = tqdm(total=total, desc=description, unit="round", disable=None)

    def repeats(self, repeats: Iterable[int]) -> Iterator[int]:
        """Yield the repeats; after the last one the bar ends."""
        with self._bar:
            for number, repeat in enumerate(repeats):
                self._before = number * self._rounds if self._rounds else self._bar.n
                yield repeat

    def seen(self, row: Mapping[str, float]) -> None:
        """Take notice of a recorded row."""
        self._bar.set_postfix_str(f"iteration {row['iteration']:g}", refresh=False)
        self._bar.update(self._before + row["round"] - self._bar.n)
