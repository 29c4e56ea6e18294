"""Audits beside their weakened twins, from made-up scores."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.errors import DataError
from fedcore.history import History
from fedcore.privacy.calibration import gaussian_noise_multiplier
from fedcore.repro.tables import audits
from folder import Folder, without

MU = 1.0 / gaussian_noise_multiplier(0.5, 1e-4)


def results(tmp_path, *, neighbours="replace_one", mechanisms=("Gaussian",)):
    folder = Folder(tmp_path, "fedpower", {"epsilon": 0.5}, [])
    folder.problems = {"canary": {"params": {}}, "other": {"params": {"replaced": True}}}
    rng = np.random.default_rng(0)
    for variant, factor in (("tight", 1.0), ("tight-weakened", 0.5)):
        for problem, mean in (("canary", MU / factor), ("other", 0.0)):
            scores = rng.normal(mean, 1.0, 10_000)[:, None]
            columns = {"iteration": np.zeros((10_000, 1), int), "canary": scores}
            history = History({**columns, "epsilon": np.full((10_000, 1), 0.4)})
            privacy = {"delta": 1e-4, "neighbours": neighbours, "mechanisms": list(mechanisms)}
            privacy |= {"weakened": factor} if factor < 1 else {}
            folder.add("audit", "fedpower", problem, variant, history=history, privacy=privacy)
    return folder.results()


def test_a_row_holds_the_audit_and_its_twin(tmp_path):
    (row,) = audits.bounds(results(tmp_path), "audit")
    assert (row["method"], row["variant"], row["noise_left"]) == ("fedpower", "tight", 0.5)
    assert (row["claimed"], row["accounted"], row["runs"]) == (0.5, 0.4, 5000)
    assert 0.0 < row["lower_bound"] < 0.5 < row["weakened_bound"]


@pytest.mark.parametrize("problem", ["canary", "other"])
def test_one_of_two_neighbours_is_no_audit(tmp_path, problem):
    assert audits.bounds(without(results(tmp_path), problem), "audit") == []


def test_other_mechanisms_get_the_bound_that_holds_for_any(tmp_path):
    """A ledger with a single event that is not Gaussian: no bound for Gaussian claims."""
    (row,) = audits.bounds(results(tmp_path, mechanisms=("Bounded", "Gaussian")), "audit")
    assert row["lower_bound"] < row["weakened_bound"] < 0.5


def test_problems_that_are_no_neighbours_by_the_ledger_are_refused(tmp_path):
    with pytest.raises(DataError, match="problem other"):
        audits.bounds(results(tmp_path, neighbours="add_or_remove_one"), "audit")
