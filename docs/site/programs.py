"""The command line, as ``--help`` prints it."""

from __future__ import annotations

import click

from fedcore.__main__ import main

WIDTH = 88


def commands() -> str:
    """Return a section per command."""
    parts = [_shown("fedcore", main, None)]
    top = click.Context(main, info_name="fedcore", max_content_width=WIDTH)
    for name, command in sorted(main.commands.items()):
        if not command.hidden:
            parts.append(f"## `fedcore {name}`\n\n" + _shown(name, command, top))
    return "\n\n".join(parts)


def _shown(name: str, command: click.Command, parent: click.Context | None) -> str:
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    return f"```text\n{command.get_help(context)}\n```"
