"""Download one checked file; nothing stands under its name before its checksum was right."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from fedcore import atomic
from fedcore.datasets import checksums
from fedcore.errors import DataError

ATTEMPTS = 3
BACKOFF_S = 1.0
TIMEOUT_S = 60.0
ANSWER_S = 5.0
KNOWN = "FEDCORE_ANSWERS"  # in the environment, what `answers` has found, by server
_RETRIED_REFUSALS = frozenset({408, 425, 429})


class DownloadError(DataError):
    """No address of a file gave the right bytes."""


def answers(url: str) -> bool:
    """Whether the server of an address answers at all, be it by a refusal.

    Every server is asked once; processes that this one starts, such as the jobs of a workflow,
    inherit what it said and so plan the same work.
    """
    server = urlsplit(url).netloc
    known = json.loads(os.environ.get(KNOWN, "{}"))
    if server not in known:
        known[server] = _answers(url)
        os.environ[KNOWN] = json.dumps(known)
    return known[server]


def _answers(url: str) -> bool:
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "fedcore"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False


def save(source: IO[bytes], path: Path, file: Mapping[str, Any], bar: Any) -> dict[str, Any]:
    """Write `source` under `path` when its checksum is right; raise DataError when it is not."""
    with atomic.replace(path) as temporary:
        with open(temporary, "wb") as sink:
            sums = checksums.stream(source, sink, bar)
        algorithm, wanted = checksums.expected(file)
        if sums[algorithm] != wanted:
            raise DataError(
                f"it has {algorithm} {sums[algorithm]} where the registry expects {wanted}"
            )
    return checksums.state(path, sums)


def download(path: Path, file: Mapping[str, Any], progress: bool) -> dict[str, Any]:
    """Try every address of a file `ATTEMPTS` times with growing pauses."""
    from tqdm import tqdm

    reasons = []
    for url in file["urls"]:
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(BACKOFF_S * 2 ** (attempt - 1))
            request = urllib.request.Request(url, headers={"User-Agent": "fedcore"})
            try:
                with (
                    urllib.request.urlopen(request, timeout=TIMEOUT_S) as source,
                    tqdm(
                        total=file.get("bytes"),
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
