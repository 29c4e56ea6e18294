"""Return type of the functions that read data files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Loaded(NamedTuple):
    """Samples and labels, as the files of a data set store them.

    Attributes
    ----------
    x : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int64
    note : str
        Remark for users on how the rows were read, or an empty text.
    owners : ndarray of shape (n_samples,), int64, optional
        Number of each row's owner, such as a person (default: the labels serve as owners).
    """

    x: np.ndarray
    y: np.ndarray
    note: str = ""
    owners: np.ndarray | None = None
