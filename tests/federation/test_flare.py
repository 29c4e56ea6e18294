"""Members of a run over FLARE, without FLARE: what crosses, what stays, and what they refuse."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from near_flare import Near, members_of

import fedcore
from fedcore import algorithms
from fedcore.api import execute
from fedcore.errors import DataError, InputError, RefusedError
from fedcore.federation.engine import everywhere
from fedcore.federation.failures import Failure
from fedcore.federation.federation import Federation
from fedcore.federation.flare import Flare, Kept
from fedcore.federation.flare_group import Group, LostError
from fedcore.federation.flare_member import Member, Rules
from fedcore.federation.flare_messages import Answer, Carry, Fetch, Join, Look
from fedcore.federation.in_process import InProcess
from fedcore.federation.member_records import ACCOUNT, Spent
from fedcore.federation.site import Policy
from fedcore.federation.transport import Do, Hold, Protect, Read
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.problems.problem import Problem
from fedcore.steps.naming import name_step
from fedcore.steps.values import decode, encode

CLOSED = Rules(Policy(modules=("fedcore",)))
DELTA = 1e-5
PLAIN = partial(InProcess, plain=True)


def guarded(most: float, **policy: Any) -> Rules:
    return Rules(Policy(most, **({"modules": None} | policy)), 1e-4, tell_samples=False)


def noisy(data: Any, state: Any, message: Any) -> np.ndarray:
    return state.privacy.gaussian(data.sum(axis=0), sensitivity=1.0, noise_multiplier=4.0)


def bare(data: Any, state: Any, message: Any) -> np.ndarray:
    return data.sum(axis=0)


def broken(data: Any, state: Any, message: Any) -> None:
    raise ValueError(f"secret {data[0, 0]}")


def refused_by_data(data: Any, state: Any, message: Any) -> None:
    raise InputError(f"secret {data[0, 0]}")


def remembers(data: Any, state: Any, message: Any) -> np.ndarray:
    state.heard = [*getattr(state, "heard", []), message]
    return np.array(len(state.heard))


def scaled(data: Any, state: Any, message: Any, *, factor: float) -> np.ndarray:
    return factor * data.sum(axis=0)


@pytest.fixture
def rows() -> list[np.ndarray]:
    return [np.full((4 + i, 3), 0.1 * (i + 1)) for i in range(3)]


def over(rows: Any, folder: Any, rules: Rules = CLOSED, evaluation: bool = False) -> Any:
    """Return a group of members in this process, its link, and a federation's engine."""
    members = members_of(rows, folder, rules)
    link = Near(members)
    group = Group([member.name for member in members], link, evaluation=evaluation)
    return group, link, partial(Flare, group=group)


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


def send(member: Member, orders: list[Any], run: int = 0) -> Any:
    """Send a member orders as a server might that is not fedcore's."""
    return decode(member.answer(encode(Carry(run, orders), name_step)), ("fedcore",))


def begun(rows: Any, folder: Any, rules: Rules) -> Member:
    _, link, engine = over(rows, folder, rules)
    Federation(rows, 1, engine=engine)
    return link.members[0]


def test_no_order_of_a_server_shows_what_the_policy_keeps(rows, tmp_path):
    member = begun(rows, tmp_path, Rules(Policy(evaluation=False)))
    assert send(member, [Do(remembers, "none")]).value == []
    for orders in (
        [Read("heard")],
        [Do(bare, "look")],
        [Look(0, Read("heard"), True)],
        [Look(0, Do(bare, "look"), True)],
        [Look(0, Read("heard"), False), Fetch(0)],
        [Fetch(0)],
    ):
        answer = send(member, orders)
        assert answer.value is None and answer.failure.kind == ("fedcore.errors", "RefusedError")


@pytest.mark.parametrize("message", [Join(), Hold(1.0), 3, [1], {"a": 1}])
def test_other_messages_are_refused(message, rows, tmp_path):
    member = begun(rows, tmp_path, CLOSED)
    answer = decode(member.answer(encode(message)), ("fedcore",))
    assert isinstance(message, Join) or answer.failure.kind[1] == "RefusedError"


def test_bytes_that_are_no_message_are_refused(rows, tmp_path):
    answer = decode(begun(rows, tmp_path, CLOSED).answer(b"nonsense"), ("fedcore",))
    assert answer.failure.kind[1] == "RefusedError"


def test_another_run_than_the_one_that_has_begun_is_refused(rows, tmp_path):
    assert "has begun" in send(begun(rows, tmp_path, CLOSED), [Hold(1.0)], run=5).failure.said


def test_a_foreign_step_is_refused_with_a_sentence_that_names_the_member(rows, tmp_path):
    _, _, engine = over(rows, tmp_path, CLOSED)
    federation = Federation(rows, 1, engine=engine)
    with pytest.raises(RefusedError, match=r"^site0: .*test_flare is not allowed here"):
        federation.sum(bare)


