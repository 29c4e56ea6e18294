"""A run ends when every stopping rule has held once."""

from __future__ import annotations

import numpy as np

import fedcore
from fedcore.errors import ConfigError, InputError
from fedcore.stop_rules import StopRules
from refused import refused


def steps(stop, column, values):
    """Return the index of the row at which the rule stops the run."""
    return next((k for k, value in enumerate(values) if stop({column: value})), None)


def test_a_threshold_counts_when_it_is_met_exactly():
    assert steps(StopRules({"error": {"at_most": 0.25}}), "error", [1.0, 0.5, 0.25, 0.125]) == 2


def test_a_change_needs_a_value_before_it():
    values = [1.0, 1.0 + 1e-3, 1.0 + 1.5e-3]
    assert steps(StopRules({"f": {"relative_change": 6e-4}}), "f", values) == 2
    assert steps(StopRules({"f": {"relative_change": 1.0}}), "f", values) == 1


def test_all_rules_must_have_held_once_in_whatever_order():
    stop = StopRules({"a": {"at_most": 1.0}, "b": {"at_most": 1.0}})
    assert not stop({"a": 0.5, "b": 2.0})
    assert stop({"a": 3.0, "b": 0.5})  # a has held before


def test_without_rules_a_run_ends_at_once():
    assert StopRules({})({"a": 1.0})


def test_bad_rules_are_refused():
    refused(lambda: StopRules({"error": {"atmost": 1.0}}), ConfigError, "'atmost'", "at_most")
    refused(lambda: StopRules({"error": {"at_most": -1.0}}), InputError, "error.at_most")
    refused(lambda: StopRules({"eror": {"at_most": 1.0}})({"error": 1.0}), ConfigError, "'eror'")


def test_a_run_stops_where_its_history_first_meets_the_rule():
    rng = np.random.default_rng(0)
    left, right = (
        np.linalg.qr(rng.standard_normal((60, 6)))[0],
        np.linalg.qr(rng.standard_normal((6, 6)))[0],
    )
    clients = np.split((left * 0.5 ** np.arange(6)) @ right.T, 3)
    full = fedcore.run("ssi", clients, 2, rounds=60, measure=("kkt_residual",))
    early = fedcore.run(
        "ssi", clients, 2, rounds=60, measure=("kkt_residual",),
        stop=StopRules({"kkt_residual": {"at_most": 1e-6}}),
    )  # fmt: skip
    errors = full.history["kkt_residual"]
    assert len(early.history["round"]) == np.flatnonzero(errors <= 1e-6)[0] + 1 < len(errors)
