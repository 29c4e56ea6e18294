"""Divide samples among clients.

A partitioner is a function that returns one ascending index array per client. The arrays are
disjoint, except if `classes` is called with ``overlapping=True``. Random partitioners take a
`numpy.random.Generator`. The function `split` calls the partitioner that a configuration file
names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from fedcore.arrays import as_array, missing
from fedcore.errors import ConfigError, InputError, require_known
from fedcore.validation import (
    Count,
    CountOrZero,
    Positive,
    Share,
    check_annotated,
    check_names,
    checked,
    real,
)
from fedcore.words import counted

Parts = list[np.ndarray]
_TRIES = 1000


def _checked(parts: Sequence[np.ndarray]) -> Parts:
    """Sort the indices of every client, or raise an InputError if a client has no index."""
    for client, part in enumerate(parts):
        if len(part) == 0:
            raise InputError(
                f"client {client} of {len(parts)} (counted from 0) would get no sample"
            )
    return [np.sort(part) for part in parts]


def by_label(labels: np.ndarray) -> Parts:
    """Make one client from the samples of each label, in ascending order of the labels.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    """
    _, inverse = np.unique(_values(labels), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    return _checked(np.split(order, np.cumsum(np.bincount(inverse))[:-1]))


def _values(labels: Any) -> np.ndarray:
    """Return labels as a vector, and raise an error if a sample has no label."""
    values = as_array(labels, "labels")
    if values.ndim != 1:
        raise InputError(f"labels have shape {values.shape}: give one value per sample")
    lacking = missing(values)
    if lacking.any():
        number = int(lacking.argmax())
        raise InputError(f"the label of sample {number} is missing: give every sample a label")
    return values


def by_identity(identities: np.ndarray) -> Parts:
    """Make one client from the samples of each owner (identity), in ascending order of owners."""
    return by_label(identities)


@checked
def even(n: int, clients: Count) -> Parts:
    """Cut the indices 0..n-1 into consecutive parts whose sizes differ by at most one.

    Raises
    ------
    InputError
        If there are more clients than samples.
    """
    return _checked(np.array_split(np.arange(n), clients))


@checked
def shuffled(n: int, clients: Count, rng: np.random.Generator) -> Parts:
    """Cut a random permutation of 0..n-1 into parts whose sizes differ by at most one.

    Raises
    ------
    InputError
        If there are more clients than samples.
    """
    return _checked(np.array_split(rng.permutation(n), clients))


@checked
def shards(
    labels: np.ndarray, clients: Count, shards_per_client: Count, rng: np.random.Generator
) -> Parts:
    """Cut each class into equally many parts; each client gets `shards_per_client` of these shards.

    A client may get one class twice. Every sample is used. The choice of each client's shards is
    drawn before the choice of each shard's samples. If training and test set have the same classes
    and `rng` starts in the same state, a client therefore gets the same classes in both sets.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    clients, shards_per_client : int
        The product of `clients` and `shards_per_client` must be a multiple of the number of
        classes.
    rng : numpy.random.Generator

    Raises
    ------
    InputError
        If the shards cannot be cut equally from the classes, or a class has too few samples.
    """
    total = clients * shards_per_client
    classes = by_label(labels)
    if total % len(classes):
        raise InputError(
            f"clients * shards_per_client = {total} must be a multiple of {len(classes)}, the "
            "number of classes"
        )
    deal = rng.permutation(total).reshape(clients, -1)
    pool: Parts = []
    for number, members in enumerate(classes):
        if len(members) < total // len(classes):
            has = counted(len(members), "sample")
            raise InputError(
                f"class {number} has {has}, fewer than its shards: choose a smaller 'clients' or "
                "'shards_per_client'"
            )
        pool += np.array_split(rng.permutation(members), total // len(classes))
    return _checked([np.concatenate([pool[shard] for shard in hand]) for hand in deal])


@checked
def dirichlet(
    labels: np.ndarray,
    clients: Count,
    alpha: Positive,
    rng: np.random.Generator,
    min_size: Count = 1,
) -> Parts:
    """Divide each class among the clients in proportions from a symmetric Dirichlet distribution.

    Every sample is used. Random draws are repeated until each client has at least `min_size`
    samples.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    clients : int
    alpha : float
        Concentration parameter; smaller values give each client fewer classes.
    rng : numpy.random.Generator
    min_size : int

    Raises
    ------
    InputError
        If none of 1000 draws gives every client enough samples.
    """
    classes = by_label(labels)
    for _ in range(_TRIES):
        shares = rng.dirichlet(np.full(clients, alpha), size=len(classes))
        parts: list[Parts] = []
        for members, share in zip(classes, shares, strict=True):
            cuts = np.rint(np.cumsum(share)[:-1] * len(members)).astype(int)
            parts.append(np.split(rng.permutation(members), cuts))
        dealt = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
        smallest = int(np.argmin([len(client) for client in dealt]))
        if len(dealt[smallest]) >= min_size:
            return _checked(dealt)
    raise InputError(
        f"none of {_TRIES} draws gives each of {clients} clients min_size = {min_size} samples "
        f"(client {smallest} would get {len(dealt[smallest])}): take fewer clients, a larger alpha "
        "or a smaller min_size"
    )


@checked
def lognormal(
    n: int,
    clients: Count,
    mean: Annotated[float, real()],
    sigma: Positive,
    minimum: CountOrZero,
    rng: np.random.Generator,
) -> Parts:
    """Give each client ``minimum + floor(LogNormal(mean, sigma))`` randomly chosen samples.

    The log-normal variable's logarithm has mean `mean` and standard deviation `sigma`. Samples left
    over are not used.

    Raises
    ------
    InputError
        If the clients' sizes add up to more than n, or a client would get no sample.
    """
    counts = minimum + np.floor(np.minimum(rng.lognormal(mean, sigma, clients), n + 1)).astype(int)
    if counts.sum() > n:
        raise InputError(
            f"{clients} clients need {counts.sum()} samples, but the data have {n}: choose a "
            "smaller 'clients', 'mean' or 'minimum'"
        )
    return _checked(np.split(rng.permutation(n)[: counts.sum()], np.cumsum(counts)[:-1]))


@checked
def classes(
    labels: np.ndarray,
    clients: Count,
    classes_per_client: Count,
    mean: Annotated[float, real()],
    sigma: Positive,
    minimum: CountOrZero,
    rng: np.random.Generator,
    overlapping: bool = False,
) -> Parts:
    """Give client i samples of the classes i, i + 1, … (modulo the number of classes).

    A client gets ``minimum + floor(LogNormal(mean, sigma))`` samples, divided as evenly as possible
    among its classes. By default, samples are drawn without replacement, and clients share no
    sample. Samples left over are not used. FEMNIST is divided in this way by Collins et al., ICML
    2021, after Li et al., MLSys 2020.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    clients, classes_per_client : int
    mean, sigma : float
        Mean and standard deviation of the log-normal variable's logarithm.
    minimum : int
    rng : numpy.random.Generator
    overlapping : bool, default=False
        Whether every client gets the first samples of its classes, so that clients share samples.
        In the code of Collins et al., clients share samples in this way, because a condition is
        inverted.

    Raises
    ------
    InputError
        If there are fewer classes than `classes_per_client`, or a class has too few samples.
    """
    pool = by_label(labels)
    if classes_per_client > len(pool):
        raise InputError(
            f"classes_per_client = {classes_per_client} is more than the {len(pool)} classes of "
            "the data"
        )
    draws = np.minimum(rng.lognormal(mean, sigma, clients), len(labels) + 1)
    counts = minimum + np.floor(draws).astype(int)
    if not overlapping:
        pool = [rng.permutation(members) for members in pool]
    taken, parts = [0] * len(pool), []
    for client, size in enumerate(counts):
        mine = []
        for turn, rows in enumerate(np.array_split(np.arange(size), classes_per_client)):
            number = (client + turn) % len(pool)
            first = 0 if overlapping else taken[number]
            taken[number] = first + len(rows)
            if taken[number] > len(pool[number]):
                raise InputError(
                    f"class {number} has {counted(len(pool[number]), 'sample')}, but "
                    f"{taken[number]} are needed when client {client} gets its share: choose a "
                    "smaller 'clients', 'mean' or 'minimum'"
                )
            mine.append(pool[number][first : taken[number]])
        parts.append(np.concatenate(mine))
    return _checked(parts)


@checked
def held_out(
    part: np.ndarray, share: Share, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Hold out a random share of a client's samples, but at least one sample.

    Returns
    -------
    kept, held_out : ndarray of int
        Ascending sample indices.

    Raises
    ------
    InputError
        If no sample would be kept.
    """
    number = max(1, round(share * len(part)))
    if number == len(part):
        raise InputError(
            f"held_out = {share:g} of a client's {counted(len(part), 'sample')} leaves no sample "
            "to train on"
        )
    order = rng.permutation(part)
    return np.sort(order[number:]), np.sort(order[:number])


