"""`fedcore.run`, which checks the user's arguments, runs an algorithm and shows progress."""

from __future__ import annotations

import dataclasses
import difflib
import html
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np

from fedcore import __version__, algorithms, metrics
from fedcore import progress as bars
from fedcore.algorithms import Algorithm
from fedcore.arrays import as_array
from fedcore.deep.prediction import Trained
from fedcore.errors import ConvergenceWarning, InputError, nearest, warn
from fedcore.federation.ledger import Ledger, Shape
from fedcore.federation.transcript import Transcript
from fedcore.history import History, units_of
from fedcore.iterates import Iterate
from fedcore.parts import convergence_test
from fedcore.privacy.noise import simulated
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import NOT_RELEASED, Recorder, Recording, require_columns
from fedcore.runs import Begin, Finish, execute, require_orthonormal, subtract_mean
from fedcore.seeds import root_of
from fedcore.stop_rules import StopRule
from fedcore.user_tables.labelled import Features, column_names, per_client, per_feature
from fedcore.user_tables.matrices import check_clients, check_labels, client_list, client_names
from fedcore.validation import FLAG, as_python, require_valid
from fedcore.words import counted, named


class RunHistory(History):
    """Record of one run, a mapping from column names to arrays of shape (records,).

    Arrays in attributes of `History`, such as ``columns``, have an extra leading axis of length 1.
    """

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name][0]


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run; each parameter is also an attribute.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features) or None
        Orthonormal rows that span the learnt subspace, or None if the algorithm learns networks.
    history : RunHistory
        A `fedcore.History`, the record of the run, with the columns of the ledger (``round``,
        ``bytes_up``, …) and the metrics. Each column has shape (records,).
    ledger : Ledger
        Traffic between clients and server, and privacy loss.
    output : dict
        Results of the algorithm, such as ``V``, and ``U`` as a list of one matrix per client. The
        results of `begin`, `center` and `finish` are included.
    released : frozenset of str or None
        Columns of `history` that a private run may publish, or None for a run without privacy. The
        privacy guarantee covers only these columns. All other columns, such as metrics, are exact
        functions of the data and must stay secret.
    trained : Trained or None
        Last recorded networks for `predict`, or None if the algorithm learns no networks.
    iterates : dict of str to ndarray
        Stored iterates. ``iteration`` and ``record_number`` have shape (snapshots,). ``shared``
        contains the server's matrices, shape (snapshots, n_features, n_components), or the p
        parameters of the server's networks, shape (snapshots, p). In a private run, the privacy
        guarantee covers these arrays and `components`.
    """

    components: np.ndarray | None
    history: RunHistory
    ledger: Ledger
    output: dict[str, Any]
    released: frozenset[str] | None = None
    trained: Trained | None = None
    iterates: dict[str, np.ndarray] = field(default_factory=dict)

    def predict(self, samples: Any, client: int | None = None) -> np.ndarray:
        """Predict the class of every sample, by a client's network or by the server's network.

        Parameters
        ----------
        samples : ndarray of shape (n, n_features)
        client : int, optional
            Number of the client, from 0. By default, the server's network is used.

        Returns
        -------
        ndarray of int of shape (n,)

        Raises
        ------
        InputError
            Raised if samples are invalid, or if the client is unknown. Raised if the server has no
            complete network, or if the algorithm learns no networks.
        """
        if self.trained is None:
            raise InputError(
                "this run has trained no network: project samples on its components, or take "
                "an estimator, such as fedcore.FederatedPCA"
            )
        return self.trained.predict(samples, client)

    def _repr_html_(self) -> str:
        """Return the printed text as HTML for notebooks."""
        return f"<p>{html.escape(repr(self))}</p>"

    def __repr__(self) -> str:
        """Return sizes, costs, privacy loss and column names in one line."""
        r, d = (0, 0) if self.components is None else self.components.shape
        found = f"{counted(r, 'component')} of {counted(d, 'feature')}; " if r else ""
        columns = [
            name if self.released is None or name in self.released else f"{name} ({NOT_RELEASED})"
            for name in self.history
        ]
        privacy = "" if self.ledger.privacy is None else f"{self.ledger.privacy!r}; "
        return (
            f"Result({found}"
            f"{counted(len(self.history['iteration']), 'record')} of {', '.join(columns)}; "
            f"{counted(self.ledger.rounds, 'round')}, {self.ledger.bytes_up:,} bytes up, "
            f"{self.ledger.bytes_down:,} down; {privacy}output: {', '.join(self.output)})"
        )


def run(
    algorithm: str,
    clients: Sequence[Any] | Mapping[str, Any],
    n_components: int | None = None,
    *,
    labels: Any = None,
    held_out: tuple[Any, Any] | None = None,
    seed: int | np.random.SeedSequence = 0,
    start: Any = None,
    measure: Sequence[str] | None = None,
    iterates: str = "log",
    stop: StopRule | None = None,
    begin: Begin | None = None,
    finish: Finish | None = None,
    transcript: Transcript | None = None,
    simulate: bool = False,
    center: bool = False,
    progress: bool | int = False,
    **params: Any,
) -> Result:
    """Run an algorithm, chosen by its name, on the clients' data, and return the result.

    Parameters
    ----------
    algorithm : str
        Name of a registered algorithm, as ``fedcore.algorithms.names()`` lists them.
    clients : sequence or mapping of ndarray or sparse matrix of shape (n_i, n_features)
        One matrix per client, whose rows are samples. The keys of a mapping are the clients' names,
        which error messages mention. Sparse matrices of `scipy.sparse` are never made dense, and
        algorithms that need dense matrices refuse sparse ones. Columns of data frames are matched
        by name.
    n_components : int
        Dimension of the subspace, for algorithms that learn a subspace.
    labels : sequence or mapping of ndarray of shape (n_i,), optional
        Labels of each client's samples: a mapping from the clients' names, or a sequence in the
        clients' order. Classes are numbered 0, 1, 2, ….
    held_out : pair of sequences or mappings, optional
        Samples and labels on which classifiers are measured, with one matrix and one label array
        per client.
    seed : int or numpy.random.SeedSequence, default=0
        Seed of all random numbers except privacy noise (see `simulate`). Equal seeds give equal
        results bit for bit if CPU type, BLAS, number of BLAS threads and library versions are
        equal.
    start : ndarray or data frame of shape (n_features, n_components), optional
        Starting basis, by default drawn from `seed`. Rows of a data frame are matched with the
        features by name.
    measure : sequence of str, optional
        Names of metrics to record at every iterate, or an empty list for no metrics. By default, a
        subspace method records ``objective``. By default, classifiers record ``test_accuracy`` if
        `held_out` is given, and ``training_accuracy`` if not.
    iterates : {"none", "last", "log", "all"}, default="log"
        Iterates to store, up to 50 MB. ``log`` stores the iterations 0, 1, 2, 4, 8, … and the last
        iterate (see `fedcore.snapshots`).
    stop : callable, optional
        Function ``row -> bool``, such as `fedcore.stop_rules.StopRules`, which is called with every
        recorded row. The run ends when `stop` returns true. In a private run, `stop` may read only
        columns that the privacy guarantee covers (see `Result`).
    begin, finish : callable, optional
        Functions that exchange messages with the clients (see `execute`).
        ``begin(federation) -> mapping`` runs before the algorithm, after `center`.
        ``finish(federation, output) -> mapping`` runs after the algorithm.
    transcript : fedcore.federation.transcript.Transcript, optional
        Transcript that stores every upload, for audits such as `fedcore.audits.leakage`.
    simulate : bool, default=False
        If true, draw privacy noise from `seed`, so that the run can be repeated. Simulated noise
        guarantees nothing, because everybody who knows the seed can subtract it. By default,
        privacy noise comes from the operating system's entropy, and a run cannot be repeated.
    center : bool, default=False
        If true, first subtract the mean of all samples, in one or two additional rounds
        (`Federation.center`). The output includes ``mean``, shape (n_features,). Metrics refer to
        the centred data.
    progress : bool or int, default=False
        If true, show a progress bar over the rounds on standard error.
    **params
        Hyper-parameters of the algorithm, by the names in its ``Params``. If the algorithm has the
        parameter ``tol``, `run` sets ``tol=1e-8`` by default; with ``tol=0``, the algorithm makes
        all rounds. If the result does not meet `tol`, `run` issues a `fedcore.ConvergenceWarning`.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Raised for an unknown algorithm or parameter, or for invalid client data. Raised if a data
        frame has two columns with the same name, or if `n_components` is too large. Raised if two
        recorded columns would have the same name.

    Examples
    --------
    >>> import numpy as np, fedcore
    >>> rng = np.random.default_rng(0)
    >>> clients = [rng.standard_normal((30, 8)) for _ in range(4)]
    >>> result = fedcore.run("power_exact", clients, n_components=2, power=3)
    >>> result.components.shape, result.ledger.rounds
    ((2, 8), 4)
    """
    chosen = algorithms.get(algorithm)
    _require_parameters(chosen, params)
    given = clients if isinstance(clients, Clients | Mapping) else client_list(clients)
    with named(client_names(given)):
        samples = _checked(given, labels)
    columns = None if isinstance(given, Clients) else column_names(client_list(given)[0])
    if start is not None:
        start = per_feature(start, "start", Features(columns, samples.n_features))
    own = {"n_components": n_components, "start": start}
    given_params = {k: v for k, v in own.items() if v is not None or chosen.takes(k)} | params
    given_params = {name: as_python(value) for name, value in given_params.items()}
    settings = chosen.params(convergence_test.with_tolerance(chosen, given_params))
    if isinstance(measure, str):
        raise InputError(f"measure must be a list of metrics: write measure=[{measure!r}]")
    names = [] if measure is None else as_array(measure, "measure").tolist()
    wanted = [metrics.get(name) for name in np.ravel(names)]
    for option, value in (("stop", stop), ("begin", begin), ("finish", finish)):
        if value is not None and not callable(value):
            raise InputError(f"{option} must be a function, got {value!r}")
    apart = None
    if held_out is not None:
        apart = held_out_samples(held_out, client_names(given), columns, samples)
    problem = Problem("clients", samples, held_out=apart)
    if measure is None:
        wanted = [metrics.get(name) for name in chosen.task.measures(problem)]
    require_columns(chosen.name, chosen.columns, {metric.name for metric in wanted})
    require_valid(FLAG, simulate=simulate, center=center)
    noise = simulated(root_of(seed), algorithm, given_params) if simulate else None
    last: dict[str, Iterate] = {}
    first = [subtract_mean] * bool(center) + (
        [] if begin is None else [_mapping_of("begin", begin)]
    )
    rule = None if stop is None else _truth_of(stop)
    with _bar(chosen, settings, problem, progress) as bar, named(client_names(given)):
        recording = Recording(
            wanted, iterates, stop=rule if bar is None else bar.until(rule),
            on_iterate=lambda record, iterate: last.update(iterate=iterate),
        )  # fmt: skip
        recorder, output = execute(
            chosen, problem, settings, seed, recording,
            begin=first if bar is None or not first else [*first, bar.begun],
            finish=None if finish is None else _mapping_of("finish", finish),
            transcript=transcript, noise=noise,
        )  # fmt: skip
    iterations = recorder.rows[-1]["iteration"]
    convergence_test.warn_of_end(algorithm, settings, output, iterations, recorder.problem.clients)
    chosen.task.require(output, "begin or finish", problem.n_features)  # both may replace results
    components = chosen.task.components(output)
    if components is not None and not np.isfinite(components).all():
        recorder.rows[-1]["diverged"] = 1
    _tell_of_end(algorithm, recorder)
    require_orthonormal(algorithm, components)
    root = root_of(seed)
    about: dict[str, Any] = {
        "algorithm": algorithm,
        "params": {name: _plain(value) for name, value in vars(settings).items()},
        "seed": {"master": _plain(root.entropy), "spawn_key": _plain(root.spawn_key)},
        "references": chosen.citation,
        "versions": {"fedcore": __version__, "numpy": np.__version__},
        "problem": {
            "status": "own",
            "n_clients": len(samples),
            "n_samples": problem.n_samples,
            "n_features": problem.n_features,
        },
        **({"centred": True} if center else {}),
    }
    if columns is not None:
        about["features"] = [str(name) for name in columns]
    if recorder.ledger.privacy is not None:
        about["privacy"] = recorder.ledger.privacy.about()
    units = units_of(wanted, chosen.columns)
    history = RunHistory.from_run(recorder, output, units, about=about)
    if history.released is not None:
        for name in history.protected:
            del history.about["problem"][name]
    return Result(
        components=components,
        history=history,
        ledger=recorder.ledger,
        output=output,
        released=recorder.released,
        trained=_trained(last["iterate"], settings, problem, output, columns),
        iterates={name: values[0] for name, values in history.iterates.items()},
    )


def _mapping_of(option: str, exchange: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `exchange` in a function that raises `InputError` if the result is no mapping."""

    @wraps(exchange)
    def call(*args: Any) -> Any:
        found = exchange(*args)
        if not isinstance(found, Mapping):
            raise InputError(
                f"{option} must return a mapping of names to results ({{}} for no results), got "
                f"{found!r}"
            )
        return found

    return call


