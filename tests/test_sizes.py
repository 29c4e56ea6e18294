"""Sizes that no machine holds: one sentence of the library, and following its advice works."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import fedcore
from fedcore.errors import FedcoreError, SizeError, held, too_large
from refused import refused

WIDE = 3 * 10**6  # features whose square takes 72 TB
HUGE = 2**42  # features of which one vector takes 32 TB
SPENT = {"epsilon": 1.0, "delta": 1e-5}


def rows(d):
    """Two sparse clients of d features, of which they have five."""
    entries = np.arange(1.0, 7.0) / 10, ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, d - 1, 0])
    one = scipy.sparse.csr_array(entries, shape=(6, d))
    return [one, 0.5 * one]


CALLS = {
    "features by features": lambda: fedcore.run("analyze_gauss", rows(WIDE), 2, measure=[]),
    "beyond 64 bits": lambda: fedcore.run("analyze_gauss", rows(2**32), 2, measure=[]),
    "columns": lambda: fedcore.run("block_krylov", rows(HUGE), 2, measure=[]),
    "power": lambda: fedcore.run("ssi", rows(HUGE), 2, measure=[]),
    "a fit": lambda: fedcore.FederatedPCA(2).fit(rows(HUGE)),
    "a fit about zero": lambda: fedcore.FederatedPCA(2, center=False).fit(rows(HUGE)),
    "a factorization": lambda: fedcore.run("power_exact", rows(HUGE), 2, power=3, measure=[]),
    "a private fit": lambda: fedcore.FederatedPCA(2, bounds=1.0, **SPENT).fit(
        [np.full((2, WIDE), 1e-4)]
    ),
    "a covariance": lambda: fedcore.FederatedPCA(1).fit(rows(WIDE)).get_covariance(),
    "a precision": lambda: fedcore.FederatedPCA(1).fit(rows(WIDE)).get_precision(),
}


@pytest.mark.filterwarnings("ignore::fedcore.ConvergenceWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_size_that_cannot_be_held_is_said_in_a_sentence(name):
    caught = refused(CALLS[name], SizeError)
    assert isinstance(caught, FedcoreError) and isinstance(caught, MemoryError)
    said = str(caught)
    assert "\n" not in said and said.count(": ") <= 2 and "leave out features" in said


@pytest.mark.filterwarnings("ignore::fedcore.ConvergenceWarning")
def test_the_advice_works():
    """Features that no client has change nothing when they are left out."""
    wide, there = rows(WIDE), [0, 1, 2, 3, WIDE - 1]
    fedcore.run("analyze_gauss", [one[:, there] for one in wide], 2, measure=[])
    exact = np.linalg.svd(np.vstack([one[:, there].toarray() for one in wide]))[2][:2]
    found = fedcore.run("block_krylov", wide, 2, measure=[]).components
    np.testing.assert_allclose(np.linalg.norm(found[:, there] @ exact.T, -2), 1.0)


@pytest.mark.parametrize("error", [ValueError("no"), OverflowError("math range error"), KeyError()])
def test_other_errors_pass(error):
    assert too_large(error) is None
    with pytest.raises(type(error)) as caught, held("this"):
        raise error
    assert caught.value is error
