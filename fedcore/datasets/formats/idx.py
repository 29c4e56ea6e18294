"""Read IDX files (MNIST, Fashion-MNIST), plain or gzip-compressed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets import bounded
from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.words import counted

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_DIMENSIONS = 8


def parse(path: Path) -> np.ndarray:
    """Return the array in an IDX file."""
    content = bounded.content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise DataError(
            f"{path} is not an IDX file: it begins with the bytes {content[:4].hex(' ')}"
        )
    dtype, start = np.dtype(_TYPES[content[2]]), 4 + 4 * content[3]
    if content[3] > _DIMENSIONS:
        raise DataError(f"{path} has {content[3]} dimensions, more than {_DIMENSIONS}")
    if len(content) < start:
        raise DataError(f"{path} ends inside its header, after {counted(len(content), 'byte')}")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    wanted = start + math.prod(shape) * dtype.itemsize
    if len(content) != wanted:
        raise DataError(
            f"{path} holds {len(content)} bytes where its header (shape {shape}) asks for {wanted}"
        )
    return (
        np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
    )


def read(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read the image file and the label file of a split.

    Returns
    -------
    Loaded
        Samples x of shape (n_samples, n_pixels) and labels y of shape (n_samples,).
    """
    images, labels = parse(folder / parts["images"]), parse(folder / parts["labels"])
    if labels.ndim != 1 or images.ndim < 1 or len(images) != len(labels):
        raise DataError(
            f"{folder / parts['images']} has shape {images.shape}, but {parts['labels']} with "
            f"shape {labels.shape} does not hold one label per image"
        )
    return Loaded(images.reshape(len(images), math.prod(images.shape[1:])), labels.astype(np.int64))
