"""The commands that Snakemake runs as jobs, and that a person can also run by hand."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import blas, options
from fedcore.cli.output import say
from fedcore.errors import DataError, FedcoreError, too_large

if TYPE_CHECKING:
    from fedcore.repro.plan.plan import Plan

# Signals that by default end a process silently. Here they raise an exception, so that temporary
# files are removed.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PATH: Any = click.Path(path_type=Path)
CONFIGFILE = click.option(
    "--configfile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with settings that override config/config.yaml.",
)


def planned(configfile: Path | None, papers: Sequence[str] = ()) -> Plan:
    """Return the plan of a run; `papers`, if given, replaces the papers in the configuration."""
    from fedcore.repro.config import papers as paper_files
    from fedcore.repro.config.configuration import read_configuration
    from fedcore.repro.plan.plan import load_plan

    paper_files.require_checkout("this command")
    config = read_configuration(configfile)
    if papers:
        config["papers"] = [*papers]
    return load_plan(config)


class JobError(FedcoreError):
    """Error that ends a job for an outside reason, such as a full disk or a signal."""


class Jobs(click.Group):
    """Group of the commands that run the workflow's jobs.

    If the disk is full, memory is lacking or a signal arrives, a command raises `JobError`.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run a job."""
        from fedcore.repro.config import papers

        papers.require_checkout("fedcore job")
        _end_by_signals()
        try:
            return super().invoke(ctx)
        except (MemoryError, ValueError, OverflowError) as error:
            if (words := too_large(error)) is None:
                raise
            raise JobError(
                f"the job is too large for this machine ({words}): make its problem smaller"
            ) from error
        except OSError as error:
            if error.errno not in FULL:
                raise
            name = error.filename2 or error.filename  # of a copy, what is written
            where = f", {name}" if name else ""
            what = (
                "a file may not become larger here: raise `ulimit -f`, run again"
                if error.errno == errno.EFBIG
                else "no space is left on the disk: make room, and run again"
            )
            said = f"{what} ({error.strerror}{where})"
            say(f"Error: {said}")  # the log of standard error may be on that disk
            raise JobError(said) from error


def _end_by_signals() -> None:
    """Let the signals in `ENDING` raise `JobError`, so that they do not kill this process."""

    def end(number: int, frame: FrameType | None) -> None:
        raise JobError(f"{signal.Signals(number).name} ended the job before it was done")

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` ignores SIGHUP
            signal.signal(number, end)


def _read(context: click.Context, parameter: click.Parameter, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"it is no JSON ({error})") from error


@click.group(cls=Jobs)
def job() -> None:
    """Run one job of the workflow; `snakemake -p` prints the command of each job.

    \b
    Example:
      fedcore job tables results/quick/plans/faps.json
    """


@job.command()
@click.argument("names", metavar="[PAPERS]", nargs=-1)
@click.option("--cores", type=options.COUNT, default=os.cpu_count() or 1, show_default=True)
@CONFIGFILE
def forecast(names: tuple[str, ...], cores: int, configfile: Path | None) -> None:
    """Forecast the time and memory of those cells (planned runs) of PAPERS that have no results."""
    from fedcore.repro.commands.probe import probe_speed
    from fedcore.repro.plan import forecast

    say(forecast.sentence(planned(configfile, names), cores, probe_speed()))


@job.command()
@click.argument("made", type=PATH)
@click.argument("output", type=PATH)
def plan(made: Path, output: Path) -> None:
    """Copy the file MADE to OUTPUT; at its start, a run writes a paper's plan to MADE."""
    from fedcore.files import atomic

    try:
        content = made.read_bytes()
    except FileNotFoundError as error:
        raise DataError(
            f"{made}, which a run writes at its start, is missing: run again without --no-hooks"
        ) from error
    atomic.remove_left_overs_of(output)
    with atomic.replace(output, summed=True) as temporary:
        temporary.write_bytes(content)


