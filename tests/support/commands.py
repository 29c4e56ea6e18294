"""`fedcore`, called as on a command line."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from fedcore.__main__ import main
from refused import is_a_line


def call(*words: Any) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def ran(*words: Any) -> Result:
    """Run a command that must end well."""
    result = call(*words)
    assert result.exit_code == 0, result.output
    return result


def refused_command(*words: Any) -> str:
    """Run a command that must fail for a user's reason; return its one line."""
    result = call(*words)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    line = result.stderr.removesuffix("\n")
    assert line.startswith("Error: ")
    is_a_line(line)
    return line
