"""Compares the histories of two folders of results, bit for bit.

``python tools/compare_results.py FIRST SECOND`` compares every HDF5 file below FIRST with the file
of the same path below SECOND. It compares all groups and data sets, their types, shapes and bytes,
and all attributes except those in `IGNORED`. A NaN equals only a NaN of the same bits. The program
prints the first differences. The exit status is 1 if there are differences, and 2 if FIRST has no
HDF5 file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

# Which code wrote the file and made its data, by the names of attributes and of entries in `about`,
# and the mark of the seal. Nothing else is left out.
IGNORED = ("code", "recipes", "commit", "source", "sealed")


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield a sentence for each difference between the histories of two folders."""
    one, other = ({str(p.relative_to(f)) for p in f.rglob("*.h5")} for f in (first, second))
    for name in sorted(one ^ other):
        yield f"{name}: only in {first if name in one else second}"
    for name in sorted(one & other):
        a, b = described(first / name), described(second / name)
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                yield f"{name}: {key}{_how(a.get(key), b.get(key))}"


def described(path: Path) -> dict[str, Any]:
    """Return the contents of an HDF5 file: names, each with a value that can be compared."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        todo: list[h5py.Group | h5py.Dataset] = [file]
        while todo:
            item = todo.pop()
            if isinstance(item, h5py.Dataset):
                found[item.name] = _bits(item[()])
            else:
                found[item.name] = "a group"
                todo += item.values()
            for name, value in item.attrs.items():
                if name == "about":
                    entries = json.loads(value).items()
                    found |= {f"about: {k}": v for k, v in entries if k not in IGNORED}
                elif name not in IGNORED:
                    found[f"{item.name}: {name}"] = _plain(file, value)
    return found


def _bits(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _plain(file: h5py.File, value: Any) -> Any:
    """Return an attribute's value, with the name of its target in place of each reference."""
    if isinstance(value, h5py.Reference):
        return file[value].name
    if isinstance(value, np.void):
        return [_plain(file, part) for part in value.item()]
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return [_plain(file, part) for part in value]
    return _bits(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def _how(a: Any, b: Any) -> str:
    """Return in words how two values differ; for arrays of one shape, in how many numbers."""
    if a is None or b is None:
        return f" only in the {'second' if a is None else 'first'}"
    if isinstance(a, tuple) and isinstance(b, tuple) and a[:2] == b[:2]:
        ours, theirs = (np.frombuffer(value[2], np.uint8).reshape(-1) for value in (a, b))
        size = np.dtype(a[0]).itemsize
        numbers = np.unique(np.flatnonzero(ours != theirs) // size)
        return f" differs in {len(numbers)} of {len(ours) // size} numbers, first in {numbers[0]}"
    shown = [str(value[:2] if isinstance(value, tuple) else value)[:80] for value in (a, b)]
    return f": {shown[0]} and {shown[1]}"


def main() -> None:
    """Compare the folders on the command line, and print the first differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--shown", type=int, default=20, help="differences to print  [20]")
    chosen = parser.parse_args()
    number = len(list(chosen.first.rglob("*.h5")))
    if not number:
        parser.error(f"{chosen.first} holds no HDF5 file")
    found = list(differences(chosen.first, chosen.second))
    print("\n".join(found[: chosen.shown]))
    if found:
        raise SystemExit(f"{len(found)} differences in {number} files")
    print(f"{number} files are equal but for {', '.join(IGNORED)}")


if __name__ == "__main__":
    main()
