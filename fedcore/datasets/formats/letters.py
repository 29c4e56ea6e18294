"""Read the original images of handwritten characters in NIST's Special Database 19."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import ascii_letters, digits
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import archive, pictures
from fedcore.datasets.loaded import Loaded
from fedcore.errors import ConfigError, DataError
from fedcore.validation import Count

SIDE = 28
PAPER_LETTERS = "abcdefghij"
_BYTES, _PIXELS = 2**20, 2**16  # of an image's file, and of the image; NIST's are 128 x 128


def alphabet(letters: str, what: str = "letters") -> str:
    """Return `letters`; raise a ConfigError unless they are distinct letters and digits."""
    known = isinstance(letters, str) and set(letters) <= {*ascii_letters, *digits}
    if not known or not letters or len(set(letters)) < len(letters):
        raise ConfigError(
            f"option '{what}' is {letters!r}: give ASCII letters and digits, each once"
        )
    return letters


Letters = Annotated[str, alphabet]


def read(
    folder: Path,
    parts: Mapping[str, Any],
    n_features: int,
    *,
    letters: Letters = PAPER_LETTERS,
    per_class: Count = 4000,
) -> Loaded:
    """Read NIST's images of characters, black on white, and resize them to 28 x 28 pixels.

    The folder of a character is ``by_class/<code>/train_<code>``, with the character's ASCII code
    in hex. As in the code of Collins et al., ICML 2021, images are sorted by name, and the first
    images of each folder are read.

    Parameters
    ----------
    folder : pathlib.Path
    parts : mapping
        The key ``archive`` names the zip file.
    n_features : int
        Not used.
    letters : str
        Characters to read; in this order, they become the classes 0, 1, ….
    per_class : int
        Maximum number of images to read for each class.

    Returns
    -------
    Loaded
        Samples x of shape (n_samples, 784), uint8, sorted by class.
    """
    path = folder / parts["archive"]
    with archive.opened(path) as file:
        chosen: list[list[str]] = []
        for character in letters:
            ending = f"/{ord(character):x}/train_{ord(character):x}/"
            members = (n for n in file.names if ending in f"/{n}" and n.endswith(".png"))
            chosen.append(sorted(members)[:per_class])
        if not all(chosen):
            lacking = letters[[len(names) for names in chosen].index(0)]
            raise DataError(
                f"{path} has no image of '{lacking}': leave '{lacking}' out of 'letters'"
            )
        x = [_small(file.content(name, _BYTES), path, name) for names in chosen for name in names]
    y = np.repeat(np.arange(len(letters)), [len(names) for names in chosen])
    return Loaded(np.stack(x), y)


def _small(content: bytes, path: Path, name: str) -> np.ndarray:
    with pictures.reading(path, f"image {name}"), pictures.opened(content, _PIXELS) as picture:
        from PIL import Image

        small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        return np.asarray(small, np.uint8).ravel()
