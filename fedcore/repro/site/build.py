"""Writes the site: pages from templates, and the files that they show."""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fedcore import __version__
from fedcore.errors import DataError, FedcoreError
from fedcore.repro.plan.job_times import machine
from fedcore.repro.site import curves, model, notebooks
from fedcore.repro.verdicts import answers
from fedcore.repro.verdicts.verdict_pages import tally, told_of
from fedcore.repro.verdicts.verdicts import WORDS

ASSETS = Path(__file__).parent / "assets"


@cache
def environment() -> Environment:
    """Return the templates; every value is escaped, and a missing one is an error."""
    made = Environment(
        loader=PackageLoader("fedcore.repro.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "slug": model.slug, "number": number, "markdown": notebooks.rendered,
        "first_line": answers.first_line, "second_line": answers.second_line,
        "told_of": told_of, "tally": tally, "with_code": notebooks.with_code,
    }  # fmt: skip
    made.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return made


def number(value: Any) -> str:
    """Return a number with four digits, as the verdicts have them; nothing for None."""
    return "" if value is None else f"{value:.4g}"


def write(
    results: Path,
    folder: Path,
    *,
    root: Path = Path(),
    command: str,
    surrogates: bool,
    processes: int = 1,
) -> Path:
    """Write the site of a run; what was there before is replaced when all pages are made.

    Parameters
    ----------
    results : path
        Folder of the run.
    folder : path
        Where the site goes.
    root : path
        The checkout: where the claims files of its papers are.
    command : str
        Command of the run, to which the name of a file is added to make that file alone.
    surrogates : bool
        Whether the run uses stand-ins for data.
    processes : int, default=1
        Processes that write pages at the same time.
    """
    found = model.papers(results, root)
    if not found:
        raise DataError(f"there are no verdicts and no plans in {results}: run the workflow first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        made = Path(name) / "site"
        shutil.copytree(ASSETS, made / "assets")
        with resources.as_file(resources.files("plotly") / "package_data/plotly.min.js") as library:
            shutil.copyfile(library, made / "assets" / library.name)
        common = {
            "papers": found,
            "machine": machine(),
            "counts": tally(item for paper in found for item in paper.printed_items),
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "version": __version__,
            "surrogates": surrogates,
            "command": command,
            "results": results.as_posix(),
            "meanings": WORDS,
        }
        _pages(made, found, common, processes)
        old = Path(name) / "old"
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
    return folder / "index.html"


def _pages(
    folder: Path, papers: list[model.Paper], common: Mapping[str, Any], processes: int
) -> None:
    """Write the first page and those of every paper, several papers at once."""
    _page(folder, common, "index.html.j2", "index.html")
    write = partial(_pages_of, folder, common)
    ordered = sorted(papers, key=lambda paper: -len(paper.jobs))
    shares = [ordered[i::processes] for i in range(min(processes, len(papers)))]
    # Forked, as they need what this process has imported. Each ends with its share, also if this
    # process is killed.
    context = multiprocessing.get_context("fork")
    others = []
    for share in shares[1:]:
        hears, tells = context.Pipe(duplex=False)
        others.append((context.Process(target=_write_all, args=(write, share, tells)), hears))
        others[-1][0].start()
        tells.close()
    try:
        for paper in shares[0] if shares else []:
            write(paper)
    finally:
        errors = [_error_of(process, hears) for process, hears in others]
    for error in filter(None, errors):
        raise error


def _write_all(
    write: Callable[[model.Paper], None], papers: list[model.Paper], tells: Connection
) -> None:
    """Write the pages of some papers, in a process of its own, and tell of an error."""
    try:
        for paper in papers:
            write(paper)
    except (FedcoreError, OSError) as error:  # the disk may be full
        tells.send(error)


def _error_of(process: BaseProcess, hears: Connection) -> Exception | None:
    """Wait for the end of a process; return the error that it tells, or that it has died."""
    error: Exception | None = None
    with contextlib.suppress(EOFError):
        error = hears.recv()
    process.join()
    if error is None and process.exitcode:
        error = RuntimeError(f"a process that writes pages ended with {process.exitcode}")
    return error


def _page(folder: Path, common: Mapping[str, Any], template: str, path: str, **values: Any) -> None:
    up = "../" * path.count("/")
    text = environment().get_template(template).render(**common, **values, up=up)
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def _pages_of(folder: Path, common: Mapping[str, Any], paper: model.Paper) -> None:
    page = partial(_page, folder, common)
    own = folder / paper.name
    own.mkdir()
    for figure in paper.figures:
        shutil.copyfile(figure.file, own / figure.file.name)
    page("paper.html.j2", f"{paper.name}/index.html", paper=paper)
    page("runs.html.j2", f"{paper.name}/runs.html", paper=paper)
    for verdict in paper.verdicts:
        item = paper.item(verdict)
        changes = paper.changes(item)
        page(
            "claim.html.j2", f"{paper.name}/{verdict.id}.html", paper=paper, verdict=verdict,
            judged=paper.judged_by(verdict), shown=paper.shows[verdict.id], changes=changes,
        )  # fmt: skip
    if paper.jobs:
        groups = curves.groups(paper.plan_file)
        (own / "curves.js").write_text(curves.script(groups), encoding="utf-8")
        page("curves.html.j2", f"{paper.name}/curves.html", paper=paper, axes=curves.AXES)
        page("replay.html.j2", f"{paper.name}/replay.html", paper=paper)
        if not paper.judged:
            commands = {run["name"]: run["command"] for group in groups for run in group["runs"]}
            page(
                "compare.html.j2", f"{paper.name}/compare.html", paper=paper, axes=curves.AXES,
                commands=commands,
            )  # fmt: skip
    if paper.notebook is not None:
        _notebook(page, folder, paper, paper.notebook)


def _notebook(page: Any, folder: Path, paper: model.Paper, notebook: Path) -> None:
    """Write the page of a notebook; its pictures that are no figures of the paper become files."""
    captions = {figure.file.read_bytes(): figure for figure in paper.figures}
    parts = []
    for number, part in enumerate(notebooks.parts(notebook)):
        pictures = []
        for place, picture in enumerate(part.pictures):
            if (figure := captions.get(picture)) is not None:
                pictures.append((figure.file.name, figure.caption))
                continue
            name = f"notebook-{number}-{place}.png"
            (folder / paper.name / name).write_bytes(picture)
            pictures.append(
                (name, f"A picture of the part “{part.heading}”, drawn by the code above")
            )
        parts.append((part, pictures))
    page("notebook.html.j2", f"{paper.name}/notebook.html", paper=paper, parts=parts)
