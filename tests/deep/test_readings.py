"""Readings of the authors' code, each against a few lines of PyTorch as theirs are, or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from contract.networks import BODY, SIZE, batches, chosen, first_network
from contract.test_networks import run
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing import Draws
from fedcore.testing.samples import CLASSES, FEATURES, held_out, images

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import device, one  # noqa: E402
from fedcore.deep.batches import Batch  # noqa: E402
from fedcore.deep.evaluation import ROWS, in_pieces  # noqa: E402
from fedcore.deep.layers import Dense, Reshaped, Softmax  # noqa: E402
from fedcore.deep.networks import Network  # noqa: E402
from fedcore.deep.settings import Params  # noqa: E402
from fedcore.deep.training import Learner  # noqa: E402

# --- a softmax before that of the loss ----------------------------------------------------------


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_the_gradient_through_two_softmaxes_is_that_of_the_closed_form():
    """With p = softmax(s) and g = softmax(p) − y, that in the scores is p (g − <p, g>)."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 5)), rng.integers(3, size=6)
    V, c = rng.standard_normal((3, 5)), rng.standard_normal(3)
    p = softmax(x @ V.T + c)
    g = (softmax(p) - np.eye(3)[y]) / len(y)
    e = p * (g - (p * g).sum(axis=1, keepdims=True))
    w, batch = torch.tensor(np.append(V, c)), Batch(torch.tensor(x), torch.tensor(y))
    found = Network((Dense(3), Softmax()), (5,)).gradient(w, batch)
    np.testing.assert_allclose(found, np.append(e.T @ x, e.sum(0)), rtol=0, atol=1e-15)
    once = Network((Dense(3),), (5,)).gradient(w, batch)
    assert found.norm() < 0.7 * once.norm()  # it slows training down


# --- a sequence that is reshaped across the samples of a block ----------------------------------


def as_authors(block):
    """Tweets (m, words, numbers) as models/Nets.py views them, (numbers, m, words)."""
    m, words, numbers = block.shape
    there = np.zeros((words, m, numbers))
    for i in range(words):
        for j in range(m):
            there[i, j] = block[j, i]
    return there.reshape(numbers, m, words)


@pytest.mark.parametrize("m", [4, 8, 10, 3])
def test_a_block_is_reshaped_as_numpy_does_it_and_not_transposed(m):
    x = np.random.default_rng(0).standard_normal((m, 5, 7))
    found = one.reshaped(Reshaped(4), torch.tensor(x), None).numpy()
    assert found.shape == (m, *Reshaped(4).output((5, 7))) == (m, 7, 5)
    for start in range(0, m, 4):
        expected = as_authors(x[start : start + 4]).transpose(1, 0, 2)
        np.testing.assert_array_equal(found[start : start + 4], expected)
    transposed = x.transpose(0, 2, 1)
    assert (found != transposed).any(axis=(1, 2)).all()
    assert sorted(found.ravel()) == sorted(x.ravel())


def tweets(sizes, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((m, 600)).astype(np.float32) for m in sizes]
    return Clients(X, labels=[np.arange(m) % 2.0 for m in sizes])


@pytest.fixture
def reshaping():
    """A learner with two clients, and their samples as the network takes them."""
    clients = tweets((ROWS + 2, 10))
    learner = Learner(Params(model="sent140_reshaped", batch=4), clients)
    return learner, clients, [learner.samples(clients.labelled(i)).x for i in range(2)]


def by_blocks(network, w, x):
    return torch.cat([network.apply(torch.tensor(w), block) for block in x.split(4)])


def test_no_block_is_cut_and_none_has_samples_of_two_clients(reshaping):
    learner, clients, x = reshaping
    w = learner.start(1)
    for own in x:
        expected = by_blocks(learner.whole, w, own)
        torch.testing.assert_close(in_pieces(learner.whole, w, own), expected)
    scores = learner.shared(w).scores(clients)
    for found, own in zip(scores, x, strict=True):
        torch.testing.assert_close(torch.tensor(found), by_blocks(learner.whole, w, own))
    straight = learner.whole.apply(torch.tensor(w), x[1].flip(0)).flip(0)
    assert not torch.allclose(straight, torch.tensor(scores[1]))  # the neighbours matter


def test_a_block_may_have_more_samples_than_are_computed_at_once():
    network = Network((Reshaped(ROWS + 5),), (2, 3))
    x = torch.arange(6.0 * (ROWS + 9)).reshape(-1, 2, 3)
    found = in_pieces(network, np.empty(0, np.float32), x)
    assert torch.equal(found, one.reshaped(Reshaped(ROWS + 5), x, None))


