"""Download a file; the file gets its final name only after its checksum is verified.

The package pooch 1.9 is not used, because it limits neither the time nor the size of a transfer.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.verification import save
from fedcore.errors import DataError
from fedcore.files import atomic

ATTEMPTS = 3
BACKOFF_S = 1.0
TIMEOUT_S = 60.0  # without a byte
SLOWEST = 50e3  # bytes a second; an attempt may take TIMEOUT_S plus the file's size / SLOWEST
ANSWER_S = 5.0
DAY_S = 86400.0
_CHUNK = 2**18
_SHOWN = 200  # characters of an error
_RETRIED_REFUSALS = frozenset({408, 425, 429})


class DownloadError(DataError):
    """Raised if no URL of a file yields the right bytes."""


def answers(url: str) -> bool:
    """Return whether the server of a URL responds; an HTTP error counts as a response."""
    try:
        _Arriving(url, "HEAD", ANSWER_S).read()
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False
    except ValueError:  # it answered with a redirection to what is no address
        return True
    return True


class Servers:
    """Which servers responded when last asked, stored in a file in the folder `raw`.

    If the file is missing or damaged, every server counts as never asked.
    """

    def __init__(self, raw: Path) -> None:
        self._path, self._new = raw / "servers.json", False
        self._asked = _read_asked(self._path)

    def answered(self, url: str) -> bool:
        """Return whether the server of a URL responded when last asked; True if never asked."""
        _, answered = self._asked.get(_server(url), (0.0, True))
        return answered

    def ask(self, url: str, *, seconds: float = DAY_S) -> bool:
        """Return whether a URL's server responds; results younger than `seconds` are used again."""
        server, now = _server(url), time.time()
        asked, answered = self._asked.get(server, (0.0, True))
        if not 0 <= now - asked < seconds:
            answered = answers(url)
            self._asked[server], self._new = (now, answered), True
        return answered

    def save(self) -> None:
        """Write to the file which servers responded, if `ask` has asked a server.

        If writing fails, the next process asks the servers again.
        """
        if self._new:
            with contextlib.suppress(OSError), atomic.replace(self._path) as made:
                made.write_text(json.dumps(self._asked, indent=1), encoding="utf-8")


def _server(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def _read_asked(path: Path) -> dict[str, tuple[float, bool]]:
    """Return when each server was asked, in seconds since 1970, and whether it responded."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return {
            server: (float(asked), bool(answered)) for server, (asked, answered) in read.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


class _Arriving:
    """Response from a URL, received in another thread, so that `read` can time out.

    The time limit covers name lookup, connection, headers and body together. A socket's own timeout
    starts again with every byte, and thus never ends a very slow transfer.
    """

    def __init__(self, url: str, method: str, seconds: float) -> None:
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._chunks: queue.Queue[bytes | Exception] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        # A daemon thread does not keep the process alive while the server holds the connection.
        threading.Thread(target=self._receive, args=(url, method), daemon=True).start()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes (none at the end), or raise TimeoutError when time is up."""
        try:
            chunk = self._chunks.get(timeout=max(0.0, self._end - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"it took more than {self._seconds:.0f} s") from None
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        """Tell the receiving thread to end after it has read its next chunk."""
        self._closed.set()
        while not self._chunks.empty():
            self._chunks.get()

    def _receive(self, url: str, method: str) -> None:
        try:
            request = urllib.request.Request(url, method=method, headers={"User-Agent": "fedcore"})
            with urllib.request.urlopen(request, timeout=min(TIMEOUT_S, self._seconds)) as source:
                while not self._closed.is_set():
                    self._chunks.put(chunk := source.read1(_CHUNK))
                    if not chunk:
                        return
        except Exception as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # its answer holds the connection
            self._chunks.put(error)


def download(path: Path, file: Mapping[str, Any], progress: bool) -> str:
    """Download a file and return its sha256 in hex.

    Each URL is tried up to `ATTEMPTS` times, with growing pauses. After a refusal such as HTTP 404,
    a URL is not tried again.
    """
    from tqdm import tqdm

    reasons, seconds = [], TIMEOUT_S + file["bytes"] / SLOWEST
    for url in file["urls"]:
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(BACKOFF_S * 2 ** (attempt - 1))
            try:
                with (
                    contextlib.closing(_Arriving(url, "GET", seconds)) as source,
                    tqdm(
                        total=file["bytes"],
                        desc=path.name,
                        unit="B",
                        unit_scale=True,
                        file=sys.stderr,
                        disable=None if progress else True,
                    ) as bar,
                ):
                    return save(source, path, file, bar)
            except urllib.error.HTTPError as error:
                reason = _said(error)
                if error.code < 500 and error.code not in _RETRIED_REFUSALS:
                    break
            except (OSError, http.client.HTTPException, DataError, ValueError) as error:
                reason = _said(error)  # ValueError: the server redirects to what is no address
        reasons.append(f"{url} ({reason})")
    raise DownloadError(f"'{path.name}' could not be downloaded from {', '.join(reasons)}")


def _said(error: Exception) -> str:
    """Return an error's message as a short printable line, because a server may have sent it."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return " ".join(text.split())[:_SHOWN]
