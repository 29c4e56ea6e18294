"""CIFAR-10 rebuilt from public copies: xz-compressed files of 3073-byte records."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcore.datasets import bounded
from fedcore.datasets.formats.cifar import PIXELS, records
from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.validation import checked, one_of
from fedcore.words import counted

_KEPT = {"keep": True, "drop": False}
Kept = Annotated[str, one_of(_KEPT)]


@checked
def read(
    folder: Path, parts: Mapping[str, Any], n_features: int, *, approximated: Kept = "keep"
) -> Loaded:
    """Read rebuilt ``.bin.xz`` files of 3073-byte records.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.
    parts : mapping
        ``records``: file names in row order; ``approximated``: a table
        ``file,row0based,label`` of the records that are not exact.
    n_features : int
        Not used.
    approximated : {'keep', 'drop'}
        What to do with those records.

    Returns
    -------
    Loaded
        x of shape (n_samples, 3072), y of shape (n_samples,); the note counts the records.

    Raises
    ------
    DataError
        When a file is damaged or the table names a record that is not there.
    InputError
        When `approximated` is neither word.
    """
    paths = [folder / name for name in parts["records"]]
    with ThreadPoolExecutor() as pool:  # lzma releases the interpreter's lock
        blocks = dict(zip(map(str, paths), pool.map(bounded.content, paths), strict=True))
    x, y, *_ = records(blocks, 1, 0)
    sizes = [len(block) // (1 + PIXELS) for block in blocks.values()]
    starts = dict(
        zip((p.name.removesuffix(".xz") for p in paths), np.cumsum([0, *sizes]), strict=False)
    )
    listed, rows = folder / parts["approximated"], []
    try:
        for line in listed.read_text(encoding="utf-8").splitlines()[1:]:
            name, row, label = line.split(",")
            if name in starts:
                rows.append(int(starts[name]) + int(row))
                if y[rows[-1]] != int(label):
                    raise ValueError(f"label {label} in '{line}' is not that of the record")
    except (OSError, ValueError, IndexError) as error:
        raise DataError(f"{listed} does not fit its records: {error}") from error
    if _KEPT[approximated]:
        return Loaded(x, y, f"{counted(len(rows), 'approximated image')} kept")
    x, y = np.delete(x, rows, axis=0), np.delete(y, rows)
    return Loaded(x, y, f"{counted(len(rows), 'approximated image')} dropped")
