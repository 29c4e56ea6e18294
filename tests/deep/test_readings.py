"""Readings of the authors' code, each against a few lines of PyTorch as theirs are, or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from contract.networks import BODY, SIZE, batches, chosen, first_network
from contract.test_networks import run
from fedcore import algorithms
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing import Draws
from fedcore.testing.samples import CLASSES, FEATURES, held_out, images

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import device, models, one_client  # noqa: E402
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
    found = one_client.reshaped(Reshaped(4), torch.tensor(x), None).numpy()
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
    assert torch.equal(found, one_client.reshaped(Reshaped(ROWS + 5), x, None))


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
        nn.utils.vector_to_parameters(torch.as_tensor(w).clone(), self.net.parameters())
        options = {"lr": settings.rate, "momentum": settings.momentum}
        weights, biases = (
            [part for part in self.net.parameters() if part.ndim == n] for n in (2, 1)
        )
        decaying = {"params": weights, "weight_decay": settings.weight_decay}
        self.optimiser = torch.optim.SGD([decaying, {"params": biases}], **options)

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
    """In two rounds: the clip comes after the correction, which is zero in the first."""

    def rounds(settings, draws, limit, clip_corrected=True):
        w, n = torch.tensor(first_network(draws)), 2
        c, own = torch.zeros(SIZE).double(), torch.zeros(n, SIZE).double()
        for _ in range(2):
            ends, news = [], own.clone()
            for i in range(n):
                data = images((11, 12)).labelled(i)
                theirs = Theirs(w, data, settings)
                orders = batches(draws.clients[i], len(data.y), settings, settings.epochs)
                for rows in orders:
                    theirs.optimiser.zero_grad()
                    theirs.backward(rows)
                    if not clip_corrected:
                        torch.nn.utils.clip_grad_norm_(theirs.net.parameters(), max_norm=limit)
                    flat = torch.nn.utils.parameters_to_vector(theirs.net.parameters())
                    (flat @ (c - own[i])).backward()
                    if clip_corrected:
                        torch.nn.utils.clip_grad_norm_(theirs.net.parameters(), max_norm=limit)
                    theirs.optimiser.step()
                ends.append(theirs.w)
                news[i] = own[i] - c + (w - theirs.w) / (len(orders) * settings.rate)
            w = torch.stack(ends).mean(0)
            c, own = c + (news - own).mean(0), news
        return w.numpy()

    problem = Problem("p", images((11, 12)), held_out=held_out((11, 12)))
    options = {"problem": problem, **STEPS, "rounds": 2}
    found = run("scaffold", clip=0.3, **options)
    expected = rounds(found.settings, Draws(5, 2), 0.3)
    np.testing.assert_allclose(found.networks[-1][0], expected, rtol=0, atol=1e-14)
    before_correction = rounds(found.settings, Draws(5, 2), 0.3, clip_corrected=False)
    assert np.abs(before_correction - expected).max() > 1e-3
    far, free = (run("scaffold", **clip, **options) for clip in ({"clip": 1e3}, {}))
    assert far.networks[-1][0].tobytes() == free.networks[-1][0].tobytes()
    assert np.abs(free.networks[-1][0] - expected).max() > 1e-3


@pytest.mark.parametrize("decay", [0.0, 0.03])
def test_per_fedavg_in_their_form_is_their_loop_in_which_the_inner_step_is_lost(decay):
    def loop(theirs, orders, w):
        for rows in orders:
            split = int(8 * len(rows) / 10)
            theirs.backward(rows[:split])
            theirs.backward(rows[split:])
            theirs.optimiser.step()
            theirs.optimiser.zero_grad()

    found, ends, draws = one_round(
        "per_fedavg", loop, form="sum", batch=4, fine_tune=5, weight_decay=decay
    )
    np.testing.assert_allclose(found.networks[1], ends, rtol=0, atol=1e-14)
    for i, end in enumerate(ends):  # five epochs of the whole network, `last` in LocalUpdate
        data = images((11, 12)).labelled(i)
        theirs = Theirs(end, data, found.settings)
        for rows in batches(draws.clients[i], len(data.y), found.settings, 5):
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            theirs.optimiser.step()
        tuned = found.networks[2][i]
        np.testing.assert_allclose(tuned, theirs.w, rtol=0, atol=1e-14)
        assert np.abs(tuned[:BODY] - end[:BODY]).max() > 1e-3  # not the head alone
    method, _, _ = one_round("per_fedavg", loop, batch=4)
    assert np.abs(np.subtract(method.networks[1], ends)).max() > 1e-3


def test_fedprox_in_their_optimiser_is_ours():
    """FedProx.py adds the penalty to what it keeps as the momentum."""

    def loop(theirs, orders, old, mu=0.3, keeps=True):
        rate, kept = theirs.optimiser.param_groups[0]["lr"], None
        for rows in orders:
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            step = torch.cat([p.grad.flatten() for p in theirs.net.parameters()])
            if kept is not None:
                step += theirs.optimiser.param_groups[0]["momentum"] * kept
            kept = step.clone()
            step += mu * (theirs.w - old)
            kept = step if keeps else kept
            moved = theirs.w - rate * step
            torch.nn.utils.vector_to_parameters(moved, theirs.net.parameters())

    found, ends, _ = one_round("fedprox", loop, strength=0.3)
    np.testing.assert_allclose(found.networks[-1][0], np.mean(ends, axis=0), rtol=0, atol=1e-14)

    def apart(theirs, orders, old):
        loop(theirs, orders, old, keeps=False)

    _, others, _ = one_round("fedprox", apart, strength=0.3)
    assert np.abs(np.subtract(ends, others)).max() > 1e-3


def test_local_only_for_many_epochs_in_one_round_has_one_momentum():
    def loop(theirs, orders, w, new_momentum=False):
        for t, rows in enumerate(orders):
            if new_momentum and t == len(orders) // 2:
                theirs.optimiser.state.clear()
            theirs.optimiser.zero_grad()
            theirs.backward(rows)
            theirs.optimiser.step()

    found, ends, _ = one_round("local_only", loop)
    np.testing.assert_allclose(found.networks[-1], ends, rtol=0, atol=1e-14)

    def restarted(theirs, orders, w):
        loop(theirs, orders, w, new_momentum=True)

    _, others, _ = one_round("local_only", restarted)
    two_rounds = run("local_only", problem=Problem("p", images((11, 12))), measure=[],
                     participation=1, rounds=2)  # fmt: skip
    np.testing.assert_allclose(two_rounds.networks[-1], others, rtol=0, atol=1e-14)
    assert np.abs(np.subtract(others, ends)).max() > 1e-3


@pytest.mark.parametrize(("lower", "local"), [(2, ["0."]), (None, ["0.", "2."])])
def test_lg_fedavg_averages_the_layers_that_do_not_stay(lower, local):
    """Two rounds of their loop over state dictionaries, with keys as in main_fedrep.py."""
    nn, data = torch.nn, images((11, 12))
    found = run("lg_fedavg", problem=Problem("p", data, held_out=held_out((11, 12))),
                model="femnist_mlp", lower=lower, **STEPS | {"rounds": 2})  # fmt: skip
    draws, settings = Draws(5, 2), found.settings
    layers = nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)
    net = nn.Sequential(*layers).double()
    first = np.random.default_rng(draws.server.integers(2**63))
    start = torch.cat(
        [torch.tensor(first.uniform(-1, 1, p.numel())) / n**0.5
         for p, n in zip(net.parameters(), (FEATURES, FEATURES, 256, 256, 64, 64), strict=True)]
    )  # fmt: skip
    nn.utils.vector_to_parameters(start, net.parameters())

    def copied():
        return {key: value.clone() for key, value in net.state_dict().items()}

    w_glob, w_locals = copied(), [copied(), copied()]
    for _ in range(2):
        for i in range(2):
            own = {key: key.startswith(tuple(local)) for key in w_glob}
            net.load_state_dict({k: (w_locals[i] if own[k] else w_glob)[k] for k in w_glob})
            x, y = torch.tensor(data[i]), torch.tensor(data.labels[i]).long()
            optimiser = torch.optim.SGD(net.parameters(), settings.rate, settings.momentum)
            for rows in batches(draws.clients[i], len(y), settings, settings.epochs):
                optimiser.zero_grad()
                nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
                optimiser.step()
            w_locals[i] = copied()
        w_glob = {key: (w_locals[0][key] + w_locals[1][key]) / 2 for key in w_glob}
    for i, ours in enumerate(found.networks[-1]):
        parts = [(w_locals[i] if own[k] else w_glob)[k].flatten() for k in w_glob]
        np.testing.assert_allclose(ours, torch.cat(parts), rtol=0, atol=1e-13)


def test_eight_layers_of_the_network_for_cifar10_are_the_convolutions_and_fc1():
    convolutions = 64 * (3 * 25 + 1) + 64 * (64 * 25 + 1)
    fc1 = 120 * (64 * 25 + 1)
    algorithm = algorithms.get("lg_fedavg")
    sizes = [
        algorithm.params({"model": "cifar10_cnn", **lower}).lower_size(3072)
        for lower in ({"lower": 8}, {})
    ]
    assert sizes == [convolutions + fc1, convolutions]


# --- their training of images -------------------------------------------------------------------


def test_training_on_images_is_theirs_with_decay_black_and_mirror():
    """Pixels are moved and mirrored before they are standardised; then PyTorch trains."""
    nn, rng = torch.nn, np.random.default_rng(0)
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    pixels = rng.uniform(size=(6, 3, 32, 32))
    scaled = (pixels - mean[:, None, None]) / deviation[:, None, None]
    y = np.arange(6) % 3
    clients = Clients([scaled.reshape(6, -1)], labels=[y.astype(float)])
    theirs = {"weight_decay": 1e-4, "augment": True, "ground": (-mean / deviation).tolist()}
    usual = {"model": "cifar10_cnn", "batch": 4, "epochs": 3, "rate": 0.05, "momentum": 0.5}
    usual |= {"problem": Problem("p", clients), "measure": [], "participation": 1, "rounds": 1}
    found = run("fedavg", **usual, **theirs)

    draws = Draws(5, 1)
    w = models.start("cifar10_cnn", 3072, int(draws.server.integers(2**63)), np.dtype(float))
    layers = [nn.Conv2d(3, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 64, 5), nn.ReLU(),
              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 120), nn.ReLU(), nn.Linear(120, 64),
              nn.ReLU(), nn.Linear(64, 10)]  # fmt: skip
    net = nn.Sequential(*layers).double()
    parts = torch.tensor(w).split([p.numel() for p in net.parameters()])
    for p, part in zip(net.parameters(), parts, strict=True):
        p.data.copy_(channels_first(part, p))
    decay = [{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 1e-4},
             {"params": [p for p in net.parameters() if p.ndim == 1]}]  # fmt: skip
    optimiser, draw = torch.optim.SGD(decay, lr=0.05, momentum=0.5), draws.clients[0]
    for _ in range(3):
        order = draw.permutation(6)
        (top, left), mirror = draw.integers(9, size=(2, 6)), draw.integers(2, size=6)
        moved = np.zeros_like(pixels)  # black
        for k, image in enumerate(pixels[order]):
            wide = np.pad(image, ((0, 0), (4, 4), (4, 4)))
            moved[k] = wide[:, top[k] : top[k] + 32, left[k] : left[k] + 32]
            if mirror[k]:
                moved[k] = moved[k, :, :, ::-1]
        x = torch.tensor((moved - mean[:, None, None]) / deviation[:, None, None])
        for rows in (slice(0, 4), slice(4, 6)):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), torch.tensor(y[order][rows])).backward()
            optimiser.step()
    expected = torch.cat([channels_last(p).flatten() for p in net.parameters()]).detach().numpy()
    np.testing.assert_allclose(found.networks[-1][0], expected, rtol=0, atol=1e-13)
    for change in ({"weight_decay": 0.0}, {"ground": None}, {"augment": False, "ground": None}):
        other = run("fedavg", **usual, **theirs | change)
        assert np.abs(other.networks[-1][0] - expected).max() > 1e-7


def channels_first(part, like):
    """Numbers of our vector in the shape of PyTorch's parameter; kernels have channels last."""
    if like.ndim < 4:
        return part.view(like.shape)
    return part.view(like.shape[0], *like.shape[2:], like.shape[1]).permute(0, 3, 1, 2)


def channels_last(p):
    return p.permute(0, 2, 3, 1) if p.ndim == 4 else p


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
