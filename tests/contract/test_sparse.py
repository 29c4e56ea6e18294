"""Which algorithms take sparse clients; the contract checks that they give what dense ones give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

import fedcore
from contract.cases import case_of
from contract.checks import usable
from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.sparse import SparseRows
from fedcore.testing import answers, samples
from fedcore.testing.subject import Subject
from refused import refused

NAMES = [known.name for known in usable() if "n_components" in known.task.fields]
SPARSE = [name for name in NAMES if algorithms.get(name).sparse]


def test_faps_of_sparse_clients_is_that_of_dense_ones():
    """With so many inner products dense clients of this size make their Gram matrices."""
    dense = samples.cut(samples.spectrum_matrix(24, 30, samples.SPECTRUM, seed=1), (12, 12))
    ways = {"rounds": 8, "inner": "fixed", "inner_steps": 5, "measure": []}
    found = fedcore.run("faps", [scipy.sparse.csr_array(own) for own in dense], 3, **ways)
    plain = fedcore.run("faps", dense, 3, **ways)
    # Five products hardly amplify rounding; forty would, of dense clients as well.
    assert_allclose(found.components.T @ found.components,
                    plain.components.T @ plain.components, rtol=0, atol=1e-9)  # fmt: skip


def test_which_take_them():
    assert set(NAMES) - set(SPARSE) == {
        "centralized_svd", "dn26", "dp_pca", "fedrep_linear", "fedsgd_linear", "local_linear",
        "one_shot", "private_oja",
    }  # fmt: skip


def test_a_method_that_reads_entries_and_says_sparse_fails_with_a_sentence():
    own = Subject(replace(algorithms.get("one_shot"), sparse=True), case_of("one_shot"))
    refused(lambda: answers.takes_sparse_clients(own), InputError, ".toarray()")


def test_the_check_sees_a_wrong_product(monkeypatch):
    plain = SparseRows.transposed_times
    monkeypatch.setattr(SparseRows, "transposed_times", lambda self, Y: plain(self, Y) * 1.1 + 1e-6)
    monkeypatch.setattr(SparseRows, "gram", lambda self, dtype=None: np.eye(self.shape[1]))
    with pytest.raises(AssertionError, match="sparse clients"):
        answers.takes_sparse_clients(Subject(algorithms.get("ssi"), case_of("ssi")))
