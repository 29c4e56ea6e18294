"""Clients shared out among ranks: the bits of one process, errors of any rank, own data only."""

from __future__ import annotations

import sys
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from fedcore import algorithms
from fedcore.errors import DataError, InputError, RefusedError
from fedcore.federation.engine import everywhere
from fedcore.federation.engines import mpi_link
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.engines.mpi_messages import Failure
from fedcore.federation.engines.ranks import share
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.files import hdf5
from fedcore.privacy.noise import Weakened
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.runs import execute
from fedcore.testing.samples import labels_of, sparse_clients
from federation.threads_link import engine_of, team_of
from refused import refused

SIZES = (3, 17, 8, 12, 5)
METHODS = [
    ("ssi", {"rounds": 4}),
    ("faps", {"rounds": 2}),
    ("power_gd", {"power": 2, "local_steps": 3}),
    ("noisy_power", {"rounds": 3, "epsilon": 1.0, "delta": 1e-5, "clip": True}),
    ("fedrep_linear", {"rounds": 3}),
]


def plain(setup):
    return InProcess(setup, plain=True)


def drawn(sizes=SIZES, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, 6)) * 10.0 ** rng.integers(-8, 8) for n in sizes]


# Client steps must stand in a module: the ranks look them up.


def first_row(data, state, message):
    return data[0]


def counted(data, state, message):
    state.calls = getattr(state, "calls", 0) + 1
    return data[0] * state.calls + message


def count_so_far(data, state, message):
    return state.calls


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


def run(name, params, clients, **options):
    chosen = algorithms.get(name)
    settings = chosen.params(
        {"n_components": 2, **params} if chosen.takes("n_components") else params
    )
    seed = np.random.SeedSequence(5, spawn_key=(1, 2))
    recorder, output = execute(chosen, Problem("p", clients), settings, seed, **options)
    return recorder, output


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(("name", "params"), METHODS)
@pytest.mark.in_process
def test_no_bit_depends_on_the_number_of_ranks(name, params, size):
    def found():
        clients = [x.copy() for x in drawn()]
        labels = labels_of(clients, 2)
        noise = Weakened(np.random.SeedSequence(3), 0.5)
        return run(name, params, Clients(clients, labels=labels), noise=noise)

    with everywhere(plain):
        one, output = found()
    with team_of(size) as team, everywhere(engine_of(team)):
        other, there = found()
    assert one.ledger == other.ledger
    for column, values in one.columns().items():
        np.testing.assert_array_equal(values, other.columns()[column], err_msg=column)
    for key, value in output.items():
        same = [np.asarray(a).tobytes() for a in (value if isinstance(value, list) else [value])]
        assert same == [
            np.asarray(a).tobytes()
            for a in (there[key] if isinstance(there[key], list) else [there[key]])
        ], key


@pytest.mark.parametrize("of", [None, [4, 0, 2], [1, 1, 3, 0, 1], [3]])
def test_a_sum_adds_one_client_after_the_other_whoever_they_are(of):
    data = drawn()
    order = range(5) if of is None else of
    expected = reduce(np.add, [data[i][0] for i in order])
    with team_of(3) as team:
        total = Federation(data, engine=engine_of(team)).sum(first_row, of=of)
    assert total.tobytes() == expected.tobytes()


def test_in_any_order_a_sum_is_equal_to_rounding_and_not_to_bits():
    data = drawn()
    expected = reduce(np.add, [x[0] for x in data])
    with team_of(3, "any") as team:
        federation = Federation(data, engine=engine_of(team))
        total, part = federation.sum(first_row), federation.sum(first_row, of=[2])
    largest = np.abs([x[0] for x in data]).max(axis=0)
    assert np.all(np.abs(total - expected) <= 8 * np.finfo(float).eps * largest)
    assert total.tobytes() != expected.tobytes()
    assert part.tobytes() == data[2][0].tobytes()


@pytest.mark.parametrize("order", ["chain", "any"])
def test_a_client_that_takes_part_twice_runs_the_step_twice(order):
    data, of = drawn(), [2, 0, 2, 4, 2]
    with team_of(3, order) as team:
        there, here = (Federation(data, engine=engine) for engine in (engine_of(team), plain))
        for federation in (there, here):
            federation.broadcast(7.0)
        for a, b in zip(there.gather(counted, of=of), here.gather(counted, of=of), strict=True):
            assert a.tobytes() == b.tobytes()
        assert there.client_state("calls", of=[2, 0, 4]) == [3, 1, 1]
        assert there.ledger == here.ledger


