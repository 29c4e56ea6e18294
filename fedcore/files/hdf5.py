"""Write and read HDF5 files that end with a seal, which is a sha256 checksum.

The seal fills the last 128 bytes of a file, and contains the sha256 of the bytes before it. The
seal is checked before HDF5 reads the file. Other programs can open a sealed file, because HDF5
ignores bytes after its own content.

In a file of clients' samples larger than 128 MiB, each HDF5 data set has the sha256 of its array as
attribute ``sha256``. `value` and `fedcore.files.mapping` check an array's sha256 when they read the
array. A program can therefore read and check one array without the other arrays. The seal of such a
large file covers only the bytes outside the arrays, including the attributes. The positions where
arrays begin and end are stored in the file, directly before the seal.

HDF5's own checksums (Fletcher32, and the checksums of its newest format) are not enough. HDF5 2.0
does not notice if two bytes of an array change from 00 00 to ff ff, or if the first letter of a
string changes. One flipped bit in the size of a string makes HDF5 loop without end.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import h5py
import numpy as np

from fedcore.errors import FedcoreError
from fedcore.files import atomic

Content = TypeVar("Content")

TAIL = 128  # bytes of the seal
LABEL = b"fedcore sha256 of the bytes before: "
# So many arrays, whose bounds come last.
LABEL_OF_PARTS = b"fedcore sha256 of the bytes before without "
MARK = "by fedcore, in the last 128 bytes"  # an attribute, near the start of the file
SUM = "sha256"  # an attribute of an array with a checksum of its own
LARGE_FILE = 1 << 27  # bytes up to which a file is checked as a whole, in about 0.1 s
CHECKSUM_DIFFERS = "its checksum differs from the one at its end"
_SHOWN = 200  # characters of another library's error
_PART = 1 << 20  # bytes that are read at once
_HEAD = 4096  # bytes at the start of the file, with `MARK`
_PLACE = np.dtype("<i8")
_NUMBER = re.compile(LABEL_OF_PARTS + rb"(\d{1,18}) ")
_FILTERS = {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
_RATIO = 1100  # of deflate at its best
MOST_UNPACKED = 1 << 28  # bytes of all arrays in chunks
# A sealed file of a kind has one of these, as an attribute or as a group.
MARKS = {"history": {"about", "history"}, "problem": {"checksum", "draws"}}


class BrokenSeal(OSError):
    """Raised if a file was written by `create` and is damaged."""


class Foreign(BrokenSeal):
    """Raised if a file was probably not written by `create`, and may be a user's own file."""


@contextlib.contextmanager
def create(path: str | os.PathLike[str], *, apart: bool = False) -> Iterator[h5py.File]:
    """Open a new file for writing; when the ``with`` block ends, seal, flush and rename the file.

    If `apart` is true and the file is larger than 128 MiB, each array gets its own checksum.
    """
    bounds: list[int] = []
    with atomic.replace(path) as temporary:
        with open(temporary, "x+b", buffering=0) as raw:
            written = _Written(raw)
            try:
                with h5py.File(written, "w") as file:
                    file.attrs["sealed"] = MARK
                    yield file
                    if apart:
                        bounds = _sum_arrays(file, raw)
            finally:
                if written.error is not None:
                    raise written.error
        with open(temporary, "r+b") as whole:
            whole.seek(0, os.SEEK_END)
            whole.write(np.array(bounds, _PLACE).tobytes())
            seal = _seal(whole, bounds, whole.tell())
            whole.seek(0, os.SEEK_END)
            whole.write(seal.ljust(TAIL, b"\0"))


def _sum_arrays(file: h5py.File, raw: io.FileIO) -> list[int]:
    """Add a checksum to each array of a large file; return where arrays begin and end, sorted."""
    file.flush()
    if raw.seek(0, os.SEEK_END) <= LARGE_FILE:
        return []
    names: list[str] = []
    file.visit(names.append)
    pairs = []
    for data in map(file.__getitem__, names):
        if isinstance(data, h5py.Dataset) and data.id.get_offset() is not None:
            start = data.id.get_offset()
            pairs.append((start, start + data.id.get_storage_size()))
            data.attrs[SUM] = _sum(raw, pairs[-1])
    return [place for pair in sorted(pairs) for place in pair]