def test_the_head_is_trained_on_what_the_body_makes_of_each_batch(reshaping):
    learner, clients, _ = reshaping
    body, data = learner.split(learner.start(1))[0], clients.labelled(0)
    found = learner.head_batches(body, data, np.random.default_rng(3), 2)
    plain = learner.batches(learner.samples(data), np.random.default_rng(3), 2)
    for mine, batch in zip(found, plain, strict=True):
        expected = learner.body.apply(torch.tensor(body), batch.x)
        torch.testing.assert_close(mine.x, expected)
        assert torch.equal(mine.y, batch.y) and mine.noise == batch.noise


# --- heads that are averaged, until a client has its own ----------------------------------------

HEADS = pytest.mark.parametrize("name", ["fedper", "fedrep"])


@HEADS
def test_a_client_is_measured_with_the_averaged_head_until_it_has_trained_its_own(name):
    problem = Problem("p", images(), held_out=held_out())
    options = {"problem": problem, "rounds": 3, "participation": 0.5}
    found = run(name, first_head="averaged", **options)
    draws, trained, settled = Draws(5, 4), set(), 0
    first_network(draws)  # the server draws its seed first
    for t in range(1, 4):
        members = chosen(draws, found.settings, 4)
        trained |= set(members.tolist())
        now, before = ([w[BODY:] for w in found.networks[k]] for k in (t, t - 1))
        mean = np.mean([now[i] for i in members], axis=0)
        for i in range(4):
            if i not in trained:
                np.testing.assert_allclose(now[i], mean, rtol=0, atol=1e-16)
                assert not np.array_equal(now[i], before[i])
            elif i not in members:
                settled += 1
                assert now[i].tobytes() == before[i].tobytes()
                assert np.abs(now[i] - mean).max() > 1e-3
        # The accuracies are those of these heads.
        wholes = [
            np.concatenate([w[:BODY], head]) for w, head in zip(found.networks[t], now, strict=True)
        ]
        each = found.history.clients["test_accuracy"][0, t]
        np.testing.assert_array_equal(each, plain_accuracies(wholes, problem.held_out))
    assert settled
    initial = run(name, **options)
    first = initial.networks[0][0][BODY:]
    assert any(w[BODY:].tobytes() == first.tobytes() for w in initial.networks[1])
    assert not any(w[BODY:].tobytes() == first.tobytes() for w in found.networks[1])


def plain_accuracies(wholes, apart):
    found = []
    for w, (X, y) in zip(wholes, map(apart.labelled, range(len(apart))), strict=True):
        W, b, V, c = np.split(w, np.cumsum([4 * FEATURES, 4, 4 * CLASSES]))
        inner = np.maximum(X @ W.reshape(4, FEATURES).T + b, 0)
        found.append(np.mean(np.argmax(inner @ V.reshape(CLASSES, 4).T + c, axis=1) == y))
    return found


@HEADS
def test_averaged_heads_cross_with_the_body_and_others_do_not(name):
    for first_head, size in (("averaged", SIZE), ("initial", BODY)):
        found = run(name, first_head=first_head, rounds=3, participation=0.5)
        assert found.ledger.scalars_up == 3 * 2 * size
        assert found.ledger.scalars_down == 3 * 2 * size + 4  # the seed of the first network


@HEADS
def test_where_all_take_part_only_the_messages_differ(name):
    plain = run(name, participation=1)
    averaged = run(name, participation=1, first_head="averaged")
    for one_of, other in zip(plain.networks[-1], averaged.networks[-1], strict=True):
        assert one_of.tobytes() == other.tobytes()
    assert averaged.ledger.scalars_up > plain.ledger.scalars_up


# --- steps as in models/Update.py ---------------------------------------------------------------


class Theirs:
    """The small network and its optimiser of PyTorch, on the samples of one client."""

    def __init__(self, w, data, settings):
        nn = torch.nn
        self.net = nn.Sequential(nn.Linear(FEATURES, 4), nn.ReLU(), nn.Linear(4, CLASSES)).double()
        self.data = torch.tensor(data.X), torch.tensor(data.y).long()
        nn.utils.vector_to_parameters(torch.tensor(w), self.net.parameters())
        options = {"lr": settings.rate, "momentum": settings.momentum}
        self.optimiser = torch.optim.SGD(self.net.parameters(), **options)

    @property
    def w(self):
        return torch.nn.utils.parameters_to_vector(self.net.parameters()).detach().clone()

    def backward(self, rows):
        x, y = self.data
        torch.nn.functional.cross_entropy(self.net(x[rows]), y[rows]).backward()


STEPS = {"participation": 1, "rounds": 1, "epochs": 2}


def one_round(name, loop, **options):
    """Networks of two clients after a round of ours, and what ``loop`` makes of each."""
    data, ends = images((11, 12)), []
    problem = Problem("p", data, held_out=held_out((11, 12)))
    found = run(name, problem=problem, **STEPS, **options)
    draws = Draws(5, 2)
    w = first_network(draws)
    for i in range(2):
        theirs = Theirs(w, data.labelled(i), found.settings)
        rows = batches(draws.clients[i], len(data[i]), found.settings, found.settings.epochs)
        loop(theirs, rows, torch.tensor(w))
        ends.append(theirs.w.numpy())
    return found, ends, draws


