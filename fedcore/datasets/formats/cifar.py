"""CIFAR-10 and CIFAR-100: the official python and binary archives.

Every reader returns rows of 3072 bytes: 1024 red, 1024 green and 1024 blue values, row by row.
"""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import bounded
from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.validation import checked, one_of
from fedcore.words import counted

PIXELS = 3072
_LABELS = {"coarse": 0, "fine": 1}
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_SAFE = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that makes containers, numbers, bytes and numpy arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SAFE:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed")
        return _SAFE[module, name]


Label = Annotated[str, one_of(_LABELS)]


def _members(path: Path, wanted: list[str]) -> list[bytes]:
    """Return the named members of a tar archive, read in one pass and never written to disk.

    The archive is read as a stream, so that the size limit covers skipped members, too.
    """
    found: dict[str, bytes] = {}
    try:
        with (
            bounded.opened(path) as file,
            tarfile.open(fileobj=bounded.Bounded(file, bounded.MOST), mode="r|") as archive,
        ):
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in wanted:
                    if not member.isreg() or member.issparse():
                        raise DataError(
                            f"{path}, member {name}: it is no plain file (type {member.type!r})"
                        )
                    handle = archive.extractfile(member)
                    assert handle is not None  # it is for links and folders
                    found[name] = handle.read()
                if len(found) == len(wanted):
                    break
    except DataError:
        raise
    except Exception as error:  # a damaged or hostile archive can raise anything
        raise bounded.unreadable(path, error) from error
    if absent := [name for name in wanted if name not in found]:
        raise DataError(f"{path} has no member {absent[0]}")
    return [found[name] for name in wanted]


def _python(folder: Path, parts: Mapping[str, Any], key: bytes) -> Loaded:
    """Read pickled batches: dictionaries with ``data`` (n, 3072) and a list of labels."""
    path = folder / parts["archive"]
    images, labels = [], []
    for name, content in zip(parts["members"], _members(path, parts["members"]), strict=True):
        try:
            batch = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
            pixels = np.asarray(batch[b"data"])
            marks = np.asarray(batch[key], np.int64)
        except Exception as error:  # a damaged pickle can raise anything
            raise DataError(
                f"{path}, member {name}: not a CIFAR batch ({' '.join(str(error).split())})"
            ) from error
        if pixels.dtype != np.uint8 or pixels.shape != (len(marks), PIXELS):
            raise DataError(f"{path}, member {name}: data of shape {pixels.shape} {pixels.dtype}")
        images.append(pixels)
        labels.append(marks)
    return Loaded(np.concatenate(images), np.concatenate(labels))


def records(blocks: Mapping[str, bytes], n_labels: int, column: int) -> Loaded:
    """Read records of `n_labels` label bytes and 3072 pixel bytes; keys of `blocks` say where from.

    Column `column` of the label bytes becomes y.

    Raises
    ------
    DataError
        When a block is empty or does not hold a whole number of records.
    """
    size = n_labels + PIXELS
    for origin, block in blocks.items():
        if not block or len(block) % size:
            found = counted(len(block), "byte")
            raise DataError(f"{origin} holds {found}, not a multiple of {size}")
    table = np.concatenate([np.frombuffer(b, np.uint8).reshape(-1, size) for b in blocks.values()])
    return Loaded(np.ascontiguousarray(table[:, n_labels:]), table[:, column].astype(np.int64))


def read_python10(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read ``cifar-10-python.tar.gz`` (its pickles through an unpickler that makes arrays only)."""
    return _python(folder, parts, b"labels")


@checked
def read_python100(
    folder: Path, parts: Mapping[str, Any], n_features: int, *, labels: Label = "fine"
) -> Loaded:
    """Read ``cifar-100-python.tar.gz``; `labels` is 'fine' (100 classes) or 'coarse' (20)."""
    return _python(folder, parts, f"{labels}_labels".encode())


def _binary(folder: Path, parts: Mapping[str, Any], n_labels: int, column: int) -> Loaded:
    """Read the ``.bin`` members of an archive."""
    path = folder / parts["archive"]
    contents = zip(parts["members"], _members(path, parts["members"]), strict=True)
    return records({f"{path}, member {n},": c for n, c in contents}, n_labels, column)


def read_binary10(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read ``cifar-10-binary.tar.gz``."""
    return _binary(folder, parts, 1, 0)


@checked
def read_binary100(
    folder: Path, parts: Mapping[str, Any], n_features: int, *, labels: Label = "fine"
) -> Loaded:
    """Read ``cifar-100-binary.tar.gz``; `labels` is 'fine' (100 classes) or 'coarse' (20)."""
    return _binary(folder, parts, 2, _LABELS[labels])