def value(data: h5py.Dataset) -> np.ndarray:
    """Return the array of a data set, or raise `BrokenSeal` if its recorded checksum differs."""
    found = data[()]
    require_sum(data.name, found, data.attrs.get(SUM))
    return found


def require_sum(name: str, found: Any, known: str | None) -> None:
    """Raise `BrokenSeal` if the bytes `found` do not have the checksum `known`.

    If `known` is None, nothing is checked here, because the checksum of the whole file (its seal)
    covers the bytes.
    """
    if known is not None and hashlib.sha256(found).hexdigest() != known:
        raise BrokenSeal(f"the checksum of {name} differs")


class _Written(io.RawIOBase):
    """New file that stores its first write error and hides the error from the HDF5 library.

    If HDF5 saw the error, it would try to write again when Python frees the file's last object, and
    would crash the process.

    Attributes
    ----------
    error : OSError or None
        First write error. All later writes are skipped.
    """

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to the byte at `offset` from the start, the current position or the end."""
        return self._raw.seek(offset, whence)

    def write(self, content: Any, /) -> int:
        """Write all bytes, or skip them after an error; return their number in either case."""
        rest = memoryview(content).cast("B")
        size = len(rest)
        try:
            while rest and self.error is None:
                rest = rest[self._raw.write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend the file to `size` bytes."""
        try:
            return self._raw.truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer from the file, with zeros in place of bytes that could not be written."""
        wanted, filled = memoryview(buffer).cast("B"), 0
        while found := self._raw.readinto(wanted[filled:]):  # a call gives less than 2 GiB
            filled += found
        wanted[filled:] = bytes(len(wanted) - filled)
        return len(wanted)

    # Found here, not in a base class: after an interrupted write HDF5 calls it before Python raises
    # the interrupt, and Python then clears what is to be raised when it has to search further.
    flush = io.RawIOBase.flush


class Opened(h5py.File):
    """HDF5 file that is open for reading.

    Attributes
    ----------
    raw : file
        Python's file object for the same file.
    large : bool
        True if each array has its own checksum.
    """

    raw: io.BufferedReader
    large: bool


@contextlib.contextmanager
def read(path: str | os.PathLike[str]) -> Iterator[Opened]:
    """Check the seal of a file, and open the file for reading."""
    with contextlib.ExitStack() as stack:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe may wait for ever
            raise Foreign("it is a folder, a pipe or a device")
        raw = stack.enter_context(open(path, "rb"))
        size = os.fstat(raw.fileno()).st_size
        if not size:  # what a power cut leaves, and nobody's own file
            raise BrokenSeal("it is empty")
        end = max(size - TAIL, 0)
        head = raw.read(_HEAD)
        raw.seek(end)
        seal = raw.read(TAIL).rstrip(b"\0")
        if not seal.startswith((LABEL, LABEL_OF_PARTS)):
            if MARK.encode() in head:
                raise BrokenSeal("it is cut off, or another program has changed it")
            raise Foreign("it is cut off or was not written by fedcore")
        bounds = _bounds(raw, seal, end)
        if sorted([0, *bounds, end]) != [0, *bounds, end] or seal != _seal(raw, bounds, end):
            raise BrokenSeal(CHECKSUM_DIFFERS)
        # By its name HDF5 might find another file, which took it after the seal was checked.
        file = stack.enter_context(Opened(raw, "r"))
        file.raw, file.large = raw, bool(bounds)
        _refuse_foreign(file, size)
        yield file


def _bounds(raw: io.BufferedReader, seal: bytes, end: int) -> list[int]:
    """Return the stored positions at which the arrays of a large file begin and end."""
    said = _NUMBER.match(seal)
    size = int(said[1]) * 2 * _PLACE.itemsize if said else 0
    if size > end:
        return []
    raw.seek(end - size)
    return np.frombuffer(raw.read(size), _PLACE).tolist()


@contextlib.contextmanager
def translate_errors(
    path: str | os.PathLike[str], *, kind: str, first: str, again: str, failure: type[FedcoreError]
) -> Iterator[None]:
    """Turn errors in reading a sealed file into the error `failure`, with a message for users."""
    try:
        yield
    except failure:
        raise
    except FileNotFoundError as error:
        raise failure(f"{path} does not exist; {first} first") from error
    except Foreign as error:
        raise failure(
            f"{path} is not a whole {kind} file of fedcore ({error}): name one that fedcore wrote"
        ) from error
    except BrokenSeal as error:
        raise failure(
            f"{path} is not a whole {kind} file ({error}); delete it and {again}"
        ) from error
    except PermissionError as error:
        raise failure(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:  # the seal is right, so the file holds something else
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
        raise failure(
            f"{path} is not a whole {kind} file of fedcore ({reason}): name one that fedcore wrote"
        ) from error


def load(
    path: str | os.PathLike[str],
    decode: Callable[[Opened], Content],
    *,
    kind: str,
    first: str,
    again: str,
    failure: type[FedcoreError],
) -> Content:
    """Return ``decode(file)`` for a sealed file, or raise `failure` with a message for users.

    The message advises deleting the file only if fedcore wrote it and it is damaged.

    Parameters
    ----------
    path : path-like
    decode : callable
        Function ``file -> content``, which must raise an error if the content is wrong.
    kind : str
        Expected kind of file, "history" or "problem".
    first, again : str
        `first` is the advice for a missing file (such as "make it"), and `again` is the advice for
        a damaged file (such as "run again").
    failure : type of FedcoreError
        Class of the raised error.
    """
    with (
        translate_errors(path, kind=kind, first=first, again=again, failure=failure),
        read(path) as file,
    ):
        for other in MARKS.keys() - {kind}:
            if holds(file, other):
                raise Foreign(f"it is a {other}")
        return decode(file)


def holds(file: h5py.File, kind: str) -> bool:
    """Return whether a sealed file is of the given kind, a key of `MARKS`."""
    return not MARKS[kind].isdisjoint({*file, *file.attrs})


def _refuse_foreign(file: h5py.File, size: int) -> None:
    """Raise `Foreign` for links, external data, and data that need too much memory when read.

    HDF5 follows links and external storage to other files, which the seal does not cover.
    """
    links: list[tuple[str, int, Any]] = []
    file.id.links.visit(
        lambda name, link: links.append((name.decode(), link.type, link.u)), info=True
    )
    seen, unpacked = {h5py.h5o.get_info(file.id).addr}, 0
    for name, kind, address in links:
        if kind != h5py.h5l.TYPE_HARD:
            raise Foreign(f"/{name} is a link")
        if address in seen:
            raise Foreign(f"/{name} is a second name of another entry")
        seen.add(address)
        item = h5py.h5o.open(file.id, name.encode())
        if isinstance(item, h5py.h5g.GroupID):
            continue
        if not isinstance(item, h5py.h5d.DatasetID) or not _is_plain(item, size):
            raise Foreign(f"/{name} is not stored as plain numbers in the file")
        if item.get_create_plist().get_layout() == h5py.h5d.CHUNKED:
            unpacked += math.prod(item.shape) * item.dtype.itemsize
            if unpacked > MOST_UNPACKED:
                raise Foreign(f"/{name} takes more than {MOST_UNPACKED >> 20} MiB when it is read")


def _is_plain(item: h5py.h5d.DatasetID, size: int) -> bool:
    """Return whether a data set contains only numbers, and all of them in this file."""
    if item.shape is None or item.dtype.kind not in "biufc":
        return False
    made, stored = item.get_create_plist(), item.get_storage_size()
    wanted = math.prod(item.shape) * item.dtype.itemsize
    if made.get_layout() == h5py.h5d.CHUNKED:
        filters = {made.get_filter(i)[0] for i in range(made.get_nfilters())}
        fits = filters <= _FILTERS and wanted <= _RATIO * stored
    else:
        fits = made.get_layout() in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT) and wanted == stored
    return fits and not made.get_external_count() and stored <= size


def _seal(raw: Any, bounds: Sequence[int], end: int) -> bytes:
    """Return the seal of the first `end` bytes, without the arrays that lie between `bounds`."""
    label = LABEL_OF_PARTS + b"%d arrays: " % (len(bounds) // 2) if bounds else LABEL
    return label + _sum(raw, [0, *bounds, end]).encode()


def _sum(raw: Any, bounds: Sequence[int]) -> str:
    """Return the sha256 of the bytes between bounds 1 and 2, bounds 3 and 4, and so on."""
    digest = hashlib.sha256()
    for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
        raw.seek(start)
        while start < stop and (part := raw.read(min(_PART, stop - start))):
            digest.update(part)
            start += len(part)
    return digest.hexdigest()
