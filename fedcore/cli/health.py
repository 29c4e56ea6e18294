"""The commands `doctor`, which checks an installation, and `check`, which checks an algorithm."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from importlib.util import find_spec
from pathlib import Path

import click

from fedcore.cli import blas, options
from fedcore.cli.output import as_json, emit
from fedcore.errors import FedcoreError
from fedcore.words import counted

DISTRIBUTION = "fedcore-repro"  # `fedcore` on the package index is another project
Line = tuple[str, str, str]  # "ok", "note" or "broken"; the subject; what is said about it
# What to type is true in a checkout and where a wheel is installed; only a checkout has the papers.
EXTRAS = {
    "deep": ("torch", "methods for networks: pip install torch"),
    "mpi": ("mpi4py", "runs over MPI: pip install mpi4py mpich"),
    "workflow": ("snakemake", "the papers: pip install '.[workflow]' in fedcore's checkout"),
    "files": ("pyarrow", "CSV and Parquet files: pip install pyarrow"),
}


@click.command()
@options.raw
@as_json
@click.pass_context
def doctor(ctx: click.Context, raw: str, as_json: bool) -> None:
    """Report which parts of this installation work: packages, threads, plug-ins, data.

    The exit status is 1 if a line says "broken"; a line with "note" is harmless.

    \b
    Example:
      fedcore doctor
    """
    from fedcore.reports.terminal import columns

    lines = [*_packages(), *_threads(), *_extras(), *_plugins(), *_data(raw)]
    fields = ("state", "what", "said")
    listed = [dict(zip(fields, line, strict=True)) for line in lines]
    emit(listed, lambda: columns(lines), as_json)
    if any(state == "broken" for state, *_ in lines):
        ctx.exit(1)


def _packages() -> Iterator[Line]:
    from fedcore import __version__

    here = Path(__file__).parents[1]
    yield "ok", "fedcore", f"{__version__}, in {here}"
    yield "ok", "Python", f"{platform.python_version()} (3.11 or later)"
    try:
        wanted = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        yield "note", "installation", "fedcore is on the path, and not installed: pip install ."
        wanted = []
    for line in wanted:
        if "extra ==" in line:
            continue
        name = re.split("[ <>=!~;[]", line)[0]
        try:
            yield "ok", name, f"{version(name)} (wanted: {line})"
        except PackageNotFoundError:
            yield "broken", name, f"is not installed: pip install '{line}'"


def _threads() -> Iterator[Line]:
    said = [f"{name}={os.environ[name]}" for name in blas.VARIABLES if os.environ.get(name)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    told = ", ".join(said) or "commands use one unless --blas-threads or OMP_NUM_THREADS is set"
    yield "ok", "BLAS threads", f"{told}; {counted(cores, 'core')}"


def _extras() -> Iterator[Line]:
    for extra, (module, use) in EXTRAS.items():
        if find_spec(module) is None:
            yield "note", extra, f"{module} is missing; needed for {use}"
        else:
            yield "ok", extra, module


def _plugins() -> Iterator[Line]:
    """Import each plug-in that another package provides, and report whether the import works."""
    from fedcore import algorithms, generators, metrics
    from fedcore.datasets.registry import loader_of, plugins

    readers = {
        "fedcore.algorithms": algorithms.get,
        "fedcore.metrics": lambda name: metrics.REGISTRY.module(name).METRICS,
        "fedcore.generators": generators.REGISTRY.module,
        "fedcore.datasets": lambda name: loader_of(plugins()[name]),
    }
    for group, read in readers.items():
        for point in sorted(entry_points(group=group)):
            package = point.dist.name if point.dist else "?"
            what = f"{group.removeprefix('fedcore.').removesuffix('s')} {point.name}"
            try:
                read(point.name)
            except (Exception, SystemExit) as error:  # another package's code can raise anything
                said = str(error)
                if not isinstance(error, FedcoreError):
                    said = f"{type(error).__name__}: {error}"
                yield "broken", what, f"of the package {package}: {' '.join(said.split())}"
            else:
                yield "ok", what, f"of the package {package}, {point.value}"


def _data(raw: str) -> Iterator[Line]:
    from fedcore import datasets
    from fedcore.datasets.download import Servers

    begun, servers = time.time(), Servers(Path(raw))

    def ask(url: str) -> bool:
        """Return whether a server answers; each server is asked only once in this command."""
        return servers.ask(url, seconds=time.time() - begun)

    mirror = os.environ.get("FEDCORE_MIRROR", "")
    if mirror and not Path(mirror).is_dir():
        yield "broken", "FEDCORE_MIRROR", f"{mirror} is no folder"
    for name in datasets.names():
        reason = datasets.missing(name, raw, answers=ask)
        fetched = Path(raw, name, "fetched.json").is_file()
        there = f"in {Path(raw, name)}" if fetched else f"not fetched: fedcore fetch {name}"
        yield "note" if reason or not fetched else "ok", f"data set {name}", reason or there
    if Path(raw).is_dir():
        servers.save()


@click.command()
@click.argument("name", metavar="MODULE")
@as_json
@click.pass_context
def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Check whether an algorithm of your own keeps the rules that fedcore's algorithms keep.

    MODULE is an import path such as my_package.my_pca, or the name of a registered algorithm. The
    exit status is 1 if a check fails.

    \b
    Examples:
      fedcore check block_krylov
      fedcore check my_package.my_pca
    """
    blas.limit_threads(None)
    from fedcore.testing import check_algorithm

    sys.path.insert(0, os.getcwd())  # where the author of a module not yet installed stands
    report = check_algorithm(name, raising=False)
    found = {"name": report.name, "checks": [finding._asdict() for finding in report.findings]}
    emit([found], lambda: str(report), as_json)
    if report.failed:
        ctx.exit(1)
