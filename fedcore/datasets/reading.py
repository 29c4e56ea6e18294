"""Load a data set from its files, or make its surrogate, which needs no download."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets import loaders
from fedcore.datasets.loaded import Loaded
from fedcore.datasets.presence import missing, whole
from fedcore.datasets.registry import find, loader_of
from fedcore.errors import ConfigError, DataError, InputError, require_known
from fedcore.problems import STATUSES
from fedcore.words import counted


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    Attributes
    ----------
    name : str
        Name of the data set in the registry.
    x : ndarray of shape (n_samples, n_features), C-contiguous
        Samples. The data type is uint8 for pixels, float32 for sent140, and float64 otherwise; the
        pixels of celeba are float64 numbers in [0, 1].
    y : ndarray of shape (n_samples,) or None
        Integer labels, which are identities of persons for celeba.
    status : {'official', 'official content', 'rebuilt', 'surrogate'}
        Origin of the rows; 'official content' means the published rows in other files than the
        published ones.
    note : str
        Remark about the rows, meant for people who read the results.
    checksum : str
        sha256 over the sorted file names with the files' sha256 or, for a surrogate, over its
        arrays.
    owners : ndarray of shape (n_samples,) or None
        Number of each row's owner, such as a user of sent140; None if the labels serve as owners.
    """

    name: str
    x: np.ndarray
    y: np.ndarray | None
    status: str
    note: str
    checksum: str
    owners: np.ndarray | None = None

    @property
    def identities(self) -> np.ndarray | None:
        """Number of the user who owns each row, or the row's label if no owners are known."""
        return self.y if self.owners is None else self.owners


def _digest(loaded: Loaded) -> str:
    """Return the sha256 over the types, shapes and bytes of a surrogate's arrays."""
    total = hashlib.sha256()
    for part in (loaded.x, loaded.y, *([] if loaded.owners is None else [loaded.owners])):
        total.update(f"{part.dtype.str} {part.shape}\n".encode())
        total.update(np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def _arrange(
    name: str, loaded: Loaded, status: str, note: str, checksum: str, options: Mapping[str, Any]
) -> Dataset:
    """Shuffle and truncate the rows as `options` say, and describe these changes in the note."""
    parts, notes = [loaded.x, loaded.y, loaded.owners], [note, *filter(None, [loaded.note])]
    if "shuffle" in options:
        order = np.random.default_rng(options["shuffle"]).permutation(len(loaded.x))
        parts = [None if part is None else part[order] for part in parts]
        notes.append(f"rows shuffled with seed {options['shuffle']}")
    samples = options.get("samples", len(loaded.x))
    if samples < len(loaded.x):
        parts = [None if part is None else part[:samples] for part in parts]
        notes.append(f"{counted(samples, 'row')} kept")
    text = "; ".join(part.rstrip(".") for part in notes) + "."
    x, y, owners = parts
    return Dataset(name, np.ascontiguousarray(x), y, status, text, checksum, owners)


def check(
    name: str,
    options: Mapping[str, Any],
    *,
    split: str = "train",
    registry: str | os.PathLike[str] | None = None,
) -> None:
    """Raise an error for an unknown data set, split or option, without reading data.

    A third-party data set checks its own options when it is loaded. The parameters have the same
    meaning as in `load`.

    Raises
    ------
    ConfigError
        If the name, the split or an option is unknown, or the value of an option is wrong.
    """
    entry, _ = find(name, registry)
    if entry is not None:
        loaders.check(name, entry, split, options)


def _require_whole(made: Dataset, what: str) -> None:
    """Raise an error if another package's data set lacks what the class `Dataset` requires.

    NaN, infinity and clients without samples raise errors later, when clients get the rows.
    """
    x = made.x
    if not (isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "biuf"):
        raise ConfigError(f"{what}: x is no matrix of real numbers; return an array of two axes")
    for part in ("y", "owners"):
        of_rows = getattr(made, part)
        if of_rows is not None and not (
            isinstance(of_rows, np.ndarray)
            and of_rows.shape == x.shape[:1]
            and of_rows.dtype.kind in "iu"
        ):
            raise ConfigError(
                f"{what}: {part} is no array of one whole number for each of the {len(x)} rows of "
                "x; return such an array, or None"
            )
    for part in ("name", "status", "note", "checksum"):
        if not isinstance(text := getattr(made, part), str) or not text:
            raise ConfigError(f"{what}: {part} must be a text that is not empty, got {text!r}")
    require_known(made.status, STATUSES, f"{what}: unknown status", ConfigError)


def load(
    name: str,
    raw_dir: str | os.PathLike[str],
    *,
    split: str = "train",
    surrogate: bool = False,
    options: Mapping[str, Any] | None = None,
    registry: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load a data set from local files, or make its surrogate.

    Parameters
    ----------
    name : str
    raw_dir : path-like
        Folder ``data/raw``, which a surrogate does not need.
    split : {'train', 'test'}
        Part of the data set to load.
    surrogate : bool
        Whether to make the surrogate instead of reading files.
    options : mapping, optional
        ``shuffle`` (int) is the seed of a permutation of the rows. ``samples`` (int) is the number
        of rows to keep after the permutation. Most surrogates are made with ``samples`` rows. Some
        data sets have further options, such as ``identities`` for celeba.
    registry : path-like, optional
        File with the checksums of all data sets (default: fedcore's own).

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If files are missing or damaged, or do not have the checksums of the registry.
    ConfigError
        If the name, the split or an option is unknown.
    InputError
        If ``samples`` is larger than the number of rows in the files.
    """
    entry, plugin = find(name, registry)
    chosen = dict(options or {})
    if entry is None:
        assert plugin is not None
        what = f"third-party data set '{name}' ({plugin.value})"
        made = loader_of(plugin)(raw_dir, split=split, surrogate=surrogate, options=chosen)
        if not isinstance(made, Dataset):
            raise ConfigError(f"{what} must return a fedcore.datasets.Dataset")
        _require_whole(made, what)
        return made
    loaders.check(name, entry, split, chosen)
    if surrogate:
        note = f"Offline stand-in for {entry['title']}"
        loaded = loaders.stand_in(name, entry, split, chosen)
        return _arrange(name, loaded, "surrogate", note, _digest(loaded), chosen)
    raw = Path(raw_dir) / name
    form = whole(entry, raw)
    if form is None:
        absent = missing(name, raw_dir, registry=registry)
        raise DataError(absent or f"data set '{name}' is not in {raw}: fetch it first")
    loaded, checksum = loaders.read(form, split, chosen, raw)
    samples = chosen.get("samples", 0)
    if samples > len(loaded.x):
        has = counted(len(loaded.x), "row")
        raise InputError(f"data set '{name}' has {has}: lower samples = {samples}")
    return _arrange(name, loaded, form["status"], form["note"], checksum, chosen)
