"""The command `decide`: run more repeats, so that undecided items of papers get decided."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

import click

from fedcore.cli import options
from fedcore.cli.output import say
from fedcore.errors import DataError, InputError, require_known
from fedcore.repro.commands.jobs import CONFIGFILE, planned
from fedcore.words import counted

HEAD = "# Least numbers of repeats, which `fedcore decide` has given; the plan reads them.\n"
Targets = dict[str, int]  # repeats of cells, by their paths


class Open(NamedTuple):
    """An undecided item (printed number or statement) of a paper.

    `targets` has the number of repeats that each cell (planned run) needs to decide the item. If
    more repeats cannot be run or would not help, `reason` says why.
    """

    item: str
    targets: Targets
    reason: str = ""


@click.command()
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), required=True, help="Time to plan for."
)
@click.option("--paper", help="Only items of this paper.")
@click.option("--item", help="Only this item.")
@click.option("--cores", type=options.COUNT, default=os.cpu_count() or 1, show_default=True)
@click.option("--profile", help="Workflow profile, such as workflow/profiles/slurm.")
@CONFIGFILE
def decide(
    hours: float,
    paper: str | None,
    item: str | None,
    cores: int,
    profile: str | None,
    configfile: Path | None,
) -> None:
    """Run more repeats until the undecided items of papers are decided, or the time is over.

    An item is a statement or number that a paper prints. The item that needs the least CPU time
    comes first; the forecast of this time assumes that new runs agree with the paper as often as
    earlier runs. The new numbers of repeats are first written to repeats.yaml, next to config.yaml.
    The workflow then computes only the new repeats. If the command is killed, the same command
    continues the work.

    \b
    Examples:
      fedcore decide --hours 3
      fedcore decide --hours 0.5 --paper fedpower --item theorem1
    """
    end = time.monotonic() + 3600 * hours
    given = {"cores": cores, "workflow-profile": profile, "configfile": configfile}
    call = [f"--{name}={value}" for name, value in given.items() if value is not None]
    run = _Run(configfile, call)
    papers = run.judged(paper)
    if item is not None:
        ids = {name.partition("/")[2] for name in run.words(papers)}
        require_known(item, ids, "--item: unknown item", InputError)
    say("Repeats that an earlier call planned but did not run come first.")
    run.update(papers)
    before, more = run.words(papers), set[str]()
    while True:
        left = end - time.monotonic()
        found = run.undecided(papers, item)
        chosen, targets, seconds = run.choose(found, left * cores)
        if not chosen:
            break
        minutes = f"about {seconds / cores / 60:.1f} of {left / 60:.0f} minutes"
        say(f"{counted(len(chosen), 'item')}, for {minutes}:")
        for one in chosen:
            cells = counted(len(one.targets), "cell")
            say(f"  {one.item}: {cells}, up to {max(one.targets.values())} repeats")
        run.give(targets)
        more |= targets.keys()
        run.update(papers, targets)
    say(f"{counted(len(more), 'cell')} got repeats.")
    for name, word in run.words(papers).items():
        if before[name] != word:
            say(f"  {name}: {before[name]} -> {word}")
    for one in found:
        say(f"  {one.item} stays undecided: {one.reason or 'it costs more than the time left'}.")


class _Run:
    """The run of the workflow to which `fedcore decide` adds repeats.

    Attributes
    ----------
    call : list of str
        Options of each Snakemake call, such as ``--cores=4``.
    plan : Plan
        Problems and cells (planned runs), including all repeats added so far.
    results : path
    """

    def __init__(self, configfile: Path | None, call: list[str]) -> None:
        self._configfile, self.call = configfile, call
        self.plan = planned(configfile)
        self.results = Path(self.plan.config["paths"]["results"])

    def judged(self, paper: str | None) -> list[str]:
        """Return the names of the papers that have verdicts; raise an error if there are none."""
        plan = self.plan
        if plan.config["quick"]:
            raise InputError("a quick run has no verdicts: use the configuration of a full run")
        if paper is not None:
            require_known(paper, plan.judged, "--paper: unknown paper", InputError)
        names = [name for name in plan.judged if paper in (None, name)]
        found = [n for n in names if (self.results / "verdicts" / f"{n}.tsv").is_file()]
        if not found:
            raise DataError(f"{self.results} has no verdicts: run `make reproduce` first")
        return found

    def words(self, papers: Sequence[str]) -> dict[str, str]:
        """Return the verdict on each item, keyed by ``<paper>/<id>``."""
        from fedcore.repro.verdicts import verdict_pages

        found = verdict_pages.read_papers(self.results / "verdicts", papers)
        return verdict_pages.words_of(verdict_pages.printed_items(found))

    def undecided(self, papers: Sequence[str], item: str | None) -> list[Open]:
        """Return the undecided items of papers, each with the repeats that would decide it."""
        from fedcore.repro.verdicts.decision_rules import UNDECIDED
        from fedcore.repro.verdicts.evidence import Evidence

        found = []
        for paper in papers:
            words = self.words([paper]).items()
            ids = [name.partition("/")[2] for name, word in words if word == UNDECIDED]
            asked = [name for name in ids if item in (None, name)]
            if asked:
                plan = self.results / "plans" / f"{paper}.json"
                evidence = Evidence(plan, self.plan.claims_of(paper))
                found += [self._open(f"{paper}/{n}", *evidence.growth(n)) for n in asked]
        return found

    def _open(self, item: str, factor: float, cells: Sequence[str]) -> Open:
        """Return the `Open` object of an item that needs `factor` times as many runs as now."""
        from fedcore.repro.plan.plan import draws_of

        if not factor:
            return Open(item, {}, "no number of runs would decide it")
        # A method without random draws has one repeat; a second would be a copy. Cells of one
        # experiment that have equally many repeats keep equally many, because tables compare them.
        behind = [self.plan.cell(path) for path in cells]
        alike = {(cell.paper, cell.experiment, cell.repeats) for cell in behind}
        several = [
            cell
            for cell in self.plan.cells.values()
            if cell.repeats > 1 and (cell.paper, cell.experiment, cell.repeats) in alike
        ]
        if not several:
            return Open(item, {}, "each of its cells has one repeat")
        targets = {cell.path: ceil(cell.repeats * factor - 1e-9) for cell in several}
        for cell in several:
            n = targets[cell.path]
            draws = draws_of(self.plan.problems[f"{cell.paper}/{cell.problem}"])
            if draws is not None and n > draws:
                said = f"{cell.problem} has {counted(draws, 'draw')}, and {n} are needed"
                return Open(item, targets, f"{said}: raise `draws`")
        return Open(item, targets)

    def choose(self, found: Sequence[Open], seconds: float) -> tuple[list[Open], Targets, float]:
        """Choose the cheapest items that can be decided within `seconds` of CPU time.

        Return the items, the new number of repeats of each of their cells, and the CPU seconds of
        all new repeats.
        """
        from fedcore.repro.plan import job_costs

        now = {path: cell.repeats for path, cell in self.plan.cells.items()}
        each = {
            path: job_costs.seconds(self.results / "benchmarks" / f"{path}.tsv") / now[path]
            for path in {path for one in found for path in one.targets}
        }

        def cost(one: Open) -> float:
            return sum(each[path] * max(0, n - now[path]) for path, n in one.targets.items())

        todo = [one for one in found if not one.reason]
        chosen: list[Open] = []
        targets: Targets = {}
        spent = 0.0
        while todo:
            cheapest = min(todo, key=lambda one: (cost(one), one.item))
            if spent + cost(cheapest) > seconds:
                break
            spent += cost(cheapest)
            todo.remove(cheapest)
            chosen.append(cheapest)
            for path, n in cheapest.targets.items():
                now[path] = targets[path] = max(now[path], n)
        return chosen, targets, spent

    def give(self, targets: Targets) -> None:
        """Write the cells' numbers of repeats to ``repeats.yaml``, and load the plan again."""
        import yaml

        from fedcore.files import atomic
        from fedcore.files.strict_yaml import read_yaml
        from fedcore.repro.config import configuration
        from fedcore.repro.config.short_forms import merge

        file = configuration.files()[0].with_name(configuration.REPEATS)
        known = read_yaml(file) if file.is_file() else {}
        for path, n in targets.items():
            paper, _, cell = path.partition("/")
            known = merge(known, {"repeats": {paper: {cell: n}}})
        with atomic.replace(file) as draft:
            draft.write_text(HEAD + yaml.safe_dump(known), encoding="utf-8")
        self.plan = planned(self._configfile)

    def update(self, papers: Sequence[str], given: Collection[str] = ()) -> None:
        """Run Snakemake for the papers' results, and for the HTML report if it exists.

        Snakemake is forced to rerun the cells in `given`, even if it has no record of how their
        histories were made.
        """
        from fedcore.repro.commands import workflow

        page = self.results / "report" / "index.html"
        targets = list(papers)
        if page.is_file():
            targets.append(str(page))
        if workflow.run([*self.call, *forced(self.results, given), "--", *targets]):
            raise DataError("Snakemake has failed (see above): correct the cause, and run again")


def forced(results: Path, given: Collection[str]) -> list[str]:
    """Return options with which Snakemake rebuilds the cells' histories and their papers' plans."""
    if not given:
        return []
    papers = sorted({path.partition("/")[0] for path in given})
    plans = [results / "plans" / f"{paper}.json" for paper in papers]
    histories = [results / "histories" / f"{path}.h5" for path in given]
    return ["--forcerun", *map(str, [*plans, *histories])]