def test_a_transcript_sees_single_replies_or_the_sum():
    data = drawn()
    for sums_only, clients in ((False, [0, 1, 2, 3, 4]), (True, [None])):
        seen = Transcript(sums_only=sums_only)
        with team_of(2) as team:
            federation = Federation(data, transcript=seen, engine=engine_of(team))
            federation.broadcast(1.0)
            federation.sum(counted)
            assert federation.client_state("calls") == [1] * 5  # noise must not be drawn twice
        assert [exchange.client for exchange in seen.exchanges] == clients


@pytest.mark.parametrize("ask", ["sum", "gather", "local"])
@pytest.mark.parametrize("order", ["chain", "any"])
def test_the_first_error_in_the_order_of_the_clients_is_raised_and_all_ranks_go_on(ask, order):
    data = drawn()
    with team_of(3, order) as team:
        federation = Federation(data, engine=engine_of(team))
        federation.broadcast([12, 5, 17])
        with pytest.raises(InputError, match="of 17 samples"):
            getattr(federation, ask)(failing)
        federation.broadcast([])
        federation.sum(failing)


def test_an_error_of_the_code_says_where_it_was_raised():
    with team_of(3) as team:
        federation = Federation(drawn(), engine=engine_of(team))
        with pytest.raises(KeyError, match="5") as caught:
            federation.sum(broken, of=[4])
    assert "at rank 2" in caught.value.__notes__[0] and "in broken" in caught.value.__notes__[0]


@pytest.mark.parametrize("order", ["chain", "any"])
@pytest.mark.parametrize("step", [of_own_shape, text])
def test_replies_that_are_refused_are_refused_as_in_one_process(step, order):
    data, said = drawn(), []
    with team_of(3, order) as team:
        for engine in (plain, engine_of(team)):
            with pytest.raises((InputError, TypeError)) as caught:
                Federation(data, engine=engine).sum(step)
            said.append((type(caught.value), str(caught.value)))
    if order == "chain" or step is text:
        assert said[0] == said[1]
    else:  # the ranks' own sums are compared, not each client's reply
        assert said[0][0] is said[1][0] and "replies to sum and mean have one shape" in said[1][1]


def test_a_step_that_holds_an_array_is_refused_before_anybody_is_told():
    held = np.ones(6)

    def step(data, state, message):
        return data @ held

    with team_of(2) as team:
        federation = Federation(drawn(), engine=engine_of(team))
        with pytest.raises(RefusedError, match="holds an array of shape"):
            federation.sum(step)
        assert not team.link.busy


def test_a_row_that_is_too_long_at_another_rank_is_an_error_at_once():
    data = [np.ones((4, 3)), np.ones((4, 3)), 5 * np.ones((4, 3))]
    with team_of(3) as team:
        federation = Federation(data, engine=engine_of(team))
        with pytest.raises(InputError, match="client 2"):
            federation.bound_rows(2.0)
        federation.bound_rows(2.0, clip=True)
        norms = np.linalg.norm(np.vstack(federation.clients), axis=1)
    np.testing.assert_allclose(norms, 4 * [3**0.5] + 4 * [3**0.5] + 4 * [2.0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e12])
def test_centring_and_scaling_change_the_samples_of_all_ranks(sparse, far):
    data = [own + far for own in drawn()]
    if sparse:
        data = [scipy.sparse.csr_array(own.toarray() * (1 + far)) for own in sparse_clients()]
    with team_of(3) as team:
        there, here = Federation(data, engine=engine_of(team)), Federation(data, engine=plain)
        mean = there.center()
        assert mean.tobytes() == here.center().tobytes()
        assert there.scale(mean).tobytes() == here.scale(mean).tobytes()
        block = np.ones((there.shape.n_features, 2))
        for a, b in zip(there.clients, here.clients, strict=True):
            assert (a @ block).tobytes() == (b @ block).tobytes()
        for federation in (there, here):
            federation.broadcast(block)
        assert there.sum(product).tobytes() == here.sum(product).tobytes()


def product(data, state, message):
    return data.T @ (data @ message)


def test_what_a_team_does_not_take():
    with team_of(3) as team:
        few = partial(Federation, drawn((4, 4)), engine=engine_of(team))
        refused(few, InputError, "3 ranks", "2 clients", "mpiexec -n 2")
        ask = Federation(drawn(), engine=engine_of(team)).client_states  # for a checkpoint
        refused(ask, InputError, "--engine mpi")
    with team_of(3, idle=True) as team:
        assert Federation(drawn((4,)), engine=engine_of(team)).sum(first_row).shape == (6,)


def test_a_state_that_no_step_has_made_is_named_at_any_rank():
    with team_of(2) as team:
        federation = Federation(drawn(), engine=engine_of(team))
        with pytest.raises(AttributeError, match=r"state\.calls"):
            federation.sum(count_so_far)
        with pytest.raises(AttributeError, match=r"state\.calls"):
            federation.client_state("calls")


