"""Errors that a user can cause. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import csv
import difflib
import io
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

MOST, ALIKE = 20, 8  # names that a message lists, and those of more that it lists instead
LONGEST = 1000  # characters of a message
LESS = (
    "take an algorithm that makes no matrix of features by features (block_krylov, for private "
    "runs noisy_power)"
)


class Advice(NamedTuple):
    """A way out of an error.

    Attributes
    ----------
    what : str
        What the way out does, such as "leave it out".
    options : mapping of str to str, int, bool, sequence of str or None
        Parameters of the same call; the options of the command have the same names. None means
        that the parameter should be dropped.
    call : str
        What to write in Python or in a shell, if parameters alone do not help, or help only after
        it.
    """

    what: str
    options: Mapping[str, Any] = {}
    call: str = ""

    def format(self, command: bool) -> str:
        """Return the advice in words, for the command line or for Python."""
        words = []
        for name, value in self.options.items():
            option = f"--{name.replace('_', '-')}"
            if value is None:
                words.append(f"drop {option if command else name}")
            elif not command:
                words.append(f"{name}={value!r}")
            elif isinstance(value, bool):
                words.append(option if value else f"--no-{option[2:]}")
            else:
                every = [str(value)] if isinstance(value, str | int) else value
                if name in ("columns", "without"):  # separated by commas, as in a CSV file
                    line = io.StringIO()
                    csv.writer(line, lineterminator="").writerow(every)
                    every = [line.getvalue()]
                words += [f"{option} {shlex.quote(one)}" for one in every]
        steps = filter(None, [self.call, (" " if command else ", ").join(words)])
        how = ", then ".join(f"({step})" if self.what else step for step in steps)
        return " ".join(filter(None, [self.what, how]))


class FedcoreError(Exception):
    """Base class; the command line and the workflow print its message and exit with status 1.

    Parameters
    ----------
    text : str
        The sentence, without advice.
    file, client, row, column, advice, parts
        See the attributes.

    Attributes
    ----------
    file, client, row, column : object
        Where the error is; None if unknown. Rows count from 0.
    number : int or None
        Number of the client.
    advice : tuple of Advice
        Ways out; each one is enough.
    parts : tuple
        The single faults that the error sums up, such as each column that is no feature.
    """

    def __init__(
        self, text: str = "", *, file: Any = None, client: Any = None, row: Any = None,
        column: Any = None, advice: Sequence[Advice] = (), parts: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        super().__init__(text)
        self.file, self.client, self.row, self.column = file, client, row, column
        self.number: int | None = getattr(client, "number", None)
        self.advice, self.parts = tuple(advice), tuple(parts)

    def __str__(self) -> str:
        """Return the sentence, with advice for Python."""
        return format_error(self)


def format_error(error: FedcoreError, command: bool = False) -> str:
    """Return an error's sentence on one line, with advice for Python or for the command line.

    A very long sentence is cut in its middle; the advice stays whole.
    """
    ways = ", or ".join(one.format(command) for one in error.advice)
    text = ": ".join(filter(None, map(str, error.args)))
    if len(text) > LONGEST:  # words are left whole
        text = re.sub(r"(?s)^(.{500}\S{0,40}).*?(\S{0,40}.{300})$", r"\1 … \2", text)
    return re.sub(r"\s*\n\s*", " ", ": ".join(filter(None, [text, ways])))


class ConfigError(FedcoreError, ValueError):
    """A configuration file or value is wrong: an unknown key, a bad type, a missing file."""


class InputError(FedcoreError, ValueError):
    """Arguments or client data are wrong: NaN, mismatched shapes, a rank that is too large."""


class ReplyError(InputError):
    """Client steps of a method return replies that do not fit together, or no reply at all."""


class DataError(FedcoreError):
    """A data file is missing, truncated, or does not have the checksum of the registry."""


class TableError(DataError, InputError):
    """A user's table does not have the columns, cells or types that were asked for."""


class HistoryError(FedcoreError):
    """A history file is corrupt, half-written or of another schema version."""


