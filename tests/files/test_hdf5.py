"""Sealed files: whatever happens to one of their bytes, HDF5 does not get to see it."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re

import h5py
import numpy as np
import pytest

from fedcore.errors import DataError, HistoryError
from fedcore.files import hdf5
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from refused import refused

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


def test_hdf5_opens_a_sealed_file_as_usual(file):
    """The SHA-256 of what is before it stands at the end, where HDF5 does not look."""
    with h5py.File(file) as opened:
        assert opened.userblock_size == 0  # programs that guess a format look at the first bytes
        assert opened["group/data"].shape == (20, 3)
    whole = file.read_bytes()
    seal = whole[-128:].rstrip(b"\0").decode()
    assert seal.endswith(hashlib.sha256(whole[:-128]).hexdigest()) and h5py.is_hdf5(file)


def load(path):
    """Read all of a file."""
    if "history" in path.name:
        return History.load(path)
    problem = storage.load(path)
    list(problem.clients)
    return problem


def sentence(path, load=load) -> str:
    """The sentence with which a file is refused: a way on, if it can be given."""
    caught = refused(lambda: load(path), (HistoryError, DataError))
    message = str(caught)
    assert message.startswith(str(path)) and "\n" not in message and len(message) < 500
    return message


@pytest.fixture(params=["history", "problem", "large problem"])
def path(request, monkeypatch):
    if request.param == "large problem":
        monkeypatch.setattr(hdf5, "LARGE_FILE", 1000)
    return request.getfixturevalue(f"{request.param.split()[-1]}_file")


def places(whole, kind):
    """Where a file is changed: everywhere in its first and last bytes, elsewhere in between."""
    rng, size = np.random.default_rng(0), len(whole)
    if kind == "zeros":
        data = np.frombuffer(whole, np.uint8)
        return rng.permutation(np.flatnonzero((data[:-1] == 0) & (data[1:] == 0)))[:150]
    if kind == "letter":
        texts = re.finditer(rb"[A-Za-z]{4}", whole)
        return rng.permutation([found.start() for found in texts])[:150]
    return [*range(300), *CRASHING, *rng.integers(300, size - 128, 100), *range(size - 128, size)]


CHANGES = {
    "bit": lambda part: bytes([part[0] ^ 1]),
    "byte": lambda part: bytes([part[0] ^ 255]),
    "zeros": lambda part: b"\xff\xff",
    "letter": lambda part: bytes([part[0] ^ 32]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_changed_byte_is_noticed_when_all_is_read(path, kind):
    whole = path.read_bytes()
    for at in places(whole, kind):
        new = CHANGES[kind](whole[at : at + 2])
        path.write_bytes(whole[:at] + new + whole[at + len(new) :])
        assert "delete" in sentence(path)
    path.write_bytes(whole)
    load(path)


def test_a_file_cut_off_or_longer_is_noticed(path):
    whole = path.read_bytes()
    kept = [*range(301, len(whole), 301), *range(len(whole) - 130, len(whole))]
    for content in (*(whole[:k] for k in kept), whole + b"\0"):
        path.write_bytes(content)
        assert ("delete" in sentence(path)) == (len(content) > 1000)  # where the mark is left


def sealed(content: bytes) -> bytes:
    seal = hdf5.LABEL + hashlib.sha256(content).hexdigest().encode()
    return content + seal.ljust(128, b"\0")


def unsealed(path, block) -> bytes:
    """The same groups as HDF5 writes them."""
    plain = path.with_name("plain.h5")
    with h5py.File(path) as whole, h5py.File(plain, "w", userblock_size=block) as copy:
        for name in whole:
            whole.copy(name, copy)
    return plain.read_bytes()


FOREIGN = {
    **{f"no seal {b}": lambda of, b=b: unsealed(of, b) for b in (0, 512)},
    "no HDF5": lambda of: sealed(b"iteration\tobjective\n" * 100),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_and_not_to_be_deleted(path, kind):
    path.write_bytes(FOREIGN[kind](path))
    assert "delete" not in sentence(path)


def test_a_missing_file_a_folder_and_a_file_of_another_kind(path, tmp_path):
    missing, folder = tmp_path / f"no {path.name}", tmp_path / f"a {path.name}"
    folder.mkdir()
    other = storage.load if "history" in path.name else History.load
    assert "does not exist" in sentence(missing) and "delete" not in sentence(folder)
    assert "delete" not in sentence(path, other)


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


# ------------------------------------------------------ good seals on hostile files


def in_place(make):
    """Put something else in the place of a dataset, with its attributes."""

    def harm(file, name, secret):
        attributes = dict(file[name].attrs)
        del file[name]
        make(file, name, secret)
        file[name].attrs.update(attributes)

    return harm


def link(make):
    def harm(file, name, secret):
        del file[name]
        file[name] = make(str(secret))

    return harm


def given(value):
    return in_place(lambda file, name, secret: file.__setitem__(name, value))


def dataset(*shape, **options):
    return in_place(lambda file, name, secret: file.create_dataset(name, *shape, **options))


def about(value):
    """Replace what the attributes say."""

    def harm(file, name, secret):
        for key in ("about", "setting"):
            file.attrs[key] = value

    return harm


def of_attributes(change):
    return lambda file, name, secret: [change(file.attrs, key) for key in list(file.attrs)]


def virtual(file, name, secret):
    layout = h5py.VirtualLayout((1, 200), "f8")
    layout[:] = h5py.VirtualSource(str(secret), "data", (1, 200))
    file.create_virtual_dataset(name, layout)


def outside(file, name, secret):
    file.create_dataset(name, (1, 200), "f8", external=[(str(secret), 0, 8 * 200)])


ELSEWHERE = {
    "link": link(lambda secret: h5py.ExternalLink(secret, "data")), "storage": in_place(outside),
}  # fmt: skip
HARMS = {
    **ELSEWHERE, "virtual": in_place(virtual), "soft link": link(lambda _: h5py.SoftLink("/none")),
    "group in itself": lambda file, name, _: file[name].parent.__setitem__(
        "again", file[name].parent),
    "8 TB in no bytes": dataset((10**6, 10**6), "f8", chunks=(10, 10)),
    "300 MiB in 300 kB": dataset(
        data=np.zeros((300, 2**17)), compression="gzip", chunks=(1, 2**17)),
    "other filter": dataset(data=np.zeros((1, 200)), compression="lzf"),
    "nothing": given(h5py.Empty("f8")), "text": given("text"), "a type": given(np.dtype("f8")),
    "no attributes": of_attributes(lambda attributes, key: attributes.__delitem__(key)),
    "numbers": of_attributes(lambda attributes, key: attributes.__setitem__(key, np.arange(3.0))),
    "no JSON": about("{not json"), "deep JSON": about("[" * 10_000),
    "a group": in_place(lambda file, name, _: file.create_group(name)), "a number": given(1.0),
    "JSON of lists": about('{"problem": [1], "params": "x"}'),
}  # fmt: skip
OF_HISTORIES = ("a group", "a number", "JSON of lists")


@pytest.mark.parametrize("harm", HARMS)
def test_a_good_seal_on_a_hostile_file(path, tmp_path, resealed, harm):
    """As fedcore does not write it, nothing of it is read and nobody is told to delete it."""
    name = "history/objective" if "history" in path.name else "reference/right_vectors"
    if harm in OF_HISTORIES and "problem" in path.name:
        pytest.skip("of histories")
    with h5py.File(tmp_path / "secret", "w") as other:
        other["data"] = np.ones((1, 200))
    resealed(path, lambda file: HARMS[harm](file, name, tmp_path / "secret"))
    assert "delete" not in sentence(path)


@pytest.mark.parametrize("harm", ELSEWHERE)
def test_what_is_kept_elsewhere_is_not_opened(history_file, tmp_path, resealed, harm):
    """Whoever opened a pipe that nobody writes to would wait for ever."""
    os.mkfifo(tmp_path / "secret")
    resealed(history_file, lambda file: HARMS[harm](file, "history/objective", tmp_path / "secret"))
    assert "history/objective" in sentence(history_file)


def test_deep_groups_do_not_end_the_process(history_file, resealed):
    resealed(history_file, lambda file: file.create_group("g/" * 2000).attrs.create("x", 1))
    assert History.load(history_file).repeats == 1


# ------------------------------------------------------ arrays with checksums of their own


def test_the_seal_is_the_sha256_of_all_bytes_but_those_of_arrays(monkeypatch, problem_file):
    arrays = "clients/00000", "clients/00001", "reference/singular_values"
    small = storage.load(problem_file)
    monkeypatch.setattr(hdf5, "LARGE_FILE", 1000)
    storage.save(small, problem_file)
    whole = problem_file.read_bytes()
    with h5py.File(problem_file) as file:
        found = []
        file.visititems(lambda _, item: found.append(item))
        stored = [item for item in found if isinstance(item, h5py.Dataset)]
        assert {f"/{name}" for name in arrays} <= {data.name for data in stored}
        for data in stored:
            assert data.attrs["sha256"] == hashlib.sha256(data[()].tobytes()).hexdigest()
        places = sorted((d.id.get_offset(), d.id.get_storage_size()) for d in stored)
    for start, size in reversed(places):
        whole = whole[:start] + whole[start + size :]
    assert whole[-128:].rstrip(b"\0").endswith(hashlib.sha256(whole[:-128]).hexdigest().encode())


def test_a_map_outlives_a_new_file_of_the_same_name(monkeypatch, clients, tmp_path):
    monkeypatch.setattr(hdf5, "LARGE_FILE", 1000)
    path = tmp_path / "problem.h5"
    storage.save(Problem("large", clients), path)
    read = storage.load(path)
    storage.save(Problem("other", [np.ones((30, 16))] * 3), path)
    for ours, theirs in zip(read.clients, clients, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, kind):
    path = tmp_path / "a.h5"
    {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir,
     "device": lambda: path.symlink_to("/dev/zero")}[kind]()  # fmt: skip
    with pytest.raises(hdf5.Foreign), hdf5.read(path):
        pass


def test_an_empty_file_is_to_be_deleted(path):
    """A power cut may leave one where fedcore wrote, and a user loses nothing by it."""
    path.write_bytes(b"")
    assert "it is empty" in sentence(path) and "delete it" in sentence(path)
