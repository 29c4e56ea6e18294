"""The command `check`: the contract of a plug-in."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import TYPE_CHECKING

import click

from fedcore.cli import blas, options
from fedcore.cli.output import as_json, emit
from fedcore.errors import DataError, InputError

if TYPE_CHECKING:
    from fedcore.testing import Report


@click.command()
@click.argument("name", metavar="MODULE", shell_complete=options.algorithm_names)
@options.raw
@click.option("--surrogate", is_flag=True, help="Of a data set: its offline stand-in.")
@as_json
@click.pass_context
def check(ctx: click.Context, name: str, raw: str, surrogate: bool, as_json: bool) -> None:
    """Check an algorithm, a data set or metrics of your own.

    MODULE is an import path, my_package.my_pca of an algorithm or of metrics, and
    my_package.data:load of a data set; or the name of what is registered. Status 1 if a check
    fails.

    \b
    Examples:
      fedcore check block_krylov
      fedcore check my_package.my_pca
      fedcore check my_package.my_data:load
    """
    blas.limit(None)
    reports = _reports(name, raw, surrogate)
    listed = [
        {"name": report.name, "checks": [finding._asdict() for finding in report.findings]}
        for report in reports
    ]
    emit(listed, lambda: "\n\n".join(map(str, reports)), as_json)
    if any(report.failed for report in reports):
        ctx.exit(1)


def _reports(name: str, raw: str, surrogate: bool) -> list[Report]:
    from fedcore import algorithms, datasets, metrics
    from fedcore.datasets import registry
    from fedcore.testing import check_algorithm, check_dataset, check_metrics

    sys.path.insert(0, os.getcwd())  # where the author of a module not yet installed stands
    measures = [metric.name for family in metrics.families()[0].values() for metric in family]
    if ":" in name or name in datasets.names():
        if not surrogate and ":" not in name and registry.find(name)[0] is not None:
            _fetch(name, raw)
        return [check_dataset(name, raw, surrogate=surrogate, raising=False)]
    if name in algorithms.names():
        return [check_algorithm(name, raising=False)]
    if name in measures:
        return check_metrics(name, raising=False)
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # another package's code can raise anything
        known = [*algorithms.names(), *datasets.names(), *measures]
        close = difflib.get_close_matches(name, known, n=1)
        raise InputError(
            f"{name} is no algorithm, data set or metric that is registered, and no module that "
            f"can be imported ({type(error).__name__}: {error})"
            + (f"; did you mean '{close[0]}'?" if close else "")
        ) from error
    if hasattr(module, "METRICS"):
        return check_metrics(module, raising=False)
    return [check_algorithm(module, raising=False)]


def _fetch(name: str, raw: str) -> None:
    """Fetch one of fedcore's own data sets; files that are there are only checked."""
    from fedcore import datasets

    options.require_raw(raw)
    try:
        datasets.fetch(name, raw)
    except DataError as error:
        raise DataError(f"{error}; or check its stand-in with --surrogate") from error
