"""What crosses has a size that follows from public values alone, where rows come and go."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore import algorithms
from fedcore.estimators import FederatedPCA

D, M = 4, 2
COUNTS = ("rounds", "scalars_up", "scalars_down", "bytes_up", "bytes_down")
PRIVATE = [
    name for name in algorithms.names()
    if algorithms.get(name).takes("epsilon") and algorithms.get(name).takes("n_components")
]  # fmt: skip
SIZES = st.lists(st.integers(1, 9), min_size=M, max_size=M)


def sizes_of(call, seed, counts):
    """Return what crosses, for clients of so many rows, and the relation of neighbours."""
    rng = np.random.default_rng(seed)
    clients = [rng.standard_normal((n, D)) / 4 for n in counts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = call(clients)
    return [getattr(ledger, name) for name in COUNTS], ledger.privacy.neighbours


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("algorithm", ["analyze_gauss", "noisy_power"])
@settings(max_examples=40, deadline=None)
@given(
    counts=SIZES, r=st.integers(1, D), seed=st.integers(0, 99), scale=st.booleans(),
    center=st.booleans(),
)  # fmt: skip
def test_a_private_fit(algorithm, start, counts, r, seed, scale, center):
    params = {"simulate": True} | ({"start": np.eye(D)[:, :r]} if start else {})
    model = FederatedPCA(
        r, algorithm=algorithm, scale=scale, center=center, params=params, epsilon=1.0, delta=1e-5,
        bounds=1.0,
    )  # fmt: skip
    found, expected = (sizes_of(lambda c: model.fit(c).ledger_, seed, n) for n in (counts, [50, 9]))
    assert found == expected
    assert model.components_.shape == (r, D)


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=25, deadline=None)
@given(counts=SIZES, r=st.integers(1, D), seed=st.integers(0, 99))
def test_a_run_of_any_private_method(name, counts, r, seed):
    def run(clients):
        options = {"clip": True} if algorithms.get(name).takes("clip") else {}
        options["rounds" if algorithms.get(name).takes("rounds") else "seed"] = 2
        return fedcore.run(name, clients, r, simulate=True, measure=(), **options).ledger

    try:
        expected, relation = sizes_of(run, seed, [60, 50])
    except fedcore.FedcoreError:
        return  # some parameters have no default
    if relation == "add_or_remove_one":
        assert sizes_of(run, seed, counts)[0] == expected