def _truth_of(stop: StopRule) -> StopRule:
    """Wrap `stop` in a function that raises `InputError` if the result is not true or false."""

    @wraps(stop)
    def call(row: Mapping[str, float]) -> bool:
        found = stop(row)
        try:
            return bool(found)
        except (TypeError, ValueError) as error:  # of an array or a table
            raise InputError(f"stop must return true or false, got {found!r}") from error

    return call


def _plain(value: Any) -> Any:
    """Return a value that JSON can store; a matrix, for example, becomes the text "given"."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return [*map(_plain, value)]
    return value if value is None or isinstance(value, bool | int | float | str) else "given"


def _trained(
    last: Iterate, settings: Any, problem: Problem, output: Mapping[str, Any],
    columns: Sequence[Any] | None,
) -> Trained | None:  # fmt: skip
    """Return the networks of the last iterate, or None if the iterate has no networks."""
    if last.classifiers is None:
        return None
    server = output.get("parameters")
    return Trained(
        last.classifiers, server, settings.model, len(problem.clients), problem.n_features,
        columns,
    )  # fmt: skip


OPTIONS = frozenset(inspect.signature(run).parameters) - {"algorithm", "clients", "params"}


def _require_parameters(algorithm: Algorithm, params: Mapping[str, Any]) -> None:
    """Refuse unknown parameters, and the argument `params`, which only `FederatedPCA` accepts."""
    known = {field.name for field in dataclasses.fields(algorithm.parameters)}
    given = params.get("params")
    if "params" not in known and isinstance(given, Mapping):
        if twice := sorted(given.keys() & params.keys()):
            raise InputError(
                f"{twice[0]} is given twice, in params and as {twice[0]}=…: run takes parameters "
                "as keywords only, so leave params out"
            )
        written = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise InputError(
            "run takes the algorithm's parameters as keywords: write "
            f"{written or 'none'} instead of params={{…}}"
        )
    for name in params.keys() - known:
        meant = {*difflib.get_close_matches(name, known | OPTIONS, n=1)}  # an option, or none
        raise InputError(
            f"{algorithm.name} has no parameter '{name}': {nearest(name, known | meant)}"
        )


def _bar(
    algorithm: Algorithm, settings: Any, problem: Problem, asked: bool | int
) -> AbstractContextManager[bars.RoundsBar | None]:
    """Return a progress bar over a run's rounds if requested, else a context without effect."""
    if not bars.wanted(asked, "progress"):
        return nullcontext()
    shape = Shape(len(problem.clients), problem.n_samples, problem.n_features)
    rounds = bars.complete_rounds(algorithm, settings, shape)
    return bars.RoundsBar(algorithm.name, rounds, asked=True)


