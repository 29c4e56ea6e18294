"""Options for data, parameters and execution that the commands `run` and `compare` share."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fedcore.cli import options
from fedcore.cli.output import say
from fedcore.errors import ConfigError, DataError, InputError, TableError, foreign_errors, nearest
from fedcore.files import HDF5_ENDINGS
from fedcore.words import EXACT, in_line

if TYPE_CHECKING:
    import numpy as np

    from fedcore.algorithms import Algorithm
    from fedcore.experiments.from_files import LoadedFiles
    from fedcore.history import History
    from fedcore.problems.problem import Problem
    from fedcore.problems.tasks import Task

FIT = ("training_loss",)
POLICIES = ("none", "last", "log", "all")  # of fedcore.snapshots, which needs NumPy
COLUMN = {"metavar": "COLUMN"}


def _split(ctx: Any, param: click.Parameter, given: Sequence[str]) -> Sequence[str] | None:
    """Split an option's values at commas, as in a CSV file, and return the column names."""
    names = next(csv.reader([",".join(given)], skipinitialspace=True), [])
    if names and not names[-1]:
        raise click.BadParameter("ends with a comma: put all names into quotes", ctx, param)
    return [name.strip() for name in names] or (None if param.name == "columns" else ())


SCALED = "Here values are divided by 255, and not standardised."  # as some papers' problems are
COLUMNS = {"multiple": True, "metavar": "COLUMN[,COLUMN...]", "callback": _split}
# Options of files: what they are for, and how click reads them. `Reading` has all but two.
OF_FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "by": ("Column that names the client of each row.  [default: one client per file]", COLUMN),
    "labels": ("Column with the labels that clients learn from.", COLUMN),
    "columns": ("Columns to take from files.  [default: all]", COLUMNS),
    "without": ("Columns to leave out, in each file that has them.", COLUMNS),
    "missing": ("What to do with rows that lack a value.  [default: refuse]",
                {"type": click.Choice(["refuse", "drop"])}),
    "header": ("Line 1 of a CSV file has column names.  [default: detected]", {"default": None}),
    "skip_lines": ("Number of lines to skip at the top of a CSV file.",
                   {"type": click.IntRange(0), "default": 0, "metavar": "N"}),
    "encoding": ("Encoding of CSV files.  [default: UTF-8 or UTF-16]",
                 {"metavar": "NAME"}),
    "delimiter": ("Sign between columns in CSV files.  [default: detected]", {"metavar": "SIGN"}),
    "decimal": ("Decimal point of CSV files; the other sign separates thousands.  "
                "[default: detected]", {"type": click.Choice([".", ","])}),
    "na": ("A text or number that means a missing value; may be given several times.",
           {"multiple": True, "metavar": "MARK"}),
    "matrix": ("Name of the matrix in an NPZ file.", {"metavar": "ARRAY"}),
    "zero_based": ("The columns of LIBSVM files are numbered from 0.", {"is_flag": True}),
}  # fmt: skip
OF_DATA_SETS = "clients", "partition", "surrogate"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `RunOptions` to a command."""
    for option in reversed((
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                     help="Parameter of the algorithm."),
        click.option("--components", "-r", type=options.COUNT,
                     help="Number of components, for methods that learn a subspace."),
        click.option("--center", is_flag=True,
                     help="First subtract the mean of all samples. This takes one or two more "
                     "rounds of messages."),
        click.option("--scale", is_flag=True,
                     help="First divide each feature by its standard deviation (without --center, "
                     "by its root mean square). This takes one more round of messages, which are "
                     "counted separately."),
        *(click.option(_option(name) + "/--no-header" * (name == "header"), help=says, **how)
          for name, (says, how) in OF_FILES.items()),
        click.option("--clients", type=options.COUNT, help="Number of clients of a data set.  "
                     f"[default: {options.DEFAULT_CLIENTS}, if the partition needs a number]"),
        click.option("--partition", metavar="by=KIND[,KEY=VALUE...]",
                     help="How to divide a data set's samples among clients: by=label, by=even, "
                     "by=dirichlet,alpha=0.5, …  [default: by=shuffled]"),
        click.option("--held-out", metavar="test|SHARE",
                     help="Samples to test networks on: the data set's test samples, or a share of "
                     "each client's samples.  [default: 0.2]"),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--repeats", type=options.COUNT, default=1, show_default=True),
        click.option("--surrogate", is_flag=True,
                     help="Use a synthetic stand-in for the data set, without a download."),
        click.option("--metric", "measure", multiple=True,
                     help="Metric to record; may be given several times.  [default: objective and "
                     "subspace_distance, for networks test_accuracy, for regressions "
                     "training_loss]"),
        click.option("--simulate", is_flag=True,
                     help="Draw privacy noise from the seed, without any privacy guarantee."),
        click.option("--keep-exact", is_flag=True,
                     help="Also print and save values that the privacy guarantee does not cover."),
        click.option("--iterates", type=click.Choice(POLICIES), default="log", show_default=True,
                     help="Iterates that the history keeps; log means 0, 1, 2, 4, 8, … and the "
                     "last."),
        options.raw,
        click.option("--blas-threads", type=options.THREADS, help="Number of BLAS threads.  "
                     "[default: OMP_NUM_THREADS, or else 1]"),
    )):  # fmt: skip
        command = option(command)
    return command


def read(paths: Sequence[str], private: bool, **how: Any) -> LoadedFiles:
    """Read a user's files by `from_files.make`, and print what it assumes about their format.

    The printed assumptions and each `TableError` may reveal exact facts about the data. If
    `private` is true, their texts say so.
    """
    from fedcore.experiments import from_files

    mark = EXACT * private
    try:
        own = from_files.make(paths, **how)
    except TableError as error:
        error.args = (f"{error.args[0]}{mark}", *error.args[1:])
        raise
    for guess in own.guesses:
        say(in_line(f"{guess.format(command=True)}{mark}"), err=True)
    return own


def scaled(given: Problem, center: bool) -> tuple[Problem, np.ndarray]:
    """Return the clients' data (a problem) with scaled features, and the divisors of the features.

    The divisors are the features' root mean squares. If `center` is true, the divisors are standard
    deviations about the mean of all samples, but the mean is not subtracted. The attribute ``note``
    of the new problem says how many bytes clients and server exchange to find the divisors.
    """
    import numpy as np

    from fedcore.federation import centring
    from fedcore.federation.engines.in_process import InProcess
    from fedcore.federation.federation import Federation
    from fedcore.problems.clients import Clients
    from fedcore.problems.problem import Problem

    federation = Federation(given.clients, check=False, engine=InProcess)
    mean = federation.center() if center else np.zeros(given.n_features)
    before = federation.ledger.snapshot()
    scales = federation.scale(mean)
    cost = federation.ledger.snapshot()
    up, down = (cost[name] - before[name] for name in ("bytes_up", "bytes_down"))
    note = (
        "Features are divided by their "
        f"{'standard deviations' if center else 'root mean squares'}, in one more round of "
        f"{up:,.0f} bytes up and {down:,.0f} bytes down that is not counted below."
    )
    rows = [centring.scaled(matrix, scales) for matrix in given.clients]
    clients = Clients(rows, labels=given.clients.labels)
    note = "\n".join(filter(None, [given.note, note]))
    return Problem(given.name, clients, given.status, note), scales


class RunData(NamedTuple):
    """The clients' data for a run, with the names of clients and features.

    Attributes
    ----------
    seed_name : str
        Name from which the random streams of the repeats are derived.
    name : str
        Name of the data, which histories store.
    draws : sequence of Problem
        The clients' data. The sequence has one entry, unless a problem file (.h5) contains several
        random draws of the data.
    clients : list of str or None
        Names of the clients in error messages.
    columns : list of str or None
        Names of the features.
    scales : list of ndarray of shape (n_features,), or None
        Divisors of the features, one array for each draw.
    """

    seed_name: str
    name: str
    draws: Sequence[Problem]
    clients: list[str] | None = None
    columns: list[str] | None = None
    scales: list[np.ndarray] | None = None


class RunOptions(SimpleNamespace):
    """Values of the options that `shared` adds to a command, as attributes."""

    def params(self, algorithm: Algorithm, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a run, after all checks of the options that need no data."""
        from fedcore.parts import convergence_test
        from fedcore.validation import FLAG, require_valid

        params = dict(given)
        if self.components is not None:
            params["n_components"] = self.components
        elif algorithm.takes("n_components"):
            raise click.UsageError("Missing option '--components' / '-r'.")
        params = convergence_test.with_tolerance(algorithm, params)
        settings = algorithm.params(
            _without_references(params), form="--set NAME=VALUE", drop="drop --components"
        )
        flags = " and ".join(f"--{name}" for name in ("center", "scale") if getattr(self, name))
        if flags and algorithm.private(settings):
            raise InputError(
                f"{algorithm.name} is private, and {flags} would send statistics without noise: "
                f"drop {flags} and prepare the data by public values, or use fedcore pca FILE..."
                f"{' --scale' * self.scale} --epsilon 1 --bounds RANGES.csv, which adds "
                "noise to the statistics"
            )
        if self.scale and not algorithm.task.centred:
            raise InputError(f"{algorithm.name} takes samples as they are: drop --scale")
        # A plug-in's own Params may check nothing.
        for field in dataclasses.fields(algorithm.parameters):
            if isinstance(field.default, bool) and field.name in params:
                require_valid(FLAG, **{field.name: params[field.name]})
        return params

    def with_noise(self, algorithm: Algorithm, params: Mapping[str, Any]) -> bool:
        """Return whether a run adds privacy noise from the operating system's random numbers."""
        settings = algorithm.params(_without_references(params))
        return algorithm.private(settings) and not self.simulate

    def data(self, words: Sequence[str], chosen: Sequence[Algorithm], private: bool) -> RunData:
        """Return the clients' data from a data set, a problem file or the user's files.

        A problem file is an HDF5 file with the data of all clients and the exact answer.
        """
        found = self._unscaled(words, chosen, private)
        if not self.scale:
            return found
        draws, scales = zip(*(scaled(draw, self.center) for draw in found.draws), strict=True)
        return found._replace(draws=draws, scales=[*scales])

    def _unscaled(
        self, words: Sequence[str], chosen: Sequence[Algorithm], private: bool
    ) -> RunData:
        from fedcore import datasets

        if len(words) == 1 and words[0] in datasets.names():
            return self._data_set(words[0], chosen)
        if any(Path(word).suffix in HDF5_ENDINGS for word in words):
            return self._problem_file(words)
        self._require_files(words)
        self._refuse(OF_DATA_SETS, "files")
        return self._files(words, chosen, private)

    def _refuse(self, unfit: Iterable[str], of: str) -> None:
        for name in unfit:
            if getattr(self, name) or (name == "header" and self.header is not None):
                raise InputError(f"{_option(name)} does not apply to {of}: drop it")

    def _problem_file(self, words: Sequence[str]) -> RunData:
        from fedcore.problems import storage

        if len(words) > 1:
            raise InputError("a problem file contains all clients: give it without other data")
        self._refuse([*OF_FILES, *OF_DATA_SETS, "held_out"], "a problem file")
        draws = storage.load_draws(words[0])
        return RunData(draws[0].name, draws[0].name, draws)

    def _require_files(self, words: Sequence[str]) -> None:
        from fedcore import datasets
        from fedcore.user_tables import own_files

        known = datasets.names()
        for name in words:
            if not own_files.readable(name) and not Path(name).exists():
                if name in known:
                    raise InputError(f"data set {name} must be given alone: drop the other names")
                raise ConfigError(
                    f"unknown data set '{name}': {nearest(name, known)}; or name files: one table "
                    f"({', '.join(sorted(own_files.READERS))}) for each client"
                )

    def _files(self, paths: Sequence[str], chosen: Sequence[Algorithm], private: bool) -> RunData:
        from fedcore.experiments import from_files

        task = chosen[0].task
        learners = [algorithm.name for algorithm in chosen if algorithm.labelled]
        if learners and self.labels is None:
            raise InputError(f"{learners[0]} learns from labels: name their column with --labels")
        held_out = self._held_out(task, chosen[0].name)
        if held_out == "test":
            raise InputError("files have no test samples of their own: give a share to --held-out")
        how = {name: getattr(self, name) for name in OF_FILES}
        own = read(
            paths, private, held_out=held_out, classes=task.packages != (),
            single=task.problem.get("precision") == "single", seed=self.seed, **how,
        )  # fmt: skip
        problem = own.problem
        return RunData(from_files.STREAM, problem.name, [problem], own.clients, own.columns)

    def _data_set(self, name: str, chosen: Sequence[Algorithm]) -> RunData:
        from fedcore import datasets
        from fedcore.datasets import registry
        from fedcore.experiments import build

        self._refuse(OF_FILES, "a data set of the registry")
        task = chosen[0].task
        if wrong := [one.name for one in chosen if one.labelled and not task.labelled]:
            raise InputError(
                f"{wrong[0]} is a regression, and the labels of fedcore's data sets are classes: "
                "use your own files, and name their column of numbers with --labels"
            )
        parts = options.partition(self.partition, self.clients)
        spec = {"dataset": name, "partition": parts, **task.problem}
        held_out = self._held_out(task, chosen[0].name)
        if held_out is not None:
            spec["held_out"] = held_out
        if not self.surrogate:
            options.require_raw(self.raw)
            try:
                datasets.fetch(name, self.raw)  # what is there is only checked
            except DataError as error:
                if datasets.missing(name, self.raw, surrogate=True):
                    raise
                raise DataError(f"{error}; or use synthetic data with --surrogate") from error
        theirs = registry.find(name)[1]
        whose = f"data set '{name}' of another package ({theirs and theirs.value})"
        with foreign_errors(whose, bool(theirs)):
            how = {"raw": self.raw, "seed": self.seed, "surrogate": self.surrogate}
            problem = build.build(name, spec, **how)
        if task.problem.get("scale") == "unit":
            problem.note = f"{problem.note} {SCALED}".strip()
        words = [name, *(f"{key}={value}" for key, value in parts.items())]
        return RunData(name, " ".join(words), [problem])

    def _held_out(self, task: Task, name: str) -> Any:
        if "held_out" not in task.problem:
            if self.held_out is not None:
                raise InputError(f"{name} trains no classifiers: drop --held-out")
            return None
        return task.problem["held_out"] if self.held_out is None else options.share(self.held_out)

    def history(self, algorithm: Algorithm, params: dict[str, Any], data: RunData) -> History:
        """Run all repeats of one algorithm, and return the history, the record of all repeats."""
        import numpy as np

        from fedcore import metrics
        from fedcore.experiments.cell import Cell
        from fedcore.experiments.fingerprint import digests, fingerprint
        from fedcore.experiments.repeats import run_repeats
        from fedcore.federation.ledger import Shape
        from fedcore.progress import RoundsBar, complete_rounds
        from fedcore.recorder import require_columns
        from fedcore.runs import require_orthonormal
        from fedcore.words import named

        # A task without labels is measured against the best subspace of the samples alone.
        fit = algorithm.labelled and not algorithm.task.labelled
        measure = list(self.measure or (FIT if fit else algorithm.task.printed))
        for metric in measure:
            metrics.get(metric)
        require_columns(algorithm.name, algorithm.columns, measure)
        cell = Cell(
            "command line", "run", algorithm.name, data.name, data.seed_name,
            params, self.repeats, measure, self.iterates, self.seed,
            center=self.center, simulate=self.simulate,
        )  # fmt: skip
        problem, settings = data.draws[0], algorithm.params(_without_references(params))
        shape = Shape(len(problem.clients), problem.n_samples, problem.n_features)
        rounds = complete_rounds(algorithm, settings, shape)  # None if a plug-in's form fails
        bar = RoundsBar(algorithm.name, rounds and rounds + self.center, self.repeats)
        module, file = algorithm.module.__name__, getattr(algorithm.module, "__file__", None)
        whose = f"algorithm '{algorithm.name}' of another package ({module})"
        theirs = not module.startswith("fedcore.")
        with named(data.clients), foreign_errors(whose, theirs, file):
            cell = dataclasses.replace(cell, code=fingerprint(*digests(*cell.modules)))
            history = run_repeats(
                cell, data.draws, progress=bar.repeats, seen=bar.seen, keep_exact=self.keep_exact
            )
        if data.scales is not None:
            of_repeat = [data.scales[n % len(data.scales)] for n in range(self.repeats)]
            history.final["scale"] = np.stack(of_repeat)
        for basis in history.final.get("basis", ()):
            require_orthonormal(algorithm.name, basis.T)
        return history


def _without_references(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: 1.0 if value == "reference" else value for name, value in params.items()}
