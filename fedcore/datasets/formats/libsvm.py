"""LIBSVM text files (w8a), see `fedcore.user_tables.libsvm`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.user_tables.libsvm import parse_sparse


def read(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read the file named under ``table``; its labels are classes.

    Returns
    -------
    Loaded
        x of shape (n_samples, n_features), or as wide as its largest index.
    """
    path = folder / parts["table"]
    x, vectors, _ = parse_sparse(path)
    labels = vectors["label"]
    if labels.dtype != np.int64:
        raise DataError(f"{path} has labels that are no whole numbers below 2^53: give classes")
    x.resize(x.shape[0], max(x.shape[1], n_features))
    return Loaded(x.toarray(), labels)
