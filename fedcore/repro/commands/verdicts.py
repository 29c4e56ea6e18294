"""Commands on the workflow's results: `verdicts` and `why`."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli.output import as_json, emit, say
from fedcore.errors import DataError, InputError

if TYPE_CHECKING:
    from fedcore.repro.verdicts.verdicts import Verdict

KEPT = "papers"  # of a checkout: each folder has a table


@click.command()
@click.argument("folder", type=click.Path(), required=False)
@click.option("--combine", is_flag=True, help="First merge FOLDER/verdicts/*.tsv anew.")
@click.option("--paper", metavar="PAPER", help="Only items of this paper.")
@click.option("--verdict", metavar="VERDICT", help="Only items with this verdict.")
@click.option("--show", "shown", metavar="ID", help="Print all that is known of one item.")
@click.option(
    "--strict",
    type=click.Path(),
    is_flag=False,
    flag_value=KEPT,
    metavar="[KEPT]",
    help=f"Status 1 if a verdict is worse than in this table, or folder of tables.  [{KEPT}]",
)
@as_json
def verdicts(
    folder: str | None,
    combine: bool,
    paper: str | None,
    verdict: str | None,
    shown: str | None,
    strict: str | None,
    as_json: bool,
) -> None:
    """Print what came out of each item that a paper prints, from the results in FOLDER.

    FOLDER is by default results (from make reproduce), or else results/quick (from make
    quickstart). A checkout keeps the verdicts of earlier runs in the folders of papers.

    \b
    Examples:
      fedcore verdicts --paper faps --verdict deviates
      fedcore verdicts --show faps/table4-ssi-iterations
      fedcore verdicts --verdict deviates --json
      fedcore verdicts papers --paper fedpower
      fedcore verdicts --strict
    """
    from fedcore.errors import require_known
    from fedcore.reports.terminal import columns
    from fedcore.repro.verdicts import verdict_pages as pages

    folder = _results() if folder is None else folder
    table = Path(folder) / "verdicts.tsv"
    if combine:
        found = pages.combine(table.with_suffix(""), table)
    else:  # a run writes one table, and a checkout keeps one of each paper
        found = pages.read_all(table if table.is_file() or not Path(folder).is_dir() else folder)
    if strict is not None and (worse := pages.worse(found, pages.read_all(strict))):
        emit(worse, lambda: "\n".join(worse), as_json)
        raise DataError(f"verdicts worse than in {strict}: {len(worse)}")
    for name, kind in ((paper, "paper"), (verdict, "verdict")):
        if name is not None:
            require_known(name, {getattr(v, kind) for v in found}, f"no such {kind}", InputError)
            found = [v for v in found if getattr(v, kind) == name]
    if shown is not None:
        names = {f"{v.paper}/{v.id}": v for v in found}
        fitting = [v for name, v in names.items() if shown in (name, v.id)]
        if not fitting:
            raise InputError(_no_item(shown, found))
        emit(_listed(fitting), lambda: "\n\n".join(map(pages.describe, fitting)), as_json)
        return
    rows = [("paper", "item", "printed", "measured", "verdict")]
    rows += [
        (v.paper, v.id, _short(v.printed), _short(v.measured) or "–", v.verdict) for v in found
    ]
    emit(_listed(found), lambda: f"{columns(rows)}\n\n{pages.summary(found)}", as_json)


def _listed(found: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(verdict) for verdict in found]


def _no_item(shown: str, found: Iterable[Verdict]) -> str:
    """Say that there is no such item, and which is nearest by its id, with its paper or without."""
    names = {v.id: f"{v.paper}/{v.id}" for v in found}
    names |= {name: name for name in names.values()}
    close = [names[name] for name in difflib.get_close_matches(shown, names, n=1)]
    hint = "".join(f"did you mean '{name}'? " for name in close)
    return (
        f"there is no item '{shown}': {hint}fedcore verdicts --paper PAPER lists those of a paper"
    )


def _short(text: str, width: int = 40) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _results() -> str:
    """Return the folder with verdicts: of `make reproduce`, or else of `make quickstart`."""
    full, quick = "results", "results/quick"
    for folder in (full, quick):
        if any((Path(folder) / name).exists() for name in ("verdicts.tsv", "verdicts")):
            if folder == quick:
                say(f"the quick run, in {quick}, which is no check of the papers:", err=True)
            return folder
    raise InputError(
        f"there are no verdicts in {full} or {quick}: run make quickstart or make reproduce, "
        "or name the folder of the results"
    )
