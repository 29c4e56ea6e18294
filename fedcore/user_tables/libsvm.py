"""A user's LIBSVM text file as a table, see `fedcore.files.libsvm`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from fedcore.files.libsvm import table
from fedcore.user_tables.claimed_sizes import WIDEST


def parse_sparse(
    path: Path, *, zero_based: bool = False
) -> tuple[scipy.sparse.csr_array, dict[str, np.ndarray], int]:
    """Return the sparse matrix of a LIBSVM file, and its labels and queries.

    Returns
    -------
    x : scipy.sparse.csr_array of shape (n_samples, n_features), float64
        Matrix as wide as the largest index in the file.
    vectors : dict of str to ndarray of shape (n_samples,)
        ``label``, int64 if all are whole numbers, and ``qid``, text, if there are queries.
    left_out : int
        Lines that hold no sample: they are blank, or comments alone.
    """
    labels, queries, x, left_out = table(path, WIDEST, 0 if zero_based else 1)
    vectors = {"label": labels} | ({"qid": queries} if (queries != "").any() else {})
    return x, vectors, left_out
