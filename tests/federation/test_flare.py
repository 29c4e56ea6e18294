"""Runs over members of FLARE, without FLARE: what crosses, what stays, what the server knows."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from near_flare import bare, guarded, over, remembers

import fedcore
from fedcore import algorithms
from fedcore.api import execute
from fedcore.errors import InputError, RefusedError
from fedcore.federation.engine import everywhere
from fedcore.federation.failures import Failure
from fedcore.federation.federation import Federation
from fedcore.federation.flare import Kept
from fedcore.federation.flare_group import LostError
from fedcore.federation.flare_member import Rules
from fedcore.federation.flare_messages import Answer, Join
from fedcore.federation.in_process import InProcess
from fedcore.federation.site import Policy
from fedcore.problems.problem import Problem
from fedcore.steps.values import decode, encode

DELTA = 1e-5
PLAIN = partial(InProcess, plain=True)


def scaled(data: Any, state: Any, message: Any, *, factor: float) -> np.ndarray:
    return factor * data.sum(axis=0)


@pytest.fixture
def rows() -> list[np.ndarray]:
    return [np.full((4 + i, 3), 0.1 * (i + 1)) for i in range(3)]


def run(name: str, rows: Any, engine: Any, group: Any = None, **params: Any) -> Any:
    """Run an algorithm by what the server knows, or in this process, and return its output."""
    chosen = algorithms.get(name)
    settings = chosen.params({"n_components": 2, **params})
    data = rows if group is None else group.join()
    with everywhere(engine):
        recorder, output = execute(chosen, Problem("p", data), settings, 3, [])
        if group is not None:
            group.transport.finish(output)
    return recorder, output


@pytest.mark.parametrize(
    ("name", "params", "own"),
    [
        ("ssi", {"rounds": 12}, ()),
        ("power_gd", {"power": 3, "local_steps": 20}, ("U",)),
        ("faps", {"rounds": 5}, ("X", "W")),
        ("power_exact", {"power": 2}, ("U",)),
        ("block_krylov", {"rounds": 4}, ()),
    ],
)
def test_without_evaluation_a_run_is_the_plain_one_and_results_stay(
    name, params, own, clients, tmp_path
):
    group, _, engine = over(clients, tmp_path)
    recorder, output = run(name, clients, engine, group, **params)
    plain, other = run(name, clients, PLAIN, **params)
    shared = "basis" if "basis" in other else "V"
    assert output[shared].tobytes() == other[shared].tobytes()
    assert recorder.ledger == plain.ledger
    for key in own:
        assert all(isinstance(part, Kept) and np.isnan(part) for part in output[key])
    for i in range(len(clients)):
        saved = tmp_path / str(i) / "results" / "job" / "run0.npz"
        assert saved.exists() == bool(own)
        for key in own:
            np.testing.assert_array_equal(np.load(saved)[key], other[key][i])


def test_what_only_clients_know_is_nan_in_the_records(clients, tmp_path):
    group, _, engine = over(clients, tmp_path)
    recorder, _ = run("faps", clients, engine, group, rounds=3)
    columns = recorder.columns()
    assert np.isnan(columns["penalty"][1:]).all() and len(columns["penalty"]) == 4
    assert not columns["diverged"].any()


def test_a_private_run_draws_noise_that_the_seed_does_not_give(rows, tmp_path):
    rows = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in rows]
    params = {"rounds": 3, "epsilon": 2.0, "delta": DELTA}
    found = []
    for i in range(2):
        group, _, engine = over(rows, tmp_path / str(i), guarded(2.1))
        recorder, output = run("noisy_power", rows, engine, group, **params)
        found.append(output["basis"])
        assert recorder.ledger.privacy.epsilon() == pytest.approx(2.0, rel=0.01)
    assert not np.array_equal(*found)


def test_a_simulation_of_noise_is_refused(rows, tmp_path):
    _, _, engine = over(rows, tmp_path)
    with pytest.raises(InputError, match="draws its noise from its own entropy"):
        Federation(rows, 1, engine=engine, noise=np.random.SeedSequence(1))


def test_orders_wait_for_an_upload_and_each_member_gets_its_own_alone(rows, tmp_path):
    _, link, engine = over(rows, tmp_path, Rules(Policy()))
    federation = Federation(rows, 1, engine=engine)
    begun = len(link.sent)
    federation.broadcast(np.array([7.0, 0, 0]), to=[0])
    federation.broadcast(np.array([8.0, 0, 0]), to=[1])
    federation.local(remembers, of=[0, 1])
    assert len(link.sent) == begun
    assert [int(n) for n in federation.gather(remembers)] == [2, 2, 1]
    assert len(link.sent) == begun + 1
    for i, own in ((0, 7.0), (1, 8.0)):
        text = link.sent[-1][i]
        assert np.array(own).tobytes() in text and np.array(15.0 - own).tobytes() not in text


def test_a_client_that_occurs_twice_is_asked_twice(rows, tmp_path):
    _, _, engine = over(rows, tmp_path, Rules(Policy()))
    federation = Federation(rows, 1, engine=engine)
    assert [int(n) for n in federation.gather(remembers, of=[2, 0, 2])] == [1, 1, 2]


def test_many_orders_do_not_wait_for_ever(rows, tmp_path):
    _, link, engine = over(rows, tmp_path, Rules(Policy()))
    federation = Federation(rows, 1, engine=engine)
    begun = len(link.sent)
    for _ in range(300):
        federation.local(remembers)
    assert len(link.sent) == begun + 1


def test_what_is_looked_at_is_asked_for_when_it_is_read(rows, tmp_path):
    _, link, engine = over(rows, tmp_path, Rules(Policy(evaluation=True)), evaluation=True)
    federation = Federation(rows, 1, engine=engine)
    found = federation.observe(bare)
    begun = len(link.sent)
    np.testing.assert_array_equal(found[1], rows[1].sum(axis=0))
    assert len(link.sent) == begun + 1 and len(found) == 3
    assert federation.ledger.bytes_up == 0


def test_what_nobody_can_read_any_more_is_forgotten_and_the_rest_is_not(rows, tmp_path):
    _, link, engine = over(rows, tmp_path, Rules(Policy(evaluation=True)), evaluation=True)
    federation = Federation(rows, 1, engine=engine)
    kept = [federation.observe(partial(scaled, factor=k)) for k in range(5)]  # steps of one name
    del kept[1:4]
    federation.gather(remembers)
    assert [sorted(member._held) for member in link.members] == [[0, 4]] * 3
    np.testing.assert_array_equal(kept[1][2], 4 * rows[2].sum(axis=0))


def test_an_answer_chooses_no_class_but_fedcores_errors(rows, tmp_path):
    group, link, _ = over(rows, tmp_path)
    failure = Failure(0, ("this", "CalledProcessError"), "x")  # a module that nobody has imported
    link.call = lambda messages: {i: encode(Answer(failure=failure)) for i in messages}
    with pytest.raises(RuntimeError, match="site0: CalledProcessError: x"):
        group.join()
    assert "this" not in sys.modules


def test_the_server_cannot_read_data(rows, tmp_path):
    group, _, engine = over(rows, tmp_path)
    remote = group.join()
    assert (remote.n_samples, remote.n_features, len(remote)) == (15, 3, 3)
    with pytest.raises(RefusedError, match="the clients' data stay with their owners"):
        list(remote)
    with everywhere(engine), pytest.raises(RefusedError, match="no --metric"):
        settings = algorithms.get("ssi").params({"n_components": 1, "rounds": 1})
        metric = fedcore.metrics.get("objective")
        execute(algorithms.get("ssi"), Problem("p", remote), settings, 1, [metric])


def test_a_member_with_a_bound_does_not_say_how_many_samples_it_has(rows, tmp_path):
    group, link, _ = over(rows, tmp_path, guarded(1.0))
    remote = group.join()
    assert not remote.told and remote.shapes == [(3, 3)] * 3
    answer = decode(link.members[0].answer(encode(Join())), ("fedcore",))
    assert answer.value.n_samples is None and answer.value.n_features == 3


def test_members_that_do_not_fit_together_are_told_apart(rows, tmp_path):
    group, _, _ = over([*rows[:2], np.ones((4, 5))], tmp_path)
    with pytest.raises(InputError, match="site2 has 5 features, site0 has 3"):
        group.join()


def test_a_lost_member_ends_the_run(rows, tmp_path):
    _, link, engine = over(rows, tmp_path, Rules(Policy()))
    federation = Federation(rows, 1, engine=engine)

    def lost(messages: Any) -> Any:
        raise LostError("the site site1 was lost")

    link.call = lost
    with pytest.raises(LostError):
        federation.sum(bare)


def test_a_member_writes_what_has_left_it(clients, tmp_path):
    group, _, engine = over(clients, tmp_path)
    recorder, _ = run("ssi", clients, engine, group, rounds=4)
    total = 0
    for i in range(len(clients)):
        left = json.loads((tmp_path / str(i) / "results" / "job" / "run0-left.json").read_text())
        assert list(left) == ["gram_product"] and left["gram_product"]["times"] == 4
        total += left["gram_product"]["bytes"]
    assert total == recorder.ledger.bytes_up


def test_orders_and_answers_are_the_ledgers_bytes_within_one_percent(tmp_path):
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((20, 1000)) for _ in range(4)]
    group, _, engine = over(clients, tmp_path)
    chosen = algorithms.get("ssi")
    settings = chosen.params({"n_components": 10, "rounds": 10})
    with everywhere(engine):
        remote = group.join()
        recorder, output = execute(chosen, Problem("p", remote), settings, 3, [])
        group.transport.finish(output)
    ledger, (down, up) = recorder.ledger, group.carried
    assert 0 < down - ledger.bytes_down < 0.01 * ledger.bytes_down
    assert 0 < up - ledger.bytes_up < 0.01 * ledger.bytes_up
