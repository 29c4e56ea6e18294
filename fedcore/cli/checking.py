"""The command `check`: the contract of an algorithm."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import os
import sys

import click

from fedcore.cli import blas, options
from fedcore.cli.output import as_json, emit


@click.command()
@click.argument("name", metavar="MODULE", shell_complete=options.algorithm_names)
@as_json
@click.pass_context
def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Check an algorithm of your own.

    MODULE is an import path, my_package.my_pca, or the name of an algorithm that is registered.
    Status 1 if a check fails.

    \b
    Examples:
      fedcore check block_krylov
      fedcore check my_package.my_pca
    """
    blas.limit(None)
    from fedcore.testing import check_algorithm

    sys.path.insert(0, os.getcwd())  # where the author of a module not yet installed stands
    report = check_algorithm(name, raising=False)
    found = {"name": report.name, "checks": [finding._asdict() for finding in report.findings]}
    emit([found], lambda: str(report), as_json)
    if report.failed:
        ctx.exit(1)
