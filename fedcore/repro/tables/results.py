"""Read the results of a workflow run, which are the plan, histories and tables of a paper."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedcore import algorithms
from fedcore.errors import ConfigError, DataError, HistoryError, InputError, require_known
from fedcore.experiments.cell import Cell
from fedcore.files import checksums
from fedcore.history import History, read_seconds
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import tables
from fedcore.repro.plan import up_to_date
from fedcore.repro.tables.rows import Rows, gathered
from fedcore.words import counted, few

# A column of a table: a value, or a function of a run that returns one value or one per repeat.
Column = Any | Callable[["Run"], Any]
SYMBOLS = {"n": "n_samples", "d": "n_features", "clients": "n_clients"}
NAMED = 3  # most points that are named beneath the title of a figure
COMMITS = 2  # most commits that are named of one run
# Of a verdict, as its table has them: a reading of the item, and a part of a reading.
Reading = Mapping[str, Any]
Part = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A cell (an algorithm with fixed parameters on one problem) that has been run.

    Attributes
    ----------
    experiment, problem, algorithm, variant : str
        Names as in the paper's configuration.
    label : str
        Name of the problem in figures and tables.
    tags : mapping
        Values for tables and figures that the configuration gives to the problem and to the
        variant.
    history : History
    seconds_file : Path
        File with the CPU seconds of the cell.
    """

    experiment: str
    problem: str
    algorithm: str
    variant: str
    label: str
    tags: Mapping[str, Any]
    history: History
    seconds_file: Path

    @property
    def cell(self) -> str:
        """Name of the cell, ``<experiment>/<algorithm>/<problem>-<variant>``."""
        return f"{self.experiment}/{self.algorithm}/{self.problem}-{self.variant}"

    @cached_property
    def seconds(self) -> np.ndarray:
        """CPU seconds up to each recorded iteration, without the time for recording.

        The shape is (repeats, records).

        Raises
        ------
        HistoryError
            If the file with the CPU seconds is missing or damaged.
        """
        return read_seconds(self.seconds_file)

    @property
    def on_a_core(self) -> bool:
        """Whether the run computed on CPU cores only, so that its CPU seconds cover all clients.

        On an accelerator, CPU seconds cover only the process that waits for the accelerator.
        """
        return "device" not in self.history.about

    @property
    def status(self) -> str:
        """Origin of the data, one of `fedcore.problems.STATUSES`."""
        return str(self.history.about["problem"]["status"])

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the data, such as ``n_clients``, ``n_samples`` and ``n_features``."""
        return dict(self.history.about["problem"])

    @cached_property
    def params(self) -> Any:
        """Hyper-parameters of the run, including defaults; the value "reference" becomes 1."""
        given = self.history.about["params"]
        return algorithms.get(self.algorithm).params(
            {name: 1.0 if value == "reference" else value for name, value in given.items()}
        )

    @property
    def shown_params(self) -> dict[str, Any]:
        """Hyper-parameters of the run, without defaults if the algorithm is not installed."""
        if self.algorithm in algorithms.names():
            return vars(self.params)
        return dict(self.history.about["params"])

    @property
    def diverged(self) -> np.ndarray:
        """Whether each repeat ended with a value that is not finite, shape (repeats,)."""
        if "diverged" not in self.history.columns:
            return np.zeros(self.history.repeats, bool)
        return self.last("diverged") > 0

    def __getitem__(self, column: str) -> np.ndarray:
        """Return a column of the history, shape (repeats, records)."""
        self._require(column)
        return self.history[column]

    def last(self, column: str) -> np.ndarray:
        """Return the last recorded value of a column in each repeat, shape (repeats,)."""
        self._require(column)
        return self.history.last(column)

    def _require(self, column: str) -> None:
        require_known(column, self.history.columns, f"{self.cell} has no column", InputError)

    def row(self, **columns: Column) -> dict[str, Any]:
        """Return one row for the run, with its names, its tags and the values of `columns`.

        Parameters
        ----------
        **columns : value, or callable that takes the run and returns one
        """
        named = {
            "experiment": self.experiment,
            "problem": self.problem,
            "status": self.status,
            "algorithm": self.algorithm,
            "variant": self.variant,
            **self.tags,
        }
        values = {name: self._value(name, column) for name, column in columns.items()}
        return named | {name: value.item() for name, value in values.items()}

    def rows(self, **columns: Column) -> Rows:
        """Return a row per repeat: the run's names and tags, the repeat's number and `columns`.

        Parameters
        ----------
        **columns : value, or callable that takes the run and returns one
            A value is an array of shape (repeats,), or one value for all repeats.

        Raises
        ------
        InputError
            If a value is an array of any other shape.
        """
        repeats, values = self.history.repeats, {}
        for name, column in columns.items():
            value = self._value(name, column, of_repeats=True)
            values[name] = np.broadcast_to(value, (repeats,)).tolist()
        return [
            self.row(repeat=repeat, **{name: value[repeat] for name, value in values.items()})
            for repeat in range(repeats)
        ]

    def _value(self, name: str, column: Column, of_repeats: bool = False) -> np.ndarray:
        """Return the value of a column for the run.

        If `of_repeats` is true, the value may be an array with one entry per repeat.
        """
        value = np.asarray(column(self) if callable(column) else column)
        if value.shape and not (of_repeats and value.shape == (self.history.repeats,)):
            raise InputError(
                f"column '{name}' of {self.cell}: a value has shape {value.shape}: "
                f"give one value or, to `rows`, one for each of {self.history.repeats} repeats"
            )
        return value


def last(column: str) -> Callable[[Run], np.ndarray]:
    """Return a function for `Results.table` that returns the last recorded value of a column.

    Parameters
    ----------
    column : str

    Returns
    -------
    callable
        ``run -> ndarray of shape (repeats,)``
    """
    return lambda run: run.last(column)


def _found(plan: Path) -> Path:
    """Return the first place where the plan file exists, or `plan` if there is no such place.

    The places are `plan`, ``../plan``, and both paths with ``results/quick`` in place of
    ``results``.
    """
    quick = Path(*("results/quick" if part == "results" else part for part in plan.parts))
    places = (plan, ".." / plan, quick, ".." / quick)
    return next((place for place in places if place.is_file()), plan)


def _span(numbers: Iterable[int]) -> str:
    """Return the range of some numbers as text, such as "5 to 1,000", or "20" if all are equal."""
    ends = sorted(numbers)
    return " to ".join(dict.fromkeys(f"{n:,}" for n in (ends[0], ends[-1])))


def _sizes(run: Run) -> dict[str, Any]:
    """Return facts about a run's data, with the mean number of samples per client as ``each``."""
    found = run.data
    if {"n_samples", "n_clients"} <= found.keys():
        found["each"] = found["n_samples"] // found["n_clients"]
    return found


