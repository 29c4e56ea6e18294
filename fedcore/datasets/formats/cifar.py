"""Read CIFAR-10 and CIFAR-100 from the official Python archives or from lossless pictures.

A picture shows up to 500 images. Every image becomes a row of 3072 bytes, with 1024 red, 1024 green
and 1024 blue values.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import pickle
import tarfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import archive, bounded, pictures
from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.validation import checked, one_of
from fedcore.words import counted

PIXELS = 3072
_SIDE, _WIDE, _HIGH = 32, 25, 20  # of an image in pixels, and of a picture in images
_PICTURE = 2**22  # bytes of a picture's file; raw, one has 1.5 MB
_LABELS = {"coarse": 0, "fine": 1}
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_SAFE = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArraysOnly(pickle.Unpickler):
    """Unpickler that makes only containers, numbers, bytes and NumPy arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SAFE:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not allowed")
        return _SAFE[module, name]


Label = Annotated[str, one_of(_LABELS)]


def _members(path: Path, wanted: list[str]) -> list[bytes]:
    """Read the members `wanted` of a tar archive in one pass, without writing them to disk.

    The archive is read as a stream, so that the size limit also covers skipped members.
    """
    found: dict[str, bytes] = {}
    try:
        with (
            bounded.opened(path) as file,
            tarfile.open(fileobj=bounded.Bounded(file, bounded.MOST_BYTES), mode="r|") as archive,
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
    """Read pickled dictionaries, each with ``data``, shape (n, 3072), and a list of labels."""
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
            wanted = f"uint8 of shape ({len(marks)}, {PIXELS})"
            says = f"its data are {pixels.dtype} of shape {pixels.shape}, not {wanted}"
            raise DataError(f"{path}, member {name}: {says}")
        images.append(pixels)
        labels.append(marks)
    return Loaded(np.concatenate(images), np.concatenate(labels))


def _pictures(folder: Path, parts: Mapping[str, Any], n_labels: int, column: int) -> Loaded:
    """Read zip files, each with ``labels.bin`` and lossless WebP pictures of 25 x 20 images.

    Labels and pixels are joined as in the official binary files, where each image's labels stand
    before its pixels. The sha256 of the result shows whether a zip file has the official images,
    however they are compressed.
    """
    blocks = []
    for name, wanted in parts["records"].items():
        path = folder / name
        with archive.opened(path) as file:
            labels = file.content(file.full_name("labels.bin"), bounded.MOST_BYTES // PIXELS)
            count, rest = divmod(len(labels), n_labels)
            if rest or not count:
                found, each = counted(len(labels), "byte"), counted(n_labels, "byte")
                says = f"labels.bin must have {each} for each image, got {found}"
                raise DataError(f"{path}: {says}")
            names = [f"{i:03}.webp" for i in range(-(-count // (_WIDE * _HIGH)))]
            contents = [file.content(file.full_name(n), _PICTURE) for n in names]
        with ThreadPoolExecutor() as pool:  # pillow releases the interpreter's lock
            rows = list(pool.map(_images, contents, itertools.repeat(path), names))
        marks = np.frombuffer(labels, np.uint8).reshape(count, n_labels)
        table = np.hstack([marks, np.concatenate(rows)[:count]])
        if (found := hashlib.sha256(table.data).hexdigest()) != wanted:
            raise DataError(
                f"{path}: its labels and images have sha256 {found} where the registry expects "
                f"{wanted}: put a right copy in its place"
            )
        blocks.append(table)
    table = np.concatenate(blocks)
    return Loaded(np.ascontiguousarray(table[:, n_labels:]), table[:, column].astype(np.int64))


def _images(content: bytes, path: Path, name: str) -> np.ndarray:
    """Cut a picture into images, from left to right and top to bottom, as rows of 3072 bytes."""
    width, height = size = _WIDE * _SIDE, _HIGH * _SIDE
    with (
        pictures.reading(path, f"picture {name}"),
        pictures.opened(content, width * height, ("WEBP",)) as picture,
    ):
        if picture.size != size:
            raise ValueError(f"it has {picture.size} pixels and not {size}")
        pixels = np.asarray(picture.convert("RGB"))
    apart = pixels.reshape(_HIGH, _SIDE, _WIDE, _SIDE, 3).transpose(0, 2, 4, 1, 3)
    return apart.reshape(-1, PIXELS)


def read10(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read CIFAR-10 from zip files of pictures or from the official Python archive.

    If `parts`, which names the files, has the key ``records``, the files are zip files of pictures.
    Otherwise `parts` names the archive and its members, which are pickles. An unpickler that makes
    only arrays and plain data reads the pickles.
    """
    if "records" in parts:
        return _pictures(folder, parts, 1, 0)
    return _python(folder, parts, b"labels")


@checked
def read100(
    folder: Path, parts: Mapping[str, Any], n_features: int, *, labels: Label = "fine"
) -> Loaded:
    """Read CIFAR-100 as `read10` does, with 100 classes ('fine' labels) or 20 ('coarse' labels)."""
    if "records" in parts:
        return _pictures(folder, parts, 2, _LABELS[labels])
    return _python(folder, parts, f"{labels}_labels".encode())
