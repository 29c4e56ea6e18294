"""Sealed files: whatever happens to one of their bytes, HDF5 does not get to see it."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import h5py
import numpy as np
import pytest

from fedcore import problems, sealed
from fedcore.errors import DataError, HistoryError
from fedcore.history import History
from fedcore.problems import Problem

# Of a history of 16 kB: HDF5 metadata whose damage has brought the process down.
CRASHING = (6305, 11155)


def fill(file, seed=0):
    data = np.random.default_rng(seed).standard_normal((20, 3))
    file.create_dataset("group/data", data=data).attrs["units"] = "1"
    file.attrs["about"] = '{"σ": 1}'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file.h5"
    with sealed.create(path) as opened:
        fill(opened)
    return path


@pytest.fixture
def history_file(tmp_path):
    """Return a history of about the size of the one that used to crash HDF5."""
    columns = {"iteration": np.arange(200)[None], "objective": np.linspace(1, 0, 200)[None]}
    names = [f"column_{i}" for i in range(12)]
    columns |= {name: np.full((1, 20), float(i)) for i, name in enumerate(names)}
    path = tmp_path / "history.h5"
    History(columns, {"V": np.ones((1, 9, 3))}, about={"paper": "p" * 200}).save(path)
    assert path.stat().st_size > max(CRASHING)
    return path


@pytest.fixture
def problem_file(clients, tmp_path):
    path = tmp_path / "problem.h5"
    problems.save(Problem("sealed", clients), path)
    return path


@pytest.fixture(params=["history", "problem"])
def refusal(request):
    """Return a whole file and the function that gives the sentence with which it is refused."""
    path = request.getfixturevalue(f"{request.param}_file")
    load = {"history": History.load, "problem": problems.load}[request.param]
    error = {"history": HistoryError, "problem": DataError}[request.param]
    load(path)

    def sentence(path=path):
        with pytest.raises(error) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(str(path)) and "\n" not in message
        return message

    return path, sentence


def broken(path) -> str:
    with pytest.raises(sealed.BrokenSeal) as caught:
        with sealed.read(path):
            pytest.fail("the file was opened")
    return str(caught.value)


def flipped(whole: bytes, offset: int, mask: int) -> bytes:
    damaged = bytearray(whole)
    damaged[offset] ^= mask
    return bytes(damaged)


def test_what_is_read_is_what_was_written(file):
    with sealed.read(file) as opened:
        expected = np.random.default_rng(0).standard_normal((20, 3))
        np.testing.assert_array_equal(opened["group/data"][()], expected)
        assert opened.attrs["about"] == '{"σ": 1}'
        assert opened.mode == "r"


def test_the_same_content_gives_the_same_bytes_and_another_others(file, tmp_path):
    for name, seed in (("again", 0), ("other", 1)):
        with sealed.create(tmp_path / "elsewhere" / f"{name}.h5") as opened:
            fill(opened, seed)
    assert (tmp_path / "elsewhere" / "again.h5").read_bytes() == file.read_bytes()
    assert (tmp_path / "elsewhere" / "other.h5").read_bytes() != file.read_bytes()


def test_hdf5_opens_a_sealed_file_as_usual(file):
    with h5py.File(file) as opened:
        assert opened.userblock_size == 512
        assert opened["group/data"].shape == (20, 3)
    assert h5py.is_hdf5(file)


def test_the_head_holds_the_sha256_of_the_rest(file):
    whole = file.read_bytes()
    expected = hashlib.sha256(whole[512:]).hexdigest()
    head = whole[:512].rstrip(b"\0").decode()
    assert head == f"fedcore sha256 of the bytes from 512 on: {expected}"


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_flipped_byte_is_noticed(file, mask):
    whole = file.read_bytes()
    for offset in [*range(700), *range(700, len(whole), 13), len(whole) - 1]:
        file.write_bytes(flipped(whole, offset, mask))
        label = offset < len(sealed.LABEL)
        assert ("not written by fedcore" if label else "checksum differs") in broken(file)
    file.write_bytes(whole)
    with sealed.read(file):
        pass


def test_a_flipped_byte_anywhere_is_refused_with_one_sentence(refusal):
    path, sentence = refusal
    whole = path.read_bytes()
    head = [0, 1, len(sealed.LABEL) - 1, len(sealed.LABEL), len(sealed.LABEL) + 63, 200, 511]
    metadata = [512, 513, 520, 560, 600, *(o for o in CRASHING if o < len(whole))]
    for offset in [*head, *metadata, *range(700, len(whole), 97), len(whole) - 1]:
        for mask in (0x01, 0xFF):
            path.write_bytes(flipped(whole, offset, mask))
            assert "is not a whole" in sentence() and "delete it and" in sentence()


def test_hdf5_is_not_asked_about_a_damaged_file(refusal, monkeypatch):
    path, sentence = refusal
    path.write_bytes(flipped(path.read_bytes(), 600, 0xFF))
    monkeypatch.setattr(h5py, "File", lambda *arguments: pytest.fail("HDF5 has seen it"))
    assert "checksum differs" in sentence()


def test_a_process_survives_the_damages_that_used_to_end_it(history_file):
    script = (
        "import sys\nfrom fedcore.errors import HistoryError\nfrom fedcore.history import History\n"
        "whole = open(sys.argv[1], 'rb').read()\n"
        f"for offset in {CRASHING}:\n"
        "    for value in range(0, 256, 5):\n"
        "        if whole[offset] == value:\n            continue\n"
        "        with open(sys.argv[1], 'wb') as file:\n"
        "            file.write(whole[:offset] + bytes([value]) + whole[offset + 1 :])\n"
        "        try:\n            History.load(sys.argv[1])\n"
        "        except HistoryError:\n            continue\n"
        "        sys.exit('loaded')\n"
        "print('alive')\n"
    )
    command = [sys.executable, "-c", script, str(history_file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize("kept", [0, 1, 41, 104, 105, 511, 512, 513, 1000, -1000, -1])
def test_a_file_that_is_cut_off_is_refused(refusal, kept):
    path, sentence = refusal
    path.write_bytes(path.read_bytes()[:kept])
    assert "is not a whole" in sentence()
    assert ("cut off" in sentence()) == (0 <= kept <= 40) or "checksum differs" in sentence()


def test_bytes_at_the_end_are_noticed(refusal):
    path, sentence = refusal
    path.write_bytes(path.read_bytes() + b"\0")
    assert "checksum differs" in sentence()


def test_an_hdf5_file_without_a_seal_is_refused(refusal):
    path, sentence = refusal
    with h5py.File(path) as whole, h5py.File(path.with_name("plain.h5"), "w") as plain:
        for name in whole:
            whole.copy(name, plain)
        plain.attrs.update(whole.attrs)
    for block in (0, 512):
        with h5py.File(path.with_name("plain.h5")) as whole:
            with h5py.File(path.with_name(f"{block}.h5"), "w", userblock_size=block) as plain:
                for name in whole:
                    whole.copy(name, plain)
        assert "not written by fedcore" in sentence(path.with_name(f"{block}.h5"))
    assert "not written by fedcore" in sentence(path.with_name("plain.h5"))


def test_a_good_seal_on_what_is_not_hdf5_is_refused(refusal):
    path, sentence = refusal
    content = b"iteration\tobjective\n" * 100
    seal = sealed.LABEL + hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(seal.ljust(512, b"\0") + content)
    assert "is not a whole" in sentence()


def test_a_seal_of_another_file_does_not_pass(file, history_file):
    history_file.write_bytes(file.read_bytes()[:512] + history_file.read_bytes()[512:])
    assert broken(history_file) == "its checksum differs from the one in its head"


def test_a_missing_file_is_said_to_be_missing(refusal, tmp_path):
    _, sentence = refusal
    assert "does not exist" in sentence(tmp_path / "missing.h5")
    with pytest.raises(FileNotFoundError):
        with sealed.read(tmp_path / "missing.h5"):
            pass


def test_a_folder_is_refused(refusal, tmp_path):
    _, sentence = refusal
    assert "is not a whole" in sentence(tmp_path)


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_nothing_new_stands_under_the_name_when_writing_fails(tmp_path, before):
    path = tmp_path / "folder" / "file.h5"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    with pytest.raises(ZeroDivisionError):
        with sealed.create(path) as opened:
            fill(opened)
            opened.flush()
            assert not path.exists() or path.read_bytes() == before
            raise ZeroDivisionError
    assert [p.name for p in path.parent.iterdir()] == ([] if before is None else ["file.h5"])
    assert before is None or path.read_bytes() == before


def test_nothing_stands_under_the_name_when_sealing_fails(tmp_path, monkeypatch):
    def full(path):
        raise OSError("no space left on device")

    monkeypatch.setattr(sealed, "_digest", full)
    with pytest.raises(OSError, match="no space"):
        with sealed.create(tmp_path / "file.h5") as opened:
            fill(opened)
    assert list(tmp_path.iterdir()) == []
