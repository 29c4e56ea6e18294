"""Files that a command reads: histories and problems, and what a file is in the other's place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcore.errors import DataError, FedcoreError, HistoryError, InputError

if TYPE_CHECKING:
    from fedcore.history import History
    from fedcore.problems.problem import Problem


def load_history(path: str) -> History:
    """Read a history."""
    from fedcore.history import History
    from fedcore.problems import storage

    try:
        return History.load(path)
    except HistoryError as error:
        if not Path(path).exists():
            raise InputError(
                f"{path or 'the file without a name'} does not exist: fedcore run keeps a history "
                "in the file that --out names"
            ) from error
        if _reads(storage.load_draws, path):
            raise InputError(
                f"{path} is a problem, not a history: fedcore run ALGORITHM {path} runs on it"
            ) from error
        raise


def load_problems(path: str) -> list[Problem]:
    """Read the draws of a problem."""
    from fedcore.history import History
    from fedcore.problems import storage

    try:
        return storage.load_draws(path)
    except DataError as error:
        if _reads(History.load, path):
            raise InputError(
                f"{path} is a history, not a problem: fedcore show {path} says what it holds"
            ) from error
        raise


def _reads(load: Callable[[str], Any], path: str) -> bool:
    try:
        load(path)
    except FedcoreError:
        return False
    return True
