"""Make a problem (client data) from users' files: one client per file or per value of a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fedcore.arrays import missing
from fedcore.datasets import partition
from fedcore.errors import Advice, FedcoreError, InputError
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.seeds import name_key
from fedcore.user_tables import own_files
from fedcore.user_tables.columns import listed
from fedcore.user_tables.matrices import check_clients, check_labels
from fedcore.user_tables.names import same
from fedcore.user_tables.numbers import CODED, number
from fedcore.words import client, counted, in_line, named

MOST_NAMES = 8  # columns that a note names
STREAM = "files"  # names the random stream of the held-out samples


class LoadedFiles(NamedTuple):
    """A problem (client data) made from files, with the names of its clients and features.

    Attributes
    ----------
    problem : Problem
    clients : list of str
        Name of each client in error messages: its file, or its value in the column `by` of `make`.
    guesses : list of Advice
        Assumptions that were made about the format of the files.
    columns : list of str
        Names of the features, or their numbers if the files do not name them.
    """

    problem: Problem
    clients: list[str]
    guesses: list[Advice]
    columns: list[str]


def make(
    paths: Sequence[str],
    *,
    by: str | None = None,
    labels: str | None = None,
    held_out: float | None = None,
    classes: bool = False,
    single: bool = False,
    seed: int = 0,
    **how: Any,
) -> LoadedFiles:
    """Read files as the clients of a federation.

    Parameters
    ----------
    paths : sequence of str
        Tables in a format of `fedcore.user_tables.own_files.read`. Columns of different files are
        matched by name.
    by : str, optional
        Column, in all files, that names the client of each row. Clients are sorted by these names.
        By default, each file is one client.
    labels : str, optional
        Column that holds the labels.
    held_out : float, optional
        Share of each client's samples that is held out to measure classifiers.
    classes : bool
        Whether labels are classes. Classes may have any values, and are numbered in sorted order.
    single : bool
        Whether to convert the samples to single precision.
    seed : int
        Seed for the random choice of held-out samples.
    how : parameters of `fedcore.user_tables.table.Reading`
    """
    apart = [name for name in (by, labels) if name is not None]
    try:
        tables = own_files.together(paths, apart=apart, **how)
    except FedcoreError as error:
        error.client = error.file if by is None else None
        raise
    matrices, called, known = [table.x for table in tables], list(paths), None
    if labels is not None:
        known = _labels(tables, labels, classes=classes)
    if by is not None:
        whose = np.concatenate([table.apart[by].astype(str) for table in tables])
        called = np.unique(whose).tolist()
        _tell_clients(tables, by, called)
        rows = [np.flatnonzero(whose == value) for value in called]
        with named(paths):
            check_clients(matrices)  # sparse and dense ones do not go together
        join = scipy.sparse.vstack if scipy.sparse.issparse(matrices[0]) else np.concatenate
        pooled: Any = join(matrices)
        matrices = [pooled[part] for part in rows]
        known = known and [np.concatenate(known)[part] for part in rows]
    if single:
        matrices = [x.astype(np.float32) for x in matrices]
    features = tables[0].names
    shown = ", ".join([*map(in_line, features[:MOST_NAMES]), *["…"] * (len(features) > MOST_NAMES)])
    note = f"{counted(len(features), 'column')}: {shown}"
    with named(called):
        clients, apart_of = _clients(matrices, known, held_out, seed)
        problem = Problem(_named(paths, by), clients, "own", note, held_out=apart_of)
    guesses = [guess for table in tables for guess in table.guesses]
    return LoadedFiles(problem, called, guesses, features)


def _tell_clients(tables: Sequence[own_files.Table], by: str, called: Sequence[str]) -> None:
    """Add a guess to a table if clients lost all their rows, or if clients' names look the same."""
    gone = [table.left_out[by] for table in tables if by in table.left_out]
    names = {name for values in gone for name in values[~missing(values)].astype(str).tolist()}
    if lost := sorted(names - {*called}):
        tables[0].tell(f"all rows of {listed(lost)} in '{by}' lack a value: no such client is left")
    times = Counter(map(same, called))
    if twins := [name for name in called if times[same(name)] > 1]:
        tables[0].tell(f"{listed(twins)} in '{by}' look the same, and count as different clients")


def _clients(
    matrices: Sequence[Any], known: Sequence[np.ndarray] | None, held_out: float | None, seed: int
) -> tuple[Clients | Sequence[Any], Clients | None]:
    """Return the checked clients, and a second set of clients with held-out samples, or None."""
    checked = check_clients(matrices)
    if known is None:
        return checked, None
    if held_out is None:
        return Clients(checked, labels=check_labels(known, checked)), None
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(name_key(STREAM),)))
    sides = []
    for i, x in enumerate(checked):
        try:
            sides.append(partition.held_out(np.arange(len(x)), held_out, rng))
        except InputError as error:
            raise InputError(f"{client(i)}: {error}: leave this client out") from error
    kept, apart = zip(*sides, strict=True)

    def chosen(rows: Sequence[np.ndarray]) -> Clients:
        x, y = ([a[part] for a, part in zip(each, rows, strict=True)] for each in (checked, known))
        return Clients(x, labels=check_labels(y, x))

    return chosen(kept), chosen(apart)


def _labels(tables: Sequence[own_files.Table], column: str, *, classes: bool) -> list[np.ndarray]:
    """Return labels as numbers; a class becomes its index in the sorted list of classes."""
    given = [table.apart[column] for table in tables]
    try:
        every = [_numbers(values) for values in given]
    except ValueError as error:
        if not classes:
            says = f"the labels in column '{column}' are no numbers: this method learns numbers"
            raise InputError(says) from error
        every = [values.astype(str) for values in given]
    else:
        for table, values in zip(tables, given, strict=True):
            texts = values[:0] if values.dtype.kind in "biuf" else values
            if cell := next((one for one in texts.astype(str) if re.match(CODED, one)), None):
                table.tell(f"'{cell}' is read as {number(cell, '.'):.15g}, in '{column}'")
    if not classes:
        return every
    codes = np.unique(np.concatenate(every), return_inverse=True)[1]
    return np.split(codes, np.cumsum([*map(len, every)])[:-1])


def _numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    found = np.array([number(str(value), ".") for value in values])
    if not np.isfinite(found).all():
        raise ValueError("no number")
    return found


def _named(paths: Sequence[str], by: str | None) -> str:
    names = [Path(path).name for path in paths]
    shown = names if len(names) < 4 else [names[0], f"… {len(names) - 2} more …", names[-1]]
    return " ".join([*shown, *([f"by {by}"] if by is not None else [])])
