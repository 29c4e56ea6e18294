"""Read data sets in LIBSVM text files, such as w8a."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError
from fedcore.files.libsvm import table


def read(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read the LIBSVM file ``parts["table"]``, in which every label must be a whole number.

    Returns
    -------
    Loaded
        Samples x of shape (n_samples, n_features).
    """
    path = folder / parts["table"]
    labels, _, x, _ = table(path, n_features)
    if labels.dtype != np.int64:
        raise DataError(
            f"{path} has a label that is no whole number below 2^53: number the classes"
        )
    x.resize(x.shape[0], n_features)
    return Loaded(x.toarray(), labels)
