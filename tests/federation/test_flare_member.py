"""A member of a run over FLARE, without FLARE: what it refuses, and what it has spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from near_flare import CLOSED, bare, guarded, noisy, over, remembers

from fedcore.errors import DataError, InputError, RefusedError
from fedcore.federation.federation import Federation
from fedcore.federation.flare_member import Member, Rules
from fedcore.federation.flare_messages import Carry, Fetch, Join, Look
from fedcore.federation.member_records import ACCOUNT, Spent
from fedcore.federation.site import Policy
from fedcore.federation.transport import Do, Hold, Protect, Read
from fedcore.parts.gram_products import gram_product
from fedcore.privacy import accounting
from fedcore.privacy.events import Gaussian
from fedcore.steps.naming import name_step
from fedcore.steps.values import decode, encode

DELTA = 1e-5


def broken(data: Any, state: Any, message: Any) -> None:
    raise ValueError(f"secret {data[0, 0]}")


def refused_by_data(data: Any, state: Any, message: Any) -> None:
    raise InputError(f"secret {data[0, 0]}")


@pytest.fixture
def rows() -> list[np.ndarray]:
    return [np.full((4 + i, 3), 0.1 * (i + 1)) for i in range(3)]


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
    with pytest.raises(RefusedError, match=r"^site0: .*near_flare is not allowed here"):
        federation.sum(bare)


def test_a_changed_step_is_refused(clients, tmp_path):
    _, link, engine = over(clients, tmp_path)
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
        federation = Federation(clients, 1, engine=engine)
        federation.broadcast(np.eye(clients[0].shape[1])[:, :2])
        federation.sum(gram_product)


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
