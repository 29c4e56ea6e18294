"""Reading the results of a workflow run: plan, histories and tables of a paper."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedcore import algorithms
from fedcore.errors import ConfigError, DataError, InputError, require_known
from fedcore.experiments.cell import Cell
from fedcore.files import checksums
from fedcore.history import History, read_seconds
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import tables
from fedcore.repro.plan import up_to_date as settings
from fedcore.repro.tables.rows import Rows, gathered

# A column of a table: a value, or a function of a run that returns one value or one per repeat.
Column = Any | Callable[["Run"], Any]


@dataclass(frozen=True)
class Run:
    """A cell that has been run.

    Attributes
    ----------
    experiment, problem, algorithm, variant : str
        Names as in the paper's configuration.
    label : str
        Name of the problem in figures and tables.
    tags : mapping
        ``tags`` of the problem and the variant in the configuration.
    history : History
    seconds_file : Path
        Where its CPU seconds are.
    """

    experiment: str
    problem: str
    algorithm: str
    variant: str
    label: str
    tags: Mapping[str, Any]
    history: History
    seconds_file: Path

    @cached_property
    def seconds(self) -> np.ndarray:
        """CPU seconds until each record, without the time of recording, (repeats, records).

        Raises
        ------
        HistoryError
            When they are missing or damaged.
        """
        return read_seconds(self.seconds_file)

    @property
    def on_a_core(self) -> bool:
        """Whether it computed on a core, so that its CPU seconds cover all clients.

        On an accelerator they cover only the process that waits for it.
        """
        return "device" not in self.history.about

    @property
    def status(self) -> str:
        """Where the data come from, one of `fedcore.problems.STATUSES`."""
        return str(self.history.about["problem"]["status"])

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the data, such as ``n_clients``, ``n_samples`` and ``n_features``."""
        return dict(self.history.about["problem"])

    @cached_property
    def params(self) -> Any:
        """Hyper-parameters with defaults filled in; the value "reference" is replaced by 1."""
        given = self.history.about["params"]
        return algorithms.get(self.algorithm).params(
            {name: 1.0 if value == "reference" else value for name, value in given.items()}
        )

    @property
    def diverged(self) -> np.ndarray:
        """Whether each repeat ended with something that is not finite, shape (repeats,)."""
        if "diverged" not in self.history.columns:
            return np.zeros(self.history.repeats, bool)
        return self.last("diverged") > 0

    def __getitem__(self, column: str) -> np.ndarray:
        """Return a column of the history, shape (repeats, records)."""
        return self.history[column]

    def last(self, column: str) -> np.ndarray:
        """Return the last recorded value of a column in each repeat, shape (repeats,)."""
        return self.history.last(column)

    def row(self, **columns: Column) -> dict[str, Any]:
        """Return one row for the run: its names, its tags, and `columns`.

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
        """Return a row per repeat: the entries of `row`, the number of the repeat, and `columns`.

        Parameters
        ----------
        **columns : value, or callable that takes the run and returns one
            A value per repeat, shape (repeats,), or one for all of them.

        Raises
        ------
        InputError
            When a column has another shape.
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
        """Return the value of a column: one for the run, or perhaps one for each repeat."""
        value = np.asarray(column(self) if callable(column) else column)
        if value.shape and not (of_repeats and value.shape == (self.history.repeats,)):
            raise InputError(
                f"column '{name}' of {self.experiment}/{self.algorithm}: shape {value.shape}, "
                f"give one value, or `rows` one for each of the {self.history.repeats} repeats"
            )
        return value


def last(column: str) -> Callable[[Run], np.ndarray]:
    """Return a function for `Results.table`: the last recorded value of a column.

    Parameters
    ----------
    column : str
        Name of a column of the history.

    Returns
    -------
    callable
        ``run -> ndarray of shape (repeats,)``
    """
    return lambda run: run.last(column)


def _found(plan: Path) -> Path:
    """Return where a plan is: as given, or from the folder above, or that of the quick run."""
    quick = Path(*("results/quick" if part == "results" else part for part in plan.parts))
    places = (plan, ".." / plan, quick, ".." / quick)
    return next((place for place in places if place.is_file()), plan)


def _span(numbers: Iterable[int]) -> str:
    """Return "20", or "5 to 1,000"."""
    ends = sorted(numbers)
    return " to ".join(dict.fromkeys(f"{n:,}" for n in (ends[0], ends[-1])))