class SizeError(FedcoreError, MemoryError):
    """A call needs more memory than there is; the message says for what, and how much."""


class RoundingWarning(UserWarning):
    """Rounding has spoiled a part of a result; the message says which part and what to do."""


class ConvergenceWarning(UserWarning):
    """A result is less accurate than was asked for; the message says what to do."""


class ColumnWarning(UserWarning):
    """Some columns of a frame may be no measurements, or some rows may be no samples.

    Attributes
    ----------
    columns : list
        The columns in doubt.
    """

    def __init__(self, text: str, columns: Sequence[Any]) -> None:
        super().__init__(text)
        self.columns = [*columns]


class ArbitraryWarning(ConvergenceWarning):
    """Components are arbitrary, because singular values are equal in the precision of the data."""


_UNWANTED: ContextVar[tuple[type[Warning], ...]] = ContextVar("unwanted", default=())


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of fedcore that led here.

    Every warning of fedcore is given here. Nothing catches or filters warnings on the way, because
    Python's means for that change the whole process, so that other threads lose warnings.
    """
    category = type(message) if isinstance(message, Warning) else category
    if issubclass(category, _UNWANTED.get()):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "fedcore":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)  # noqa: TID251


@contextmanager
def unwanted(*categories: type[Warning]) -> Iterator[None]:
    """Suppress fedcore's own warnings of these categories in this thread."""
    before = _UNWANTED.set(categories)
    try:
        yield
    finally:
        _UNWANTED.reset(before)


def too_large(error: BaseException) -> str | None:
    """Return the message of an error about a size that cannot be held; None for other errors."""
    if isinstance(error, MemoryError):
        return str(error) or "no memory is left"
    # NumPy's words for sizes beyond 64 bits, and Python's; other overflows are of arithmetic.
    beyond = "too large to convert", "too big", "allowed dimension exceeded"
    long = isinstance(error, ValueError | OverflowError) and not isinstance(error, FedcoreError)
    return str(error) if long and any(words in str(error) for words in beyond) else None


@contextmanager
def foreign_errors(what: str, others: bool) -> Iterator[None]:
    """Turn any error of another package's code into a sentence that names it and its line.

    Errors of fedcore's own code pass, and so do errors that already are a sentence.
    """
    try:
        yield
    except FedcoreError:
        raise
    except Exception as error:
        if not others:
            raise
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{what} fails with {type(error).__name__}: {error}, at {at.filename}, line {at.lineno}"
        ) from error


class held:
    """Turn a failed allocation inside into an error that says how to need less memory.

    The error says that `what` needs too much memory, and that `less` needs less. Use `held` in
    ``with`` or as a decorator. A context manager of contextlib would not do, because `warn` would
    take contextlib for the user's code.

    Raises
    ------
    SizeError
    """

    def __init__(self, what: str, less: str = LESS) -> None:
        self._what, self._less = what, less

    def __call__(self, function: Function) -> Function:
        """Wrap `function`, so that a failed allocation inside it raises the `SizeError`."""

        @wraps(function)
        def inside(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        return cast(Function, inside)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        words = None if error is None or isinstance(error, SizeError) else too_large(error)
        if words is not None:
            raise SizeError(
                f"{self._what} needs more memory than there is ({words.rstrip('.')}): leave out "
                f"features, such as those that no client has, or {self._less}"
            ) from error


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

    If more than `MOST` names are known, only the `ALIKE` most similar ones are listed.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        Valid names.
    listed : str
        How to see all names, such as "`fedcore list methods` shows all".

    Returns
    -------
    str
    """
    names = sorted(known)
    alike = [known for known in names if known.casefold() == name.casefold()]
    close = alike or difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    if len(names) <= MOST:
        return f"{hint}known: {', '.join(names) if names else 'none'}"
    shown = sorted(difflib.get_close_matches(name, names, n=ALIKE, cutoff=0.0))
    left_out = f"and {len(names) - len(shown)} more"
    return f"{hint}known: {', '.join(shown)} {left_out}{f' ({listed})' if listed else ''}"
