"""Read LIBSVM text files with lines ``label index:value index:value ...``, indices from 1."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import scipy.sparse

from fedcore.errors import Advice, DataError
from fedcore.files import END

_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(
    rb"\s*(?:(%b)(?:[ \t\v\f]+qid:(\d{1,18}))?((?:[ \t\v\f]+\d+:%b)*)\s*)?" % (_NUMBER, _NUMBER)
)
_PAIR = re.compile(rb"(\d{1,18}):(%b)" % _NUMBER)
_SHOWN = 80  # characters of a bad token
_LARGEST = 2.0**53  # of a class: a float represents every integer below it exactly


def table(
    path: Path, n_features: int, first: int = 1
) -> tuple[np.ndarray, np.ndarray, scipy.sparse.csr_array, int]:
    """Return labels, query ids as text, the matrix, and the number of lines without a sample.

    Feature indices begin with `first`. The matrix ends with the column of the largest index in the
    file. An index that needs more than `n_features` columns is an error. Labels are int64 if all
    are whole numbers.
    """
    try:
        text = path.read_bytes().rstrip(END)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", file=path) from error
    lines = re.sub(rb"#[^\n]*", b"", text).split(b"\n")
    at = [i for i, line in enumerate(lines) if line.strip()]
    found = [_LINE.fullmatch(lines[i]) for i in at]
    parts = [line.groups(b"") if line else (b"nan", b"", b"") for line in found]
    labels = np.fromiter((float(label) for label, _, _ in parts), float)
    queries = np.array([query for _, query, _ in parts], "S18").astype(str)
    pairs = b"".join(pairs for _, _, pairs in parts).replace(b":", b" ")
    numbers = np.fromstring(pairs.decode("ascii"), sep=" ")  # every token matches _NUMBER
    columns, values = numbers[::2] - first, numbers[1::2]
    rows = np.repeat(np.arange(len(at)), [pairs.count(b":") for _, _, pairs in parts])
    wrong = (columns < 0) | (columns >= n_features) | ~np.isfinite(values)
    wrong[1:] |= (np.diff(columns) <= 0) & (np.diff(rows) == 0)
    whole = (labels == np.floor(labels)) & (abs(labels) < _LARGEST)
    bad = ~np.isfinite(labels)
    bad[rows[wrong]] = True
    if bad.any():
        number = at[int(bad.argmax())]
        raise _problem(path, number, lines[number], n_features, first)
    labels = labels.astype(np.int64) if whole.all() else labels
    place = rows, columns.astype(np.intp)
    shape = len(at), int(columns.max(initial=-1)) + 1
    x = scipy.sparse.csr_array((values, place), shape=shape)
    return labels, queries, x, (len(lines) - len(at)) * (len(at) > 0)


def _problem(path: Path, number: int, line: bytes, n_features: int, first: int) -> DataError:
    """Return an error that names a line's first wrong token and the right format."""
    found, *pairs = line.split()
    label, last = float(found) if re.fullmatch(_NUMBER, found) else np.inf, first - 1
    if np.isfinite(label):
        query = re.fullmatch(rb"qid:\d{1,18}", b"".join(pairs[:1]))
        for found in pairs[bool(query) :]:
            pair = _PAIR.fullmatch(found)
            index, value = pair.groups() if pair else (b"-1", b"0")
            if not last < int(index) < n_features + first or not np.isfinite(float(value)):
                break
            last = int(index)
    zero = Advice("if indices begin with 0, say so", {"zero_based": True})
    shown = found[:_SHOWN].decode(errors="replace") + "…" * (len(found) > _SHOWN)
    says = (f"found '{shown}', and a line is 'label index:value index:value …', all numbers, "
            f"indices rising from {first} to at most {n_features + first - 1}")  # fmt: skip
    return DataError(
        f"{path}, line {number + 1}: {says}", file=path, row=number,
        advice=[zero] * (first == 1 and found.startswith(b"0:")),
    )  # fmt: skip