def _tell_of_end(algorithm: str, recorder: Recorder) -> None:
    """Warn if the run has diverged, or if its last objective exceeds that of the zero matrix.

    A private run gets no warning about its objective, because this warning would show an exact
    function of the data.
    """
    last = recorder.rows[-1]
    reached = last.get("objective", np.nan) if recorder.released is None else np.nan
    zero = 0.5 * recorder.problem.clients.squares if np.isfinite(reached) else np.nan
    if reached > zero * (1 + 1e-9):
        found = f"ends at an objective of {reached:.3g}, larger than the {zero:.3g} of a zero model"
    elif last["diverged"]:
        found = "has diverged (its result or a measure is not finite)"
    else:
        return
    warn(
        f"{algorithm} {found}: make more or smaller steps (`fedcore list methods {algorithm}` "
        "shows its parameters), or take another algorithm",
        ConvergenceWarning,
    )


def _checked(given: Any, labels: Any, columns: Sequence[Any] | None = None) -> Clients:
    """Check samples and labels, and return them as `Clients`; `Clients` are returned unchanged."""
    if isinstance(given, Clients):
        return given
    samples = check_clients(given, columns)
    return Clients(samples, labels=None if labels is None else check_labels(labels, samples, given))


def held_out_samples(
    pair: Any, names: Sequence[str] | None, columns: Sequence[Any] | None, clients: Clients
) -> Clients:
    """Return held-out samples and labels, in the order of the clients and of their columns."""
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise InputError(
            "held_out must be a pair (matrices, labels) with one matrix and one vector per client"
        )
    matrices, labels = pair
    if isinstance(matrices, Clients):
        return matrices
    given = per_client(matrices, "held_out", "matrix", names, len(clients))
    return _checked(
        given if names is None else dict(zip(names, given, strict=True)), labels, columns
    )
