"""Where files come from, in which order, and what happens when they are wrong."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import os
import socket
import socketserver
import threading
import time
from collections import Counter

import pytest

from fedcore import datasets
from fedcore.datasets import download
from fedcore.errors import ConfigError, DataError

DIGEST = hashlib.sha256
IMAGES = b"\0\0\x08\x03" + b"\0\0\0\x03" + b"\0\0\0\x02" * 2 + bytes(range(12))
LABELS = b"\0\0\x08\x01" + b"\0\0\0\x03" + bytes([5, 0, 4])
FILES = {"images": IMAGES, "labels": LABELS}
SPLITS = {"train": {"images": "images", "labels": "labels"}}
pytestmark = pytest.mark.usefixtures("no_mirror")


@pytest.fixture
def server(monkeypatch):
    """Serve FILES on loopback; `fail[path]` first answers come out as `code`, or cut short."""
    monkeypatch.setattr(download, "BACKOFF_S", 0.01)
    fail: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    how = {"code": 503}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/")
            seen[name] += 1
            body = FILES.get(name, b"")
            broken = seen[name] <= fail[name]
            if broken and how["code"] != 200:
                self.send_error(how["code"])
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:-5] if broken else body)

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    httpd.base, httpd.fail, httpd.seen, httpd.how = (
        f"http://127.0.0.1:{httpd.server_address[1]}", fail, seen, how,
    )  # fmt: skip
    yield httpd
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def test_drop_in_needs_no_mirror_and_no_network(source, registry, place):
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    raw = place("raw", FILES)
    assert datasets.missing("toy", raw, registry=reg) is None
    paths = datasets.fetch("toy", raw, registry=reg, progress=False)
    assert [p.name for p in paths] == ["images", "labels"]
    loaded = datasets.load("toy", raw, registry=reg)
    assert loaded.x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert loaded.y.tolist() == [5, 0, 4] and loaded.status == "official"
    pairs = sorted((name, DIGEST(content).hexdigest()) for name, content in FILES.items())
    text = "".join(f"{name} {value}\n" for name, value in pairs)
    assert loaded.checksum == DIGEST(text.encode()).hexdigest()


def test_drop_in_with_wrong_checksum_is_an_error_and_stays(source, registry, place, server):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    raw = place("raw", {**FILES, "labels": b"other"})
    mirror = place("mirror", FILES)
    for call in (
        lambda: datasets.fetch("toy", raw, mirror=mirror, registry=reg, progress=False),
        lambda: datasets.load("toy", raw, registry=reg),
    ):
        with pytest.raises(DataError) as error:
            call()
        text = str(error.value)
        for part in (str(raw / "toy" / "labels"), DIGEST(LABELS).hexdigest(), "move it"):
            assert part in text
        assert DIGEST(b"other").hexdigest() in text and "\n" not in text
    assert (raw / "toy" / "labels").read_bytes() == b"other"
    assert not server.seen


def test_mirror_comes_before_the_address(source, registry, place, server, tmp_path, monkeypatch):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    mirror = place("mirror", FILES)
    datasets.fetch("toy", tmp_path / "a", mirror=mirror, registry=reg, progress=False)
    monkeypatch.setenv("FEDCORE_MIRROR", str(mirror))
    datasets.fetch("toy", tmp_path / "b", registry=reg, progress=False)
    assert not server.seen
    assert (tmp_path / "a/toy/images").read_bytes() == IMAGES
    assert (tmp_path / "b/toy/labels").read_bytes() == LABELS


def test_wrong_file_in_the_mirror(source, registry, place, tmp_path):
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    mirror = place("mirror", {**FILES, "images": b"other"})
    with pytest.raises(DataError, match="replace it") as error:
        datasets.fetch("toy", tmp_path / "raw", mirror=mirror, registry=reg, progress=False)
    assert str(mirror / "toy" / "images") in str(error.value)
    assert not (tmp_path / "raw").exists()


def test_address_is_tried_three_times(source, registry, server, tmp_path):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    server.fail["images"] = 2
    assert datasets.missing("toy", tmp_path, registry=reg) is None
    assert not server.seen, "missing() must not touch the network"
    datasets.fetch("toy", tmp_path, registry=reg, progress=False)
    assert server.seen == {"images": 3, "labels": 1}
    assert (tmp_path / "toy/images").read_bytes() == IMAGES


def test_cut_download_is_tried_again(source, registry, server, tmp_path):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    server.fail["images"], server.how["code"] = 2, 200
    datasets.fetch("toy", tmp_path, registry=reg, progress=False)
    assert server.seen["images"] == 3
    assert (tmp_path / "toy/images").read_bytes() == IMAGES


@pytest.mark.parametrize(("code", "calls"), [(503, 3), (200, 3), (404, 1)])
def test_address_that_never_works_leaves_nothing(source, registry, server, tmp_path, code, calls):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    server.fail["images"], server.how["code"] = 99, code
    with pytest.raises(DataError) as error:
        datasets.fetch("toy", tmp_path, registry=reg, progress=False)
    text = str(error.value)
    for part in ("'images'", server.base, DIGEST(IMAGES).hexdigest(), str(tmp_path / "toy")):
        assert part in text
    assert "\n" not in text
    assert server.seen["images"] == calls
    assert not (tmp_path / "toy").exists()


def test_folders_that_were_there_or_hold_a_file_stay(source, registry, server, tmp_path):
    urls = {name: [f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    server.fail["labels"], server.how["code"] = 99, 404
    (tmp_path / "there").mkdir()
    for raw in (tmp_path / "there", tmp_path / "new"):
        with pytest.raises(DataError):
            datasets.fetch("toy", raw, registry=reg, progress=False)
        assert (raw / "toy" / "images").read_bytes() == IMAGES  # it came before the other failed
    server.fail["images"] = 99
    (tmp_path / "empty" / "toy").mkdir(parents=True)
    with pytest.raises(DataError):
        datasets.fetch("toy", tmp_path / "empty", registry=reg, progress=False)
    assert (tmp_path / "empty" / "toy").is_dir()


def test_a_mirror_that_is_not_there_is_named(source, registry, tmp_path, monkeypatch):
    reg = registry(source("idx", SPLITS, FILES, manual="ask the librarian"), n_features=4)
    gone = tmp_path / "nowhere"
    says = f"the mirror's folder {gone} does not exist"
    monkeypatch.setenv("FEDCORE_MIRROR", str(gone))
    with pytest.raises(DataError, match=says):
        datasets.fetch("toy", tmp_path / "raw", registry=reg)
    gone.mkdir()
    assert "does not exist" not in datasets.missing("toy", tmp_path / "raw", registry=reg)
    monkeypatch.delenv("FEDCORE_MIRROR")
    assert "does not exist" not in datasets.missing("toy", tmp_path / "raw", registry=reg)


def test_second_address(source, registry, server, tmp_path):
    two = {name: [f"{server.base}/gone", f"{server.base}/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=two), n_features=4)
    datasets.fetch("toy", tmp_path, registry=reg, progress=False)
    assert (tmp_path / "toy/images").read_bytes() == IMAGES


def test_missing_is_one_sentence(source, registry, tmp_path):
    manual = source("idx", SPLITS, FILES, manual="ask the librarian")
    reg = registry(manual, n_features=4)
    text = datasets.missing("toy", tmp_path, registry=reg)
    for part in ("'images'", "'labels'", DIGEST(IMAGES).hexdigest(), str(tmp_path / "toy")):
        assert part in text
    assert "librarian" in text and "\n" not in text
    for call in (datasets.fetch, datasets.load):
        with pytest.raises(DataError, match="librarian"):
            call("toy", tmp_path, registry=reg)


def test_load_before_fetch_says_so(source, registry, place, tmp_path, monkeypatch):
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    monkeypatch.setenv("FEDCORE_MIRROR", str(place("mirror", FILES)))
    with pytest.raises(DataError, match="fetch it first"):
        datasets.load("toy", tmp_path / "raw", registry=reg)


def test_md5_when_no_sha256_is_known(source, registry, place):
    entry = source("idx", SPLITS, FILES)
    for file in entry["files"]:
        del file["sha256"]
        file["md5"] = hashlib.md5(FILES[file["name"]]).hexdigest()
    reg = registry(entry, n_features=4)
    assert datasets.load("toy", place("raw", FILES), registry=reg).y.tolist() == [5, 0, 4]
    with pytest.raises(DataError, match="md5"):
        datasets.load("toy", place("raw", {"labels": b"x"}), registry=reg)


def test_md5_where_it_is_refused_for_security(source, registry, place, monkeypatch):
    """As on machines under FIPS."""

    def refusing(name, *, usedforsecurity=True, new=hashlib.new):
        assert name != "md5" or not usedforsecurity
        return new(name)

    monkeypatch.setattr(hashlib, "new", refusing)
    test_md5_when_no_sha256_is_known(source, registry, place)


def test_fetching_again_writes_the_record_only_when_it_says_something_else(source, registry, place):
    """Snakemake makes the problems again when the record is newer than they are."""
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    raw = place("raw", FILES)
    record = raw / "toy" / "fetched.json"
    datasets.fetch("toy", raw, registry=reg, progress=False)
    assert json.loads(record.read_text()) == {n: DIGEST(c).hexdigest() for n, c in FILES.items()}
    os.utime(record, (0, 0))
    datasets.fetch("toy", raw, registry=reg, progress=False)
    assert record.stat().st_mtime == 0
    for damaged in (b"[not json", b"\xff"):
        record.write_bytes(damaged)
        datasets.fetch("toy", raw, registry=reg, progress=False)
        assert set(json.loads(record.read_text())) == set(FILES)


def test_damage_that_keeps_time_and_size_is_noticed(source, registry, place):
    """A flipped digit of a LIBSVM text is another number: nothing but the checksum can tell."""
    files = {"table": b"1 1:1 3:0.5\n-1 2:1\n"}
    reg = registry(source("libsvm", {"train": {"table": "table"}}, files), n_features=3)
    raw = place("raw", files)
    datasets.fetch("toy", raw, registry=reg, progress=False)
    path = raw / "toy" / "table"
    before = path.stat()
    path.write_bytes(files["table"].replace(b"0.5", b"0.7"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for call in (datasets.fetch, datasets.load):
        with pytest.raises(DataError, match="table has sha256"):
            call("toy", raw, registry=reg)


def test_number_of_features_is_checked(source, registry, place):
    reg = registry(source("idx", SPLITS, FILES), n_features=5)
    with pytest.raises(DataError, match="4 features"):
        datasets.load("toy", place("raw", FILES), registry=reg)


def test_unknown_name(tmp_path):
    for call in (datasets.fetch, datasets.load, datasets.missing):
        with pytest.raises(ConfigError, match="did you mean 'mnist'"):
            call("mnits", tmp_path)


def test_a_server_that_does_not_answer_is_asked_once_and_its_data_are_missing(
    source, registry, server, tmp_path, monkeypatch
):
    ask, asked = download.asks_once(), []
    known = download.answers
    monkeypatch.setattr(download, "answers", lambda url: asked.append(url) or known(url))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}"
        urls = {name: [f"{dead}/{name}"] for name in FILES}
        reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
        reason = datasets.missing("toy", tmp_path, registry=reg, answers=ask)
        assert "no answer" in reason and dead in reason and "\n" not in reason
        assert datasets.missing("toy", tmp_path, registry=reg) is None, "without asking"
        both = {name: [f"{dead}/{name}", f"{server.base}/{name}"] for name in FILES}
        reg = registry(source("idx", SPLITS, FILES, urls=both), n_features=4)
        assert datasets.missing("toy", tmp_path, registry=reg, answers=ask) is None
    assert len(asked) == 2
    assert not ask(f"{dead}/images") and ask(f"{server.base}/other")
    assert len(asked) == 2


@pytest.fixture
def endless(monkeypatch):
    """Serve bytes without an end on loopback, one at a time or at once, in the headers or after."""
    monkeypatch.setattr(download, "BACKOFF_S", 0.01)
    how = {"head": b"HTTP/1.1 200 OK\r\n\r\n", "drip": b"x", "pause": 0.02, "sent": 0}
    stop = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(4096)
            with contextlib.suppress(OSError):
                self.request.sendall(how["head"])
                while not stop.wait(how["pause"]):
                    self.request.sendall(how["drip"])
                    how["sent"] += len(how["drip"])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        how["base"] = f"http://127.0.0.1:{server.server_address[1]}"
        yield how
        stop.set()
        server.shutdown()
        thread.join()


HEADERS = {
    "body": {},
    "headers": {"head": b"HTTP/1.1 200 OK\r\nX: "},
    "status": {"head": b""},
    "chunk sizes": {"head": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "drip": b"0"},
}


@pytest.mark.parametrize("where", HEADERS)
def test_a_server_that_drips_is_left_after_the_time_of_an_attempt(
    source, registry, tmp_path, monkeypatch, endless, where
):
    monkeypatch.setattr(download, "TIMEOUT_S", 0.3)
    endless.update(HEADERS[where])
    content = bytes(10_000)  # 0.2 s more; at fifty bytes a second it would need minutes
    urls = {"table": [f"{endless['base']}/table"]}
    entry = source("libsvm", {"train": {"table": "table"}}, {"table": content}, urls=urls)
    start = time.monotonic()
    with pytest.raises(DataError, match="took more than") as error:
        datasets.fetch("toy", tmp_path, registry=registry(entry, n_features=3), progress=False)
    assert time.monotonic() - start < 60.0  # on a loaded machine, too
    assert endless["base"] in str(error.value)
    assert not (tmp_path / "toy").exists()


def test_a_server_that_sends_on_is_left_at_the_registered_size(source, registry, tmp_path, endless):
    """No more than what was on its way is taken, and none of it is kept."""
    endless.update(drip=bytes(100_000), pause=0.0)
    urls = {"table": [f"{endless['base']}/table"]}
    entry = source("libsvm", {"train": {"table": "table"}}, {"table": b"1 1:1\n"}, urls=urls)
    with pytest.raises(DataError, match="more than the 6 bytes of the registry"):
        datasets.fetch("toy", tmp_path, registry=registry(entry, n_features=3), progress=False)
    assert not (tmp_path / "toy").exists()
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
    "an address that is none": (b"302 Found\r\nLocation: http://[bad/", "Invalid IPv6 URL"),
    "itself, without an end": (b"302 Found\r\nLocation: /table", "infinite loop"),
    "a file": (b"302 Found\r\nLocation: file:///etc/passwd", "is not allowed"),
    "control characters": (b"404 \x1b[2J" + b"x" * 5000, "404: [2Jxxx"),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_is_a_short_printable_line(
    source, registry, tmp_path, monkeypatch, endless, odd
):
    """An answer is an answer, as an error of HTTP is: the server can be reached."""
    head, reason = ODD[odd]
    endless.update(head=b"HTTP/1.1 " + head + b"\r\nContent-Length: 0\r\n\r\n", drip=b"")
    url = f"{endless['base']}/table"
    assert datasets.answers(url)
    entry = source("libsvm", {"train": {"table": "table"}}, {"table": b"1"}, urls={"table": [url]})
    with pytest.raises(DataError) as error:
        datasets.fetch("toy", tmp_path, registry=registry(entry, n_features=3), progress=False)
    message = str(error.value)
    assert url in message and reason in message
    assert message.isprintable() and len(message) < 600  # two folders are in it


def test_too_large_a_file_in_the_mirror(source, registry, place, tmp_path):
    urls = {name: [f"http://127.0.0.1/{name}"] for name in FILES}
    reg = registry(source("idx", SPLITS, FILES, urls=urls), n_features=4)
    mirror = place("mirror", {**FILES, "images": IMAGES + b"more"})
    with pytest.raises(DataError, match=r"more than the \d+ bytes of the registry"):
        datasets.fetch("toy", tmp_path / "raw", mirror=mirror, registry=reg, progress=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://[bad/",
        "ftp://example.org/a",
        "http:///a",
        "http://a:b/",
        "a",
        "http://a b/",
        "http://a/é",
    ],
)
def test_wrong_address_in_the_registry(source, registry, tmp_path, url):
    entry = source("idx", SPLITS, FILES, urls={"images": [url]})
    with pytest.raises(
        ConfigError, match=r"files\.0\.urls\.0: .* is not an address: give one with https"
    ) as error:
        datasets.missing("toy", tmp_path, registry=registry(entry, n_features=4))
    assert url in str(error.value) and "\n" not in str(error.value)


@pytest.fixture
def closed(monkeypatch):
    """Make a folder unreadable, or unwritable, for anybody, the superuser too."""

    def close(name, folder):
        real = getattr(os, name)

        def refuse(path, *args, **keywords):
            if str(path).startswith(str(folder)):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **keywords)

        monkeypatch.setattr(os, name, refuse)

    return close


def test_raw_folder_that_may_not_be_searched(source, registry, place, closed):
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    raw = place("raw", FILES)
    closed("stat", raw / "toy")
    for call in (datasets.missing, datasets.fetch, datasets.load):
        with pytest.raises(DataError, match="Permission denied; make its folder readable"):
            call("toy", raw, registry=reg)


def test_raw_folder_that_may_not_be_written(source, registry, place, closed):
    reg = registry(source("idx", SPLITS, FILES), n_features=4)
    raw = place("raw", FILES)
    closed("replace", raw / "toy")
    with pytest.raises(DataError, match=r"are right, but .*fetched\.json.* cannot be written"):
        datasets.fetch("toy", raw, registry=reg, progress=False)
    assert datasets.load("toy", raw, registry=reg).y.tolist() == [5, 0, 4]
