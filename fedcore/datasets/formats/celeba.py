"""CelebA: aligned JPEG files of chosen identities, from the official zip or a folder."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import bounded, pictures
from fedcore.datasets.loaded import Loaded
from fedcore.errors import ConfigError, DataError

_CROP, _SIDE = 148, 32
_PIXELS, _BYTES = 2**24, 2**26  # of an image, and of its file; CelebA's are 178 x 218
_DIGITS = 9  # of an identity, at most
PAPER_IDENTITIES = 25
IDENTITIES = 10_177  # of the whole data set


def chosen(identities: int | Sequence[int], what: str = "identities") -> list[int]:
    """Return the identities meant by a count (``25`` is 1 to 25) or a list."""
    listed = range(1, identities + 1) if isinstance(identities, int) else identities
    known = listed if isinstance(listed, Sequence) and len(listed) <= IDENTITIES else []
    whole = all(isinstance(i, int) and not isinstance(i, bool) and i > 0 for i in known)
    if not known or not whole or isinstance(identities, bool):
        raise ConfigError(
            f"option '{what}' is {identities!r}: give a list of numbers, or a count up to "
            f"{IDENTITIES}"
        )
    return list(known)


def side_by_side(image: np.ndarray) -> np.ndarray:
    """Flatten (height, width, 3) with the channels concatenated along the width.

    Returns
    -------
    ndarray of shape (height * 3 * width,)
        The rows of the (height, 3 * width) picture red | green | blue.
    """
    return np.concatenate([image[:, :, c] for c in range(image.shape[2])], axis=1).ravel()


def shrink(content: bytes) -> np.ndarray:
    """Decode a JPEG, crop its central 148 x 148, resize to 32 x 32 (bilinear, antialiased).

    The channels are resized as floating-point numbers, so no grey level is rounded.

    Returns
    -------
    ndarray of shape (32, 32, 3), float64
        Values in [0, 1].
    """
    from PIL import Image

    with pictures.opened(content, _PIXELS) as picture:
        width, height = picture.size
        pixels = np.asarray(picture.convert("RGB"), np.float32)
    if min(height, width) < _CROP:
        raise ValueError(f"{width} x {height} pixels are less than {_CROP} x {_CROP}")
    top, left = round((height - _CROP) / 2), round((width - _CROP) / 2)
    square = pixels[top : top + _CROP, left : left + _CROP]
    size, how = (_SIDE, _SIDE), Image.Resampling.BILINEAR
    small = [
        Image.fromarray(np.ascontiguousarray(square[:, :, c])).resize(size, how) for c in range(3)
    ]
    return np.clip(
        np.stack([np.asarray(channel, float) for channel in small], axis=2) / 255.0, 0, 1
    )


def _identities(path: Path, wanted: set[int]) -> list[tuple[str, int]]:
    """Return (file name, identity) of the wanted identities in file order."""
    rows = []
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if fields and not (len(fields) == 2 and fields[1].isdigit() and len(fields[1]) <= _DIGITS):
            shown = line if len(line) < 80 else f"{line[:80]}…"
            raise DataError(f"{path}, line {number}: '{shown}' is not '<image>.jpg <identity>'")
        if fields and int(fields[1]) in wanted:
            rows.append((fields[0], int(fields[1])))
    if lacking := wanted - {identity for _, identity in rows}:
        raise DataError(f"{path} has no image of identity {min(lacking)}")
    return rows


def _read_all(
    rows: list[tuple[str, int]], get: Callable[[str], bytes], where: Path
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Decode the images of `rows`; return (n, 3072) and each file's name and sha256."""
    x, used = np.empty((len(rows), 3 * _SIDE * _SIDE)), []
    for i, (name, _) in enumerate(rows):
        with pictures.reading(f"{where}: image {name}"):
            content = get(name)
            x[i] = side_by_side(shrink(content))
        used.append((name, hashlib.sha256(content).hexdigest()))
    return x, used


def read(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    identities: Annotated[int | Sequence[int], chosen] = PAPER_IDENTITIES,
) -> Loaded:
    """Read the images of the chosen identities; no other image is decoded.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.
    parts : mapping
        ``images``: a zip archive or a folder of JPEG files; ``labels``: the identity file.
    n_features : int
        Not used.
    identities : int or sequence of int
        A count (identities 1 to that number) or the numbers themselves.

    Returns
    -------
    Loaded
        x of shape (n_samples, 3072) in [0, 1]; y, the identities, in the order of the images.
    """
    rows = _identities(folder / parts["labels"], set(chosen(identities)))
    images = folder / parts["images"]
    y = np.array([identity for _, identity in rows], np.int64)
    if images.is_dir():

        def read_loose(name: str) -> bytes:
            with open(images / name, "rb") as file:
                return bounded.Bounded(file, _BYTES).read()

        x, used = _read_all(rows, read_loose, images)
        return Loaded(x, y, used=tuple(used))
    try:
        with zipfile.ZipFile(images) as archive:
            members = {n.rpartition("/")[2]: n for n in archive.namelist()}

            def get(name: str) -> bytes:
                with archive.open(members[name]) as file:
                    return bounded.Bounded(file, _BYTES).read()

            return Loaded(_read_all(rows, get, images)[0], y)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{images} cannot be read ({error}): put a whole copy in its place"
        ) from error