def _came_out(verdict: Mapping[str, Any], change: str, part: str) -> str:
    """Return in a few words the verdict on what a figure shows.

    A figure shows one reading of the item (one way to run it) or, if `part` is given, one part of
    this reading.
    """
    readings = json.loads(str(verdict["readings"]))
    named = [one for one in readings if change in _changes(one)] or readings[:1]
    shown: Reading = min(named, key=lambda one: len(one.get("replaces", ())), default={})
    if not shown.get("state"):
        return f"Not run: {shown.get('obstacle') or verdict['why']}".rstrip(".")
    state, parts, replaced = shown["state"], shown.get("parts", {}), shown.get("replaces")
    if part and part in parts:
        said = [f"Ours, {part}: {_stands(parts[part]['state'], [parts[part]])}"]
        if parts[part]["state"] != state:
            alike = [name for name, one in parts.items() if one["state"] == state]
            said.append(f"With {few(alike, NAMED, 'part')}: {state}")
    else:
        said = [f"Ours: {_stands(state, parts.values())}"]
    if replaced:  # the figure's title tells of `change`
        untold = [one["what"] for one in replaced if one["name"] != change]
        if untold:
            said[-1] += f", where {untold[0]}"
        if len(untold) > 1:
            said[-1] += f", and with {counted(len(untold) - 1, 'more change')}"
        if state != verdict["word"]:
            said.append(f"As printed: {verdict['word']}")
        return ". ".join(said)
    words = {one["state"] for one in readings if one.get("state") and not one.get("replaces")}
    others = words - {state}
    if others:
        said.append(f"Under another reading: {' or '.join(sorted(others))}")
    return ". ".join(said)


def _together(said: Sequence[str]) -> str:
    """Return the outcome shared by all items, or each outcome with the number of its items."""
    found = Counter(said)
    if len(found) == 1:
        return said[0]
    return "; ".join(f"{one} ({n} of {len(said)})" for one, n in found.items())


def _changes(reading: Reading) -> list[str]:
    return [one["name"] for key in ("fills_in", "replaces") for one in reading.get(key, ())]


def _stands(word: str, parts: Iterable[Part]) -> str:
    """Return a verdict, followed by what prevents a decision or by how many runs agree."""
    known = list(parts)
    lacks = dict.fromkeys(_lack(one) for one in known if "lack" in one)
    if lacks:
        return f"{word}, {' and '.join(lacks)}"
    shares = [one["share"] for one in known if "share" in one]
    return f"{word} ({shares[0][0]} of {shares[0][1]} runs)" if len(shares) == 1 else word