@job.command()
@click.argument("name")
@click.argument("spec", callback=_read)
@click.argument("output", type=PATH)
@click.option("--raw", default="data/raw", help="Folder of downloads.")
@click.option("--seed", type=int, required=True, help="Master seed of all randomness.")
@click.option("--surrogate", is_flag=True, help="Use stand-in data instead of a data set.")
@click.option("--code", default="", help="Fingerprint of the problem's code, to store.")
def problem(name: str, spec: dict[str, Any], output: Path, **how: Any) -> None:
    """Write the data of the problem NAME, divided among its clients, to OUTPUT."""
    from fedcore.experiments import build
    from fedcore.files import atomic

    atomic.remove_left_overs_of(output)
    build.make(os.fspath(output), name, spec, **how)


@job.command()
@click.argument("spec", callback=_read)
@click.argument("problems", nargs=-1, required=True, type=PATH)
@click.argument("history", type=PATH)
@click.option("--code", default="", help="Fingerprint of the cell's code, to store.")
@click.option(
    "--recipe", "recipes", multiple=True, help="Digest (recipe) of each problem, to check its file."
)
@click.option(
    "--seconds", type=PATH, help="File for the CPU seconds up to each recorded iteration."
)
@click.option("--checkpoints", type=PATH, help="Path prefix of the files to resume from.")
def cell(
    spec: dict[str, Any],
    problems: tuple[Path, ...],
    history: Path,
    code: str,
    recipes: tuple[str, ...],
    seconds: Path | None,
    checkpoints: Path | None,
) -> None:
    """Run a cell (an algorithm on one problem), and write its recorded values to HISTORY."""
    from tqdm import tqdm

    from fedcore.experiments.cell import Cell
    from fedcore.experiments.repeats import run_cell
    from fedcore.files import atomic

    blas.configure_accelerator()
    for output in filter(None, (history, seconds)):
        atomic.remove_left_overs_of(output)
    run_cell(
        replace(Cell.read(spec), code=code, recipes=[*recipes]), problems[0], history, seconds,
        checkpoints=checkpoints, newcomers_file=problems[1] if problems[1:] else None,
        progress=tqdm,
    )  # fmt: skip


@job.command()
@click.argument("file", metavar="PLAN", type=PATH)
def tables(file: Path) -> None:
    """Write the tables of the paper whose plan file is PLAN."""
    from fedcore.repro.tables.report import write_tables

    write_tables(file)


@job.command()
@click.argument("file", metavar="PLAN", type=PATH)
@click.argument("claims", type=PATH)
@click.argument("output", type=PATH)
def verdicts(file: Path, claims: Path, output: Path) -> None:
    """Compare what a paper prints with the tables of this run, and write the verdicts."""
    from fedcore.repro.config import claims as claims_files
    from fedcore.repro.tables.results import Results
    from fedcore.repro.verdicts import records, verdict_pages
    from fedcore.repro.verdicts.verdicts import judge

    results = Results(file)
    plan = results.plan
    run, printed = plan["run"], claims_files.read(claims)
    found = judge(
        plan["paper"], printed, results.tables, not_run=plan["missing"],
        stand_ins=run["surrogates"], quick=run["quick"],
        remarks=records.remarks(claims.parent, printed, run["seed"]),
    )  # fmt: skip
    verdict_pages.write(found, output, printed.get("question", ""))


@job.command()
@click.argument("output", type=PATH)
@click.argument("papers", nargs=-1)
def summary(output: Path, papers: tuple[str, ...]) -> None:
    """Combine the verdicts of PAPERS in the table OUTPUT.

    The verdicts are read from the folder whose path is OUTPUT without the suffix .tsv.
    """
    from fedcore.repro.verdicts import verdict_pages

    verdict_pages.write(verdict_pages.read_papers(output.with_suffix(""), papers), output)


@job.command()
@click.argument("results", type=PATH)
@click.argument("papers", nargs=-1)
def report(results: Path, papers: tuple[str, ...]) -> None:
    """Write the HTML pages of a run of PAPERS to RESULTS/report.

    Temporary files of killed jobs are removed from RESULTS. Papers of earlier runs also get pages
    if their results in RESULTS are complete.
    """
    from fedcore.files import atomic
    from fedcore.repro.config.papers import CHECKOUT
    from fedcore.repro.site import build

    atomic.remove_left_overs(results)
    build.write(results, results / "report", CHECKOUT, papers)
