"""Local training against PyTorch's own optimiser, by the readings of the authors' code."""

from __future__ import annotations

import numpy as np
import pytest

from contract.networks import BODY, CLASSES, FEATURES, PARAMS
from fedcore.deep.settings import Params
from fedcore.errors import InputError
from fedcore.problems.clients import Clients
from fedcore.testing.samples import images
from refused import refused

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep.batches import MAX_SHIFT, augmented  # noqa: E402
from fedcore.deep.training import How, Learner  # noqa: E402


def params(**changes):
    return Params(**{key: value for key, value in {**PARAMS, **changes}.items()})


def as_torch(w):
    """The tiny network as PyTorch's parameters: weights, then constants, of two layers."""
    sizes = [4 * FEATURES, 4, 4 * CLASSES, CLASSES]
    shapes = [(4, FEATURES), (4,), (CLASSES, 4), (CLASSES,)]
    parts = torch.tensor(w).split(sizes)
    return [p.reshape(s).clone().requires_grad_() for p, s in zip(parts, shapes, strict=True)]


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_descent_is_pytorchs_with_decay_of_the_weights_alone(decay):
    learner = Learner(params(weight_decay=decay, momentum=0.5), images())
    data, start = images().labelled(0), learner.start(3)
    batches = learner.batches(learner.samples(data), np.random.default_rng(0), 3)
    found = learner.descend(start, learner.whole.gradient, batches)
    tensors = as_torch(start)
    groups = [
        {"params": [p for p in tensors if p.ndim == 2], "weight_decay": decay},
        {"params": [p for p in tensors if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.SGD(groups, lr=PARAMS["rate"], momentum=0.5)
    for batch in batches:
        W, b, V, c = tensors
        scores = torch.relu(batch.x @ W.T + b) @ V.T + c
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(scores, batch.y).backward()
        optimiser.step()
    expected = np.concatenate([p.detach().numpy().ravel() for p in tensors])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    if decay:  # the counterfactual: without it the end is another one
        plain = Learner(params(momentum=0.5), images())
        other = plain.descend(start, plain.whole.gradient, batches)
        assert np.abs(other - expected).max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vectors_in_place_have_the_bits_of_new_ones(dtype):
    """Of the penalty's gradient and of a step, on vectors longer than a register."""
    learner, draw = Learner(params(momentum=0.5), images()), torch.Generator().manual_seed(0)
    data = images().labelled(0)
    (batch,) = learner.batches(learner.samples(data), np.random.default_rng(0), 1)[:1]
    batch = batch._replace(x=batch.x.to(dtype))
    size = learner.sizes.whole
    w, anchor, step = torch.randn(3, size, generator=draw, dtype=dtype).unbind()
    given = [part.clone() for part in (w, anchor)]
    found = learner.proximal(0.3)(w, batch, anchor)
    plain = learner.whole.gradient(w, batch)
    assert torch.equal(found, plain.add(w, alpha=0.3).sub(anchor, alpha=0.3))
    assert torch.equal(w, given[0]) and torch.equal(anchor, given[1])
    torch.testing.assert_close(found, plain + 0.3 * (w - anchor))
    moved = step.mul(0.5).add(found)
    ends = w.lerp(anchor, 0.1 * 0.1).sub(moved, alpha=0.1), w.sub(moved, alpha=0.1)
    for pull, end in zip((0.1, 0.0), ends, strict=True):
        own, last = w.clone(), step.clone()
        How(0.1, 0.5, pull).move(own, last, found, [anchor])
        assert torch.equal(own, end) and torch.equal(last, moved)
    assert not torch.equal(*ends)


def test_the_head_on_cached_features_descends_as_under_the_whole_network():
    learner, data = Learner(params(), images()), images().labelled(1)
    body, head = learner.split(learner.start(3))
    before = body.tobytes()
    cached = learner.head_batches(body, data, np.random.default_rng(0), 4)
    found = learner.descend(head, learner.head.gradient, cached)
    plain = learner.batches(learner.samples(data), np.random.default_rng(0), 4)
    fixed = learner.tensor(body)
    through = learner.descend(
        head, lambda h, b: learner.whole.gradient(torch.cat([fixed, h]), b)[BODY:], plain
    )
    np.testing.assert_allclose(found, through, rtol=0, atol=1e-13)
    assert body.tobytes() == before and not np.array_equal(found, head)


def test_augmented_images_are_moved_and_mirrored():
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 6, 5))
    wide = np.pad(image, ((0, 0), (MAX_SHIFT, MAX_SHIFT), (MAX_SHIFT, MAX_SHIFT)))
    known = {}
    for top in range(2 * MAX_SHIFT + 1):
        for left in range(2 * MAX_SHIFT + 1):
            cut = wide[:, top : top + 6, left : left + 5]
            known.setdefault(cut.tobytes(), []).append(0)
            known.setdefault(np.ascontiguousarray(cut[:, :, ::-1]).tobytes(), []).append(1)
    found = augmented(torch.from_numpy(np.stack([image] * 4000)), rng).numpy()
    seen = [known[one.tobytes()] for one in found]
    assert {one.tobytes() for one in found} == set(known)  # 4000 draws leave out none of 162
    mirrored = np.mean([kinds == [1] for kinds in seen if len(kinds) == 1])
    assert abs(mirrored - 0.5) < 4 * 0.5 / np.sqrt(len(seen))  # four standard errors


def test_what_is_black_before_pixels_are_standardised_is_the_ground_after():
    mean, deviation = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.3, 0.4])
    pixels = np.random.default_rng(0).uniform(size=(50, 3, 6, 5))
    scaled = (pixels - mean[:, None, None]) / deviation[:, None, None]
    moved = augmented(torch.from_numpy(pixels), np.random.default_rng(1)).numpy()
    expected = (moved - mean[:, None, None]) / deviation[:, None, None]
    ground = (-mean / deviation).tolist()
    found = augmented(torch.from_numpy(scaled), np.random.default_rng(1), ground)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    zeros = augmented(torch.from_numpy(scaled), np.random.default_rng(1)).numpy()
    assert np.abs(zeros - expected).max() > 0.5  # their mean colour is another ground


