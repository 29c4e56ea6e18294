"""Tables of one's own, written in every format."""

from __future__ import annotations

import numpy as np

NAMES = ["age", "dose", "iron"]


def npz(frame, path):
    """Save a frame of numbers and texts: columns of texts are objects, as they come from pandas."""
    np.savez(path, x=frame.to_numpy(float), columns=frame.columns.to_numpy(str))


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "txt": lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "npz": npz,
}


def written(folder, parts, kind, write=None):
    paths = [str(folder / f"c {i}.{kind}") for i in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        (write or WRITERS[kind])(part, path)
    return paths
