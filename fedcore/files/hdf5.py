"""HDF5 files with a seal: the sha256 of their bytes, checked before HDF5 reads them.

The seal is the last 128 bytes of the file. HDF5 ignores what follows its content, so other tools
open a sealed file as any HDF5 file. Behind the content of a large file there is a table of
checksums, one for each piece, and the seal is the sha256 of this table. A piece is checked when it
is read, so reading one array of a 4 GB problem does not read the others. `fedcore.files.mapping`
reads arrays of such a file by a memory map.

HDF5's own checksums (Fletcher32, and those of its newest format) are not enough. HDF5 2.0 does not
detect that two bytes of an array change from 00 00 to ff ff, or the first letter of a string. One
flipped bit in the size of such a string makes it loop without end. On a 1 GB problem these
checksums would save 36 of the 77 ms that reading the Gram matrix takes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import h5py

from fedcore.errors import FedcoreError
from fedcore.files import atomic

Content = TypeVar("Content")

TAIL = 128  # bytes of the seal
LABEL = b"fedcore sha256 of the bytes before: "
TABLE = b"fedcore sha256 of the checksums from byte "
MARK = "by fedcore, in the last 128 bytes"  # an attribute, near the start of the file
OLDER = b"fedcore sha256 of the bytes from 512 on: ", TABLE  # seals at the start of the file
LARGE = 1 << 27  # bytes up to which a file is checked as a whole, in about 0.1 s
PIECE = 1 << 16  # bytes
DIFFERS = "its checksum differs from the one at its end"
_SUM = hashlib.sha256().digest_size
_SHOWN = 200  # characters of another library's error
_PART = 1 << 20  # bytes that are read at once
_HEAD = 4096  # bytes at the start of the file, with `MARK`
_DIGITS = 19  # of a place in a file, at most
_FILTERS = {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
_RATIO = 1100  # of deflate at its best
UNPACKED = 1 << 28  # bytes of all arrays in chunks


class BrokenSeal(OSError):
    """The file was written by `create` and is damaged."""


class Foreign(BrokenSeal):
    """The file was not written by `create`, as far as one can tell; it may be a user's own."""


class Overwritten(BrokenSeal):
    """The file was written to, or cut off, after it was opened; it may be whole again."""


