"""Sealed files: whatever happens to one of their bytes, HDF5 does not get to see it."""

from __future__ import annotations

import errno
import hashlib
import io
import os

import h5py
import numpy as np
import pytest

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


def flipped(whole: bytes, offset: int, mask: int) -> bytes:
    damaged = bytearray(whole)
    damaged[offset % len(whole)] ^= mask
    return bytes(damaged)


def test_hdf5_opens_a_sealed_file_as_usual(file):
    """The SHA-256 of what is before it stands at the end, where HDF5 does not look."""
    with h5py.File(file) as opened:
        assert opened.userblock_size == 0  # programs that guess a format look at the first bytes
        assert opened["group/data"].shape == (20, 3)
    whole = file.read_bytes()
    seal = whole[-128:].rstrip(b"\0").decode()
    assert seal.endswith(hashlib.sha256(whole[:-128]).hexdigest()) and h5py.is_hdf5(file)


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_flipped_byte_is_noticed(file, mask):
    whole = file.read_bytes()
    for offset in [*range(700), *range(700, len(whole), 13), *range(len(whole) - 128, len(whole))]:
        file.write_bytes(flipped(whole, offset, mask))
        with pytest.raises(hdf5.BrokenSeal), hdf5.read(file):
            pytest.fail("the file was opened")
    file.write_bytes(whole)
    with hdf5.read(file):
        pass


def load(path):
    return (History.load if "history" in path.name else storage.load)(path)


def sentence(path, load=load) -> str:
    """The sentence with which a file is refused: a way on, if it can be given."""
    with pytest.raises((HistoryError, DataError)) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and "\n" not in message and len(message) < 500
    return message


@pytest.fixture(params=["history", "problem"])
def path(request):
    return request.getfixturevalue(f"{request.param}_file")


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


OLD = (b"fedcore sha256 of the bytes from 512 on: " + 64 * b"0").ljust(512, b"\0")
DAMAGES = {  # and whether it is fedcore's own damaged file, which is to be deleted
    **{f"flip {i}": (lambda of, i=i: flipped(of.read_bytes(), i, 0xFF), True)
       for i in (0, 8, 600, *CRASHING, -200, -100, -1)},
    **{f"cut {k}": (lambda of, k=k: of.read_bytes()[:k], k < 0 or k >= 1000)
       for k in (0, 1, 127, 128, 129, 1000, 2000, -1000, -129, -128, -127, -1)},
    "longer": (lambda of: of.read_bytes() + b"\0", True),
    "older": (lambda of: OLD + of.read_bytes(), True),
    **{f"no seal {b}": (lambda of, b=b: unsealed(of, b), False) for b in (0, 512)},
    "no HDF5": (lambda of: sealed(b"iteration\tobjective\n" * 100), False),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_only_fedcores_own_is_to_be_deleted(path, damage):
    change, own = DAMAGES[damage]
    path.write_bytes(change(path))
    assert ("delete" in sentence(path)) == own


def test_a_missing_file_a_folder_and_a_file_of_another_kind(path, tmp_path):
    missing, folder = tmp_path / f"no {path.name}", tmp_path / f"a {path.name}"
    folder.mkdir()
    other = storage.load if load(path).__class__ is History else History.load
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
        except DataError:
            pass
    assert harmless < 0.2 * len(whole) / 61
    for content_of in (*(whole[:kept] for kept in range(0, len(whole), 301)), whole + b"\0"):
        path.write_bytes(content_of)
        sentence(path)


def test_a_map_outlives_a_new_file_of_the_same_name(large):
    problem, path = large
    read = storage.load(path)
    read.clients[0]
    storage.save(Problem("other", [np.ones((30, 16))] * 3), path)
    for ours, theirs in zip(read.clients, problem.clients, strict=True):
        np.testing.assert_array_equal(ours, theirs)
