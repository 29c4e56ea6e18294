"""Where files come from, in which order, and what happens when they are wrong."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import socket
import socketserver
import threading
import time
import warnings
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

from fedcore import datasets
from fedcore.datasets import download
from fedcore.errors import DataError
from refused import refused

DIGEST = hashlib.sha256
IMAGES = b"\0\0\x08\x03" + b"\0\0\0\x03" + b"\0\0\0\x02" * 2 + bytes(range(12))
LABELS = b"\0\0\x08\x01" + b"\0\0\0\x03" + bytes([5, 0, 4])
FILES = {"images": IMAGES, "labels": LABELS}
SPLITS = {"train": {"images": "images", "labels": "labels"}}
pytestmark = pytest.mark.usefixtures("no_mirror")


@pytest.fixture
def server(monkeypatch):
    """Serve FILES on loopback; `fail[path]` first answers come out as `code`, or cut short.

    With a `head` every answer is that, and `drip` after each `pause`, without an end.
    """
    monkeypatch.setattr(download, "BACKOFF_S", 0.01)
    fail, seen, stop = Counter(), Counter(), threading.Event()
    how = {"code": 503, "head": None, "drip": b"x", "pause": 0.02, "sent": 0}

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            method, path = self.request.recv(4096).decode().split()[:2]
            name = path.strip("/") if method == "GET" else method
            seen[name] += 1
            body, broken = FILES.get(name, b""), seen[name] <= fail[name]
            code = 404 if method == "HEAD" else how["code"] if broken else 200
            head = b"HTTP/1.1 %d said\r\nContent-Length: %d\r\n\r\n" % (code, len(body))
            with contextlib.suppress(OSError):
                if how["head"] is None:
                    self.request.sendall(head + body[: -5 if broken else None])
                    return
                self.request.sendall(how["head"])
                while not stop.wait(how["pause"]):
                    self.request.sendall(how["drip"])
                    how["sent"] += len(how["drip"])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        base = f"http://127.0.0.1:{made.server_address[1]}"
        yield SimpleNamespace(base=base, fail=fail, seen=seen, how=how)
        stop.set()
        made.shutdown()
        thread.join()


@pytest.fixture
def toy(source, registry):
    """Register FILES, at `where` if anywhere; return the registry."""

    def register(*where, **more):
        urls = {name: [f"{base}/{name}" for base in where] for name in FILES} if where else {}
        return registry(source("idx", SPLITS, FILES, urls=urls, **more), n_features=4)

    return register


def fetch(raw, reg, **more):
    return datasets.fetch("toy", raw, registry=reg, progress=False, **more)


def test_drop_in_needs_no_mirror_and_no_network(toy, place):
    reg, raw = toy(), place("raw", FILES)
    assert datasets.missing("toy", raw, registry=reg) is None
    assert [path.name for path in fetch(raw, reg)] == ["images", "labels"]
    loaded = datasets.load("toy", raw, registry=reg)
    assert loaded.x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert loaded.y.tolist() == [5, 0, 4] and loaded.status == "official"
    pairs = sorted((name, DIGEST(content).hexdigest()) for name, content in FILES.items())
    text = "".join(f"{name} {value}\n" for name, value in pairs)
    assert loaded.checksum == DIGEST(text.encode()).hexdigest()


def test_drop_in_with_wrong_checksum_is_an_error_and_stays(toy, place, server):
    reg, raw = toy(server.base), place("raw", {**FILES, "labels": b"other"})
    mirror, sums = place("mirror", FILES), [DIGEST(x).hexdigest() for x in (LABELS, b"other")]
    for call in (
        lambda: fetch(raw, reg, mirror=mirror),
        lambda: datasets.load("toy", raw, registry=reg),
    ):
        refused(call, DataError, raw / "toy" / "labels", *sums)
    assert (raw / "toy" / "labels").read_bytes() == b"other"
    assert not server.seen


def test_mirror_comes_before_the_address(toy, place, server, tmp_path, monkeypatch):
    reg, mirror = toy(server.base), place("mirror", FILES)
    fetch(tmp_path / "a", reg, mirror=mirror)
    monkeypatch.setenv("FEDCORE_MIRROR", str(mirror))
    fetch(tmp_path / "b", reg)
    assert not server.seen
    assert (tmp_path / "a/toy/images").read_bytes() == IMAGES
    assert (tmp_path / "b/toy/labels").read_bytes() == LABELS


@pytest.mark.parametrize("wrong", [b"other", IMAGES + b"more"])
def test_wrong_file_in_the_mirror(toy, place, tmp_path, wrong):
    reg, mirror = toy("http://127.0.0.1:9"), place("mirror", {**FILES, "images": wrong})
    refused(lambda: fetch(tmp_path / "raw", reg, mirror=mirror), DataError, mirror / "toy/images")
    assert not (tmp_path / "raw").exists()


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


UNUSUAL = {
    "a pipe": os.mkfifo,
    "a pipe in which somebody writes": lambda path: (os.mkfifo(path), os.open(path, os.O_RDWR)),
    "a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "a device": lambda path: path.symlink_to("/dev/null"),
    "a folder": os.mkdir,
    "a socket": a_socket,
}


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("where", ["mirror", "raw"])
@pytest.mark.parametrize("zeros", [False, True])
def test_what_is_no_ordinary_file_is_refused_at_once(toy, place, monkeypatch, kind, where, zeros):
    root, reg = place(where, {"labels": LABELS}), toy()
    if zeros:
        reg.write_text(reg.read_text().replace(DIGEST(IMAGES).hexdigest(), f"'{0:064}'"))
    monkeypatch.chdir(root / "toy")  # the path of a socket is short
    UNUSUAL[kind](root.__class__("images"))
    raw = root if where == "raw" else root.parent / "raw"
    refused(lambda: fetch(raw, reg, mirror=root), DataError, root / "toy" / "images")
    assert where == "raw" or not raw.exists()


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
@pytest.mark.parametrize("where", ["mirror", "raw", "nowhere"])
def test_zeros_in_place_of_a_checksum_are_told_with_the_file_s_own(
    source, registry, place, tmp_path, algorithm, where
):
    entry = source("idx", SPLITS, FILES, urls={name: ["http://127.0.0.1:9/x"] for name in FILES})
    sums = {name: hashlib.new(algorithm, content).hexdigest() for name, content in FILES.items()}
    for file in entry["files"]:
        del file["sha256"]
        file[algorithm] = (
            sums[file["name"]] if file["name"] == "labels" else "0" * len(sums["images"])
        )
    place(where, FILES if where != "nowhere" else {})
    with pytest.raises(DataError, match="zeros") as error:
        fetch(tmp_path / "raw", registry(entry, n_features=4), mirror=place("mirror", {}))
    assert (sums["images"] in str(error.value)) == (where != "nowhere")


def test_a_mirror_that_is_no_folder_is_told_if_a_file_is_not_there(toy, place, server, monkeypatch):
    reg, raw = toy(server.base), place("raw", FILES)
    for wrong in (raw / "nowhere", raw / "toy" / "images"):
        monkeypatch.setenv("FEDCORE_MIRROR", str(wrong))
        fetch(raw, reg)
        refused(lambda: fetch(raw / "new", reg), DataError, "is no folder", wrong)
        assert not server.seen


@pytest.mark.parametrize("code", [503, 200])  # 200: the answer is cut short
def test_an_address_is_tried_three_times(toy, server, tmp_path, code):
    reg = toy(server.base)
    server.fail["images"], server.how["code"] = 2, code
    assert datasets.missing("toy", tmp_path, registry=reg) is None
    assert not server.seen, "missing() must not touch the network"
    fetch(tmp_path, reg)
    assert server.seen == {"images": 3, "labels": 1}
    assert (tmp_path / "toy/images").read_bytes() == IMAGES


@pytest.mark.parametrize(("code", "calls"), [(503, 3), (200, 3), (404, 1)])
def test_address_that_never_works_leaves_nothing(toy, server, tmp_path, code, calls):
    server.fail["images"], server.how["code"] = 99, code
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        names = ("'images'", server.base, DIGEST(IMAGES).hexdigest(), tmp_path / "toy")
        refused(lambda: fetch(tmp_path, toy(server.base)), DataError, *names)
        gc.collect()
    assert left == []  # every connection is closed
    assert server.seen["images"] == calls
    assert not (tmp_path / "toy").exists()


def test_folders_that_were_there_or_hold_a_file_stay(toy, server, tmp_path):
    reg = toy(server.base)
    server.fail["labels"], server.how["code"] = 99, 404
    (tmp_path / "there").mkdir()
    for raw in (tmp_path / "there", tmp_path / "new"):
        with pytest.raises(DataError):
            fetch(raw, reg)
        assert (raw / "toy" / "images").read_bytes() == IMAGES  # it came before the other failed
    server.fail["images"] = 99
    (tmp_path / "empty" / "toy").mkdir(parents=True)
    refused(lambda: fetch(tmp_path / "empty", reg), DataError)
    assert (tmp_path / "empty" / "toy").is_dir()


def test_second_address(toy, server, tmp_path):
    fetch(tmp_path, toy(f"{server.base}/gone", server.base))
    assert (tmp_path / "toy/images").read_bytes() == IMAGES


def test_what_a_person_must_provide(toy, place, tmp_path, monkeypatch):
    reg, raw, gone = toy(manual="ask the librarian"), tmp_path / "raw", tmp_path / "nowhere"
    for call in (datasets.fetch, datasets.load):
        names = ("images", DIGEST(LABELS).hexdigest(), raw / "toy", "ask the librarian")
        refused(partial(call, "toy", raw, registry=reg), DataError, *names)
    monkeypatch.setenv("FEDCORE_MIRROR", str(gone))
    assert str(gone) in datasets.missing("toy", raw, registry=reg)
    gone.mkdir()
    assert str(gone) not in datasets.missing("toy", raw, registry=reg)
    monkeypatch.setenv("FEDCORE_MIRROR", str(place("mirror", FILES)))
    assert datasets.missing("toy", raw, registry=reg) is None
    with pytest.raises(DataError, match="fetch"):  # reading does not fetch
        datasets.load("toy", raw, registry=reg)


@pytest.mark.parametrize("refuses", [False, True], ids=["", "FIPS"])
def test_md5_when_no_sha256_is_known(source, registry, place, monkeypatch, refuses):
    """Also where it is refused for security."""

    def refusing(name, *, usedforsecurity=True, new=hashlib.new):
        assert name != "md5" or not usedforsecurity
        return new(name)

    if refuses:
        monkeypatch.setattr(hashlib, "new", refusing)
    entry = source("idx", SPLITS, FILES)
    for file in entry["files"]:
        del file["sha256"]
        file["md5"] = hashlib.md5(FILES[file["name"]]).hexdigest()
    reg = registry(entry, n_features=4)
    assert datasets.load("toy", place("raw", FILES), registry=reg).y.tolist() == [5, 0, 4]
    raw = place("raw", {"labels": b"x"})
    refused(lambda: datasets.load("toy", raw, registry=reg), DataError, raw / "toy" / "labels")


def test_fetching_again_writes_the_record_only_when_it_says_something_else(toy, place):
    """Snakemake makes the problems again when the record is newer than they are."""
    reg, raw = toy(), place("raw", FILES)
    record = raw / "toy" / "fetched.json"
    fetch(raw, reg)
    assert json.loads(record.read_text()) == {n: DIGEST(c).hexdigest() for n, c in FILES.items()}
    os.utime(record, (0, 0))
    fetch(raw, reg)
    assert record.stat().st_mtime == 0
    for damaged in (b"[not json", b"\xff"):
        record.write_bytes(damaged)
        fetch(raw, reg)
        assert set(json.loads(record.read_text())) == set(FILES)


@pytest.mark.parametrize("call", [datasets.fetch, datasets.load])
def test_damage_that_keeps_time_and_size_is_noticed(source, registry, place, call):
    """A flipped digit of a LIBSVM text is another number: nothing but the checksum can tell."""
    files = {"table": b"1 1:1 3:0.5\n-1 2:1\n"}
    reg = registry(source("libsvm", {"train": {"table": "table"}}, files), n_features=3)
    raw = place("raw", files)
    fetch(raw, reg)
    path = raw / "toy" / "table"
    before = path.stat()
    path.write_bytes(files["table"].replace(b"0.5", b"0.7"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    refused(lambda: call("toy", raw, registry=reg), DataError, path)


def test_number_of_features_is_checked(source, registry, place):
    reg = registry(source("idx", SPLITS, FILES), n_features=5)
    refused(lambda: datasets.load("toy", place("raw", FILES), registry=reg), DataError)


def test_a_server_that_does_not_answer_is_asked_once_and_its_data_are_missing(
    toy, server, tmp_path
):
    servers = download.Servers(tmp_path)
    ask = servers.ask
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}"
        reg = toy(dead)
        assert dead in datasets.missing("toy", tmp_path, registry=reg, answers=ask)
        assert datasets.missing("toy", tmp_path, registry=reg) is None, "without asking"
        reg = toy(dead, server.base)
        assert datasets.missing("toy", tmp_path, registry=reg, answers=ask) is None
    assert not ask(f"{dead}/images") and ask(f"{server.base}/other")
    assert server.seen == {"HEAD": 1}
    servers.save()
    later = download.Servers(tmp_path)
    assert not later.answered(dead) and later.answered(server.base) and later.answered("http://new")
    assert later.ask(server.base) and server.seen == {"HEAD": 1}, "within a day"
    assert later.ask(server.base, seconds=0.0) and server.seen == {"HEAD": 2}


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": ["x", true]}', '{"a": null}'])
def test_a_damaged_note_of_servers_is_as_none(tmp_path, text):
    (tmp_path / "servers.json").write_text(text)
    assert download.Servers(tmp_path).answered("http://a/b")


@pytest.fixture
def endless(server):
    """The server as one of bytes without an end, one at a time or at once, in headers or after."""
    server.how.update(head=b"HTTP/1.1 200 OK\r\n\r\n", base=server.base)
    return server.how


HEADERS = {
    "body": {},
    "headers": {"head": b"HTTP/1.1 200 OK\r\nX: "},
    "status": {"head": b""},
    "chunk sizes": {"head": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "drip": b"0"},
}


@pytest.fixture
def far(source, registry, tmp_path, endless):
    """Fetch a table of this content from the endless server; it must fail and leave nothing."""

    def refuse(content):
        url = f"{endless['base']}/table"
        files = {"table": content}
        entry = source("libsvm", {"train": {"table": "table"}}, files, urls={"table": [url]})
        start = time.monotonic()
        error = refused(lambda: fetch(tmp_path, registry(entry, n_features=3)), DataError)
        assert time.monotonic() - start < 60.0  # on a loaded machine, too
        said = str(error)
        assert url in said and said.isprintable() and len(said) < 600  # two folders are in it
        assert not (tmp_path / "toy").exists()

    return refuse


@pytest.mark.parametrize("where", HEADERS)
def test_a_server_that_drips_is_left_after_the_time_of_an_attempt(monkeypatch, endless, far, where):
    monkeypatch.setattr(download, "TIMEOUT_S", 0.3)
    endless.update(HEADERS[where])
    far(bytes(10_000))  # 0.2 s more; at fifty bytes a second it would need minutes


def test_a_server_that_sends_on_is_left_at_the_registered_size(endless, far):
    """No more than what was on its way is taken, and none of it is kept."""
    endless.update(drip=bytes(100_000), pause=0.0)
    far(b"1 1:1\n")
    sent = -1
    for _ in range(100):  # what is on its way may take a while on a loaded machine
        if endless["sent"] == sent:
            break
        sent = endless["sent"]
        time.sleep(0.2)
    else:
        pytest.fail("the connection is still open")


@pytest.mark.parametrize("where", ["headers", "status"])
def test_a_server_that_drips_its_answer_does_not_answer(monkeypatch, endless, where):
    monkeypatch.setattr(download, "ANSWER_S", 0.3)
    endless.update(HEADERS[where])
    start = time.monotonic()
    assert not datasets.answers(f"{endless['base']}/table")
    assert time.monotonic() - start < 60.0  # on a loaded machine, too


ODD = {
    "an address that is none": b"302 Found\r\nLocation: http://[bad/",
    "itself, without an end": b"302 Found\r\nLocation: /table",
    "the right file, here": b"302 Found\r\nLocation: file://HERE",
    "control characters": b"404 \x1b[2J" + b"x" * 5000,
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_is_a_short_printable_line(endless, far, tmp_path, odd):
    """An answer is an answer, as an error of HTTP is: the server can be reached."""
    (tmp_path / "here").write_bytes(b"1")
    line = ODD[odd].replace(b"HERE", bytes(tmp_path / "here"))
    endless.update(head=b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n", drip=b"")
    assert datasets.answers(f"{endless['base']}/table")
    far(b"1")


@pytest.mark.parametrize(
    ("name", "calls", "said"),
    [("stat", ("missing", "fetch", "load"), "Permission denied"),
     ("replace", ("fetch",), "fetched.json")],
)  # fmt: skip
def test_a_raw_folder_that_may_not_be_searched_or_written(
    toy, place, monkeypatch, name, calls, said
):
    """For anybody, the superuser too."""
    reg, raw, real = toy(), place("raw", FILES), getattr(os, name)

    def refuse(path, *args, **keywords):
        if str(path).startswith(str(raw / "toy")):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **keywords)

    monkeypatch.setattr(os, name, refuse)
    for call in calls:
        with pytest.raises(DataError, match=said):
            getattr(datasets, call)("toy", raw, registry=reg)
