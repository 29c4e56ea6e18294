"""Readers of FEMNIST and Sentiment140 on small files in the real formats."""

from __future__ import annotations

import csv
import io
import itertools
from functools import partial

import numpy as np
import pytest
from PIL import Image

from archives import zipped
from fedcore.datasets import partition, reading
from fedcore.datasets.formats import letters, tweets
from fedcore.errors import ConfigError, DataError
from fedcore.experiments import build
from refused import refused


@pytest.mark.parametrize("wrong", ["", "aa", "ä", 3])
def test_letters_that_are_none(wrong):
    refused(lambda: reading.check("femnist", {"letters": wrong}), ConfigError, "letters")


def png(level: int, side: int = 128) -> bytes:
    out = io.BytesIO()
    Image.new("L", (side, side), level).save(out, "PNG")
    return out.getvalue()


def test_nist_images_by_class(tmp_path):
    names = [f"by_class/61/train_61/train_61_0000{i}.png" for i in (2, 0, 1)]
    others = ["by_class/61/hsf_0/hsf_0_00000.png", "by_class/62/train_62/train_62_00000.png"]
    levels = dict(zip([*names, *others], (20, 0, 10, 99, 255), strict=True))
    zipped(tmp_path / "z.zip", {name: png(level) for name, level in levels.items()})
    read = partial(letters.read, tmp_path, {"archive": "z.zip"}, 784)
    loaded = read(letters="ab")
    np.testing.assert_array_equal(loaded.y, [0, 0, 0, 1])
    assert loaded.x.shape == (4, 784) and loaded.x.dtype == np.uint8
    np.testing.assert_array_equal(loaded.x[:, 0], [0, 10, 20, 255])
    few = read(letters="ab", per_class=1)
    np.testing.assert_array_equal(few.x[:, 0], [0, 255])
    refused(lambda: read(letters="abc"), DataError, tmp_path / "z.zip")


@pytest.mark.parametrize("content", [b"no image", png(0, 400)], ids=["none", "large"])
def test_a_nist_image_that_is_none(tmp_path, content):
    zipped(tmp_path / "z.zip", {"by_class/61/train_61/train_61_00000.png": content})
    read = partial(letters.read, tmp_path, {"archive": "z.zip"}, 784, letters="a")
    refused(read, DataError, tmp_path / "z.zip", "train_61_00000.png")


TWEETS = {"archive": "t.zip", "members": ["t.csv"], "vectors": "v.zip", "words": "v.txt"}
SAID = [
    ("0", "ann", "Sad, sad day"),
    ("4", "bob", "good Day!"),
    ("4", "ann", "day unknown good good good good"),
    ("2", "ann", "day"),
    ("4", "eve", "good"),
    ("0", "bob", "sad"),
]
VECTORS = {"sad": [1, 2], "day": [3, 4], "good": [5, 6], ",": [7, 8], "!": [9, 10], "x": [0, 0]}


def write_tweets(folder, said=SAID, vectors=VECTORS):
    table = io.StringIO()
    csv.writer(table, quoting=csv.QUOTE_ALL).writerows(
        [label, str(i), "Mon Apr 06", "NO_QUERY", user, text]
        for i, (label, user, text) in enumerate(said)
    )
    zipped(folder / "t.zip", {"t.csv": table.getvalue().encode("latin-1")})
    lines = "".join(f"{word} {' '.join(map(str, v))}\n" for word, v in vectors.items())
    zipped(folder / "v.zip", {"v.txt": lines.encode()})


def test_tweets_are_word_vectors_with_users(tmp_path):
    write_tweets(tmp_path)
    loaded = tweets.read(tmp_path, TWEETS, 8, users=2, at_least=2)
    np.testing.assert_array_equal(loaded.owners, [0, 1, 0, 1])
    np.testing.assert_array_equal(loaded.y, [0, 1, 1, 0])
    assert loaded.x.dtype == np.float32
    np.testing.assert_array_equal(
        loaded.x,
        [
            [1, 2, 7, 8, 1, 2, 3, 4],
            [5, 6, 3, 4, 9, 10, 0, 0],
            [3, 4, 0, 0, 5, 6, 5, 6],  # an unknown word; what is longer is cut
            [1, 2, 0, 0, 0, 0, 0, 0],
        ],
    )
    drawn = {
        tuple(tweets.read(tmp_path, TWEETS, 8, users=1, at_least=1, seed=s).y) for s in range(30)
    }
    assert drawn == {(0, 1), (1, 0), (1,)}  # of ann, bob and eve


def test_tweets_damage(tmp_path):
    tables, vectors = tmp_path / "t.zip", tmp_path / "v.zip"
    read = partial(tweets.read, tmp_path, TWEETS, 8)
    write_tweets(tmp_path)
    refused(lambda: read(users=3, at_least=2), DataError, tables)
    refused(lambda: tweets.read(tmp_path, TWEETS, 7, users=2, at_least=2), DataError)
    for wrong, line in (([1, "x"], "line 2:"), ([1], "")):
        write_tweets(tmp_path, vectors=VECTORS | {"day": wrong})
        refused(lambda: read(users=2, at_least=2), DataError, vectors, line)
    zipped(tables, {"t.csv": b'"0","1","2"\n'})
    refused(lambda: read(users=1, at_least=1), DataError, tables, "line 1:")


def test_a_problem_of_users_and_one_of_consecutive_classes():
    spec = {"dataset": "sent140", "partition": {"by": "identity"}, "held_out": 0.2}
    problem = build.build("p/x", spec, raw="", seed=0, surrogate=True)
    data = reading.load("sent140", "", surrogate=True)
    held = problem.held_out
    sizes = [len(a) + len(b) for a, b in zip(problem.clients, held, strict=True)]
    np.testing.assert_array_equal(sizes, np.bincount(data.owners))
    for labels in problem.clients.labels:
        assert set(labels) == {0, 1}
    by = {"by": "classes", "clients": 7, "classes_per_client": 3, "mean": 3.0, "sigma": 0.5}
    spec = {"dataset": "femnist", "partition": by | {"minimum": 10}, "held_out": 0.1}
    problem = build.build("p/x", spec, raw="", seed=0, surrogate=True)
    for i, labels in enumerate(problem.clients.labels):
        assert set(labels) == {i % 10, (i + 1) % 10, (i + 2) % 10}
    rows = [{row.tobytes() for row in client} for client in problem.clients]
    assert not any(one & other for one, other in itertools.combinations(rows, 2))
    # As the authors' code samples, held-out images of a client are training images of others.
    shared = build.build(
        "p/x", spec | {"partition": spec["partition"] | {"overlapping": True}}, raw="", seed=0,
        surrogate=True,
    )  # fmt: skip
    rows = [{row.tobytes() for row in client} for client in shared.clients]
    tested = [row.tobytes() in set.union(*rows) for own in shared.held_out for row in own]
    assert np.mean(tested) > 0.5


def test_shuffled_rows_keep_their_owners():
    plain = reading.load("sent140", "", surrogate=True)
    mixed = reading.load("sent140", "", surrogate=True, options={"shuffle": 1, "samples": 500})
    rows = {row.tobytes(): owner for row, owner in zip(plain.x, plain.owners, strict=True)}
    assert [rows[row.tobytes()] for row in mixed.x] == mixed.owners.tolist()
    assert not np.array_equal(mixed.owners, plain.owners[:500])
    parts = partition.split({"by": "identity"}, 3, np.array([1, 1, 0]), None, np.array([5, 4, 5]))
    assert [part.tolist() for part in parts] == [[1], [0, 2]]
