"""Errors that a user can cause. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

MOST, ALIKE = 20, 8  # names that a message lists, and those of more that it lists instead
LONGEST = 1000  # characters of a message


class FedcoreError(Exception):
    """Base class; the command line and the workflow print its message and exit with status 1."""

    def __str__(self) -> str:
        """Return the message; of one that quotes very much, its ends."""
        text = super().__str__()
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 3 :]}"


class ConfigError(FedcoreError, ValueError):
    """A configuration file or value is wrong: an unknown key, a bad type, a missing file."""


class InputError(FedcoreError, ValueError):
    """Arguments or client data are wrong: NaN, mismatched shapes, a rank that is too large."""


class DataError(FedcoreError):
    """A data file is missing, truncated, or does not have the checksum of the registry."""


class HistoryError(FedcoreError):
    """A history file is corrupt, half-written or of another schema version."""


class RoundingWarning(UserWarning):
    """Rounding has spoiled a part of a result; the message says which and what to do."""


class LateError(FedcoreError):
    """A method cannot go on without a client that does not answer in time."""


class RefusedError(FedcoreError):
    """A step or value cannot cross to another process, or is another one there."""


class ConvergenceWarning(UserWarning):
    """A result is less accurate than was asked for; the message says what to do."""


def require_known(
    name: object,
    known: Collection[str],
    what: str,
    error: type[FedcoreError] = ConfigError,
    *,
    listed: str = "",
) -> None:
    """Raise `error` for an unknown name: ``<what> '<name>': did you mean …``; see `nearest`."""
    if not isinstance(name, str) or name not in known:
        raise error(f"{what} '{name}': {nearest(str(name), known, listed)}")


def nearest(name: str, known: Iterable[str], listed: str = "") -> str:
    """Return ``'did you mean …?'`` and the list of known names, for error messages.

    Of more than `MOST` names, the `ALIKE` that are most alike stand for all.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        Valid names.
    listed : str
        What lists all of them, such as "`fedcore algorithms` lists all".
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    if len(names) <= MOST:
        return f"{hint}known: {', '.join(names) if names else 'none'}"
    shown = sorted(difflib.get_close_matches(name, names, n=ALIKE, cutoff=0.0))
    left_out = f"and {len(names) - len(shown)} more"
    return f"{hint}known: {', '.join(shown)} {left_out}{f' ({listed})' if listed else ''}"