def test_a_changed_step_is_refused(clients, tmp_path):
    group, link, engine = over(clients, tmp_path)
    call = link.call

    def changed(messages: Any) -> Any:
        cut = {}
        for i, message in messages.items():
            at = message.find(b'"code":"')
            fake = message[: at + 8] + b"0" * 4 + message[at + 12 :]
            cut[i] = fake if at > 0 else message
        return call(cut)

    link.call = changed
    with pytest.raises(RefusedError, match=r"site0: the step .* differs from the one installed"):
        run("ssi", clients, engine, group, rounds=2)


def test_unprotected_uploads_are_refused_where_the_policy_bounds_epsilon(rows, tmp_path):
    _, _, engine = over(rows, tmp_path, guarded(1.0))
    with pytest.raises(RefusedError, match="site0: client 0 uploads nothing in a run without"):
        Federation(rows, 1, engine=engine).sum(bare)
    federation = Federation(rows, 1, engine=engine)
    federation.protect(delta=DELTA, neighbours="replace_one")
    with pytest.raises(RefusedError, match=r"site0: .* bare returned without noise"):
        federation.sum(bare)


def test_the_budget_is_that_of_all_runs_and_jobs_together(rows, tmp_path):
    """Each run has one release; the member's own ledger adds them, the server's has its own."""
    two = accounting.epsilon({Gaussian(4.0): 2}, DELTA)
    for job in range(3):
        _, link, engine = over(rows, tmp_path, guarded(two * 1.001))
        federation = Federation(rows, 1, engine=engine)
        federation.protect(delta=DELTA, neighbours="replace_one")
        if job < 2:
            federation.sum(noisy)
            one = accounting.epsilon({Gaussian(4.0): 1}, DELTA)
            assert federation.ledger.privacy.epsilon() == pytest.approx(one)
            for member in link.members:  # its process ends; the folder stays
                member.close()
            continue
        with pytest.raises(RefusedError, match="site0: client 0 refuses to go on"):
            federation.sum(noisy)
    assert Spent(tmp_path / "0").events() == {Gaussian(4.0): 2}  # what was refused has not left


def test_a_second_protect_does_not_forget_what_was_spent(rows, tmp_path):
    one = accounting.epsilon({Gaussian(4.0): 1}, DELTA)
    member = begun(rows, tmp_path, guarded(one * 1.001))
    assert send(member, [Protect(DELTA), Do(noisy, "upload")]).failure is None
    answer = send(member, [Protect(DELTA), Do(noisy, "upload")])
    assert answer.value is None and "refuses to go on" in answer.failure.said


def test_what_was_spent_is_written_before_a_reply_leaves(rows, tmp_path, monkeypatch):
    def fails(*args: Any) -> None:
        raise OSError("no space left")

    member = begun(rows, tmp_path, guarded(9.0))
    monkeypatch.setattr(Spent, "keep", fails)
    assert send(member, [Protect(DELTA), Do(noisy, "upload")]).value is None


@pytest.mark.parametrize("delta", [1e-3, 0.9])
def test_a_delta_that_would_make_epsilon_small_is_refused(delta, rows, tmp_path):
    _, _, engine = over(rows, tmp_path, guarded(1.0))
    federation = Federation(rows, 1, engine=engine)
    federation.protect(delta=delta, neighbours="replace_one")
    with pytest.raises(RefusedError, match=r"site0: client 0 refuses δ = .* at most 0.0001"):
        federation.sum(noisy)


def test_two_jobs_do_not_charge_one_account_at_the_same_time(rows, tmp_path):
    first, second = begun(rows, tmp_path, guarded(9.0)), begun(rows, tmp_path, guarded(9.0))
    assert send(first, [Protect(DELTA), Do(noisy, "upload")]).failure is None
    assert "another job charges" in send(second, [Protect(DELTA)]).failure.said


@pytest.mark.fault("damaged", "a damaged account of a site of FLARE", told="… is damaged: …")
def test_with_a_damaged_account_nothing_is_released(rows, tmp_path):
    tmp_path.joinpath("0").mkdir()
    (tmp_path / "0" / ACCOUNT).write_bytes(b"FED1 and nonsense")
    with pytest.raises(DataError, match="is damaged: restore it from a copy"):
        Spent(tmp_path / "0").events()
    member = begun(rows, tmp_path, guarded(9.0))
    answer = send(member, [Protect(DELTA), Do(noisy, "upload")])
    assert answer.value is None and answer.failure is not None


def test_an_error_at_a_member_says_nothing_of_protected_data(rows, tmp_path):
    open_one = begun(rows, tmp_path / "open", Rules(Policy()))
    assert "secret 0.1" in send(open_one, [Do(refused_by_data, "none")]).failure.said
    for rules in (Rules(Policy()), guarded(1.0)):
        member = begun(rows, tmp_path / f"{rules.tell_samples}", rules)
        answer = send(member, [Do(broken, "none")])
        assert answer.failure.kind == ("builtins", "ValueError")
        assert "secret" not in repr(answer) and "see its log" in answer.failure.said
    answer = send(member, [Do(refused_by_data, "none")])
    assert "secret" not in repr(answer) and answer.failure.kind[1] == "RefusedError"


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
