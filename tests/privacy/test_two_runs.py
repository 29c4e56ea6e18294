"""Runs on the same data: traffic adds, and privacy composes event by event."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.privacy.accounting import epsilon
from fedcore.privacy.events import Gaussian
from refused import refused


def ledger(*noises: float, clients: int = 2, delta: float = 1e-5, **options) -> Ledger:
    """Ledger of a run in which client 0 releases at every noise, the others at the first."""
    relation = options.pop("neighbours", "replace_one")
    federation = Federation([np.eye(3)] * clients, **options)
    federation.protect(delta=delta, neighbours=relation)
    for i, z in enumerate(noises):

        def step(data, state, message, z=z):
            return state.privacy.gaussian(data, sensitivity=1.0, noise_multiplier=z)

        federation.gather(step, of=range(clients) if i == 0 else [0])
    return federation.ledger


def test_traffic_adds_and_privacy_composes():
    one, two = ledger(5.0, 7.0), ledger(9.0)
    both = one + two
    for count in ("rounds", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        assert getattr(both, count) == getattr(one, count) + getattr(two, count)
    events = [dict(account.events) for account in both.privacy.accounts]
    assert events == [
        {Gaussian(5.0): 1, Gaussian(7.0): 1, Gaussian(9.0): 1},
        {Gaussian(5.0): 1, Gaussian(9.0): 1},
    ]
    # Gaussian mechanisms compose as one of 1/σ² = Σ 1/σᵢ²: below the sum of their ε.
    together = Gaussian((5.0**-2 + 7.0**-2 + 9.0**-2) ** -0.5)
    assert both.privacy.epsilon() == pytest.approx(epsilon({together: 1}, 1e-5), rel=1e-9)
    parts = one.privacy.epsilon(), two.privacy.epsilon()
    assert max(parts) < both.privacy.epsilon() < sum(parts)
    assert one == ledger(5.0, 7.0) and both == two + one  # neither is changed; order is nothing
    twice = (two + two).privacy.accounts[1]  # equal events are counted together
    assert dict(twice.events) == {Gaussian(9.0): 2}


def test_a_sum_is_stated_at_any_delta():
    """(ε, δ)-DP twice is (2ε, 2δ)-DP at most, and nothing at δ itself."""
    rows = np.random.default_rng(0).standard_normal((60, 4))
    one, two = (fedcore.run("private_oja", [rows], 1, delta=1e-5).ledger for _ in range(2))
    both = (one + two).privacy
    assert both.epsilon() == both.epsilon(delta=1e-5) == np.inf
    assert both.epsilon(delta=2e-5) == pytest.approx(2.0, rel=1e-3)
    gaussian = (ledger(5.0) + ledger(9.0)).privacy
    single = Gaussian((5.0**-2 + 9.0**-2) ** -0.5)
    assert gaussian.epsilon(delta=1e-3) == pytest.approx(epsilon({single: 1}, 1e-3), rel=1e-9)
    assert gaussian.delta == 1e-5  # as before
    refused(lambda: both.epsilon(delta=0.0), InputError)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"clients": 3}, "3 clients"),
        ({"neighbours": "add_or_remove_one"}, "add_or_remove_one"),
        ({"delta": 1e-6}, "1e-06"),
    ],
)
def test_runs_that_cannot_be_composed(other, name):
    with pytest.raises(InputError) as told:
        _ = ledger(5.0) + ledger(5.0, **other)
    assert name in str(told.value)


def test_an_unprotected_upload_stays_one_and_simulated_noise_too():
    exposed = ledger(5.0)
    exposed.privacy.accounts[1].unprotected.add("step")
    assert (exposed + ledger(5.0)).privacy.epsilon() == np.inf
    assert (ledger(5.0) + exposed).privacy.unprotected == {"step"}
    source = np.random.SeedSequence(1)
    for pair in (
        (ledger(5.0, noise=source), ledger(5.0)),
        (ledger(5.0), ledger(5.0, noise=source)),
    ):
        assert (pair[0] + pair[1]).privacy.simulated
    assert not (ledger(5.0) + ledger(5.0)).privacy.simulated


def test_a_run_without_privacy_on_the_same_data_spoils_it():
    rows = np.eye(4)
    bare = fedcore.run("power_exact", [rows, rows], 1).ledger
    for total in (ledger(5.0) + bare, bare + ledger(5.0)):
        assert total.privacy.epsilon() == np.inf
        assert total.privacy.unprotected == {"a run without privacy"}
        assert total.scalars_up == ledger(5.0).scalars_up + bare.scalars_up
    assert (bare + bare).privacy is None
    assert sum([ledger(5.0), ledger(5.0)], Ledger()) == ledger(5.0) + ledger(5.0)