@contextlib.contextmanager
def create(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open a new file for writing; when the block ends it is sealed, flushed and renamed."""
    with atomic.replace(path) as temporary:
        with open(temporary, "x+b", buffering=0) as raw:
            written = _Written(raw)
            try:
                with h5py.File(written, "w") as file:
                    file.attrs["sealed"] = MARK
                    yield file
            finally:
                if written.error is not None:
                    raise written.error
        with open(temporary, "r+b") as raw:
            size = raw.seek(0, os.SEEK_END)
            if large := size > LARGE:
                raw.write(_table(raw, size))
            seal = _seal(raw, size if large else None, raw.seek(0, os.SEEK_END))
            raw.seek(0, os.SEEK_END)
            raw.write(seal.ljust(TAIL, b"\0"))


class _Written(io.RawIOBase):
    """A new file as HDF5 sees it: it takes every byte, also when the disk is full.

    HDF5 cannot give up a file that it failed to write: it tries again when Python frees the last
    object of the file, and brings the process down.

    Attributes
    ----------
    error : OSError or None
        What went wrong; nothing is written from then on.
    """

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a byte, counted from the start, from here or from the end."""
        return self._raw.seek(offset, whence)

    def write(self, content: Any, /) -> int:
        """Write all bytes."""
        rest = memoryview(content).cast("B")
        size = len(rest)
        try:
            while rest and self.error is None:
                rest = rest[self._raw.write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None, /) -> int:
        """Make the file as long as this."""
        try:
            return self._raw.truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer; bytes that could not be written are read as zeros."""
        wanted, filled = memoryview(buffer).cast("B"), 0
        while found := self._raw.readinto(wanted[filled:]):  # a call gives less than 2 GiB
            filled += found
        wanted[filled:] = bytes(len(wanted) - filled)
        return len(wanted)

    # Found here, not in a base class: after an interrupted write HDF5 calls it before Python raises
    # the interrupt, and Python then clears what is to be raised when it has to search further.
    flush = io.RawIOBase.flush


class Opened(h5py.File):
    """A file open for reading.

    Attributes
    ----------
    pieces : Pieces or None
        The checksums of a large file's pieces.
    raw : file
        The file itself.
    seal : bytes
    """

    pieces: Pieces | None = None
    raw: io.BufferedReader
    seal: bytes
    _descriptor: Descriptor | None = None

    @property
    def descriptor(self) -> Descriptor:
        """Return the file to be read again after it is closed."""
        if self._descriptor is None:
            self._descriptor = Descriptor(self.raw, self.seal)
        return self._descriptor


class Descriptor:
    """A file to be read again, whatever takes its name meanwhile."""

    def __init__(self, raw: io.BufferedReader, seal: bytes) -> None:
        self._file, self._seal = os.dup(raw.fileno()), seal  # outlives `raw`
        weakref.finalize(self, os.close, self._file)

    @contextlib.contextmanager
    def read(self) -> Iterator[Opened]:
        """Open the file again, by no name."""
        whole = self._bytes()  # threads may read at once, each from its own start
        content = io.BytesIO(whole)
        end = max(len(whole) - TAIL, 0)
        if whole[end:].rstrip(b"\0") != self._seal or self._seal != _seal(content, None, end):
            raise Overwritten("it was overwritten while it was read")
        with Opened(content, "r") as file:
            yield file

    def _bytes(self) -> bytes:
        found = bytearray()
        while part := os.pread(self._file, LARGE, len(found)):
            found += part
        return bytes(found)


@contextlib.contextmanager
def read(path: str | os.PathLike[str]) -> Iterator[Opened]:
    """Check the seal and open the file for reading."""
    with contextlib.ExitStack() as stack:
        try:
            raw = stack.enter_context(open(path, "rb"))
        except IsADirectoryError as error:
            raise Foreign("it is a folder") from error
        end = max(os.fstat(raw.fileno()).st_size - TAIL, 0)
        head = raw.read(_HEAD)
        if head.startswith(OLDER):
            raise BrokenSeal("an older version wrote it")
        raw.seek(end)
        seal = raw.read(TAIL).rstrip(b"\0")
        if not seal.startswith((LABEL, TABLE)):
            if MARK.encode() in head:
                raise BrokenSeal("it is cut off, or another program has changed it")
            raise Foreign("it is cut off or was not written by fedcore")
        start = seal[len(TABLE) :].partition(b":")[0] if seal.startswith(TABLE) else b""
        table = int(start) if start.isdigit() and len(start) < _DIGITS else None
        if seal != _seal(raw, table, end):
            raise BrokenSeal(DIFFERS)
        pieces = None if table is None else Pieces(raw, table, end)
        # By its name HDF5 might find another file, which took it after the seal was checked.
        content = raw if pieces is None else _Checked(raw, pieces)
        file = stack.enter_context(Opened(content, "r"))
        file.pieces, file.raw, file.seal = pieces, raw, seal
        _refuse_foreign(file, os.fstat(raw.fileno()).st_size)
        yield file


@contextlib.contextmanager
def translate_errors(
    path: str | os.PathLike[str], *, kind: str, first: str, again: str, failure: type[FedcoreError]
) -> Iterator[None]:
    """Raise what goes wrong with a sealed file as an error of one sentence; see `load`."""
    try:
        yield
    except failure:
        raise
    except FileNotFoundError as error:
        raise failure(f"{path} does not exist; {first} first") from error
    except Overwritten as error:
        raise failure(
            f"{path} was overwritten in place while it was read: run again, and give such a file "
            "new content by renaming another one to it (mv)"
        ) from error
    except Foreign as error:
        raise failure(
            f"{path} is not a whole {kind} file of fedcore ({error}): name one that it wrote"
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
            f"{path} is not a whole {kind} file of fedcore ({reason}): name one that it wrote"
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
    """Return what `decode` makes of a sealed file, or raise an error of one sentence.

    The sentence says to delete the file only if fedcore wrote the file and it is damaged.

    Parameters
    ----------
    path : path-like
    decode : callable
        ``file -> content``. It raises when the file does not hold what it should.
    kind : str
        What the file should be: "history", "problem".
    first, again : str
        What to do when it is missing: "run its cell", and when it is damaged: "run again".
    failure : type of FedcoreError
    """
    with (
        translate_errors(path, kind=kind, first=first, again=again, failure=failure),
        read(path) as file,
    ):
        return decode(file)


def _refuse_foreign(file: h5py.File, size: int) -> None:
    """Refuse what `create` never writes: links, data kept elsewhere, more data than the file.

    HDF5 follows links and external storage to other files, which the seal does not cover.
    """
    todo: list[h5py.Group] = [file]
    unpacked = 0
    seen = {h5py.h5o.get_info(file.id).addr}
    while todo:
        group = todo.pop()
        for name in group:
            place = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise Foreign(f"{place} is a link")
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                raise Foreign(f"{place} is a second name of something")
            seen.add(address)
            if isinstance(item, h5py.Group):
                todo.append(item)
            elif not _is_plain(item, size):
                raise Foreign(f"{place} is not stored as plain numbers in the file")
            elif item.chunks:
                unpacked += item.nbytes
                if unpacked > UNPACKED:
                    raise Foreign(f"{place} takes more than {UNPACKED >> 20} MiB when it is read")


def _is_plain(item: h5py.HLObject, size: int) -> bool:
    """Whether an object is a dataset of numbers that all lie in the file, packed or not."""
    if not isinstance(item, h5py.Dataset) or item.shape is None or item.dtype.kind not in "biufc":
        return False
    made = item.id.get_create_plist()
    wanted, stored = math.prod(item.shape) * item.dtype.itemsize, item.id.get_storage_size()
    if made.get_layout() == h5py.h5d.CHUNKED:
        filters = {made.get_filter(i)[0] for i in range(made.get_nfilters())}
        fits = filters <= _FILTERS and wanted <= _RATIO * stored
    else:
        fits = made.get_layout() in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT) and wanted == stored
    return fits and item.external is None and stored <= size


class Pieces:
    """The checksums of a large file's pieces.

    Parameters
    ----------
    raw : file
        Open for reading.
    size : int
        Bytes of the content; the table of checksums follows them.
    end : int
        Bytes of the content and the table; the seal follows them.

    Attributes
    ----------
    raw : file
    size : int
    """

    def __init__(self, raw: io.BufferedReader, size: int, end: int) -> None:
        self._file = os.dup(raw.fileno())  # outlives `raw`
        weakref.finalize(self, os.close, self._file)
        self._opened = os.fstat(self._file)
        raw.seek(size)
        self.raw, self.size, self._table = raw, size, raw.read(end - size)
        if len(self._table) != -(-size // PIECE) * _SUM:
            raise BrokenSeal(DIFFERS)

    def written(self) -> bool:
        """Return whether the file has been written to since; one that takes its name is another."""
        return os.fstat(self._file).st_mtime_ns != self._opened.st_mtime_ns

    def require(self, number: int, piece: Any) -> None:
        """Raise `BrokenSeal` unless these bytes are those of the piece of this number."""
        if _sum(piece) != self._table[number * _SUM : (number + 1) * _SUM]:
            if self.written():
                raise Overwritten("it was overwritten while it was read")
            raise BrokenSeal(f"the checksum of bytes from {number * PIECE} on differs")

    def require_range(self, content: memoryview, start: int, stop: int) -> None:
        """Raise `BrokenSeal` unless the pieces with these bytes of a map are whole."""
        if os.fstat(self._file).st_size < self._opened.st_size:  # SIGBUS behind the file's end
            raise Overwritten("it was cut off while it was read")
        for number in range(start // PIECE, -(-stop // PIECE)):
            first = number * PIECE
            self.require(number, content[first : min(first + PIECE, self.size)])


class _Checked(io.RawIOBase):
    """The content of a large file as a stream; each piece is checked when it is read."""

    def __init__(self, raw: io.BufferedReader, pieces: Pieces) -> None:
        self._raw, self._pieces, self._size, self._at = raw, pieces, pieces.size, 0
        self._number, self._piece = -1, memoryview(b"")

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a byte, counted from the start, from here or from the end."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, or as much of it as there are bytes; `BrokenSeal` when one is damaged."""
        wanted, filled = memoryview(buffer).cast("B"), 0
        while filled < len(wanted) and self._at < self._size:
            number, start = divmod(self._at, PIECE)
            if number != self._number:
                self._raw.seek(number * PIECE)
                piece = self._raw.read(min(PIECE, self._size - number * PIECE))
                self._pieces.require(number, piece)
                self._number, self._piece = number, memoryview(piece)
            part = self._piece[start : start + len(wanted) - filled]
            wanted[filled : filled + len(part)] = part
            filled, self._at = filled + len(part), self._at + len(part)
        return filled


def _seal(raw: Any, table: int | None, end: int) -> bytes:
    """Return the seal of the first `end` bytes; `table` is the first byte of the table, if any."""
    start, label = (0, LABEL) if table is None else (table, TABLE + b"%d: " % table)
    digest = hashlib.sha256()
    raw.seek(start)
    while start < end and (part := raw.read(min(_PART, end - start))):
        digest.update(part)
        start += len(part)
    return label + digest.hexdigest().encode()


def _table(raw: io.BufferedIOBase, size: int) -> bytes:
    """Return the checksums of all pieces of the first `size` bytes, and stop after these."""
    raw.seek(0)
    pieces = (raw.read(min(PIECE, size - start)) for start in range(0, size, PIECE))
    return b"".join(_sum(piece) for piece in pieces)


def _sum(piece: Any) -> bytes:
    return hashlib.sha256(piece).digest()
