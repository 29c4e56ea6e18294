"""Sealed files: whatever happens to one of their bytes, HDF5 does not get to see it."""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

from fedcore import algorithms, metrics
from fedcore.api import execute
from fedcore.errors import DataError, HistoryError
from fedcore.files import hdf5
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem

# Of a history of 16 kB: HDF5 metadata whose damage has brought the process down.
CRASHING = (6305, 11155)


def fill(file, seed=0):
    data = np.random.default_rng(seed).standard_normal((20, 3))
    file.create_dataset("group/data", data=data).attrs["units"] = "1"
    file.attrs["about"] = '{"σ": 1}'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file.h5"
    with hdf5.create(path) as opened:
        fill(opened)
    return path


@pytest.mark.parametrize("content", ["numbers", "many groups"])
def test_a_file_that_the_system_does_not_take_leaves_nothing(tmp_path, content):
    resource = pytest.importorskip("resource")  # not on Windows
    path, made = tmp_path / "file.h5", {"numbers": 3, "many groups": 200}[content]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def create():
        with hdf5.create(path) as file:
            for number in range(made):
                file.create_dataset(f"{number}/data", data=np.full(3000 // made, float(number)))
                file.attrs[f"about {number}"] = "a" * (6000 // made)

    create()
    size, whole = path.stat().st_size, path.read_bytes()
    path.unlink()
    for limit in range(0, size, max(size // 60, 1)):  # HDF5 writes in parts: any of them may fail
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(OSError) as caught:
                create()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.errno == errno.EFBIG
        assert not list(tmp_path.iterdir())
    create()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("at", [0, 30, 60, 90])
def test_a_signal_in_any_write_ends_the_writing_as_what_it_is(tmp_path, monkeypatch, at):
    """HDF5 goes on to its next call before Python raises, which must not be another error."""
    count, write = itertools.count(), hdf5._Written.write

    def interrupted(written, content):
        if next(count) == at:
            raise KeyboardInterrupt("SIGTERM")
        return write(written, content)

    monkeypatch.setattr(hdf5._Written, "write", interrupted)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), hdf5.create(tmp_path / "f.h5") as file:
        for number in range(20):
            file.create_dataset(f"{number}/data", data=np.arange(500.0))
    assert not list(tmp_path.iterdir())


def test_what_was_written_is_read_back_whole_by_a_system_that_gives_it_in_parts():
    """As Linux does above 2 GiB; what follows the end is zeros, as after a full disk."""

    class Parts(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(buffer[:3])

    found = bytearray(b"?" * 10)
    assert hdf5._Written(Parts(b"seven b")).readinto(found) == 10
    assert found == b"seven b\0\0\0"


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
    storage.save(Problem("sealed", clients), path)
    return path


@pytest.fixture(params=["history", "problem"])
def refusal(request):
    """Return a whole file and the function that gives the sentence with which it is refused."""
    path = request.getfixturevalue(f"{request.param}_file")
    load = {"history": History.load, "problem": storage.load}[request.param]
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
    with pytest.raises(hdf5.BrokenSeal) as caught:
        with hdf5.read(path):
            pytest.fail("the file was opened")
    return str(caught.value)


def flipped(whole: bytes, offset: int, mask: int) -> bytes:
    damaged = bytearray(whole)
    damaged[offset] ^= mask
    return bytes(damaged)


def test_what_is_read_is_what_was_written(file):
    with hdf5.read(file) as opened:
        expected = np.random.default_rng(0).standard_normal((20, 3))
        np.testing.assert_array_equal(opened["group/data"][()], expected)
        assert opened.attrs["about"] == '{"σ": 1}'
        assert opened.mode == "r"


def test_the_same_content_gives_the_same_bytes_and_another_others(file, tmp_path):
    for name, seed in (("again", 0), ("other", 1)):
        with hdf5.create(tmp_path / "elsewhere" / f"{name}.h5") as opened:
            fill(opened, seed)
    assert (tmp_path / "elsewhere" / "again.h5").read_bytes() == file.read_bytes()
    assert (tmp_path / "elsewhere" / "other.h5").read_bytes() != file.read_bytes()


def test_hdf5_opens_a_sealed_file_as_usual(file):
    with h5py.File(file) as opened:
        assert opened.userblock_size == 0  # programs that guess a format look at the first bytes
        assert opened["group/data"].shape == (20, 3)
    assert h5py.is_hdf5(file)


def test_the_end_holds_the_sha256_of_what_is_before_it(file):
    whole = file.read_bytes()
    expected = hashlib.sha256(whole[:-128]).hexdigest()
    seal = whole[-128:].rstrip(b"\0").decode()
    assert seal == f"fedcore sha256 of the bytes before: {expected}"


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_flipped_byte_is_noticed(file, mask):
    whole = file.read_bytes()
    label = range(len(whole) - 128, len(whole) - 128 + len(hdf5.LABEL))
    for offset in [*range(700), *range(700, len(whole), 13), *range(len(whole) - 128, len(whole))]:
        file.write_bytes(flipped(whole, offset, mask))
        assert ("it is cut off" if offset in label else "checksum differs") in broken(file)
    file.write_bytes(whole)
    with hdf5.read(file):
        pass


def test_a_flipped_byte_anywhere_is_refused_with_one_sentence(refusal):
    path, sentence = refusal
    whole = path.read_bytes()
    metadata = [0, 1, 8, 48, 88, *(o for o in CRASHING if o < len(whole))]
    for offset in [*metadata, *range(100, len(whole), 97), *range(len(whole) - 128, len(whole))]:
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


@pytest.mark.parametrize("kept", [0, 1, 127, 128, 129, 1000, 2000, -1000, -129, -128, -127, -1])
def test_a_file_that_is_cut_off_is_refused(refusal, kept):
    path, sentence = refusal
    path.write_bytes(path.read_bytes()[:kept])
    assert "is not a whole" in sentence()
    assert "cut off" in sentence() or "checksum differs" in sentence()
    # What is left of the start has to say whose it was.
    assert ("delete it and" in sentence()) == (kept < 0 or kept >= 1000)


def test_bytes_at_the_end_are_noticed(refusal):
    path, sentence = refusal
    path.write_bytes(path.read_bytes() + b"\0")
    assert "another program has changed it" in sentence()


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
        assert "delete" not in sentence(path.with_name(f"{block}.h5"))
    assert "is not a whole" in sentence(path.with_name("plain.h5"))


def test_a_good_seal_on_what_is_not_hdf5_is_refused(refusal):
    path, sentence = refusal
    content = b"iteration\tobjective\n" * 100
    seal = hdf5.LABEL + hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(content + seal.ljust(128, b"\0"))
    assert "is not a whole" in sentence() and "delete" not in sentence()


def test_a_seal_of_another_file_does_not_pass(file, history_file):
    history_file.write_bytes(history_file.read_bytes()[:-128] + file.read_bytes()[-128:])
    assert broken(history_file) == "its checksum differs from the one at its end"


def test_a_missing_file_is_said_to_be_missing(refusal, tmp_path):
    _, sentence = refusal
    assert "does not exist" in sentence(tmp_path / "missing.h5")
    with pytest.raises(FileNotFoundError):
        with hdf5.read(tmp_path / "missing.h5"):
            pass


def test_a_folder_is_refused(refusal, tmp_path):
    _, sentence = refusal
    assert "it is a folder" in sentence(tmp_path) and "delete" not in sentence(tmp_path)


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_nothing_new_stands_under_the_name_when_writing_fails(tmp_path, before):
    path = tmp_path / "folder" / "file.h5"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    with pytest.raises(ZeroDivisionError):
        with hdf5.create(path) as opened:
            fill(opened)
            opened.flush()
            assert not path.exists() or path.read_bytes() == before
            raise ZeroDivisionError
    assert [p.name for p in path.parent.iterdir()] == ([] if before is None else ["file.h5"])
    assert before is None or path.read_bytes() == before


def test_nothing_stands_under_the_name_when_sealing_fails(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(hdf5, "_seal", full)
    with pytest.raises(OSError, match="no space"):
        with hdf5.create(tmp_path / "file.h5") as opened:
            fill(opened)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------ good seals on hostile files


def replaced(file, name, make):
    """Put something else in the place of a dataset or group, attributes included."""
    attributes = dict(file[name].attrs)
    del file[name]
    make()
    file[name].attrs.update(attributes)


def external_link(file, name, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["data"] = np.ones((1, 200))
    del file[name]
    file[name] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "data")


def external_storage(file, name, secret):
    secret.write_bytes(bytes(8 * 200))
    make = file.create_dataset
    where = [(str(secret), 0, 8 * 200)]
    replaced(file, name, lambda: make(name, (1, 200), "f8", external=where))


def virtual(file, name, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["data"] = np.ones((1, 200))
    layout = h5py.VirtualLayout((1, 200), "f8")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "data", (1, 200))
    replaced(file, name, lambda: file.create_virtual_dataset(name, layout))


def soft_link(file, name, secret):
    del file[name]
    file[name] = h5py.SoftLink("/nowhere")


def soft_loop(file, name, secret):
    del file[name]
    file[name] = h5py.SoftLink(f"/{name}")


def group_in_itself(file, name, secret):
    parent = file[name].parent
    parent["again"] = parent


def second_name(file, name, secret):
    file["twice"] = file[name]


def huge_and_empty(file, name, secret):
    """Chunks that were never written: 8 TB in no bytes."""
    make = file.create_dataset
    replaced(file, name, lambda: make(name, (10**6, 10**6), "f8", chunks=(10, 10)))


def compressed(file, name, secret):
    """A bomb: 300 MiB of zeros in 300 kB."""
    make = file.create_dataset
    packed = {"compression": "gzip", "chunks": (1, 2**17)}
    replaced(file, name, lambda: make(name, data=np.zeros((300, 2**17)), **packed))


def other_filter(file, name, secret):
    make = file.create_dataset
    replaced(file, name, lambda: make(name, data=np.zeros((1, 200)), compression="lzf"))


def nothing(file, name, secret):
    replaced(file, name, lambda: file.__setitem__(name, h5py.Empty("f8")))


def text(file, name, secret):
    replaced(file, name, lambda: file.__setitem__(name, "text"))


def references(file, name, secret):
    make = file.create_dataset
    data = np.array([[file.ref]], h5py.ref_dtype)
    replaced(file, name, lambda: make(name, data=data, dtype=h5py.ref_dtype))


def named_type(file, name, secret):
    replaced(file, name, lambda: file.__setitem__(name, np.dtype("f8")))


def a_group(file, name, secret):
    replaced(file, name, lambda: file.create_group(name))


def a_number(file, name, secret):
    replaced(file, name, lambda: file.__setitem__(name, 1.0))


def deep(file, name, secret):
    group = file
    for _ in range(2000):
        group = group.create_group("g")
    group.attrs["x"] = 1


def without_attributes(file, name, secret):
    for key in list(file.attrs):
        del file.attrs[key]


def attributes_of_numbers(file, name, secret):
    for key in list(file.attrs):
        file.attrs[key] = np.arange(3.0)


def bad_json(file, name, secret):
    for key in ("about", "setting"):
        file.attrs[key] = "{not json"


def json_list(file, name, secret):
    for key in ("about", "setting"):
        file.attrs[key] = "[" * 10_000


def json_of_lists(file, name, secret):
    file.attrs["about"] = '{"problem": [1], "params": "x"}'


BOTH = (
    external_link, external_storage, virtual, soft_link, soft_loop, group_in_itself, second_name,
    huge_and_empty, compressed, other_filter, nothing, text, references, named_type,
    without_attributes, attributes_of_numbers, bad_json, json_list,
)  # fmt: skip
HISTORY = (a_group, a_number, json_of_lists)


@pytest.mark.parametrize("harm", BOTH)
def test_a_good_seal_on_a_hostile_file(refusal, tmp_path, resealed, harm):
    """As fedcore does not write it, nothing of it is read and nobody is told to delete it."""
    path, sentence = refusal
    name = "history/objective" if "history" in path.name else "reference/right_vectors"
    resealed(path, lambda file: harm(file, name, tmp_path / "secret"))
    message = sentence()
    assert "is not a whole" in message and "delete" not in message and len(message) < 500


@pytest.mark.parametrize("harm", HISTORY)
def test_a_good_seal_on_what_is_no_history(history_file, tmp_path, resealed, harm):
    resealed(history_file, lambda file: harm(file, "history/objective", tmp_path / "secret"))
    with pytest.raises(HistoryError, match="is not a whole history file of fedcore"):
        History.load(history_file)


def test_deep_groups_do_not_end_the_process(history_file, tmp_path, resealed):
    resealed(history_file, lambda file: deep(file, "", tmp_path))
    assert History.load(history_file).repeats == 1


@pytest.mark.parametrize("harm", [external_link, external_storage])
def test_what_is_kept_elsewhere_is_not_opened(history_file, tmp_path, resealed, harm):
    """Whoever opened the other file here, a pipe that nobody writes to, would wait for ever."""
    secret = tmp_path / "secret"
    resealed(history_file, lambda file: harm(file, "history/objective", secret))
    for path in (secret, secret.with_suffix(".h5")):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    with pytest.raises(HistoryError, match="history/objective is"):
        History.load(history_file)


def test_a_problem_is_no_history_and_is_not_to_be_deleted(problem_file, history_file):
    with pytest.raises(HistoryError, match="not a whole history file") as error:
        History.load(problem_file)
    assert "delete" not in str(error.value)
    with pytest.raises(DataError, match="not a whole problem file") as refused:
        storage.load(history_file)
    assert "delete" not in str(refused.value)


# --- large files ----------------------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch, tmp_path):
    """Return a problem file that is checked piece by piece."""
    monkeypatch.setattr(hdf5, "LARGE", 1000)
    monkeypatch.setattr(hdf5, "PIECE", 512)
    rng = np.random.default_rng(0)
    problem = Problem("large", [rng.standard_normal((40, 16)) for _ in range(3)])
    problem.clients.gram = sum(c.T @ c for c in problem.clients)
    path = tmp_path / "large.h5"
    storage.save(problem, path)
    return problem, path


def content(problem):
    """All that a problem file holds."""
    kept = [problem.name, problem.status, problem.note, problem.checksum, problem.setting]
    arrays = [*problem.clients, problem.clients.gram, *problem.reference]
    return kept, [array.tolist() for array in arrays]


def test_what_is_read_of_a_large_file_is_what_was_written(large):
    problem, path = large
    assert content(storage.load(path)) == content(problem)


def test_the_end_of_a_large_file_holds_the_sha256_of_a_table_of_those_of_its_pieces(large):
    whole = large[1].read_bytes()
    label, start, value = whole[-128:].rstrip(b"\0").decode().rsplit(" ", 2)
    assert label == "fedcore sha256 of the checksums from byte"
    body, table = whole[: int(start[:-1])], whole[int(start[:-1]) : -128]
    assert hashlib.sha256(table).hexdigest() == value
    pieces = [body[at : at + 512] for at in range(0, len(body), 512)]
    assert table == b"".join(hashlib.sha256(piece).digest() for piece in pieces)


def test_every_damage_is_noticed_when_what_it_hit_is_read(large):
    """Nothing reads the few bytes between HDF5's structures and arrays: there it does no harm."""
    problem, path = large
    whole, harmless = path.read_bytes(), 0
    for offset in [*range(0, 700, 7), *range(700, len(whole), 61), len(whole) - 1]:
        path.write_bytes(flipped(whole, offset, 0x01))
        try:
            assert content(storage.load(path)) == content(problem)
            harmless += 1
        except DataError as error:
            assert "is not a whole problem file" in str(error)
    assert harmless < 0.2 * len(whole) / 61
    for kept in (*range(0, len(whole), 301), len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(DataError, match="is not a whole problem file"):
            storage.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(DataError, match="is not a whole problem file"):
        storage.load(path)


def test_a_problem_with_a_gram_matrix_is_read_without_its_matrices(large, monkeypatch):
    _, path = large
    with h5py.File(path) as file:
        items = [file[f"clients/{i:05d}"].id for i in range(3)]
        spans = [range(i.get_offset(), i.get_offset() + i.get_storage_size()) for i in items]
    seen = set()
    real = hdf5.Pieces.require
    monkeypatch.setattr(
        hdf5.Pieces, "require", lambda of, n, piece: seen.add(n) or real(of, n, piece)
    )
    read = storage.load(path)
    assert seen
    for span in spans:  # HDF5 reads a little more than the structure beside a matrix
        assert len(seen & set(range(span.start // 512 + 1, span.stop // 512))) <= 1
    list(read.clients)
    assert {at // 512 for span in spans for at in span} <= seen


def test_hdf5_does_not_get_to_see_a_damaged_piece(large):
    _, path = large
    path.write_bytes(flipped(path.read_bytes(), 600, 0xFF))
    with pytest.raises(hdf5.BrokenSeal, match="checksum of bytes from 512 on differs"):
        with hdf5.read(path):
            pass


def test_a_file_with_the_seal_of_an_older_version_is_to_be_made_again(problem_file):
    head = b"fedcore sha256 of the bytes from 512 on: " + 64 * b"0"
    problem_file.write_bytes(head.ljust(512, b"\0") + problem_file.read_bytes())
    with pytest.raises(DataError, match=r"\(an older version wrote it\); delete it and"):
        storage.load(problem_file)


def test_the_matrices_of_a_large_file_are_read_only_maps_checked_one_by_one(large):
    problem, path = large
    whole = path.read_bytes()
    with h5py.File(path) as file:
        place = file["clients/00001"].id.get_offset()
    path.write_bytes(flipped(whole, place + 1000, 0x01))
    read = storage.load(path)  # nothing has read client 1 yet
    np.testing.assert_array_equal(read.clients[0], problem.clients[0])
    with pytest.raises(DataError, match=r"large.h5 is not a whole problem file .*; delete it and"):
        read.clients[1]
    np.testing.assert_array_equal(read.clients[2], problem.clients[2])
    assert read.clients[0] is read.clients[0]
    with pytest.raises(ValueError, match="read-only"):
        read.clients[0][0, 0] = 1.0
    assert read.clients[0].flags.c_contiguous and read.clients[0].flags.aligned


def test_a_map_outlives_a_new_file_of_the_same_name(large):
    problem, path = large
    read = storage.load(path)
    read.clients[0]
    storage.save(Problem("other", [np.ones((30, 16))] * 3), path)
    for ours, theirs in zip(read.clients, problem.clients, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_runs_on_maps_and_on_arrays_give_the_same_bytes(large):
    problem, path = large
    read, found = storage.load(path), []
    for clients in (list(problem.clients), list(read.clients)):
        own = Problem("own", clients)
        own.reference = problem.reference
        chosen = algorithms.get("ssi")
        settings = chosen.params({"n_components": 3, "rounds": 20})
        recorder, output = execute(chosen, own, settings, 0, [metrics.get("objective")])
        found.append((output["basis"].tobytes(), recorder.columns()["objective"].tobytes()))
    assert found[0] == found[1]


LIMITED = """
import resource, sys
import numpy as np
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.lazy import LazyMatrices
from fedcore.problems.problem import Problem

made = LazyMatrices(lambda i: np.random.default_rng(i).standard_normal((10_000, 200)), 20)
clients = Clients(made, [(10_000, 200)] * 20, [np.dtype(float)] * 20)  # 16 MB each, 320 MB in all

from fedcore import algorithms
from fedcore.api import execute
import scipy.linalg, scipy.sparse.linalg
resource.setrlimit(resource.RLIMIT_DATA, (250 << 20,) * 2)
storage.save(Problem("big", clients), sys.argv[1])
problem = storage.load(sys.argv[1])
chosen = algorithms.get("ssi")
basis = execute(chosen, problem, chosen.params({"n_components": 2, "rounds": 2}), 0, [])[1]["basis"]
np.save(sys.argv[2], basis)
try:
    np.stack(problem.clients)
except MemoryError:
    print("too large")
"""


def test_data_larger_than_a_limit_on_memory(tmp_path):
    if sys.platform != "linux":
        pytest.skip("the limit holds for all of a process's memory on Linux only")
    path, out = tmp_path / "big.h5", tmp_path / "basis.npy"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    call = [sys.executable, "-c", LIMITED, str(path), str(out)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "too large\n"  # the data do not fit
    problem = storage.load(path)
    S = [np.random.default_rng(i).standard_normal((10_000, 200)) for i in range(20)]
    own = Problem("in memory", S)
    own.reference = problem.reference
    chosen = algorithms.get("ssi")
    settings = chosen.params({"n_components": 2, "rounds": 2})
    basis = execute(chosen, own, settings, 0, [])[1]["basis"]
    assert np.load(out).tobytes() == basis.tobytes()
    sigma = np.sqrt(np.linalg.eigvalsh(sum(s.T @ s for s in S))[::-1])
    np.testing.assert_allclose(problem.singular_values, sigma, rtol=1e-12)
