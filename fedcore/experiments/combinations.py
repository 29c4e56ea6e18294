"""Combinations of values, one value per name, from the lists in a configuration file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any


def combinations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of one value per name, in the order of `itertools.product`."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
