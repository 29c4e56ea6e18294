"""Download one checked file; nothing stands under its name before its checksum was right.

By hand, as pooch 1.9 limits neither the time of a transfer nor its size: with a timeout of 0.3 s it
was still waiting after 10 s for a server that sent a byte every 0.02 s, and of a server that sends
without an end it had written 125 MB after 3 s.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fedcore.datasets.verification import save
from fedcore.errors import DataError

ATTEMPTS = 3
BACKOFF_S = 1.0
TIMEOUT_S = 60.0  # without a byte; an attempt may take this and as long as
SLOWEST = 50e3  # so many bytes a second need
ANSWER_S = 5.0
_CHUNK = 2**18
ANSWERS = "FEDCORE_ANSWERS"  # in the environment, what `answers` has found, by server
_RETRIED_REFUSALS = frozenset({408, 425, 429})


class DownloadError(DataError):
    """No address of a file gave the right bytes."""


def answers(url: str) -> bool:
    """Whether the server of an address answers at all, be it by a refusal.

    Every server is asked once; processes that this one starts, such as the jobs of a workflow,
    inherit what it said and so plan the same work.
    """
    server = urlsplit(url).netloc
    known = json.loads(os.environ.get(ANSWERS, "{}"))
    if server not in known:
        known[server] = _answers(url)
        os.environ[ANSWERS] = json.dumps(known)
    return known[server]


def _answers(url: str) -> bool:
    try:
        _Arriving(url, "HEAD", ANSWER_S).read()
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False
    return True


class _Arriving:
    """What an address sends, read by a thread of its own until it ends or `seconds` have passed.

    The limit holds for everything together: name, connection, headers and body. A timeout of the
    socket would begin anew with every byte, and a byte a second is no end.

    Parameters
    ----------
    url, method : str
    seconds : float
    """

    def __init__(self, url: str, method: str, seconds: float) -> None:
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._chunks: queue.Queue[bytes | Exception] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        # As a daemon it does not keep the process alive when the server does not let go of it.
        threading.Thread(target=self._receive, args=(url, method), daemon=True).start()

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, none at the end; TimeoutError when there is no time left."""
        try:
            chunk = self._chunks.get(timeout=max(0.0, self._end - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"it took more than {self._seconds:.0f} s") from None
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        """Tell the thread to end with the next bytes."""
        self._closed.set()
        while not self._chunks.empty():
            self._chunks.get()

    def _receive(self, url: str, method: str) -> None:
        request = urllib.request.Request(url, method=method, headers={"User-Agent": "fedcore"})
        try:
            with urllib.request.urlopen(request, timeout=min(TIMEOUT_S, self._seconds)) as source:
                while not self._closed.is_set():
                    self._chunks.put(chunk := source.read1(_CHUNK))
                    if not chunk:
                        return
        except Exception as error:
            self._chunks.put(error)


def download(path: Path, file: Mapping[str, Any], progress: bool) -> str:
    """Download a file and return its sha256 in hex.

    Every address is tried `ATTEMPTS` times with growing pauses.

    Raises
    ------
    DownloadError
        With every address and why it failed.
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
                reason = str(error)
                if error.code < 500 and error.code not in _RETRIED_REFUSALS:
                    break
            except (OSError, http.client.HTTPException, DataError) as error:
                reason = " ".join(str(error).split())
        reasons.append(f"{url} ({reason})")
    raise DownloadError(f"'{path.name}' could not be downloaded from {', '.join(reasons)}")