PARTITIONERS: dict[str, Callable[..., Parts]] = {
    "classes": classes,
    "dirichlet": dirichlet,
    "even": even,
    "identity": by_identity,
    "label": by_label,
    "lognormal": lognormal,
    "shards": shards,
    "shuffled": shuffled,
}
OF_DATA = ("n", "labels", "identities", "rng")  # parameters that no configuration gives


def split(
    spec: Mapping[str, Any],
    n: int,
    labels: np.ndarray | None,
    rng: np.random.Generator,
    identities: np.ndarray | None = None,
) -> Parts:
    """Divide n samples among clients, as an entry of a configuration file says.

    Parameters
    ----------
    spec : mapping
        ``by`` names the partitioner (function that divides the samples): label, identity, even,
        shuffled, shards, classes, dirichlet or lognormal. The other keys are its parameters.
    n : int
        Number of samples.
    labels : ndarray of shape (n,) or None
        Labels of the samples, which only some partitioners need.
    rng : numpy.random.Generator
    identities : ndarray of shape (n,), optional
        Owner of each sample, as a number (default: the sample's label).

    Returns
    -------
    list of ndarray of int
        Ascending sample indices of each client.

    Raises
    ------
    ConfigError
        When ``by`` or another key is unknown, or a required key is missing.
    InputError
        When a client would get no sample, or a partitioner that needs labels does not get n labels.

    Examples
    --------
    >>> parts = split({"by": "even", "clients": 2}, 5, None, np.random.default_rng(0))
    >>> [part.tolist() for part in parts]
    [[0, 1, 2], [3, 4]]
    """
    arguments = check(spec)
    by = PARTITIONERS[spec["by"]]
    parameters = inspect.signature(by).parameters
    if {"labels", "identities"} & parameters.keys() and (labels is None or len(labels) != n):
        raise InputError(f"partition '{spec['by']}' needs one label for each of the {n} samples")
    owners = labels if identities is None else identities
    given = {"n": n, "labels": labels, "identities": owners, "rng": rng}
    return by(**arguments, **{p: given[p] for p in parameters if p in given})


def check(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Check the specification `spec` as `split` does, but without the data.

    Returns
    -------
    dict
        Arguments of the partitioner: all entries of `spec` other than ``by``.
    """
    by = spec.get("by", "")
    require_known(by, PARTITIONERS, "unknown partition")
    arguments = {key: value for key, value in spec.items() if key != "by"}
    check_names(PARTITIONERS[by], arguments, f"partition '{by}'", given=OF_DATA, error=ConfigError)
    check_annotated(PARTITIONERS[by], arguments)
    return arguments
