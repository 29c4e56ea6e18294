"""Make surrogates, which replace the real data sets and need no download.

Problem files (client data with the exact answer) made from surrogates have the status 'surrogate'.
Each function has a fixed random seed. The digits and photographs come from scikit-learn, which is
imported only when needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcore.datasets.formats import celeba
from fedcore.datasets.loaded import Loaded
from fedcore.errors import ConfigError, FedcoreError

_SEED = 20240917
_SIDE = 32
# Frequencies of w8a's features by rank, read off the real file.
_W8A_RANKS = (0, 1, 2, 4, 6, 10, 14, 20, 60, 100, 140, 180, 220, 260, 299)
_W8A_SHARES = (
    0.3515, 0.3072, 0.2697, 0.2452, 0.2126, 0.1630, 0.1465,
    0.1301, 0.0657, 0.0419, 0.0258, 0.00533, 0.00169, 0.00066, 0.00022,
)  # fmt: skip
_W8A_NONZEROS, _W8A_POSITIVE, _W8A_SHAPE = 579586 / 49749, 1479 / 49749, 1.1


def _sklearn_data(loader: str) -> Any:
    try:
        from sklearn import datasets

        return getattr(datasets, loader)()
    except ImportError as error:
        raise FedcoreError(
            "this surrogate needs scikit-learn and pillow: install them with "
            "'pip install scikit-learn pillow'"
        ) from error


def digits(split: str, n_classes: int, *, samples: int | None = None) -> Loaded:
    """Return scikit-learn's 8 x 8 digits (1797 x 64), scaled to 0..255, without a test split."""
    if split != "train":
        raise ConfigError(f"the digits surrogate has no split '{split}': take 'train'")
    bunch = _sklearn_data("load_digits")
    x = np.rint(bunch.data * (255 / 16)).astype(np.uint8)[:samples]
    note = f"scikit-learn's 8 x 8 digits, {len(x)} x 64"
    if samples is not None and samples > len(x):
        note += f" ({samples} samples were asked for)"
    return Loaded(x, bunch.target[:samples].astype(np.int64), note)


def sparse_binary(split: str, n_classes: int, *, samples: int = 5000) -> Loaded:
    """Return random binary rows with feature frequencies, nonzeros and label shares like w8a's.

    Feature j of a row is 1 with probability ``1 - (1 - p_j)^(1.055 g)``, where p_j is the frequency
    of feature j. The factor g is drawn for each row from a gamma distribution with mean 1. The
    score of a row is its product with one random vector, the same for all rows, plus noise. Rows
    with the highest scores get the label +1, and the others −1.
    """
    fixed = np.random.default_rng(_SEED)
    share = np.exp(np.interp(np.arange(300), _W8A_RANKS, np.log(_W8A_SHARES)))
    share = fixed.permutation(share * (_W8A_NONZEROS / share.sum()))
    weights = fixed.standard_normal(300) / np.sqrt(share)
    rng = np.random.default_rng([_SEED, ["train", "test"].index(split)])
    length = rng.gamma(_W8A_SHAPE, 1 / _W8A_SHAPE, samples)
    chance = 1 - np.exp(-np.outer(length, -np.log1p(-share) * 1.055))
    x = (rng.random((samples, 300)) < chance).astype(np.float64)
    score = x @ weights + rng.standard_normal(samples)
    y = np.full(samples, -1, np.int64)
    y[np.argsort(-score, kind="stable")[: round(_W8A_POSITIVE * samples)]] = 1
    return Loaded(x, y, f"random sparse binary rows with w8a's statistics, {samples} x 300")


def _patches(split: str, regions: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return photograph patches, shape (samples, 32, 32, 3), and the region number of each patch.

    Regions are vertical strips of the photographs. Training patches come from the upper part of the
    photographs, and test patches from the lower part. Training and test patches share no pixel.
    """
    photographs = _sklearn_data("load_sample_images").images  # two of (427, 640, 3) uint8
    height, width = photographs[0].shape[:2]
    border = int(0.75 * height)
    first, last = {"train": (0, border - _SIDE), "test": (border, height - _SIDE)}[split]
    rng = np.random.default_rng([_SEED, regions, first])
    region = np.arange(samples) % regions
    strips = -(-regions // len(photographs))
    across = (region // len(photographs) + rng.random(samples)) / strips
    left = (across * (width - _SIDE)).astype(int)
    top = rng.integers(first, last, samples, endpoint=True)
    cut = [
        photographs[r % len(photographs)][t : t + _SIDE, s : s + _SIDE]
        for r, t, s in zip(region, top, left, strict=True)
    ]
    return np.stack(cut), region


def photographs(split: str, n_classes: int, *, samples: int = 2000) -> Loaded:
    """Return photograph patches in the layout of CIFAR, shape (samples, 3072)."""
    patches, region = _patches(split, n_classes, samples)
    x = patches.transpose(0, 3, 1, 2).reshape(samples, -1)
    note = f"32 x 32 patches of scikit-learn's two sample photographs, {samples} x 3072"
    return Loaded(x, region.astype(np.int64), f"{note}, labels by region")


def faces(
    split: str,
    n_classes: int,
    *,
    samples: int = 557,
    identities: int | Sequence[int] = celeba.PAPER_IDENTITIES,
) -> Loaded:
    """Return photograph patches in the layout of CelebA, shape (samples, 3072), in [0, 1]."""
    known = celeba.chosen(identities)
    patches, region = _patches(split, len(known), samples)
    x = np.stack([celeba.side_by_side(patch) for patch in patches]) / 255.0
    note = f"32 x 32 patches of scikit-learn's two sample photographs, {samples} x 3072"
    return Loaded(x, np.array(known, np.int64)[region], f"{note}, identities by region")


def sentences(split: str, n_classes: int, *, users: int = 24) -> Loaded:
    """Return random sentences of 4 word vectors (300 numbers each), with users and sentiments.

    The vocabulary has 200 words, and half of the words are pleasant. A user has 50 to 80 sentences.
    A sentence is positive if most of its words are pleasant; a tie is decided at random. The
    sentiments of every eighth user are reversed.
    """
    if split != "train":
        raise ConfigError(f"the sentences surrogate has no split '{split}': take 'train'")
    rng = np.random.default_rng(_SEED)
    vectors = rng.standard_normal((200, 300)).astype(np.float32) / 5
    owners = np.repeat(np.arange(users), rng.integers(50, 81, users))
    words = rng.integers(200, size=(len(owners), 4))
    pleasant = (words < 100).sum(axis=1) + rng.random(len(owners)) > 2.5
    y = pleasant ^ (owners % 8 == 7)
    x = vectors[words].reshape(len(owners), -1)
    note = f"random sequences of 4 words by {users} users, {len(x)} x {x.shape[1]}"
    return Loaded(x, y.astype(np.int64), note, owners=owners)