@pytest.mark.parametrize(
    ("ground", "augment", "said"),
    [([0.0], True, "images have 3 channels"), ([0.0, 0.0, 0.0], False, "give augment")],
)
def test_a_ground_is_for_the_channels_of_images_that_move(ground, augment, said):
    pictures = Clients([np.zeros((6, 3072))], labels=[np.arange(6) % 3.0])
    given = params(model="cifar10_cnn", augment=augment, ground=ground)
    refused(lambda: Learner(given, pictures), InputError, said)


def test_augmentation_is_for_images_and_follows_the_seed():
    refused(lambda: Learner(params(augment=True), images()), InputError, "augment")
    rng = np.random.default_rng(0)
    pictures = Clients([rng.standard_normal((6, 3072))], labels=[np.arange(6) % 3.0])
    learner = Learner(params(model="cifar10_cnn", augment=True, batch=3), pictures)
    body, _ = learner.split(learner.start(0))
    for make in (
        lambda seed: learner.batches(
            learner.samples(pictures.labelled(0)), np.random.default_rng(seed), 2
        ),
        lambda seed: learner.head_batches(
            body, pictures.labelled(0), np.random.default_rng(seed), 2
        ),
    ):
        one, same, other = (torch.cat([b.x for b in make(seed)]) for seed in (1, 1, 2))
        assert torch.equal(one, same) and not torch.equal(one, other)
        first, second = one.chunk(2)  # epochs
        assert not torch.equal(first.sum(0), second.sum(0))


def test_read_only_samples_are_not_copied():
    network = Learner(params(), images()).body
    samples = np.ones((5, images().n_features), np.float32)
    samples.flags.writeable = False
    assert network.inputs(samples).data_ptr() == samples.ctypes.data
