"""LIBSVM text files (w8a), see `fedcore.files.libsvm`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets.loaded import Loaded
from fedcore.files.libsvm import table


def parse(path: Path, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense matrix and the labels of a LIBSVM file.

    Returns
    -------
    x : ndarray of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples,), int64
    """
    labels, _, x, _ = table(path, n_features, classes=True)
    return x.toarray(), labels.astype(np.int64)  # none at all are floats


def read(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read the file named under ``table``; see `parse`."""
    return Loaded(*parse(folder / parts["table"], n_features))