# --- own data only --------------------------------------------------------------------------------


def large_file(path, monkeypatch, clients):
    monkeypatch.setattr(hdf5, "LARGE", 1 << 16)
    storage.save(Problem("large", clients), path)


def damage(path, client):
    """Flip a byte in the middle of a client's samples."""
    whole = bytearray(path.read_bytes())
    place = whole.index(client.tobytes()) + client.nbytes // 2
    whole[place] ^= 1
    path.write_bytes(whole)


def wide_clients():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, 100)) for n in (400, 300, 500, 350)]


def test_a_rank_reads_its_own_clients_and_no_others(tmp_path, monkeypatch):
    path, clients = tmp_path / "large.h5", wide_clients()
    large_file(path, monkeypatch, clients)
    damage(path, clients[2])
    own = share(path, 0, 0, 2)
    for got, given in zip(own, clients[:2], strict=True):
        assert got.tobytes() == given.tobytes()
    theirs = share(path, 0, 2, 4)
    assert theirs[1].tobytes() == clients[3].tobytes()
    with pytest.raises(DataError, match="is not a whole problem file"):
        theirs[0]


def test_rank_0_reads_its_own_clients_and_the_first_of_all(tmp_path, monkeypatch):
    path, clients = tmp_path / "large.h5", wide_clients()
    large_file(path, monkeypatch, clients)
    with everywhere(plain):
        expected, _ = run("ssi", {"rounds": 3}, clients)
    with team_of(3) as team, everywhere(engine_of(team)):
        problem = storage.load(path)
        team.announce_file(path, [problem.clients])
        assert problem.clients.largest == max(np.abs(x).max() for x in clients)
        found, _ = run("ssi", {"rounds": 3}, problem.clients)
        # Not to count what a test of the data reads: which clients the map has handed out.
        assert [x is not None for x in problem.clients._matrices._found] == [True] + 3 * [False]
    assert expected.columns().keys() == found.columns().keys()
    assert expected.problem.n_samples == found.problem.n_samples


def test_damaged_samples_of_another_rank_are_one_sentence(tmp_path, monkeypatch):
    path, clients = tmp_path / "large.h5", wide_clients()
    large_file(path, monkeypatch, clients)
    damage(path, clients[3])
    with team_of(2) as team:
        problem = storage.load(path)
        with pytest.raises(DataError, match=r"large\.h5"):
            team.announce_file(path, [problem.clients])
        assert not team.link.busy


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("large", [True, False])
def test_shares_of_draws_with_labels(tmp_path, monkeypatch, equal, large):
    monkeypatch.setattr(hdf5, "LARGE", 1 << 12 if large else 1 << 27)
    path, sizes = tmp_path / "draws.h5", (40, 40, 40) if equal else (40, 30, 50)
    draws = []
    for seed in (0, 1):
        clients = drawn(sizes, seed)
        labels = [x[:, 0] > 0 for x in clients]
        labels = [y.astype(float) for y in labels]
        apart = Clients(clients, labels=labels)
        draws.append(Problem("draws", Clients(clients, labels=labels), held_out=apart))
    storage.save(draws, path)
    for number, problem in enumerate(draws):
        own = share(path, number, 1, 3)
        for i in (0, 1):
            got, given = own.labelled(i), problem.clients.labelled(1 + i)
            assert got.X.tobytes() == given.X.tobytes() and got.y.tobytes() == given.y.tobytes()


# --- between ranks ------------------------------------------------------------------------------


ERRORS = [
    InputError("a sentence"), TypeError("a type"), np.linalg.LinAlgError("singular"),
    UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),  # it takes five arguments
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_keeps_its_class_and_words(error):
    again = Failure.of(error).error("at rank 1")
    kind = RuntimeError if isinstance(error, UnicodeDecodeError) else type(error)
    assert type(again) is kind and str(error) in str(again)
    assert hasattr(again, "__notes__") == (kind is not InputError)


def test_without_mpi4py_or_with_a_launcher_of_another_mpi(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    refused(mpi_link.connect, InputError, "mpi4py", "make env EXTRAS=mpi")
    world = SimpleNamespace(Get_size=lambda: 1, Get_rank=lambda: 0)
    fake = SimpleNamespace(COMM_WORLD=world, Get_library_version=lambda: "MPICH 5\nmore")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=fake))
    assert mpi_link.connect().size == 1
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    refused(mpi_link.connect, InputError, "4 processes", "MPICH 5)")


def test_the_rank_of_a_process_is_known_before_mpi_is_there(monkeypatch):
    for name in mpi_link.RANKS:
        monkeypatch.delenv(name, raising=False)
    assert mpi_link.started_as() == 0
    monkeypatch.setenv("PMI_RANK", "2")
    assert mpi_link.started_as() == 2