def _lack(part: Part) -> str:
    """Return which evidence an undecided part of a claim lacks, and at which points."""
    where = f"at {few(part['at'], NAMED, 'point')}" if "at" in part else ""
    said = (where, part["silent"]) if "silent" in part else (part["lack"], where)
    return " ".join(filter(None, said))


class Results:
    """Results of one paper; each history is read when it is first used.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``. The histories lie in ``<results>/histories``. If the
        file does not exist, the same path relative to the parent of the working directory is tried.
        Last, both paths are tried with ``results/quick`` in place of ``results``.
    symbols : mapping of str to str, optional
        Maps each symbol that a figure's corner shows to the name of a size. A size is
        ``n_samples``, ``n_features``, ``n_clients``, or ``each`` for the mean number of samples per
        client. The default symbols are "n", "d" and "clients".

    Attributes
    ----------
    plan : dict
        Content of the plan file, such as title, problems, experiments, tables, figures and cells.
    cells : dict of str to Cell
        The cells of the plan, keyed by their paths.
    figures, tables : Path
        Folders of this paper's figures and tables.
    symbols : mapping of str to str
        The parameter `symbols`.
    asked : set of str
        Names of the cells whose histories have been requested.
    """

    def __init__(self, plan: str | os.PathLike[str], symbols: Mapping[str, str] = SYMBOLS) -> None:
        self.symbols = symbols
        plan = _found(Path(plan))
        checksums.require(plan, "plan")
        try:
            self.plan: dict[str, Any] = json.loads(plan.read_text(encoding="utf-8"))
            self.cells = {path: Cell.read(cell) for path, cell in self.plan["cells"].items()}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{plan} is not a plan of this version ({error}): run snakemake to make one"
            ) from error
        self._folder = plan.parents[1]
        self.figures = self._folder / "figures" / self.plan["paper"]
        self.tables = self._folder / "tables" / self.plan["paper"]
        self.asked: set[str] = set()
        self._read: dict[str, History] = {}

    def __getitem__(self, cell: str) -> History:
        """Return the history of the cell ``<experiment>/<algorithm>/<problem>-<variant>``.

        Raises
        ------
        ConfigError
            If verdicts are made for the paper and one repeat is a copy of another repeat. Verdicts
            need independent repeats, and a method without random draws gives copies.
        DataError
            If the history does not match the plan, for example because a killed run has left it
            behind.
        HistoryError
            If the history is missing or damaged.
        """
        self.asked.add(cell)
        if cell not in self._read:
            path = self._folder / "histories" / self.plan["paper"] / f"{cell}.h5"
            planned = self.cells.get(f"{self.plan['paper']}/{cell}")
            again = f"run the paper {self.plan['paper']} again"
            if planned and not path.is_file():
                raise HistoryError(f"{path} is not there: {again}")
            history = History.load(path)
            if planned and (why := up_to_date.outdated(planned, history)):
                raise DataError(f"{path} is not what is planned ({why}): delete it, and {again}")
            if self.plan.get("judged") and (copies := history.copies):
                raise ConfigError(
                    f"{self.plan['paper']}/{cell}: repeat {copies[0]} is a copy of an earlier one, "
                    "but verdicts need independent repeats: lower its `repeats`, or give its "
                    "problem `draws`"
                )
            self._read[cell] = history
        return self._read[cell]

    @property
    def private(self) -> bool:
        """Whether any history that has been read so far comes from a private run."""
        return any(history.released is not None for history in self._read.values())

    def runs(self, *experiments: str, algorithm: str | None = None, **tags: Any) -> Iterator[Run]:
        """Yield the runs of each experiment in the order of the plan.

        If only some of the runs have a tag, the tag is None for the other runs.

        Parameters
        ----------
        *experiments : str
            Names of the experiments, by default all.
        algorithm : str, optional
            Yield only runs of this algorithm.
        **tags
            Yield only runs whose tags have these values; ``problem`` and ``variant`` count as tags.

        Raises
        ------
        InputError
            For an unknown experiment.
        """
        for name in experiments:
            require_known(name, self.plan["experiments"], "unknown experiment", InputError)
        cells = [
            cell
            for experiment in experiments or self.plan["experiments"]
            for cell in self.cells.values()
            if cell.experiment == experiment and algorithm in (None, cell.algorithm)
        ]
        untagged = {name: None for cell in cells for name in cell.tags}
        for cell in cells:
            tagged = untagged | cell.tags
            about = {"problem": cell.problem, "variant": cell.variant, **tagged}
            if all(about.get(name) == value for name, value in tags.items()):
                yield Run(
                    cell.experiment, cell.problem, cell.algorithm, cell.variant,
                    self.label(cell.problem), tagged, self[cell.short],
                    self._folder / "seconds" / f"{cell.path}.tsv",
                )  # fmt: skip

    def table(self, *experiments: str, **columns: Column) -> Rows:
        """Return one row for each repeat of each run of the given experiments.

        Parameters
        ----------
        *experiments : str
            Names of the experiments.
        **columns
            See `Run.rows`.
        """
        return [row for run in self.runs(*experiments) for row in run.rows(**columns)]

    def rows(self, table: str) -> Rows:
        """Return the rows of a table that the Snakemake rule ``tables`` has written.

        Parameters
        ----------
        table : str
            Name of the table in the paper's ``experiments.yaml``.

        Raises
        ------
        DataError
            If the table is missing or damaged.
        """
        return tables.read(self.tables / f"{table}.tsv")

    def markdown(self, *names: str) -> str:
        """Return tables of the paper as Markdown, one below the other.

        Parameters
        ----------
        *names : str
            Names of the tables in the paper's ``experiments.yaml``.

        Raises
        ------
        DataError
            If a table is missing or damaged.
        """
        return "\n".join(tables.read_text(self.tables / f"{name}.md") for name in names)

    def problems(self, experiment: str) -> list[str]:
        """Return the problems that have cells in an experiment, in the order of the plan.

        Parameters
        ----------
        experiment : str
            Name of the experiment in the paper's ``experiments.yaml``.
        """
        run = {cell.problem for cell in self.cells.values() if cell.experiment == experiment}
        return [name for name in self.plan["problems"] if name in run]

    def label(self, problem: str) -> str:
        """Return the name of a problem in figures and tables.

        Parameters
        ----------
        problem : str
        """
        return str(self.plan["problems"][problem].get("label", problem))

    def outcome(self, sentences: Mapping[str, str], change: str = "", part: str = "") -> str:
        """Return the lines below a figure's title, each with a printed statement and its verdict.

        An item is a printed statement or number, and a reading is one way to run an item. Each line
        consists of a text of `sentences`, a tab, and the verdict on the reading that the figure
        shows or, if `part` is given, on this part of the reading. Other verdicts follow if they
        differ: on the whole reading, on the claim as printed or on another reading. If the results
        contain no verdicts, the text is empty. For a quick run, the text only says that a quick run
        says nothing about the paper.

        Parameters
        ----------
        sentences : mapping of str to str
            Maps the id of an item in the paper's claims to a few words that say what the paper
            prints.
        change : str
            Name of a change to the printed claim, as in the paper's claims. The figure shows the
            reading with this change, and the figure's title mentions the change. By default, the
            figure shows the first reading of each item.
        part : str
            Name of the part of a reading that the figure shows, as in the paper's claims. By
            default, the figure shows the whole reading.

        Raises
        ------
        InputError
            If an id has no verdict.
        """
        table = self._folder / "verdicts" / f"{self.plan['paper']}.tsv"
        if not table.is_file():
            return ""
        verdicts = {str(row["id"]): row for row in tables.read(table)}
        for item in sentences:
            require_known(item, verdicts, "no verdict of the item", InputError)
        if self.plan["run"]["quick"]:
            return "A quick run, which says nothing about the paper."
        told = gathered((said, item) for item, said in sentences.items())
        return "\n".join(
            f"Printed: {said}\t{_together([_came_out(verdicts[i], change, part) for i in items])}"
            for said, items in told.items()
        )

    def corner(self, runs: Iterable[Run], spread: str = "") -> str:
        """Return the text in a figure's corner, with kind of run, commit, sizes and repeats.

        The text also says if data are surrogate or rebuilt, and if a run is private, so that its
        exact metrics are not released.

        Parameters
        ----------
        runs : iterable of Run
        spread : str
            Words that say how the figure shows the spread of the repeats.
        """
        shown = list(runs)
        if not shown:
            return ""
        commits = sorted({str(run.history.about.get("commit", "unknown")) for run in shown})
        kind = {True: "quick", False: "full"}[self.plan["run"]["quick"]]
        words = [f"{kind} run, {few(commits, COMMITS, 'commit')}"]
        # Of a run over many sizes its history knows the first alone.
        sized = [run for run in shown if "over" not in self.plan["problems"][run.problem]]
        for symbol, size in self.symbols.items():
            known = [facts[size] for facts in map(_sizes, sized) if size in facts]
            if known:
                words.append(f"{symbol} = {_span(known)}")
        repeats = f"repeats: {_span([run.history.repeats for run in shown])}"
        words.append(f"{repeats} ({spread})" if spread else repeats)
        marks = {f"{run.status} data" for run in shown if run.status in ("surrogate", "rebuilt")}
        if any(run.history.released is not None for run in shown):
            marks.add(f"exact measures, {NOT_RELEASED}")
        return ", ".join([*words, *sorted(marks)])
