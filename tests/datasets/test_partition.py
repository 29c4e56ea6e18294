"""The partitioners: disjoint, complete where promised, of the promised labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.datasets import partition
from fedcore.errors import ConfigError, InputError
from refused import refused

SEEDS = st.integers(0, 2**32 - 1)
LABELS = st.lists(st.integers(-3, 6), min_size=1, max_size=80).map(np.array)


def ascending_and_disjoint(parts, n):
    for part in parts:
        assert part.dtype.kind == "i" and len(part) and (np.diff(part) > 0).all()
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == len(together)
    assert together.min() >= 0 and together.max() < n
    return together


def complete(parts, n):
    assert sorted(ascending_and_disjoint(parts, n)) == list(range(n))


@given(LABELS)
def test_by_label_is_pure(labels):
    for parts in (partition.by_label(labels), partition.by_identity(labels)):
        complete(parts, len(labels))
        assert [set(labels[p]) for p in parts] == [{v} for v in sorted(set(labels.tolist()))]


@given(st.integers(1, 200), st.integers(1, 30), SEEDS)
def test_even_and_shuffled(n, clients, seed):
    rng = np.random.default_rng(seed)
    if clients > n:
        refused(lambda: partition.even(n, clients), InputError)
        return
    parts, mixed = partition.even(n, clients), partition.shuffled(n, clients, rng)
    for found in (parts, mixed):
        complete(found, n)
        counts = [len(p) for p in found]
        assert len(counts) == clients and max(counts) - min(counts) <= 1
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), SEEDS)
def test_shards(classes, per_client, times, spare, seed):
    clients = classes * times
    per_class = times * per_client
    labels = np.repeat(np.arange(classes), 2 * per_class + spare)
    labels = np.random.default_rng(seed).permutation(labels)
    parts = partition.shards(labels, clients, per_client, np.random.default_rng(seed))
    complete(parts, len(labels))
    assert len(parts) == clients
    for part in parts:
        assert len(set(labels[part])) <= per_client and len(part) >= 2 * per_client
    test = partition.shards(
        np.repeat(np.arange(classes), per_class), clients, per_client, np.random.default_rng(seed)
    )
    for part, other in zip(parts, test, strict=True):
        assert set(labels[part]) == set(np.repeat(np.arange(classes), per_class)[other])


@settings(max_examples=50)
@given(st.integers(1, 6), st.floats(0.05, 50), st.integers(1, 3), SEEDS)
def test_dirichlet(clients, alpha, least, seed):
    labels = np.arange(120) % 5
    try:
        parts = partition.dirichlet(labels, clients, alpha, np.random.default_rng(seed), least)
    except InputError:
        assert alpha < 0.2
        return
    complete(parts, 120)
    assert len(parts) == clients and min(map(len, parts)) >= least
    again = partition.dirichlet(labels, clients, alpha, np.random.default_rng(seed), least)
    for a, b in zip(parts, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_dirichlet_alpha_makes_clients_alike_or_not():
    labels = np.arange(20000) % 10

    def spread(alpha):
        parts = partition.dirichlet(labels, 10, alpha, np.random.default_rng(3))
        return np.std([np.bincount(labels[p], minlength=10) for p in parts])

    assert spread(0.1) > 300 > 30 > spread(1000.0)


@given(st.integers(1, 20), st.integers(0, 10), SEEDS)
def test_lognormal(clients, least, seed):
    try:
        parts = partition.lognormal(4000, clients, 2.0, 0.5, least, np.random.default_rng(seed))
    except InputError:
        assert least == 0
        return
    ascending_and_disjoint(parts, 4000)
    assert len(parts) == clients and min(map(len, parts)) >= max(least, 1)


def test_lognormal_sizes_follow_the_law():
    """FEMNIST: lognormal(4, 1) + 100 has mean exp(4.5) + 100 and median exp(4) + 100."""
    parts = partition.lognormal(2_000_000, 5000, 4.0, 1.0, 100, np.random.default_rng(0))
    counts = np.array([len(p) for p in parts])
    assert counts.min() >= 100
    assert np.median(counts) == pytest.approx(np.exp(4) + 99.5, rel=0.02)
    assert counts.mean() == pytest.approx(np.exp(4.5) + 99.5, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"by": "label"}, 5),
        ({"by": "identity"}, 5),
        ({"by": "even", "clients": 25}, 25),
        ({"by": "shuffled", "clients": 25}, 25),
        ({"by": "shards", "clients": 10, "shards_per_client": 2}, 10),
        ({"by": "dirichlet", "clients": 10, "alpha": 0.3}, 10),
        ({"by": "dirichlet", "clients": 4, "alpha": 1, "min_size": 5}, 4),
        ({"by": "lognormal", "clients": 3, "mean": 1, "sigma": 0.5, "minimum": 2}, 3),
    ],
)
def test_split(spec, count):
    labels = np.arange(200) % 5
    parts = partition.split(spec, 200, labels, np.random.default_rng(0))
    assert len(parts) == count
    ascending_and_disjoint(parts, 200)


TWO, TEN = {"clients": 2}, np.arange(10) % 2
REFUSED = [
    (ConfigError, TEN, {"by": "evenn", **TWO}, "evenn"),
    (ConfigError, TEN, TWO, "partition"),
    (ConfigError, TEN, {"by": "even"}, "clients"),
    (ConfigError, TEN, {"by": "even", "client": 2}, "client"),
    (ConfigError, TEN, {"by": "even", **TWO, "rng": 1}, "rng"),
    (InputError, TEN, {"by": "even", "clients": 0}, "clients"),
    (InputError, TEN, {"by": "even", "clients": "2"}, "clients"),
    (InputError, TEN, {"by": "even", "clients": 11}, "client"),
    (InputError, TEN, {"by": "dirichlet", **TWO, "alpha": 0}, "alpha"),
    (InputError, TEN, {"by": "dirichlet", **TWO, "alpha": "x"}, "alpha"),
    (InputError, np.zeros(4), {"by": "dirichlet", "clients": 5, "alpha": 1.0}, "client"),
    (InputError, None, {"by": "label"}, "label"),
    (InputError, np.array([0, 1, 2] * 4), {"by": "shards", **TWO, "shards_per_client": 2}, "shard"),
    (InputError, np.array([0, 1, 1, 1]), {"by": "shards", **TWO, "shards_per_client": 2}, "shard"),
    (InputError, TEN, {"by": "lognormal", **TWO, "mean": 1, "sigma": 1, "minimum": -1}, "minimum"),
    (InputError, np.zeros(1000), {"by": "lognormal", "clients": 50, "mean": 4.0, "sigma": 1.0,
                                  "minimum": 100}, "clients"),
    (InputError, np.repeat(np.arange(10), 100), {"by": "classes", "clients": 150,
     "classes_per_client": 3, "mean": 4.0, "sigma": 1.0, "minimum": 50}, "class"),
    (InputError, TEN, {"by": "classes", "clients": 5, "classes_per_client": 3, "mean": 4.0,
                       "sigma": 1.0, "minimum": 50}, "class"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "labels", "spec", "named"), REFUSED)
def test_parts_that_cannot_be_are_refused(error, labels, spec, named):
    n = 10 if labels is None else len(labels)
    with pytest.raises(error, match=named) as caught:
        partition.split(spec, n, labels, np.random.default_rng(0))
    assert "\n" not in str(caught.value)


CLASSES = {"classes_per_client": 3, "mean": 4.0, "sigma": 1.0, "minimum": 50}


def test_consecutive_classes_of_femnist():
    """Table 2 prints 150 users, 148 samples on average, at least 50."""
    labels = np.repeat(np.arange(10), 4000)
    parts = partition.classes(labels, 150, rng=np.random.default_rng(0), **CLASSES)
    ascending_and_disjoint(parts, len(labels))
    counts = np.array([len(part) for part in parts])
    assert counts.min() >= 50
    # The mean of a draw of 150 is within three standard errors of the distribution's.
    mean, variance = np.exp(4.5), (np.e - 1) * np.exp(9.0)
    assert abs(counts.mean() - (50 + mean - 0.5)) < 3 * np.sqrt(variance / 150)
    for client, part in enumerate(parts):
        found, each = np.unique(labels[part], return_counts=True)
        assert set(found) == {client % 10, (client + 1) % 10, (client + 2) % 10}
        assert each.max() - each.min() <= 1


def test_overlapping_clients_take_the_leading_samples():
    labels = np.repeat(np.arange(10), 4000)
    rng = np.random.default_rng(0)
    parts = partition.classes(labels, 150, rng=rng, overlapping=True, **CLASSES)
    alone = partition.classes(labels, 150, rng=np.random.default_rng(0), **CLASSES)
    assert [len(part) for part in parts] == [len(part) for part in alone]
    for part in parts:
        for label in np.unique(labels[part]):
            mine = part[labels[part] == label]
            np.testing.assert_array_equal(mine, 4000 * label + np.arange(len(mine)))
