"""The jobs of the workflow, each a command; `snakemake -p` prints it as a person can run it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from fedcore.cli import options
from fedcore.errors import DataError, FedcoreError, require_known

# Signals that by default end a process silently. Here they raise an exception, so that temporary
# files are removed.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PATH: Any = click.Path(path_type=Path)


class JobError(FedcoreError):
    """What ends a job and is nobody's mistake, such as a full disk."""


class Jobs(click.Group):
    """Commands that end in one sentence also on a full disk, without memory, and by a signal."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a job."""
        with _ended_by_signals():
            try:
                return super().invoke(ctx)
            except MemoryError as error:
                words = str(error) or "no memory is left"
                raise JobError(
                    f"the job is too large for this machine ({words}): make its problem smaller"
                ) from error
            except OSError as error:
                if error.errno not in FULL:
                    raise
                where = f", {error.filename}" if error.filename else ""
                what = (
                    "a file may not become larger here: raise `ulimit -f`, run again"
                    if error.errno == errno.EFBIG
                    else "no space is left on the disk: make room, and run again"
                )
                raise JobError(f"{what} ({error.strerror}{where})") from error


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals end the block by an exception; this process has nothing but its job."""

    def end(number: int, frame: FrameType | None) -> None:
        raise JobError(f"the job was ended before it was done, by {signal.Signals(number).name}")

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` ignores SIGHUP
            signal.signal(number, end)
    yield


def _plan(path: Path) -> dict[str, Any]:
    """Return the plan of a paper; DataError where it is damaged or missing."""
    from fedcore.files import checksums

    checksums.require(path, "plan")
    try:
        plan: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a plan ({error}); run snakemake to make it") from error
    return plan


def _begin(outputs: Sequence[Path]) -> None:
    """Remove what a killed job has left of these outputs; one that still runs then ends."""
    from fedcore.files import atomic

    for output in outputs:
        for path in atomic.left_over(output):
            path.unlink(missing_ok=True)


@click.group(cls=Jobs)
def job() -> None:
    """Do one job of the workflow by hand, as `snakemake -p` prints it.

    A plan is results/plans/<paper>.json, which every run of Snakemake writes.
    """


@job.command()
@click.argument("plan", type=PATH)
@click.argument("name")
@click.argument("output", type=PATH)
def problem(plan: Path, name: str, output: Path) -> None:
    """Make the data of a problem, dealt to its clients."""
    from fedcore.experiments import build

    _begin([output])
    planned = _plan(plan)
    require_known(name, planned["problems"], f"{plan}: unknown problem")
    run, spec = planned["run"], build.data_of(planned["problems"][name])
    build.make(
        os.fspath(output), name, spec,
        raw=run["paths"]["raw"], seed=run["seed"], surrogate=run["surrogates"],
    )  # fmt: skip


@job.command()
@click.argument("plan", type=PATH)
@click.argument("name")
@click.argument("problems", nargs=-1, required=True, type=PATH)
@click.argument("history", type=PATH)
@click.argument("seconds", type=PATH)
@click.option("--checkpoints", type=PATH, help="Start of the names of files to resume from.")
def cell(
    plan: Path,
    name: str,
    problems: tuple[Path, ...],
    history: Path,
    seconds: Path,
    checkpoints: Path | None,
) -> None:
    """Run a cell, NAME of <experiment>/<algorithm>/<problem>-<variant>, and write its history."""
    from tqdm import tqdm

    from fedcore.experiments.cell import run_cell

    _begin([history, seconds])
    planned = _plan(plan)
    path = f"{planned['paper']}/{name}"
    require_known(path, planned["cells"], f"{plan}: unknown cell")
    spec = dict(planned["cells"][path])
    code, _, _ = (spec.pop(key) for key in ("code", "tags", "mem_mb"))
    run_cell(
        spec, problems[0], history, seconds,
        checkpoints=checkpoints, newcomers_file=problems[1] if problems[1:] else None, code=code,
        progress=tqdm,
    )  # fmt: skip


@job.command()
@click.argument("plan", type=PATH)
def tables(plan: Path) -> None:
    """Write the tables of a paper."""
    from fedcore.config import papers
    from fedcore.reports.report import write_tables

    files = _plan(plan)["files"]
    papers.make_importable(Path(files["report"]), files["tables"])
    write_tables(plan)


@job.command()
@click.argument("plan", type=PATH)
@click.argument("claims", type=PATH)
@click.argument("output", type=PATH)
def verdicts(plan: Path, claims: Path, output: Path) -> None:
    """Hold what a paper prints against its tables."""
    from fedcore.config import claims as claims_files
    from fedcore.reports import verdict_pages
    from fedcore.reports.verdicts import judge

    planned = _plan(plan)
    paper, run = planned["paper"], planned["run"]
    found = judge(
        paper, claims_files.read(claims), Path(run["paths"]["results"], "tables"),
        not_run={f"{paper}/{name}": why for name, why in planned["missing"].items()},
        surrogate=run["surrogates"], small=run["quick"],
    )  # fmt: skip
    verdict_pages.write(found, output)


@job.command()
@click.argument("output", type=PATH)
@click.argument("papers", nargs=-1)
def summary(output: Path, papers: tuple[str, ...]) -> None:
    """Combine the verdicts of papers, which lie in a folder beside OUTPUT."""
    from fedcore.reports import verdict_pages

    verdict_pages.combine(output.with_suffix(""), output, papers)


@job.command()
@click.argument("results", type=PATH)
@click.option("--command", default="snakemake --cores 1", help="What the pages say makes a file.")
@click.option("--surrogates", is_flag=True, help="The run has used stand-ins for data.")
@click.option("--processes", type=options.COUNT, default=1, help="That write pages side by side.")
def report(results: Path, **how: Any) -> None:
    """Write the pages of a run, RESULTS/report."""
    from fedcore.reports.site import build

    build.write(results, results / "report", **how)
