"""The client's side: its own account, and what its policy refuses."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import fedcore
from fedcore.errors import RefusedError
from fedcore.federation.federation import Federation
from fedcore.federation.in_process import InProcess
from fedcore.federation.site import Policy
from fedcore.federation.transcript import Transcript
from fedcore.federation.wire import Wire
from fedcore.privacy import accounting

DELTA = 1e-5


def noisy(data: Any, state: Any, message: Any) -> np.ndarray:
    return state.privacy.gaussian(data.sum(axis=0), sensitivity=1.0, noise_multiplier=2.0)


def bare(data: Any, state: Any, message: Any) -> np.ndarray:
    return data.sum(axis=0)


def nothing(data: Any, state: Any, message: Any) -> None:
    state.seen = True


@pytest.fixture
def rows() -> list[np.ndarray]:
    return [np.full((4, 3), 0.1 * (i + 1)) for i in range(3)]


def over(rows: Any, policy: Policy = Policy(), private: bool = True) -> tuple[Federation, Wire]:  # noqa: B008
    made: list[Wire] = []

    def engine(setup: Any) -> Wire:
        made.append(Wire(setup, policy))
        return made[0]

    federation = Federation(rows, 1, engine=engine)
    if private:
        federation.protect(delta=DELTA, neighbours="replace_one")
    return federation, made[0]


@pytest.mark.parametrize("engine", [InProcess, Wire])
def test_the_ledger_knows_the_accounts_of_the_sites(rows, engine):
    made: list[Any] = []
    federation = Federation(rows, engine=lambda setup: made.append(engine(setup)) or made[0])
    federation.protect(delta=DELTA, neighbours="replace_one")
    federation.sum(noisy)
    federation.gather(noisy, of=[0, 0])
    federation.gather(bare, of=[2])
    privacy = federation.ledger.privacy
    assert privacy.accounts == [site.account for site in made[0].sites]
    assert (privacy.accounts[0] is made[0].sites[0].account) == (engine is InProcess)
    assert [a.events.total() for a in privacy.accounts] == [3, 1, 1]
    assert [a.exposed for a in privacy.accounts] == [False, False, True]
    assert privacy.unprotected == {"bare"}


def test_a_site_spends_at_most_its_own_epsilon_and_keeps_the_reply(rows):
    events = accounting.epsilon({next(iter(event(rows))): 2}, DELTA)
    federation, wire = over(rows, Policy(max_epsilon=events * 1.001))
    federation.sum(noisy)
    federation.sum(noisy)
    up = federation.ledger.scalars_up
    with pytest.raises(RefusedError, match=r"client 0 refuses to go on: .* would be charged ε ="):
        federation.sum(noisy)
    assert federation.ledger.scalars_up == up
    assert federation.ledger.privacy.epsilon() <= events * 1.001
    assert wire.sites[1].account.events.total() == 2


def event(rows: Any) -> Any:
    federation, wire = over(rows)
    federation.sum(noisy)
    return wire.sites[0].account.events


def test_a_site_with_a_bound_uploads_nothing_without_noise(rows):
    federation, wire = over(rows, Policy(max_epsilon=10.0))
    with pytest.raises(RefusedError, match=r"client 0 does not upload what the step bare returned"):
        federation.sum(bare)
    assert federation.ledger.rounds == 0 and not wire.sites[0].account.exposed
    federation.local(nothing)
    with pytest.raises(RefusedError, match="uploads nothing in a run without privacy"):
        over(rows, Policy(max_epsilon=10.0), private=False)[0].sum(noisy)


def test_a_site_runs_steps_of_allowed_modules_only(rows):
    federation, _ = over(rows, Policy(modules=("fedcore",)), private=False)
    federation.center()
    with pytest.raises(RefusedError, match="is not allowed here: allowed are fedcore"):
        federation.sum(bare)


def test_a_site_shows_nothing_for_evaluation_if_its_policy_says_so(rows):
    federation, _ = over(rows, Policy(evaluation=False), private=False)
    federation.local(nothing)
    assert federation.sum(bare).shape == (3,)
    for look in (lambda: federation.client_state("seen"), lambda: federation.observe(bare)):
        with pytest.raises(RefusedError, match="client 0 shows nothing for evaluation"):
            look()


def test_a_whole_run_over_the_wire_counts_what_it_carries(monkeypatch):
    """Orders and answers are the ledger's numbers, and some bytes for names and sizes."""
    made: list[Wire] = []
    monkeypatch.setattr(Federation, "engine", lambda setup: made.append(Wire(setup)) or made[0])
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((20, 1000)) for _ in range(4)]
    found = fedcore.run("ssi", data, 10, rounds=3, tol=0, measure=[])
    down, up = made[0].carried
    assert found.ledger.bytes_up <= up <= 1.01 * found.ledger.bytes_up
    assert found.ledger.bytes_down <= down <= 1.01 * found.ledger.bytes_down


def test_a_transcript_sees_the_same_over_the_wire(rows):
    seen = []
    for engine in (partial(InProcess, plain=True), Wire):
        transcript = Transcript()
        federation = Federation(rows, transcript=transcript, engine=engine)
        federation.broadcast(np.ones(3))
        federation.sum(bare)
        seen.append([(e.round, e.client, e.received.tolist(), e.sent.tolist())
                     for e in transcript.exchanges])  # fmt: skip
    assert seen[0] == seen[1] and len(seen[0]) == 3
