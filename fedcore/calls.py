"""`fedcore.run`: one run as a user asks for it, checked by name and with its progress.

It is here and not in `fedcore.api`, because every cell of the workflow depends on that module.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore import algorithms, api
from fedcore import progress as bars
from fedcore.algorithms import Algorithm
from fedcore.api import Finish, Result, StopRule
from fedcore.errors import InputError, nearest
from fedcore.federation.ledger import Shape
from fedcore.federation.transcript import Transcript
from fedcore.parts import residuals
from fedcore.problems.clients import Clients, client_list
from fedcore.problems.distinct import require_distinct_each


def run(
    algorithm: str,
    clients: Sequence[Any],
    n_components: int | None = None,
    *,
    labels: Sequence[np.ndarray] | None = None,
    held_out: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None = None,
    seed: int | np.random.SeedSequence = 0,
    start: np.ndarray | None = None,
    measure: Sequence[str] | None = None,
    threads: int = 1,
    stop: StopRule | None = None,
    finish: Finish | None = None,
    transcript: Transcript | None = None,
    simulate: bool = False,
    center: bool = False,
    progress: bool | int = False,
    **params: Any,
) -> Result:
    """Run a registered algorithm.

    Parameters
    ----------
    algorithm : str
        Name in the registry; ``fedcore.algorithms.names()`` lists them.
    clients : sequence of ndarray or sparse matrix of shape (n_i, n_features)
        One matrix per client, rows are samples. Sparse matrices of `scipy.sparse` are not made
        dense, and algorithms that would need this refuse them.
    n_components : int
        Rank; for algorithms that learn a subspace.
    labels : sequence of ndarray of shape (n_i,), optional
        One label per sample, for algorithms that learn from them. Classes are 0, 1, 2, ….
    held_out : pair of sequences, optional
        Matrices and labels, one of each per client, on which classifiers are measured.
    seed : int or numpy.random.SeedSequence, default=0
        The same seed gives the same result bit for bit if CPU type, BLAS, its number of threads and
        library versions are the same. Privacy noise differs, see `simulate`.
    start : ndarray of shape (n_features, n_components), optional
        Starting basis; the default is drawn from `seed`.
    measure : sequence of str, optional
        Names of metrics to record at every iterate; empty for none. The default is ``objective``
        and, for classifiers, ``test_accuracy``, or ``training_accuracy`` without `held_out`.
    threads : int, default=1
        Client steps that run at the same time.
    stop : callable, optional
        ``row -> bool``, called with every recorded row; the run ends when it is true. See
        `fedcore.experiments.stopping.Stop`. In a private run it may read released columns only.
    finish : callable, optional
        ``(federation, output) -> mapping``, a last exchange with the clients; see `execute`.
    transcript : fedcore.federation.transcript.Transcript, optional
        Keeps what the server sees of the clients, for audits such as `fedcore.audits.leakage`.
    simulate : bool, default=False
        Draw the noise of a private algorithm from `seed`, so that the run can be repeated. Whoever
        knows the seed can subtract such noise; the ledger says that nothing is guaranteed. By
        default noise comes from the operating system's entropy, and a run cannot be repeated.
    center : bool, default=False
        Subtract the mean of all samples first, in one more round (`Federation.center`). The mean
        joins the output as ``mean``, shape (n_features,). Metrics refer to the centred data.
    progress : bool or int, default=False
        Whether to show a bar that counts rounds, on standard error. By default nothing is printed.
    **params
        Hyper-parameters of the algorithm, by the names of its ``Params``. The default of ``tol``,
        if the algorithm has it, is 1e-8 here; ``tol=0`` makes all rounds. If `tol` is not met, a
        `fedcore.ConvergenceWarning` says so.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        For an unknown algorithm or parameter, unfit client data, two columns of one name in a data
        frame, or a rank that is too large.

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
    if not isinstance(clients, Clients):
        clients = client_list(clients)
        require_distinct_each(clients)
    ways: dict[str, Any] = {
        "labels": labels, "held_out": held_out, "seed": seed, "start": start, "measure": measure,
        "threads": threads, "finish": finish, "transcript": transcript, "simulate": simulate,
        "center": center, **params,
    }  # fmt: skip
    if not bars.wanted(progress, "progress"):
        return api.run(algorithm, clients, n_components, stop=stop, **ways)
    rounds = _rounds(chosen, clients, {"n_components": n_components, **params}, center)
    with bars.Rounds(algorithm, rounds, asked=True) as bar:
        return api.run(algorithm, clients, n_components, stop=bar.until(stop), **ways)


OPTIONS = frozenset(inspect.signature(run).parameters) - {"algorithm", "clients", "params"}


def _require_parameters(algorithm: Algorithm, params: Mapping[str, Any]) -> None:
    """Refuse names that are neither options nor parameters, and `params` as the estimators take it.

    Raises
    ------
    InputError
    """
    fields = {name for name in algorithm.module.Params.__dataclass_fields__}
    given = params.get("params")
    if "params" not in fields and isinstance(given, Mapping):
        if twice := sorted(given.keys() & params.keys()):
            raise InputError(
                f"{twice[0]} is given twice, in params and as {twice[0]}=…: run takes parameters "
                "as keywords only, so leave params out"
            )
        written = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise InputError(
            "run takes the algorithm's parameters as keywords: write "
            f"{written or 'none'} in the place of params={{…}}"
        )
    for name in params.keys() - fields:
        meant = {*difflib.get_close_matches(name, fields | OPTIONS, n=1)}  # an option, or none
        raise InputError(
            f"{algorithm.name} has no parameter '{name}': {nearest(name, fields | meant)}"
        )


def _rounds(
    algorithm: Algorithm, clients: Sequence[Any], given: Mapping[str, Any], center: bool
) -> int | None:
    """Return the rounds of a complete run; None where the clients are unfit, as the run says."""
    params = {k: v for k, v in given.items() if v is not None or algorithm.takes(k)}
    settings = algorithm.params(residuals.with_tolerance(algorithm, params))
    try:
        sizes = clients.shapes if isinstance(clients, Clients) else [*map(np.shape, clients)]
        shape = Shape(len(sizes), sum(size[0] for size in sizes), sizes[0][1])
    except (IndexError, ValueError):
        return None
    rounds = bars.complete_rounds(algorithm, settings, shape)
    return None if rounds is None else rounds + bool(center)
