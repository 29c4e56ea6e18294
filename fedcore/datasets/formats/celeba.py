"""Read aligned CelebA images of chosen identities (persons) from the official zip file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import archive, pictures
from fedcore.datasets.loaded import Loaded
from fedcore.errors import ConfigError, DataError

_CROP, _SIDE = 148, 32
_PIXELS, _BYTES = 2**24, 2**26  # of an image, and of its file; CelebA's are 178 x 218
_DIGITS = 9  # of an identity, at most
PAPER_IDENTITIES = 25
IDENTITIES = 10_177  # of the whole data set


def chosen(identities: int | Sequence[int], what: str = "identities") -> list[int]:
    """Return the identities (numbers of persons) as a list; a count n stands for 1 to n."""
    listed = range(1, identities + 1) if isinstance(identities, int) else identities
    known = listed if isinstance(listed, Sequence) and len(listed) <= IDENTITIES else []
    whole = all(isinstance(i, int) and not isinstance(i, bool) and i > 0 for i in known)
    if not known or not whole or isinstance(identities, bool):
        raise ConfigError(
            f"option '{what}' is {identities!r}: give a list of positive whole numbers, or a count "
            f"from 1 to {IDENTITIES}"
        )
    return list(known)


def side_by_side(image: np.ndarray) -> np.ndarray:
    """Flatten an image (height, width, 3) after joining its channels along the width.

    Returns
    -------
    ndarray of shape (height * 3 * width,)
        Each pixel row has all its red values first, then all green values, then all blue values.
    """
    return np.concatenate([image[:, :, c] for c in range(image.shape[2])], axis=1).ravel()


def shrink(content: bytes) -> np.ndarray:
    """Decode a JPEG, crop its central 148 x 148 pixels, and resize them to 32 x 32.

    Resizing is bilinear and antialiased. The channels are resized as floating-point numbers, so
    that no grey level is rounded.

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
        raise ValueError(f"it has {width} x {height} pixels, fewer than {_CROP} x {_CROP}")
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
    """Return the file name and identity of each image of the wanted identities, in file order."""
    rows = []
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if fields and not (len(fields) == 2 and fields[1].isdigit() and len(fields[1]) <= _DIGITS):
            shown = line if len(line) < 80 else f"{line[:80]}…"
            says = f"'{shown}' is not '<image>.jpg <identity>'"
            raise DataError(f"{path}, line {number}: {says}")
        if fields and int(fields[1]) in wanted:
            rows.append((fields[0], int(fields[1])))
    if lacking := wanted - {identity for _, identity in rows}:
        raise DataError(f"{path} has no image of identity {min(lacking)}: take other 'identities'")
    return rows


def read(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    identities: Annotated[int | Sequence[int], chosen] = PAPER_IDENTITIES,
) -> Loaded:
    """Read the images of the chosen identities only.

    Parameters
    ----------
    folder : pathlib.Path
    parts : mapping
        The key ``images`` names the zip file of JPEG files, and ``labels`` the file that lists the
        identity of each image.
    n_features : int
        Not used.
    identities : int or sequence of int
        Numbers of the identities, or a count n for the identities 1 to n.

    Returns
    -------
    Loaded
        Samples x of shape (n_samples, 3072) in [0, 1]. The labels y are the images' identities.
    """
    rows = _identities(folder / parts["labels"], set(chosen(identities)))
    path, x = folder / parts["images"], np.empty((len(rows), 3 * _SIDE * _SIDE))
    with archive.opened(path) as file:
        for row, (name, _) in zip(x, rows, strict=True):
            with pictures.reading(path, f"image {name}"):
                row[:] = side_by_side(shrink(file.content(file.full_name(name), _BYTES)))
    return Loaded(x, np.array([identity for _, identity in rows], np.int64))
