"""Schema of history files (records of runs): dimensions, unit and long name of each data set.

The page ``docs/history.md`` explains these files to their readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

VERSION = 2
PAGE = "docs/history.md"
LICENCE = "BSD-3-Clause"
DEPENDS = "depends on the method"  # a unit

DIMENSIONS = {
    "repeat": "number of the repeat, from 0",
    "record": "number of the record in its repeat, from 0",
    "snapshot": "number of the iterate that is kept, from 0",
    "feature": "number of the feature, from 0",
    "component": "number of the component, from 0",
    "client": "number of the client, from 0",
    "draw": "number of the problem's draw, from 0; repeat i runs on draw i modulo their number",
    "parameter": "number of the network's parameter, from 0",
    "singular_value": "number of the singular value, from 0, the largest first",
}
MATRIX = ("feature", "component")


class Described(NamedTuple):
    """Description of an HDF5 data set in a history file.

    Attributes
    ----------
    units, long_name : str
    axes : tuple of str
        Names of the data set's dimensions.
    """

    units: str
    long_name: str
    axes: tuple[str, ...] = ()


ITERATES = {
    "iteration": Described("iterations", "iteration of the iterate"),
    "record_number": Described("1", "number of the record with its measures"),
    "shared": Described(DEPENDS, "what the server held: a basis, a factor or a model", MATRIX),
    "X": Described("1", "orthonormal basis X of each client", ("client", *MATRIX)),
    "W": Described(
        "data units squared", "W of each client: its multiplier is X Wᵀ + W Xᵀ", ("client", *MATRIX)
    ),
    "Z": Described("1", "orthonormal basis Z of each client", ("client", *MATRIX)),
    "w": Described(DEPENDS, "head w of each client", ("client", "component")),
}
FINAL = {
    "basis": Described("1", "orthonormal basis of the subspace found", MATRIX),
    "components": Described("1", "principal axes of that subspace, most variance first", MATRIX),
    "explained_variance": Described("data units squared", "variance of scores", ("component",)),
    "explained_variance_ratio": Described("1", "share of the total variance", ("component",)),
    "V": Described(DEPENDS, "factor that all clients share", MATRIX),
    "mean": Described("data units", "mean of all samples, subtracted first", ("feature",)),
    "heads": Described(DEPENDS, "heads of the clients", ("client", "component")),
    "head": Described(DEPENDS, "head of all clients", ("component",)),
    "converged": Described("1", "whether the tolerance was met, 0 or 1"),
    "angle_estimate": Described("1", "estimated sine of the largest angle before the last step"),
    "ritz_values": Described("data units squared", "Ritz values", ("component",)),
    "ritz_edge": Described("data units squared", "last Ritz value wanted and the next one"),
    "sigma_max": Described("data units", "bound of the largest singular value"),
    "sigma_r": Described("data units", "singular value of the last component"),
    "beta": Described("data units to the power of 4", "momentum"),
    "exponent": Described("1", "V is to be multiplied by 2 to this power"),
    "parameters": Described("1", "parameters of the network that the server holds", ("parameter",)),
}
REFERENCE = {
    "singular_values": Described(
        "data units", "singular values of all samples, stacked", ("singular_value",)
    ),
    "leading_vectors": Described("1", "leading right singular vectors of all samples", MATRIX),
    "representation": Described("1", "orthonormal basis of the true representation", MATRIX),
    "head_singular_values": Described(
        "label units", "singular values of the true heads, stacked", ("component",)
    ),
    "training_samples": Described("samples", "of each client, for training", ("client",)),
    "held_out_samples": Described("samples", "of each client, for measuring", ("client",)),
}
# Dimensions before those of a data set's own description.
LEADING = {
    "history": ("repeat", "record"),
    "twin": ("repeat", "record"),
    "clients": ("repeat", "record", "client"),
    "iterates": ("repeat", "snapshot"),
    "client_iterates": ("snapshot",),
    "final": ("repeat",),
    "reference": (),
}
PADDED = ("history", "twin", "clients", "iterates", "client_iterates")


def describe(
    group: str, name: str, array: np.ndarray, columns: Mapping[str, tuple[str, str]]
) -> Described:
    """Return the description of a data set, with a name for each of its dimensions.

    `columns` maps the name of each recorded column or returned array to its unit and long name.
    """
    known = {"final": FINAL, "reference": REFERENCE}.get(group, ITERATES)
    if group in ("history", "twin", "clients") or name not in known:
        own = Described(*columns.get(name, (DEPENDS, f"{name}, as the method returned it")))
    else:
        own = known[name]
    axes = (*LEADING[group], *own.axes)
    if group == "iterates" and array.ndim == 3:
        axes = (*LEADING[group], "parameter")
    if group == "reference" and array.ndim == len(axes) + 1:
        axes = ("draw", *axes)
    if array.ndim != len(axes):
        first = LEADING[group][: array.ndim]
        axes = (*first, *(f"{name}_{i}" for i in range(len(first), array.ndim)))
    return own._replace(axes=axes)


def fill_value(group: str, array: np.ndarray) -> np.generic | None:
    """Return the number that marks missing values, or None if no value can be missing."""
    if array.dtype.kind == "f":
        return array.dtype.type(np.nan)
    return array.dtype.type(-1) if group in PADDED and array.dtype.kind == "i" else None


def storage(group: str, array: np.ndarray) -> dict[str, object]:
    """Return the HDF5 storage options for an array.

    Recorded columns are compressed. The index array 0, 1, 2, … of each dimension is compressed,
    because a network can have a million parameters. Iterates are stored in chunks without
    compression. All other arrays, and all arrays below 16 KiB, are stored in one piece without
    compression. Compression would reduce iterates only to nine tenths of their size, and writing
    would take twenty times as long (``benchmarks/bench_history.py``).
    """
    if array.nbytes < _WHOLE or not array.ndim:
        return {}
    packed: dict[str, object] = {"shuffle": True, "compression": "gzip", "compression_opts": 4}
    if group in ("history", "twin", "clients"):
        return {"chunks": (1, *array.shape[1:]), **packed}
    if group == ROOT:
        return {"chunks": array.shape, **packed}
    if group in ("iterates", "client_iterates"):
        leading = len(LEADING[group])
        return {"chunks": (1,) * leading + array.shape[leading:]}
    return {}


_WHOLE = 1 << 14  # bytes
ROOT = ""  # the group of the dimensions
