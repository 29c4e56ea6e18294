"""Errors that a user can cause, with messages that say what is wrong, where, and what to do."""

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
    "take an algorithm that forms no matrix of size features × features (block_krylov, or "
    "noisy_power for private runs)"
)


class Advice(NamedTuple):
    """Advice that says how to avoid an error.

    Attributes
    ----------
    what : str
        Description of the advice, such as "leave it out".
    options : mapping of str to str, int, bool, sequence of str or None
        New values for parameters of the same call or command. The value None means that the user
        should drop the parameter.
    call : str
        Python or shell command that the user should run before the changed call.
    """

    what: str
    options: Mapping[str, Any] = {}
    call: str = ""

    def format(self, command: bool) -> str:
        """Return the advice as text, for the command line if `command` is true, else for Python."""
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
    """Base class of fedcore's errors; a command prints the message and exits with status 1.

    Parameters
    ----------
    text : str
        Error message without advice.
    file, client, row, column, advice, parts
        Values of the attributes with these names.

    Attributes
    ----------
    file, client, row, column : object
        File, client, row and column in which the error was found; None if unknown. Rows are
        numbered from 0.
    number : int or None
        Number of the client.
    advice : tuple of Advice
        Alternative ways to avoid the error; one of them is enough.
    parts : tuple
        Single faults that the message summarises, such as a fault for each column that is not a
        feature.
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
        """Return the error message, with advice for Python."""
        return format_error(self)


def format_error(error: FedcoreError, command: bool = False) -> str:
    """Return an error's message, with its advice, on one line.

    The advice is worded for the command line if `command` is true, else for Python. If a message is
    very long, its middle is cut out. The advice is never cut.
    """
    ways = ", or ".join(one.format(command) for one in error.advice)
    text = ": ".join(filter(None, map(str, error.args)))
    if len(text) > LONGEST:  # words are left whole
        text = re.sub(r"(?s)^(.{500}\S{0,40}).*?(\S{0,40}.{300})$", r"\1 … \2", text)
    return re.sub(r"\s*\n\s*", " ", ": ".join(filter(None, [text, ways])))


class ConfigError(FedcoreError, ValueError):
    """A configuration is wrong; for example, a key is unknown or a file is missing."""


class InputError(FedcoreError, ValueError):
    """Arguments or client data are wrong; for example, they contain NaN or have wrong shapes."""


class ReplyError(InputError):
    """A method's client function returns no usable reply, or replies of different shapes."""


class DataError(FedcoreError):
    """A data file is missing or truncated, or does not have its recorded checksum."""


class TableError(DataError, InputError):
    """A user's table lacks required columns or values, or has values of a wrong type."""


class HistoryError(FedcoreError):
    """A history file is corrupt, half-written or of another schema version."""


class SizeError(FedcoreError, MemoryError):
    """A call needs more memory than is available; the message says which step needs it."""


class RoundingWarning(UserWarning):
    """Rounding has spoiled a part of a result; the message says which part, and what to do."""


class ConvergenceWarning(UserWarning):
    """A result is less accurate than requested; the message says what to do."""


class ColumnWarning(UserWarning):
    """Some columns of a data frame seem to be no measurements, or some rows no samples.

    Attributes
    ----------
    columns : list
        Names of the columns that the warning is about; empty if it is about rows.
    """

    def __init__(self, text: str, columns: Sequence[Any]) -> None:
        super().__init__(text)
        self.columns = [*columns]


class ArbitraryWarning(ConvergenceWarning):
    """Components may be arbitrary, because rounding the data could make singular values equal."""


_UNWANTED: ContextVar[tuple[type[Warning], ...]] = ContextVar("unwanted", default=())


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of the user's code that called fedcore.

    All warnings of fedcore go through this function. No other function catches or filters warnings,
    because Python's filters act on the whole process and could hide warnings of other threads.
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
    """Suppress fedcore's own warnings of these categories in this thread, in a ``with`` block."""
    before = _UNWANTED.set(categories)
    try:
        yield
    finally:
        _UNWANTED.reset(before)


def too_large(error: BaseException) -> str | None:
    """Return the message of an error caused by lack of memory or by a too large size, else None."""
    if isinstance(error, MemoryError):
        return str(error) or "no memory is left"
    # NumPy's words for sizes beyond 64 bits, and Python's; other overflows are of arithmetic.
    beyond = "too large to convert", "too big", "allowed dimension exceeded"
    long = isinstance(error, ValueError | OverflowError) and not isinstance(error, FedcoreError)
    return str(error) if long and any(words in str(error) for words in beyond) else None


def last_line(error: BaseException, file: str | None) -> traceback.FrameSummary | None:
    """Return the last entry of the error's traceback that is in `file`; None if there is none."""
    lines = [at for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
    return lines[-1] if lines else None


@contextmanager
def foreign_errors(what: str, others: bool, file: str | None = None) -> Iterator[None]:
    """Turn an error in another package's code into an `InputError` that names file and line.

    The error names the traceback's last line that is in `file`; later lines may be in fedcore,
    which the code in `file` may call. If no line of the traceback is in `file`, the error names the
    last line. A `FedcoreError` passes unchanged. If `others` is false, as for fedcore's own code,
    every error passes unchanged.
    """
    try:
        yield
    except FedcoreError:
        raise
    except Exception as error:
        if not others:
            raise
        at = last_line(error, file) or traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{what} fails with {type(error).__name__}: {error}, at {at.filename}, line {at.lineno}"
        ) from error


class held:
    """Turn a failed memory allocation into an error that says how to use less memory.

    The message says that `what` needs too much memory, and gives `less` as a remedy. Use `held` in
    a ``with`` statement or as a decorator.

    Raises
    ------
    SizeError
    """

    def __init__(self, what: str, less: str = LESS) -> None:
        self._what, self._less = what, less

    def __call__(self, function: Function) -> Function:
        """Wrap `function`, so that a failed allocation inside it raises a `SizeError`."""

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
                f"{self._what} needs more memory than is available ({words.rstrip('.')}): leave "
                f"out features, such as those that are zero for every client, or {self._less}"
            ) from error


def require_known(
    name: object,
    known: Collection[str],
    what: str,
    error: type[FedcoreError] = ConfigError,
    *,
    listed: str = "",
) -> None:
    """Raise `error` for an unknown name, with the text ``<what> '<name>': <nearest names>``."""
    if not isinstance(name, str) or name not in known:
        raise error(f"{what} '{name}': {nearest(str(name), known, listed)}")


def nearest(name: str, known: Iterable[str], listed: str = "") -> str:
    """Return ``'did you mean …?'`` and the list of known names, for error messages.

    If more than `MOST` names are known, the list has only the `ALIKE` most similar names.

    Parameters
    ----------
    name : str
        Unknown name.
    known : iterable of str
        Valid names.
    listed : str
        Text that says how to see all names, such as "`fedcore list methods` shows all".
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
