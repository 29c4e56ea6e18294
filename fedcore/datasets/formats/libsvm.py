"""LIBSVM text files (w8a): ``label index:value index:value ...``, indices from 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fedcore.datasets.loaded import Loaded
from fedcore.errors import DataError

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

_LARGEST = 2.0**53  # of a label: a float represents every integer below it exactly
WIDEST = 2**31 - 1  # index of a column where a file's width is not known
_SHOWN = 80  # characters of a bad token
_FORM = "'label index:value index:value …', indices from 1"


class _Table(NamedTuple):
    """Labels (n,), and for each nonzero its row, its column from 0 and its value."""

    labels: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def _parse(text: bytes, n_features: int) -> _Table | None:
    """Parse the text in a few array operations; None when it is not well formed."""
    raw = np.frombuffer(text, np.uint8)
    blank = np.isin(raw, np.frombuffer(b" \t\r\n\v\f", np.uint8))
    starts = np.flatnonzero(~blank & np.concatenate(([True], blank))[:-1])
    line = np.searchsorted(np.flatnonzero(raw == ord("\n")), starts)
    is_label = np.diff(line, prepend=-1) > 0
    if not len(starts):
        return _Table(*(np.empty(0, kind) for kind in (float, np.intp, np.intp, float)))
    colons = np.flatnonzero(raw == ord(":"))
    pair_tokens = np.flatnonzero(~is_label)
    if not np.array_equal(np.searchsorted(starts, colons, side="right") - 1, pair_tokens):
        return None
    if len(colons) and (colons[-1] + 1 == len(raw) or blank[colons + 1].any()):
        return None
    if b"_" in text:  # which Python's numbers may have
        return None
    try:
        numbers = np.array(text.replace(b":", b" ").split(), dtype=np.float64)
    except ValueError:
        return None
    if len(numbers) != len(starts) + len(colons) or not np.isfinite(numbers).all():
        return None
    first = np.arange(len(starts)) + np.cumsum(~is_label) - ~is_label
    labels, index = numbers[first[is_label]], numbers[first[~is_label]]
    values = numbers[first[~is_label] + 1]
    rows = (np.cumsum(is_label) - 1)[~is_label]
    rising = (np.diff(index) > 0) | (np.diff(rows) > 0)
    whole = (index == np.floor(index)).all() and (labels == np.floor(labels)).all()
    whole &= (np.abs(labels) < _LARGEST).all()
    if not (whole and rising.all() and ((index >= 1) & (index <= n_features)).all()):
        return None
    return _Table(labels, rows, index.astype(np.intp) - 1, values)


def _problem(text: bytes, n_features: int) -> str:
    """Return the first line that is not well formed, what is expected there, and what stands."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        label, *pairs = line.split() or [b"0"]
        known = _NUMBER.fullmatch(label) is not None and float(label).is_integer()
        if not known or abs(float(label)) >= _LARGEST:
            return _told(number, "a label, a whole number below 2^53", label)
        last = 0
        for pair in pairs:
            index, colon, value = pair.partition(b":")
            if not (colon and index.isdigit() and _NUMBER.fullmatch(value)):
                return _told(number, "index:value, two numbers", pair)
            if len(index) > _SHOWN or not 1 <= int(index) <= n_features:
                return _told(number, f"an index from 1 to {n_features}", pair)
            if int(index) <= last:
                return _told(number, f"an index above {last}, as they rise in a line", pair)
            last = int(index)
    return f"a line is not as expected: {_FORM}"


def _told(number: int, expected: str, found: bytes) -> str:
    shown = found[:_SHOWN].decode(errors="replace") + "…" * (len(found) > _SHOWN)
    return f"line {number}: expected {expected}, found '{shown}'; a line is {_FORM}"


def parse(path: Path, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense matrix and the labels of a LIBSVM file.

    Parameters
    ----------
    path : pathlib.Path
        Text file. Blank lines and what follows a ``#`` are skipped; indices must rise in a line.
    n_features : int
        Number of columns.

    Returns
    -------
    x : ndarray of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples,), int64

    Raises
    ------
    DataError
        When the file cannot be read or a line is malformed; the message has the line number, what
        is expected there and what was found.
    """
    table = _table(path, n_features)
    x = np.zeros((len(table.labels), n_features))
    x[table.rows, table.columns] = table.values
    return x, table.labels.astype(np.int64)


def parse_sparse(path: Path) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return the sparse matrix and the labels of a LIBSVM file, see `parse`.

    Returns
    -------
    x : scipy.sparse.csr_array of shape (n_samples, n_features), float64
        As wide as the largest index in the file.
    y : ndarray of shape (n_samples,), int64
    """
    table = _table(path, WIDEST)
    shape = len(table.labels), int(table.columns.max(initial=-1)) + 1
    place = table.rows, table.columns
    return scipy.sparse.csr_array((table.values, place), shape=shape), table.labels.astype(np.int64)


def _table(path: Path, n_features: int) -> _Table:
    """Read the labels and the nonzeros of a file; errors as of `parse`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if b"#" in text:
        text = re.sub(rb"#[^\n]*", b"", text)
    table = _parse(text, n_features)
    if table is None:
        raise DataError(f"{path}, {_problem(text, n_features)}")
    return table


def read(folder: Path, parts: Mapping[str, Any], n_features: int) -> Loaded:
    """Read the file named under ``table``; see `parse`."""
    return Loaded(*parse(folder / parts["table"], n_features))
