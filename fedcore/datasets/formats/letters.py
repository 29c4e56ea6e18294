"""Handwritten letters of NIST's Special Database 19, as EMNIST's or as the original images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import archive, pictures
from fedcore.datasets.formats import idx
from fedcore.datasets.loaded import Loaded
from fedcore.errors import ConfigError, DataError
from fedcore.validation import Count

SIDE = 28
_LOWER = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" + _LOWER  # EMNIST's labels by class
PAPER_LETTERS = _LOWER[:10]
_BYTES, _PIXELS = 2**20, 2**16  # of an image's file, and of the image; NIST's are 128 x 128


def alphabet(letters: str, what: str = "letters") -> str:
    """Check characters that become the classes 0, 1, …, in their order."""
    known = isinstance(letters, str) and set(letters) <= set(CHARACTERS)
    if not known or not letters or len(set(letters)) < len(letters):
        raise ConfigError(f"option '{what}' is {letters!r}: give different digits and letters")
    return letters


Letters = Annotated[str, alphabet]


def read_emnist(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    letters: Letters = PAPER_LETTERS,
    per_class: Count = 4000,
) -> Loaded:
    """Read characters of EMNIST by class, upright and white on black.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.
    parts : mapping
        ``archive``, and its ``members``: images and labels.
    n_features : int
        Not used.
    letters : str
        Characters, which become the classes 0, 1, ….
    per_class : int
        Most images of a class; they are the first in the file.

    Returns
    -------
    Loaded
        x of shape (n_samples, 784), uint8, in the order of the file.
    """
    path, members = folder / parts["archive"], parts["members"]
    with archive.opened(path) as file:
        images, labels = (
            idx.decode(file.content(file.full_name(name)), f"{path}, {name}") for name in members
        )
    if labels.ndim != 1 or images.shape != (len(labels), SIDE, SIDE):
        raise DataError(
            f"{path}: {members[0]} {images.shape} and {members[1]} {labels.shape} do not belong "
            "together"
        )
    found = [np.flatnonzero(labels == CHARACTERS.index(c))[:per_class] for c in letters]
    _require_all(path, letters, [len(rows) for rows in found])
    rows = np.sort(np.concatenate(found))
    classes = np.full(len(CHARACTERS), -1)
    classes[[CHARACTERS.index(c) for c in letters]] = np.arange(len(letters))
    upright = images[rows].transpose(0, 2, 1).reshape(len(rows), -1)  # EMNIST's are transposed
    return Loaded(np.ascontiguousarray(upright), classes[labels[rows]])


def read_by_class(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    letters: Letters = PAPER_LETTERS,
    per_class: Count = 4000,
) -> Loaded:
    """Read NIST's own images of characters, black on white, resized to 28 x 28.

    Of a character's folder ``by_class/<code>/train_<code>``, named by its ASCII code, the first
    images by name are read, as in the code of Collins et al. (ICML 2021).

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.
    parts : mapping
        ``archive``: the zip file.
    n_features : int
        Not used.
    letters : str
        Characters, which become the classes 0, 1, ….
    per_class : int
        Most images of a class.

    Returns
    -------
    Loaded
        x of shape (n_samples, 784), uint8; a class after the other.
    """
    path = folder / parts["archive"]
    with archive.opened(path) as file:
        chosen: list[list[str]] = []
        for character in letters:
            ending = f"/{ord(character):x}/train_{ord(character):x}/"
            members = (n for n in file.names if ending in f"/{n}" and n.endswith(".png"))
            chosen.append(sorted(members)[:per_class])
        _require_all(path, letters, [len(names) for names in chosen])
        x = [_small(file.content(name, _BYTES), path, name) for names in chosen for name in names]
    y = np.repeat(np.arange(len(letters)), [len(names) for names in chosen])
    return Loaded(np.stack(x), y)


def _small(content: bytes, path: Path, name: str) -> np.ndarray:
    """Return an image as 784 grey values."""
    with pictures.reading(f"{path}: image {name}"), pictures.opened(content, _PIXELS) as picture:
        from PIL import Image

        small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        return np.asarray(small, np.uint8).ravel()


def _require_all(path: Path, letters: str, found: Sequence[int]) -> None:
    """Require an image of every character."""
    for character, number in zip(letters, found, strict=True):
        if number == 0:
            raise DataError(f"{path} has no image of '{character}'")
