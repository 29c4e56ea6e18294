"""Write the HTML pages of a run from templates, with the files that the pages show."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml import converter as latex2mathml
from markdown_it import MarkdownIt
from markupsafe import Markup
from nbconvert import HTMLExporter

from fedcore import __version__
from fedcore.errors import DataError, FedcoreError
from fedcore.repro.plan.machine import describe_machine
from fedcore.repro.site import curves, model
from fedcore.repro.verdicts import answers, verdict_pages
from fedcore.repro.verdicts.verdicts import WORDS
from fedcore.words import counted

ASSETS = Path(__file__).parent / "assets"
FORMULA = re.compile(r"\$(?!\s)([^$\n]+?)(?<!\s)\$")


@cache
def environment() -> Environment:
    """Return the Jinja environment, which escapes values for HTML and refuses missing values."""
    made = Environment(
        loader=PackageLoader("fedcore.repro.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"slug": model.slug, "number": number, "markdown": markdown}
    made.globals |= {"answers": answers, "pages": verdict_pages, "counted": counted}
    made.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return made


def number(value: Any) -> str:
    """Return a number as text with four significant digits, or an empty text for None."""
    return "" if value is None else f"{value:.4g}"


def write(results: Path, folder: Path, root: Path = Path(), of_run: Collection[str] = ()) -> Path:
    """Write the site of a run; an earlier site is replaced only after all new pages are made.

    Parameters
    ----------
    results : path
        Folder with the results of the run.
    folder : path
    root : path
        Checkout of fedcore, which holds the claims files of the papers.
    of_run : collection of str
        Names of the papers in this run. Any other paper in `results` also gets pages, unless its
        results cannot be read or do not match its plan.
    """
    drawn: dict[model.Paper, list[dict[str, Any]]] = {}
    for name in model.names(results):
        try:
            paper = model.Paper(results, name, root)
            groups = curves.groups(paper.plan_file) if paper.jobs else []
        except (FedcoreError, ValueError) as error:  # ValueError: no JSON
            if not of_run or name in of_run:
                raise
            print(f"{name}, which is not of this run, has no pages: {error}", file=sys.stderr)
            continue
        if paper.verdicts and not paper.claims_file.is_file():
            print(f"{name} has no pages: {paper.claims_file} is gone", file=sys.stderr)
        elif paper.judged or not paper.plan.get("judged", True):
            drawn[paper] = groups
    found = [*drawn]
    if not found:
        raise DataError(f"there are no verdicts and no plans in {results}: run the workflow first")
    runs = [paper.plan["run"] for paper in found if paper.plan]
    command = "snakemake --cores 1"  # with the name of a file it makes that file alone
    if any(run["quick"] for run in runs):
        command += " --configfile config/quick.yaml"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        made = Path(name) / "site"
        shutil.copytree(ASSETS, made / "assets")
        with resources.as_file(resources.files("plotly") / "package_data/plotly.min.js") as library:
            shutil.copyfile(library, made / "assets" / library.name)
        common = {
            "papers": found,
            "machine": describe_machine(),
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "version": __version__,
            "surrogates": any(run["surrogates"] for run in runs),
            "command": command,
            "results": results.as_posix(),
            "meanings": WORDS,
        }
        _page(made, common, "index.html.j2", "index.html")
        for paper, groups in drawn.items():
            _pages_of(made, common, paper, groups)
        old = Path(name) / "old"
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
    return folder / "index.html"


def _page(folder: Path, common: Mapping[str, Any], template: str, path: str, **values: Any) -> None:
    up = "../" * path.count("/")
    text = environment().get_template(template).render(**common, **values, up=up)
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def _pages_of(
    folder: Path, common: Mapping[str, Any], paper: model.Paper, groups: list[dict[str, Any]]
) -> None:
    own = folder / paper.name
    own.mkdir()
    drawn = list(dict.fromkeys(group["experiment"] for group in groups))
    replays = any("replay" in run for group in groups for run in group["runs"])

    def page(template: str, name: str, **values: Any) -> None:
        _page(folder, common, template, f"{paper.name}/{name}.html", paper=paper, **values)

    files = [exhibit["file"] for exhibit in paper.figures]
    for file in (*files, *(one["file"].with_suffix(".tex") for one in paper.own_tables)):
        shutil.copyfile(file, own / file.name)
    page("paper.html.j2", "index", replays=replays)
    page("runs.html.j2", "runs")
    told = {verdict.id: verdict for verdict in paper.told}
    for run in paper.verdicts:
        page(
            "item.html.j2", run.id, run=run, verdict=told.get(run.id, run),
            judged=paper.judging(run), changes=paper.changes(run), figure=paper.figure(run),
            drawn=drawn,
        )  # fmt: skip
    if groups:
        (own / "curves.js").write_text(curves.script(groups), encoding="utf-8")
        page("curves.html.j2", "curves", axes=curves.AXES)
    if replays:
        page("replay.html.j2", "replay")
    if paper.notebook is not None:
        page("notebook.html.j2", "notebook", notebook=notebook(paper.notebook))


def notebook(path: Path) -> Markup:
    """Return an executed notebook as HTML, with its formulas converted to MathML."""
    try:
        book = nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise DataError(f"{path} is not a notebook ({error}); delete it, and run again") from error
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = FORMULA.sub(lambda found: latex2mathml.convert(found[1]), cell.source)
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(book)
    return Markup(html)


def markdown(text: str) -> Markup:
    """Return Markdown as HTML; HTML tags inside the Markdown are shown as text."""
    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
