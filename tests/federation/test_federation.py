from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import example, given, settings

from fedcore.errors import InputError, ReplyError
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.execution import summed
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost
from fedcore.federation.transcript import Transcript
from fedcore.files.lazy import LazyMatrices
from fedcore.problems.clients import Clients, Labelled
from fedcore.user_tables.matrices import check_clients
from refused import refused

ENGINES = {True: InProcess, False: partial(InProcess, plain=True)}  # whether steps are stacked


def blocks(*sizes: int, d: int = 3) -> list[np.ndarray]:
    return [np.full((n, d), float(i + 1)) for i, n in enumerate(sizes)]


def rows(data: np.ndarray, state: Any, message: Any) -> float:
    return float(len(data))


def draw(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
    return state.rng.standard_normal(4)


def test_sum_and_mean_are_those_of_the_replies():
    federation = Federation(blocks(2, 5, 2))
    assert federation.sum(rows) == 9
    assert federation.mean(rows) == 3
    assert federation.gather(rows) == [2, 5, 2]
    assert federation.sum(rows, of=[1, 2]) == 7
    assert federation.mean(rows, of=[0, 1]) == 3.5


def test_a_message_reaches_those_it_was_sent_to_and_stays_until_the_next():
    federation = Federation(blocks(1, 1, 1))

    def read(data: np.ndarray, state: Any, message: Any) -> Any:
        return message

    federation.broadcast(7.0)
    federation.broadcast(9.0, to=[2])
    assert federation.observe(read) == [7.0, 7.0, 9.0]
    assert federation.observe(read) == [7.0, 7.0, 9.0]


def test_the_server_may_write_into_a_sum_that_was_made_at_once():
    """A function for the sum of all replies may return what it keeps for later rounds."""

    @summed(lambda clients, state, message: vars(state.kept).setdefault("total", np.ones(3)))
    def step(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
        return np.ones(3) / 2

    for dtype in (np.float64, np.float32):
        federation = Federation([block.astype(dtype) for block in blocks(1, 1)])
        federation.broadcast(1.0)
        for _ in range(2):
            total = federation.sum(step)
            np.testing.assert_array_equal(total, 1.0)
            total += 100.0


class Pair(NamedTuple):
    Z: np.ndarray
    rest: list


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("stack", [False, True])
def test_no_step_can_change_what_the_server_or_another_client_holds(single, stack):
    """Arrays are read-only; lists and mappings, however deep, are each client's own."""
    kind = np.float32 if single else np.float64
    Z, rest = np.ones((2, 2), kind), [np.zeros(2, kind), {"k": 1}]
    for message, array in ((Z, Z), (Pair(Z, rest), Z), ({"a": [rest]}, rest[0])):
        federation = Federation([np.ones((2, 3), kind)] * 3, engine=ENGINES[stack])
        federation.broadcast(message)

        def spoil(data: np.ndarray, state: Any, message: Any) -> None:
            while not isinstance(message, np.ndarray):
                parts = message.values() if isinstance(message, dict) else message
                inner = next(iter(parts))
                if isinstance(message, dict):
                    message.clear()
                elif isinstance(message, list):
                    message[0] = None
                message = inner
            with pytest.raises(ValueError, match="read-only"):
                message -= 1

        before = array.copy()
        federation.local(spoil if not stack else stacked(spoil))
        federation.local(spoil)  # as if nothing had happened
        np.testing.assert_array_equal(array, before)
    assert rest[1] == {"k": 1}


def test_what_has_been_sent_stays_when_the_server_goes_on_with_its_own_array():
    federation, Z, names = Federation(blocks(1, 1, 1)), np.ones(3), [1]
    federation.broadcast(Z, to=[0, 1])
    Z -= 1
    federation.broadcast({"Z": Z, "names": names}, to=[2])
    Z += 5  # the server's own is writable still
    names.append(2)
    held = federation.observe(lambda data, state, message: message)
    np.testing.assert_array_equal(held[0], np.ones(3))
    np.testing.assert_array_equal(held[2]["Z"], np.zeros(3))
    assert held[2]["names"] == [1]


@pytest.mark.parametrize(("clients", "stack"), [(1, False), (2, False), (2, True)])
@pytest.mark.parametrize("how", ["sum", "mean", "gather"])
def test_what_comes_up_is_the_servers_own(how, clients, stack):
    """The server may write into it, and what a client writes later does not change it."""
    federation = Federation([np.ones((2, 3))] * clients, engine=ENGINES[stack])

    @stacked
    def keep(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
        state.Y = np.ones((*data.shape[:-2], 3))
        return state.Y

    @stacked
    def spoil(data: np.ndarray, state: Any, message: Any) -> None:
        state.Y = state.Y * 0.0

    replies = getattr(federation, how)(keep)
    for reply in [replies] if how != "gather" else replies:
        reply -= 1
    np.testing.assert_array_equal(federation.client_state("Y"), np.ones((clients, 3)))
    before = np.array(replies)
    federation.local(spoil)
    np.testing.assert_array_equal(replies, before)


@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize(
    ("dtype", "value", "total"),
    [(np.int8, 100, 300), (np.uint8, 200, 600), (np.int16, -30000, -90000), (bool, True, 3)],
)
def test_whole_numbers_do_not_overflow_in_a_sum(dtype, value, total, stack):
    @stacked
    def reply(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
        return np.full((*data.shape[:-2], 2), value, dtype)

    federation = Federation([np.ones((2, 3))] * 3, engine=ENGINES[stack])
    np.testing.assert_array_equal(federation.sum(reply), [total, total])
    np.testing.assert_allclose(federation.mean(reply), [total / 3, total / 3], rtol=1e-15)
    assert federation.ledger.bytes_up == 2 * 3 * 2 * np.dtype(dtype).itemsize  # as they crossed


WRONG_REPLIES = [
    (np.ones((1, 1)), "client 0", "(3, 2)", "(1, 1)"),
    (np.ones(2), "(2,)"),
    (1.0, "()"),
    (1j * np.ones((3, 2)), "complex128"),
    ({"Y": np.ones((3, 2))}, "dict"),
    ([np.ones(3), np.ones(2)], "list"),
    (None, "NoneType"),
    (np.ma.masked_less(np.eye(3, 2), 1), "masked"),
]


@pytest.mark.parametrize(("wrong", "names"), [(wrong, names) for wrong, *names in WRONG_REPLIES])
@pytest.mark.parametrize("how", ["sum", "mean"])
def test_replies_that_do_not_fit_are_refused_and_not_broadcast(how, wrong, names):
    ask = getattr(Federation(blocks(1, 2, 3)), how)
    reply = lambda data, state, message: wrong if len(data) == 2 else np.ones((3, 2))  # noqa: E731
    refused(lambda: ask(reply), ReplyError, "client 1", *names)


def test_what_a_federation_does_not_take():
    federation = Federation([np.ones((2, 3))] * 3)
    refused(lambda: federation.sum(rows, of=[]), InputError, "none takes part")
    federation = Federation([np.ones((2, 3))] * 3)
    federation.protect(delta=1e-6, neighbours="replace_one")
    for name in ("rng", "privacy"):  # no array: a stacked step leaves it as it is
        held = list(federation.client_state(name))
        step = stacked(lambda data, state, message, name=name: getattr(state, name))
        refused(lambda step=step: federation.gather(step), InputError, f"state.{name}", "@stacked")
        assert all(a is b for a, b in zip(held, federation.client_state(name), strict=True))
    for ids in ([0, 0], [0], [0, 1, 2]):
        refused(lambda ids=ids: Federation(blocks(1, 1), ids=ids), InputError, "2 clients")
    for watched in ([4], [-1], [0, 9]):
        seen = Transcript(watched)
        with pytest.raises(InputError):
            Federation(blocks(1, 1, 1, 1), transcript=seen)
    for seed in (-1, np.int64(-1), 0.5, True, None, "0"):
        refused(lambda s=seed: Federation(blocks(1), s), InputError, "seed", repr(seed))


@pytest.mark.parametrize(
    "change", [Federation.center, lambda federation: federation.bound_rows(clip=True)]
)
def test_samples_that_are_centred_or_clipped_keep_their_labels(change):
    labels = [np.array([1.0, 2.0]), np.array([3.0])]
    federation = Federation(Clients(blocks(2, 1), labels=labels), check=False, labelled=True)
    change(federation)

    def step(data: Labelled, state: Any, message: Any) -> float:
        return float(data.y.sum())

    assert federation.gather(step) == [3.0, 3.0]


@example(248764937, 1, -1.08984375, -6.25, False)
@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(-20, 20), st.floats(-20, 2),
    st.booleans(),
)  # fmt: skip
def test_centring_leaves_no_mean_that_products_would_feel(seed, n_clients, far, near, sparse):
    """In exact arithmetic, of any mean and spread; and both rounds are on the ledger."""
    rng = np.random.default_rng(seed)
    d = 3
    data = [
        10.0**far * rng.choice([-1.0, 0.0, 1.0], d) * rng.uniform(0.5, 1, d)
        + 10.0**near * rng.standard_normal((int(rng.integers(1, 9)), d))
        for _ in range(n_clients)
    ]
    federation = Federation([scipy.sparse.csr_array(own) for own in data] if sparse else data)
    federation.center()
    left = [own.toarray() if sparse else own for own in federation.clients]
    pooled = np.vstack(left)
    for column in range(d):
        mean = sum(map(Fraction, pooled[:, column])) / len(pooled)
        roundings = 2 + n_clients  # of a client's sum (two), over clients, and of the division
        limit = 2.0**-33 * pooled[:, column].std() + 2.0**-53 * 10.0**near
        assert abs(mean) <= roundings * limit
    ledger, second = federation.ledger, federation.ledger.rounds - 1
    assert ledger.scalars_up == n_clients * (d + 2 + second * (d + 1))
    assert ledger.scalars_down == n_clients * d * (1 + second)
    assert ledger.bytes_up == 8 * ledger.scalars_up
    if min(map(len, data)) > 4 and far <= near + 3:
        assert not second


def test_only_what_crosses_is_charged():
    federation = Federation(blocks(2, 5))
    federation.local(draw)
    federation.observe(draw)
    federation.client_state("rng")
    assert federation.ledger.snapshot() == dict.fromkeys(federation.ledger.snapshot(), 0)
    federation.broadcast(np.zeros(10), to=[1])
    federation.gather(draw, of=[0])
    federation.broadcast(np.zeros(10))
    assert federation.ledger.snapshot() == {
        "round": 1,
        "scalars_up": 4,
        "scalars_down": 30,
        "bytes_up": 32,
        "bytes_down": 240,
    }


def test_single_precision_clients_send_and_receive_single_precision():
    class Reply(NamedTuple):
        Y: np.ndarray
        norm: float

    def answer(data: np.ndarray, state: Any, message: Any) -> Reply:
        assert message["V"].dtype == np.float32
        assert message["count"].dtype == np.int64
        return Reply(np.ones(4), 1.0)

    federation = Federation([np.ones((2, 3), np.float32)])
    federation.broadcast({"V": np.zeros((3, 2)), "count": np.arange(2)})
    (reply,) = federation.gather(answer)
    assert isinstance(reply, Reply) and reply.Y.dtype == np.float32
    assert (federation.ledger.bytes_down, federation.ledger.bytes_up) == (6 * 4 + 2 * 8, 4 * 4 + 4)


def test_a_clients_stream_depends_on_its_id_and_the_seed_alone():
    """Of a sequence on its spawn key, too; it is not used up."""
    sequence = np.random.SeedSequence(4, spawn_key=(1, 2))
    streams = set()
    for seed in (4, 5, sequence):
        federation = Federation(blocks(1, 1, 1), seed, ids=[7, 3, 5])
        one = federation.gather(draw)
        for ids in ([5, 7, 3], [3]):
            for i, reply in zip(
                ids, Federation(blocks(*ids), seed, ids=ids).gather(draw), strict=True
            ):
                np.testing.assert_array_equal(reply, one[[7, 3, 5].index(i)])
        streams |= {reply.tobytes() for reply in [federation.rng.standard_normal(4), *one]}
    assert len(streams) == 3 * 4


def test_clients_are_made_float_and_contiguous_and_not_copied_without_need():
    good, single = np.ones((3, 2)), np.ones((3, 2), np.float32)
    turned, whole = np.ones((2, 3)).T, np.arange(6).reshape(3, 2)
    checked = check_clients([good, single, turned, whole, whole > 2, [[1, 2]]])
    assert np.shares_memory(checked[0], good)
    assert [c.dtype for c in checked] == [float, np.float32, float, float, float, float]
    assert all(c.flags.c_contiguous for c in checked)
    np.testing.assert_array_equal(checked[3], whole)


def test_a_data_frame_of_plain_numbers_is_a_matrix():
    frame = pandas.DataFrame({"a": [1.5, 2.0], "b": [3, 4], "ok": [True, False]})
    np.testing.assert_array_equal(check_clients([frame])[0], [[1.5, 3, 1], [2, 4, 0]])


CLIENTS = [
    ([], "there are no clients"),
    (np.array(4.0), "float"),
    (np.ones((4, 2)), "[matrix]"),
    (pandas.DataFrame({"a": [1.0], "b": [2.0]}), "[matrix]"),
    (scipy.sparse.csr_matrix(np.eye(3)), "[matrix]"),
    (scipy.sparse.coo_array(np.eye(3)), "[matrix]"),
    ([np.eye(3), scipy.sparse.csr_array(np.eye(3))], "client 1 is sparse", "toarray"),
    (None, "NoneType"),
    (3, "int"),
    ("data.csv", "text"),
    ([np.eye(3), None], "client 1 is None"),
    ([pandas.DataFrame({"a": [1.5], "t": ["x"]})], "client 0", "'t'"),
    ([np.ones(4)], "client 0", "1-D"),
    ([np.ones((4, 2)), np.ones((0, 2))], "client 1 is empty"),
    ([np.ones((4, 0))], "client 0 is empty"),
    ([np.ones((4, 2)), np.ones((4, 3))], "client 1 has 3", "client 0 has 2"),
    ([np.ones((4, 2), complex)], "client 0", "complex128"),
    ([np.array([["a"]])], "client 0", "<U1"),
    ([np.full((9, 9), None)], "client 0 has NaN", "row 0"),
    ([np.array([[1, "a"]], object)], "client 0", "'a'"),
    ([[[1, 2], [3]]], "client 0", "array"),
    ([np.array([[1, np.nan]])], "client 0 has NaN", "row 0, feature 1"),
    ([np.array([[1e39, np.inf]])], "client 0 has inf", "row 0, feature 1"),
]


@pytest.mark.parametrize(("clients", "names"), [(clients, names) for clients, *names in CLIENTS])
def test_clients_that_no_method_takes(clients, names):
    refused(lambda: check_clients(clients), InputError, *names)


# --- stacked steps -------------------------------------------------------------------------------


@stacked
def add_up(data, state, message):
    state.total = state.total + message * data.sum(axis=(-2, -1))
    return state.total[..., None]


@stacked
def begin(data, state, message):
    state.total = np.zeros(data.shape[:-2])


def alike(n=5):
    return list(np.random.default_rng(3).standard_normal((n, 4, 3)))


@pytest.mark.parametrize("stack", [True, False])
def test_state_lasts_through_stacked_and_plain_steps_in_turn(stack):
    clients = alike()
    federation = Federation(clients, engine=ENGINES[stack])
    federation.local(begin)
    expected = np.zeros(5)
    sums = np.array([c.sum() for c in clients])
    for message, of in ((2.0, None), (3.0, [1, 3]), (5.0, [0, 1])):
        federation.broadcast(message, to=of)
        federation.gather(add_up, of=of)
        rows = slice(None) if of is None else of
        expected[rows] += message * sums[rows]
        # A plain step sees what the stacked ones have written, and may replace it.
        seen = federation.observe(lambda data, state, message: float(state.total))
        np.testing.assert_allclose(seen, expected, rtol=1e-12)
        np.testing.assert_allclose(federation.client_state("total"), expected, rtol=1e-12)

    def double(data, state, message):
        state.total = 2.0 * state.total

    federation.local(double)
    expected *= 2.0
    federation.broadcast(1.0)
    federation.gather(add_up)
    np.testing.assert_allclose(federation.client_state("total"), expected + sums, rtol=1e-12)


@stacked
def keep_a_pair(data, state, message):
    state.pair, state.count = data[..., 0, :2].copy(), 8


@stacked
def add_in_place(data, state, message):
    state.pair[..., 0] += message * data.sum(axis=(-2, -1))


@stacked
def turn(data, state, message):
    state.pair = message * state.pair[..., ::-1]


@stacked
def keep_more(data, state, message):
    state.more = np.full((*data.shape[:-2], int(message)), message) + data[..., 0, :1]


@stacked
def double_more(data, state, message):
    state.more = 2.0 * state.more


@stacked
def count(data, state, message):
    state.count = state.count + int(message)


@stacked
def halve(data, state, message):
    state.count = state.count / 2


def change_alone(data, state, message):
    state.pair = state.pair + message
    state.more = np.array([message])


STEPS = [add_in_place, turn, keep_more, double_more, count, halve, change_alone]


@pytest.mark.parametrize("seed", range(60))
def test_steps_of_some_clients_leave_the_states_that_steps_one_by_one_leave(seed):
    """Stacked steps of all and of some clients, and now and then a plain one."""
    rng, n = np.random.default_rng(seed), 5
    federations = [Federation(alike(n), engine=ENGINES[stack]) for stack in (True, False)]
    chances, orders = np.array([2, 2, 1, 2, 2, 2, seed % 2]), []
    for _ in range(20):
        of = rng.choice(n, rng.integers(1, n + 1), replace=False).tolist()
        step = STEPS[rng.choice(len(STEPS), p=chances / chances.sum())]
        orders.append((step, float(rng.integers(1, 3)), of))
    for federation in federations:
        federation.local(keep_a_pair)
        federation.broadcast(1.0)
        federation.local(keep_more)
        for step, message, of in orders:
            sizes = {np.size(federation.client_states()[i].more) for i in of}
            if step is not double_more or len(sizes) == 1:  # a stack has arrays of one shape
                federation.broadcast(message, to=of)
                federation.local(step, of=of)
    for name in ("pair", "more", "count"):
        held = [federation.client_state(name) for federation in federations]
        for one, other in zip(*held, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_value_of_an_earlier_round_stays_as_it_was():
    federation = Federation(alike())
    federation.local(keep_a_pair)
    before = federation.client_state("pair")
    copied = np.array(before)
    for of in ([1, 3], [0, 1], None):
        federation.broadcast(2.0, to=of)
        federation.local(add_in_place, of=of)
        np.testing.assert_array_equal(before, copied)


@pytest.mark.parametrize("again", [False, True])
def test_a_state_has_a_row_for_each_client_that_takes_part(again):
    @stacked
    def too_few(data, state, message):
        state.pair = np.ones((1, 2))

    federation = Federation(alike())
    federation.local(keep_a_pair)
    for _ in range(2 if again else 0):
        federation.local(keep_a_pair, of=[0, 2, 3])
    with pytest.raises(IndexError):
        federation.local(too_few, of=[0, 2])


@pytest.mark.parametrize("stack", [True, False])
def test_clients_may_be_given_as_an_array_as_a_draw_returns_them(stack):
    clients, chosen = alike(), np.array([3, 1])
    federation = Federation(clients, engine=ENGINES[stack])
    federation.local(begin)
    federation.broadcast(2.0, to=chosen)
    expected = [2 * clients[i].sum() for i in chosen]
    assert federation.sum(add_up, of=chosen) == pytest.approx(sum(expected))
    np.testing.assert_allclose(federation.client_state("total", of=chosen), expected)
    assert federation.mean(add_up, of=chosen) == pytest.approx(2 * sum(expected) / 2)
    snapshot = federation.ledger.snapshot()  # stacked replies are charged one by one
    assert federation.ledger.cost() == Cost(2, 4, 2) and snapshot["bytes_up"] == 32


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("how", ["sum", "mean", "gather", "observe"])
@pytest.mark.parametrize("reply", [np.ones((1, 1)), np.ones((6, 2)), np.float64(1.0), None])
def test_a_stacked_step_replies_with_a_row_for_each_client(reply, how, private):
    federation = Federation(alike())
    if private:
        federation.protect(delta=1e-6, neighbours="replace_one")
    wrong = stacked(lambda data, state, message: reply)
    refused(lambda: getattr(federation, how)(wrong), ReplyError, "stacked step", "5 clients")
    assert federation.ledger.cost() == Cost(0, 0, 0)
    federation.local(wrong)  # its replies are dropped


@pytest.mark.parametrize(
    ("clients", "messages"),
    [
        ([*alike()[:2], np.ones((5, 3))], [1.0]),  # of different size
        ([*alike()[:2], np.ones((4, 3), np.float32)], [1.0]),  # of different precision
        (alike()[:1], [1.0]),  # a single one
        (alike()[:2], [1.0, 2.0]),  # holding different messages
    ],
)
def test_what_cannot_be_stacked_runs_one_by_one(clients, messages):
    axes = []

    @stacked
    def multiplied(data, state, message):
        axes.append(data.ndim)
        return message * data.sum(axis=(-2, -1))[..., None]

    federation = Federation(clients)
    for i in range(len(clients)):
        federation.broadcast(messages[i % len(messages)], to=[i])
    if len(messages) == 1:
        federation.broadcast(messages[0])
    replies = federation.gather(multiplied)
    expected = [messages[i % len(messages)] * c.sum() for i, c in enumerate(clients)]
    np.testing.assert_allclose(np.ravel(replies), expected, rtol=1e-6)
    assert axes == [2] * len(clients)


@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize("kind", ["list", "array", "lazy", "held"])
def test_no_step_can_change_the_data(stack, kind):
    """They may be the caller's own arrays, which stay writable."""
    given = np.ones((3, 2, 4)) if kind == "array" else [np.ones((2, 4)) for _ in range(3)]
    labels = [np.zeros(2), np.zeros(2), np.zeros(2)]
    clients = Clients(given, labels=labels)
    if kind in ("lazy", "held"):
        lazy = LazyMatrices(given.__getitem__, 3)
        clients = Clients(lazy, clients.shapes, clients.dtypes, labels=labels)
    if kind == "held":
        clients.hold()
    federation = Federation(clients, engine=ENGINES[stack], check=False, labelled=True)

    def spoil(data: Labelled, state: Any, message: Any) -> None:
        for array in data:
            with pytest.raises(ValueError, match="read-only"):
                array += 1

    federation.local(stacked(spoil) if stack else spoil)
    assert all((matrix == 1).all() for matrix in given)
    given[0][0] = 2  # the caller may go on


def test_a_message_that_cannot_be_counted_reaches_nobody():
    federation = Federation(blocks(1, 1))
    federation.broadcast(1.0)
    sent = federation.ledger.snapshot()
    with pytest.raises(TypeError):
        federation.broadcast("text")
    assert federation.observe(lambda data, state, message: message) == [1.0, 1.0]
    assert federation.ledger.snapshot() == sent


@pytest.mark.parametrize("of", [[3], [-1], np.array([0, 3]), [1.0], [True, False, True], ["0"], 0])
def test_positions_of_clients_that_do_not_exist_are_refused(of):
    federation = Federation(blocks(1, 1, 1))
    for call in (
        lambda: federation.broadcast(1.0, to=of),
        lambda: federation.gather(rows, of=of),
        lambda: federation.sum(rows, of=of),
        lambda: federation.mean(rows, of=of),
        lambda: federation.local(rows, of=of),
        lambda: federation.client_state("rng", of=of),
    ):
        refused(call, InputError, "position")
    assert federation.ledger.rounds == 0 == federation.ledger.scalars_down


@pytest.mark.parametrize("bound", [np.nan, np.inf, 0.0, -1.0, "1"])
@pytest.mark.parametrize("clip", [False, True])
def test_a_bound_that_bounds_nothing_is_refused(bound, clip):
    federation = Federation(blocks(1, 1))
    refused(lambda: federation.bound_rows(bound, clip=clip), InputError, "bound must be")
