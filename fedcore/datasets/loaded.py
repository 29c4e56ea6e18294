"""What every reader of a file format returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Loaded(NamedTuple):
    """Rows and labels as they stand in the files.

    Attributes
    ----------
    x : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int64
    note : str
        What a user must know about how the rows were read; may be empty.
    owners : ndarray of shape (n_samples,), int64, optional
        Number of the owner of each row, if the labels do not name the owner.
    """

    x: np.ndarray
    y: np.ndarray
    note: str = ""
    owners: np.ndarray | None = None
