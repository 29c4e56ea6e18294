"""A federation at the ranks of an MPI program; `test_mpi` runs this file at all of them."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pytest
import scipy.sparse

from fedcore import algorithms, metrics
from fedcore.errors import InputError
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.files.lazy import LazyMatrices
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute, subtract_mean
from fedcore.testing.samples import sparse_clients
from federation.test_site import account_under
from refused import refused

SIZES = (3, 17, 8, 12, 5)


def plain(setup):
    return InProcess(setup, plain=True)


def both(data):
    """Return federations over the ranks and in one process."""
    return Federation(data), Federation(data, engine=plain)


def drawn(sizes=SIZES, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, 6)) * 10.0 ** rng.integers(-8, 8) for n in sizes]


def first_row(data, state, message):
    return data[0]


def counted(data, state, message):
    state.calls = getattr(state, "calls", 0) + 1
    return data[0] * state.calls + message


def of_own_shape(data, state, message):
    return data[:, 0]


def text(data, state, message):
    return "no number" if len(data) == 8 else data[0]


def failing(data, state, message):
    if len(data) in message:
        raise InputError(f"of {len(data)} samples")
    return data[0]


def broken(data, state, message):
    return data[0] / {}[len(data)]


def product(data, state, message):
    return data.T @ (data @ message)


def echo(data, state, message):
    return message


@pytest.mark.parametrize("of", [None, [4, 0, 2], [1, 1, 3, 0, 1], [3]])
def test_a_sum_adds_one_client_after_the_other_whoever_they_are(of):
    data = drawn()
    expected = reduce(np.add, [data[i][0] for i in (of or range(5))])
    assert Federation(data).sum(first_row, of=of).tobytes() == expected.tobytes()


def test_a_client_that_takes_part_twice_runs_the_step_twice():
    data, of = drawn(), [2, 0, 2, 4, 2]
    there, here = both(data)
    for federation in (there, here):
        federation.broadcast(7.0)
    for a, b in zip(there.gather(counted, of=of), here.gather(counted, of=of), strict=True):
        assert a.tobytes() == b.tobytes()
    assert there.client_state("calls", of=[2, 0, 4]) == [3, 1, 1]
    assert there.ledger == here.ledger


def test_the_message_of_rank_0_is_what_all_clients_get(ranks):
    """As on unlike processors, where the servers' last digits differ."""
    federation = Federation(drawn())
    federation.broadcast(np.array([1.0 + ranks.rank]))
    federation.broadcast({"a": [2.0 + ranks.rank]}, to=[4])
    assert federation.sum(echo, of=[0, 1, 2, 3]) == 4.0
    assert federation.gather(echo, of=[4, 3]) == [{"a": [2.0]}, np.array([1.0])]


def test_the_end_of_rank_0_ends_the_run_of_all(ranks):
    record = partial(execute, algorithms.get("ssi"), Problem("p", drawn()))
    settings = algorithms.get("ssi").params({"n_components": 2, "rounds": 9})
    stop = Recording(stop=lambda row: row["iteration"] == 3 + ranks.rank)
    recorder, _ = record(settings, 0, stop)
    assert len(recorder.rows) == 4


def test_a_transcript_sees_single_replies_or_the_sum():
    for sums_only, clients in ((False, [0, 1, 2, 3, 4]), (True, [None])):
        seen = Transcript(sums_only=sums_only)
        federation = Federation(drawn(), transcript=seen)
        federation.broadcast(1.0)
        federation.sum(counted)
        assert federation.client_state("calls") == [1] * 5  # noise must not be drawn twice
        assert [exchange.client for exchange in seen.exchanges] == clients


@pytest.mark.parametrize("ask", ["sum", "gather", "local"])
def test_the_first_error_in_the_order_of_the_clients_is_raised_and_all_ranks_go_on(ask):
    federation = Federation(drawn())
    federation.broadcast([12, 5, 17])
    refused(lambda: getattr(federation, ask)(failing), InputError, "of 17 samples")
    federation.broadcast([])
    federation.sum(failing)


