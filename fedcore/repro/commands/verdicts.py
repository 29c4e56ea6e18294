"""The command `verdicts`: print the answer to each paper's question, and verdicts on its items."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli.output import as_json, emit, say
from fedcore.errors import DataError, InputError, require_known
from fedcore.repro.config import papers
from fedcore.words import counted

if TYPE_CHECKING:
    from fedcore.repro.verdicts.verdicts import Verdict


@click.command()
@click.argument("what", metavar="[FOLDER|PAPER]", required=False)
@click.option("--paper", metavar="PAPER", help="Only items of this paper.")
@click.option(
    "--word", metavar="WORD", help="List items whose verdict as printed is WORD, such as fails."
)
@click.option("--all", "every", is_flag=True, help="List all items.")
@click.option("--show", "shown", metavar="ID", help="Print all details of one item.")
@click.option(
    "--strict",
    type=click.Path(),
    is_flag=False,
    flag_value=papers.FOLDER,
    metavar="[KEPT]",
    help=f"Exit with 1 if a verdict is worse than in this table or folder.  [{papers.FOLDER}]",
)
@as_json
def verdicts(
    what: str | None,
    paper: str | None,
    word: str | None,
    every: bool,
    shown: str | None,
    strict: str | None,
    as_json: bool,
) -> None:
    """Print the answer to each paper's question, from the results in FOLDER.

    By default, FOLDER is results after make reproduce, else results/quick after make quickstart,
    else the checkout's folder papers, which keeps the verdicts of earlier runs. A quick run has no
    verdicts; for a quick run, the command prints how many items (printed statements or numbers)
    ran, and the answer from the kept verdicts.

    \b
    Examples:
      fedcore verdicts
      fedcore verdicts faps
      fedcore verdicts --paper faps --word fails
      fedcore verdicts --show faps/table4-ssi
      fedcore verdicts --strict
    """
    from fedcore.reports.terminal import columns
    from fedcore.repro.verdicts import answers
    from fedcore.repro.verdicts import verdict_pages as pages

    kept = Path(papers.FOLDER)  # each paper's folder has a table
    kept = kept if kept.is_dir() else papers.CHECKOUT / kept
    if what is not None and not Path(what).exists():
        papers.require_checkout("fedcore verdicts PAPER")
        names = [claims.parent.name for claims in kept.glob("*/claims.yaml")]
        require_known(what, names, "there is no folder or paper", InputError)
        if paper not in (None, what):
            raise InputError(f"two papers are named, {what} and {paper}: name one")
        what, paper = None, what
    folder = Path(what) if what is not None else _results(kept)
    if strict == papers.FOLDER and folder == kept:
        raise DataError("--strict compares a run, but there is none: run the workflow first")
    found = pages.read_all(folder)
    if strict is not None and (worse := pages.worse(found, pages.read_all(strict))):
        emit(worse, lambda: "\n".join(worse), as_json)
        raise DataError(f"{counted(len(worse), 'verdict')} worse than in {strict}")
    for name, kind in ((paper, "paper"), (word, "word")):
        if name is not None:
            require_known(name, {getattr(v, kind) for v in found}, f"no such {kind}", InputError)
            found = [v for v in found if getattr(v, kind) == name]
    if shown is not None:
        known = {name for v in found for name in (v.id, f"{v.paper}/{v.id}")}
        listed = "fedcore verdicts PAPER --all lists those of a paper"
        require_known(shown, known, "there is no item", InputError, listed=listed)
        fitting = [v for v in found if shown in (v.id, f"{v.paper}/{v.id}")]
        emit(_listed(fitting), lambda: "\n\n".join(map(pages.describe, fitting)), as_json)
        return

    def text() -> str:
        if every or word is not None:
            heads = ("paper", "item", "printed", "as printed", "otherwise")
            lines = [
                (v.paper, v.id, shorten(v.printed, 40, placeholder="…"), v.word, answers.word_of(v))
                for v in found
            ]
            return f"{columns([heads, *lines])}\n\n{pages.counted_words(found)}"
        asked, notes = _questions(kept), _notes(kept) if folder == kept else {}
        if paper is not None and not pages.is_quick(found):
            return notes.get(paper, "") + pages.paper_text(asked.get(paper, ""), found)
        known = [v for table in pages.kept_tables(kept) for v in pages.read(table)]
        return f"{pages.overview(found, asked, known)}\n\nMore: fedcore verdicts PAPER, or --all"

    emit(_listed(found), text, as_json)


def _questions(kept: Path) -> dict[str, str]:
    """Return the question in each paper's ``claims.yaml``, keyed by the paper's name."""
    from fedcore.files.strict_yaml import read_yaml

    files = {file.parent.name: file for file in sorted(kept.glob("*/claims.yaml"))}
    return {name: str(read_yaml(file).get("question", "")) for name, file in files.items()}


def _notes(kept: Path) -> dict[str, str]:
    """Return a text for each paper: title, citation, and the run that gave its kept verdicts."""
    file = kept.parent / "kept" / "run.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {
        name: f"{run['title']}\n{run['citation']}\n"
        f"Kept: run of {run['date']}, commit {run['commit']}\n\n"
        for name, run in found.items()
    }


def _listed(found: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(verdict) for verdict in found]


def _results(kept: Path) -> Path:
    """Return the folder whose verdicts are shown.

    The folder is ``results`` or, if it has no verdicts, ``results/quick``. If neither has verdicts,
    the folder is `kept`.
    """
    for folder in (Path("results"), Path("results/quick")):
        if any((folder / name).exists() for name in ("verdicts.tsv", "verdicts")):
            return folder
    if not kept.is_dir():
        papers.require_checkout("fedcore verdicts without a folder of results")
    say(f"no run in results or results/quick: these are the tables kept in {kept}", err=True)
    return kept
