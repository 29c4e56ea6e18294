"""The command line, with commands to fetch data, run and compare algorithms, and show results.

Results go to standard output; progress, warnings and errors go to standard error. After an error
that a user can cause, a command prints one sentence and ends with exit status 1. A misspelt command
or option gives exit status 2. Each command imports the modules that it needs only when it runs, so
that ``--help`` answers at once.
"""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import contextlib
import errno
import faulthandler
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import click

from fedcore import __version__
from fedcore.cli import health, lookup, pca, running, showing
from fedcore.errors import Advice, FedcoreError, format_error
from fedcore.words import visible

_STANDARD_ERROR = 2  # the stream itself may be replaced, and have no number
# What an error without a file's name is about.
_WRITING = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF
_UNNAMED = {
    **dict.fromkeys(_WRITING, "the output cannot be written"), errno.ENOENT: "the working folder",
}  # fmt: skip


class Sentences(click.Group):
    """Command group that reports a user's error in one sentence, without a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; under MPI, only the first rank prints.

        If a fault such as SIGBUS ends the program, the signal's name and Python's traceback are
        printed.
        """
        running.mute_other_ranks()
        if not faulthandler.is_enabled():
            faulthandler.enable(_STANDARD_ERROR)
        return super().main(*args, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the options that precede the command."""
        with _visible_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error that a user can cause becomes ``Error: …`` with status 1."""
        with _visible_errors(), _plain_warnings():
            try:
                return super().invoke(ctx)
            except FedcoreError as error:
                command = self.commands.get(ctx.invoked_subcommand or "", self)
                error.advice = tuple(_possible(error.advice, command))
                said = " ".join(format_error(error, command=True).split())
                raise click.ClickException(said) from error


def _possible(advice: Iterable[Advice], command: click.Command) -> Iterator[Advice]:
    """Yield each piece of advice that names only options of `command`.

    If `command` has a flag without a ``--no-`` form, the advice to set this flag to false becomes
    the advice to drop the flag.
    """
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for one in advice:
        names = {name: name.replace("_", "-") for name in one.options}
        if known.issuperset(f"--{name}" for name in names.values()):
            flags = [key for key, name in names.items() if f"--no-{name}" not in known]
            dropped = {key: None for key in flags if one.options[key] is False}
            yield one._replace(options={**one.options, **dropped})


@contextlib.contextmanager
def _visible_errors() -> Iterator[None]:
    """Report an OSError in one sentence, and escape control characters in all messages."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        _drop_unwritten_output()
        where = error.filename or _UNNAMED.get(error.errno or 0, "")
        says = f"{where}: {error.strerror or error}".removeprefix(": ")
        raise click.ClickException(visible(says)) from error
    except click.ClickException as error:
        error.message = visible(error.message)  # type: ignore[misc]
        raise


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print each `UserWarning` as ``Warning: …``, without a line of Python code."""
    known = warnings.formatwarning

    def sentence(message: Any, category: type[Warning], *where: Any, **line: Any) -> str:
        if not issubclass(category, UserWarning):
            return visible(known(message, category, *where, **line))
        return f"Warning: {visible(' '.join(str(message).split()))}\n"

    warnings.formatwarning = sentence
    try:
        yield
    finally:
        warnings.formatwarning = known


def _drop_unwritten_output() -> None:
    """Discard output that standard output refuses, so that Python does not fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fedcore")
def main() -> None:
    """Federated PCA and factorisation, with a ledger that counts all messages.

    \b
    Try it without any data:
      fedcore run block_krylov w8a --components 5 --surrogate --set tol=1e-8
    With your own files, one file per client:
      fedcore pca north.csv south.csv west.csv --scale --plot scores
    Complete commands and options in bash (in zsh, write zsh_source instead of bash_source):
      eval "$(_FEDCORE_COMPLETE=bash_source fedcore)"
    """


for command in (
    lookup.listing, lookup.cite, lookup.fetch, *lookup.ALIASES,
    running.run, running.compare, pca.pca, showing.show, showing.plot,
    health.check, health.doctor,
):  # fmt: skip
    main.add_command(command)