def test_an_error_of_the_code_says_where_it_was_raised(ranks):
    with pytest.raises(KeyError, match="5") as caught:
        Federation(drawn()).sum(broken, of=[4])
    where = f"at rank {ranks.link.size - 1}"
    assert where in caught.value.__notes__[0] and "in broken" in caught.value.__notes__[0]


@pytest.mark.parametrize("step", [of_own_shape, text])
def test_replies_that_are_refused_are_refused_as_in_one_process(step):
    said = []
    for federation in both(drawn()):
        with pytest.raises((InputError, TypeError)) as caught:
            federation.sum(step)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_replies_that_cannot_cross_are_refused():
    federation = Federation(drawn())
    with pytest.raises(Exception, match="lambda"):
        federation.observe(lambda data, state, message: lambda: None)
    federation.sum(first_row)


def test_a_row_that_is_too_long_at_another_rank_is_an_error_at_once():
    federation = Federation([np.ones((4, 3)), np.ones((4, 3)), 5 * np.ones((4, 3))])
    refused(lambda: federation.bound_rows(2.0), InputError, "client 2")
    federation.bound_rows(2.0, clip=True)
    norms = np.linalg.norm(np.vstack(federation.clients), axis=1)
    np.testing.assert_allclose(norms, 4 * [3**0.5] + 4 * [3**0.5] + 4 * [2.0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e12])
def test_centring_and_scaling_change_the_samples_of_all_ranks(sparse, far):
    data = [own + far for own in drawn()]
    if sparse:
        data = [scipy.sparse.csr_array(own.toarray() * (1 + far)) for own in sparse_clients()]
    there, here = both(data)
    mean = there.center()
    assert mean.tobytes() == here.center().tobytes()
    assert there.scale(mean).tobytes() == here.scale(mean).tobytes()
    block = np.ones((there.shape.n_features, 2))
    for a, b in zip(there.clients, here.clients, strict=True):
        assert (a @ block).tobytes() == (b @ block).tobytes()
    for federation in (there, here):
        federation.broadcast(block)
    assert there.sum(product).tobytes() == here.sum(product).tobytes()


def test_the_ledger_knows_what_was_charged_at_all_ranks():
    here, there = account_under(plain), account_under(Federation.engine)
    assert there.accounts == here.accounts


def test_what_is_done_once_is_done_at_rank_0_and_known_at_all(ranks):
    federation, calls = Federation(drawn()), []

    def job():
        calls.append(federation.observe(first_row)[4])
        return np.random.default_rng().integers(2**60)

    values = {int(part) for part in ranks.link.gather(str(federation.once(job)).encode())}
    assert len(values) == 1 and len(calls) == (ranks.rank == 0)
    with pytest.raises(ZeroDivisionError):
        federation.once(lambda: int(job()) // 0)
    with pytest.raises(KeyError):
        federation.once(lambda: federation.observe(broken))
    hidden = partial(federation.observe, lambda data, state, message: 0)
    refused(lambda: federation.once(hidden), InputError, "top level of a module")
    refused(lambda: federation.once(lambda: federation.sum(first_row)), InputError, "only rank 0")


@pytest.mark.parametrize("center", [False, True])
def test_other_ranks_read_their_own_clients_alone_and_measure_nothing(center, ranks):
    data, read = drawn(), set()
    made = LazyMatrices(lambda i: read.add(i) or data[i], len(data))
    clients = Clients(made, [x.shape for x in data], [x.dtype for x in data])
    measure = metrics.get("objective")
    settings = algorithms.get("ssi").params({"n_components": 2, "rounds": 3})
    recorder, _ = execute(
        algorithms.get("ssi"), Problem("p", clients), settings, 0, Recording([measure]),
        begin=[subtract_mean] * center,
    )  # fmt: skip
    shares = [set(part) for part in ranks.link.gather(bytes(read))]
    assert shares[0] == set(range(5)) and sum(map(len, shares[1:])) < 5
    assert not set.intersection(*shares[1:]) or ranks.link.size == 2
    assert np.isfinite(recorder.columns()["objective"]).all()


def test_ranks_may_be_more_than_clients():
    assert Federation(drawn((4,))).sum(first_row).shape == (6,)


def test_states_for_a_checkpoint_are_refused():
    refused(Federation(drawn()).client_states, InputError, "--engine mpi")