class Results:
    """Histories of one paper; each is read when it is first used.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``; the histories lie in ``<results>/histories``. For a
        notebook that is opened by hand, a relative path is also looked for in the folder above, and
        in ``results/quick`` where ``results`` has none.

    Attributes
    ----------
    plan : dict
        Title, problems, experiments, tables, figures, cells, and the problems without data.
    cells : dict of str to Cell
        The cells of the plan, by their paths.
    figures, tables : Path
        Folders of this paper's figures and tables.
    """

    def __init__(self, plan: str | os.PathLike[str]) -> None:
        plan = _found(Path(plan))
        checksums.require(plan, "plan")
        try:
            self.plan: dict[str, Any] = json.loads(plan.read_text(encoding="utf-8"))
            self.cells = {path: Cell.read(cell) for path, cell in self.plan["cells"].items()}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{plan} is no plan of this version ({error}): run snakemake to make it"
            ) from error
        self._folder = plan.parents[1]
        self.figures = self._folder / "figures" / self.plan["paper"]
        self.tables = self._folder / "tables" / self.plan["paper"]
        self._read: dict[str, History] = {}

    def __getitem__(self, cell: str) -> History:
        """Return the history of the cell ``<experiment>/<algorithm>/<problem>-<variant>``.

        Raises
        ------
        ConfigError
            When one repeat is a copy of another, as of a method that draws nothing, and the paper
            is judged: tests take repeats for independent runs.
        DataError
            When it is not what the plan asks for, as of a job that a killed run has left behind.
        HistoryError
            When it is missing or damaged.
        """
        if cell not in self._read:
            path = self._folder / "histories" / self.plan["paper"] / f"{cell}.h5"
            history = History.load(path)
            planned = self.cells.get(f"{self.plan['paper']}/{cell}")
            if planned and (why := settings.outdated(planned, history)):
                raise DataError(f"{path} is not what is planned ({why}): delete it, and run again")
            if self.plan.get("judged") and (copies := history.copies):
                raise ConfigError(
                    f"{self.plan['paper']}/{cell}: repeat {copies[0]} is a copy of an earlier one, "
                    "and verdicts take repeats for independent runs: lower its `repeats`, or give "
                    "its problem `draws`"
                )
            self._read[cell] = history
        return self._read[cell]

    @property
    def private(self) -> bool:
        """Whether one of the histories read so far comes from a private run."""
        return any(history.released is not None for history in self._read.values())

    def runs(self, *experiments: str, algorithm: str | None = None, **tags: Any) -> Iterator[Run]:
        """Yield the runs of experiments, each experiment in the order of the plan.

        If only some of the runs have a tag, it is None in the others, so that their table has equal
        columns.

        Parameters
        ----------
        *experiments : str
            By default all.
        algorithm : str, optional
            Only runs of this algorithm.
        **tags
            Only runs with these values; ``problem`` and ``variant`` count as tags here.

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
        """Return a row per repeat of every run of experiments, see `Run.rows`.

        Parameters
        ----------
        *experiments : str
            Names of the experiments.
        **columns
            See `Run.rows`.
        """
        return [row for run in self.runs(*experiments) for row in run.rows(**columns)]

    def rows(self, table: str) -> Rows:
        """Return a table of the paper that rule ``tables`` has written.

        Parameters
        ----------
        table : str
            Its name in the paper's YAML.

        Raises
        ------
        DataError
            When it is missing or damaged.
        """
        return [dict(row) for row in tables.read(self.tables / f"{table}.tsv")]

    def markdown(self, *names: str) -> str:
        """Return the paper's tables as Markdown, one below the other; raise the errors of `rows`.

        Parameters
        ----------
        *names : str
        """
        return "\n".join(tables.read_text(self.tables / f"{name}.md") for name in names)

    def problems(self, experiment: str) -> list[str]:
        """Return the problems of an experiment that have been run, in the order of the plan.

        Parameters
        ----------
        experiment : str
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

    def outcome(self, sentences: Mapping[str, str]) -> str:
        """Return what came out of printed items, "Holds: …; …. Fails: …."; empty before the rule.

        Parameters
        ----------
        sentences : mapping of str to str
            Short sentences by the id of an item in the claims of the paper.

        Raises
        ------
        InputError
            For an id without a verdict.
        """
        table = self._folder / "verdicts" / f"{self.plan['paper']}.tsv"
        if not table.is_file():
            return ""
        words = {str(row["id"]): str(row["word"]) for row in tables.read(table)}
        for item in sentences:
            require_known(item, words, "no verdict of the item", InputError)
        said = gathered((words[item], sentence) for item, sentence in sentences.items())
        if self.plan["run"]["quick"]:
            return "A quick run, which says nothing about the paper."
        return " ".join(f"{word.capitalize()}: {'; '.join(what)}." for word, what in said.items())

    def corner(self, runs: Iterable[Run]) -> str:
        """Return a figure's run, commit, sizes and repeats, with marks of its data."""
        shown = list(runs)
        if not shown:
            return ""
        commits = sorted({str(run.history.about.get("commit", "unknown")) for run in shown})
        made_at = f"{len(commits)} commits"
        if len(commits) < 3:
            made_at = " and ".join(commits)
        kind = {True: "quick", False: "full"}[self.plan["run"]["quick"]]
        words = [f"{kind} run, {made_at}"]
        sizes = {"n_samples": "n = {}", "n_features": "d = {}", "n_clients": "clients: {}"}
        for name, text in sizes.items():
            known = [run.data[name] for run in shown if name in run.data]
            if known:
                words.append(text.format(_span(known)))
        words.append(f"repeats: {_span([run.history.repeats for run in shown])}")
        marks = {f"{run.status} data" for run in shown if run.status in ("surrogate", "rebuilt")}
        marks |= {f"measures {NOT_RELEASED}" for run in shown if run.history.released is not None}
        return ", ".join([*words, *sorted(marks)])
