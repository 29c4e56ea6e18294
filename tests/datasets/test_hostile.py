"""Archives that would write elsewhere, and pickles that would act: only numbers come out."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from archives import tar, zipped
from fedcore.datasets.formats import cifar, letters
from fedcore.errors import DataError
from refused import refused

BATCH = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}


def batch(folder: Path) -> np.ndarray:
    return cifar.read10(folder, {"archive": "a", "members": ["train"]}, 3072).x


@pytest.fixture
def folders(tmp_path):
    """A folder two levels down, and a function that lists all files of the whole tree."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    return inner, lambda: sorted(path for path in tmp_path.rglob("*") if path.is_file())


PATHS = ["../../train", "{root}/train", "a/../../train", "..\\evil/train", "./train", "train\0x"]


@pytest.mark.parametrize("name", PATHS)
def test_no_member_of_a_tar_is_written_to_disk(folders, name):
    folder, files = folders
    name = name.format(root=folder.parent)
    tar(folder / "a", {name.replace("train", "evil"): b"evil", name: pickle.dumps(BATCH, 4)})
    before = files()
    np.testing.assert_array_equal(batch(folder), BATCH[b"data"])
    assert files() == before


@pytest.mark.parametrize("prefix", ["../../", "/", "..\\", "C:/"])
def test_no_member_of_a_zip_is_written_to_disk(folders, prefix):
    folder, files = folders
    inside = dict.fromkeys(("by_class/61/train_61/train_61_00000.png", "evil"), b"evil")
    zipped(folder / "z.zip", {prefix + name: content for name, content in inside.items()})
    before = files()
    read = partial(letters.read, folder, {"archive": "z.zip"}, 784, letters="a")
    refused(read, DataError, folder / "z.zip")
    assert files() == before


class Calls:
    """Its pickle calls a function when it is read."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def within(thing):
    return {b"data": thing, b"labels": [1, 2]}


ODD = {
    "a call of os.mkdir": within(Calls(os.mkdir, "evil")),
    "a call of eval": within(Calls(eval, "__import__('os').mkdir('evil')")),
    "a call of open": within(Calls(open, "evil", "w")),
    "numpy.load": within(Calls(np.load, "evil.npy")),
    "an array of objects": within(np.array([Calls(os.mkdir, "evil"), 1], object)),
    "a structured array": within(np.zeros((2, 3072), [("a", "u1")])),
    "a mapped file": within(Calls(np.memmap, "evil", "u1", "w+", 0, (2, 3072))),
    "an array of 2**60 bytes": within(Calls(np.zeros, 2**60)),
    "dates": within(np.zeros((2, 3072), "M8[s]")),
    "text": within("text"),
    "nothing": None,
    "a list": [1],
}
RAW = {
    "an endless loop of marks": b"\x80\x04" + b"(" * 10_000 + b".",
    "a frame of 2**60 bytes": b"\x80\x04\x95" + (2**60).to_bytes(8, "little") + b".",
    "text of 2**60 bytes": b"\x80\x04\x8d" + (2**60).to_bytes(8, "little") + b".",
    "a persistent id": b"\x80\x04Pevil\n.",
    "an extension": b"\x80\x04\x82\x01.",
    "a memo that is not there": b"\x80\x04h\x07.",
    "no bytes": b"",
}
PICKLES = RAW | {name: pickle.dumps(thing, 4) for name, thing in ODD.items()}


@pytest.mark.parametrize("odd", PICKLES)
def test_a_pickle_gives_numbers_or_a_sentence(folders, monkeypatch, odd):
    folder, files = folders
    monkeypatch.chdir(folder)
    tar(folder / "a", {"train": PICKLES[odd]})
    before = files()
    refused(lambda: batch(folder), DataError, folder / "a")
    assert files() == before and not (folder / "evil").exists()