def test_dittos_pull_beside_the_momentum_is_that_of_their_loop():
    def loop(theirs, orders, w_ditto, lam=0.75):
        for rows in orders:
            w_0 = theirs.w
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            theirs.optimiser.step()
            moved = theirs.w - theirs.optimiser.param_groups[0]["lr"] * lam * (w_0 - w_ditto)
            torch.nn.utils.vector_to_parameters(moved, theirs.net.parameters())

    found, ends, _ = one_round("ditto", loop, pull="beside")
    np.testing.assert_allclose(found.networks[-1], ends, rtol=0, atol=1e-14)
    inside, _, _ = one_round("ditto", loop)
    assert np.abs(np.subtract(inside.networks[-1], ends)).max() > 1e-3


def test_scaffolds_clip_is_that_of_pytorch():
    def loop(theirs, orders, w, limit=0.3):
        for rows in orders:
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            torch.nn.utils.clip_grad_norm_(theirs.net.parameters(), max_norm=limit)
            theirs.optimiser.step()

    found, ends, _ = one_round("scaffold", loop, clip=0.3)
    np.testing.assert_allclose(found.networks[-1][0], np.mean(ends, axis=0), rtol=0, atol=1e-14)
    far, _, _ = one_round("scaffold", loop, clip=1e3)
    free, _, _ = one_round("scaffold", loop)
    assert far.networks[-1][0].tobytes() == free.networks[-1][0].tobytes()
    assert np.abs(free.networks[-1][0] - found.networks[-1][0]).max() > 1e-3


def test_per_fedavg_in_their_form_is_their_loop_in_which_the_inner_step_is_lost():
    def loop(theirs, orders, w):
        for rows in orders:
            split = int(8 * len(rows) / 10)
            theirs.backward(rows[:split])
            theirs.backward(rows[split:])
            theirs.optimiser.step()
            theirs.optimiser.zero_grad()

    found, ends, draws = one_round("per_fedavg", loop, form="sum", batch=4, fine_tune=5)
    np.testing.assert_allclose(found.networks[1], ends, rtol=0, atol=1e-14)
    for i, end in enumerate(ends):  # five epochs of the whole network, `last` in LocalUpdate
        data = images((11, 12)).labelled(i)
        theirs = Theirs(end, data, found.settings)
        for rows in batches(draws.clients[i], len(data.y), found.settings, 5):
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            theirs.optimiser.step()
        np.testing.assert_allclose(found.networks[2][i], theirs.w, rtol=0, atol=1e-14)


def test_local_only_for_many_epochs_in_one_round_has_one_momentum():
    def loop(theirs, orders, w):
        for rows in orders:
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            theirs.optimiser.step()

    found, ends, _ = one_round("local_only", loop)
    np.testing.assert_allclose(found.networks[-1], ends, rtol=0, atol=1e-14)


def test_lg_fedavg_keeps_as_many_layers_as_it_is_told():
    """Of `femnist_mlp` the first layer stays, and the two others are averaged."""
    found = run("lg_fedavg", model="femnist_mlp", lower=2, participation=1, rounds=1)
    alone = run("local_only", model="femnist_mlp", participation=1, rounds=1)
    own = 256 * (FEATURES + 1)
    mean = np.mean([w[own:] for w in alone.networks[-1]], axis=0)
    for mine, w in zip(found.networks[-1], alone.networks[-1], strict=True):
        np.testing.assert_allclose(mine[own:], mean, rtol=0, atol=1e-15)
        assert mine[:own].tobytes() == w[:own].tobytes()
    usual = run("lg_fedavg", model="femnist_mlp", participation=1, rounds=1)
    assert usual.ledger.scalars_up < found.ledger.scalars_up == 4 * len(mean)


# --- both ways to compute -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fedavg", "fedper", "fedrep"])
def test_the_readings_end_at_the_same_networks_together(name, monkeypatch):
    clients = tweets((8, 10, 9))
    problem = Problem("tweets", clients, held_out=tweets((6, 5, 7), seed=1))
    heads = {} if name == "fedavg" else {"first_head": "averaged"}
    ends = []
    for where in ("cpu", "together"):
        monkeypatch.setenv(device.VARIABLE, where)
        found = run(name, problem=problem, model="sent140_reshaped", batch=4, rounds=2,
                    participation=0.67, weight_decay=1e-4, **heads)  # fmt: skip
        ends.append(found.networks[-1])
    for alone, beside in zip(*ends, strict=True):
        # Single precision, in another order.
        np.testing.assert_allclose(beside, alone, rtol=0, atol=1e-5)
