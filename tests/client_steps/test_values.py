"""Plain values as bytes and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from fedcore.client_steps.values import decode, encode
from fedcore.errors import RefusedError
from fedcore.privacy.events import Gaussian


def back(value: Any) -> Any:
    return decode(encode(value))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 1, 2**90, -0.0, 0.1, float("inf"), 1 + 2j, "Σ", [1, [2.0]], (1, (2,)),
        {"a": [1], 3: (None,)}, {1, 2}, frozenset({"x"}), np.dtype("<f4"), Gaussian(2.0, 0.5),
    ],
)  # fmt: skip
def test_plain_values_come_back_with_their_types(value):
    found = back(value)
    assert type(found) is type(value) and repr(found) == repr(value)


@pytest.mark.parametrize(
    "value", [np.float32(0.1), np.int64(-3), np.bool_(True), np.float64("nan")]
)
def test_numbers_of_numpy_keep_their_precision(value):
    found = back(value)
    assert type(found) is type(value) and found.tobytes() == value.tobytes()


CUBE = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [
        CUBE, CUBE.T, CUBE.transpose(1, 0, 2), np.asfortranarray(CUBE[0]), CUBE[:, ::2], CUBE[::-1],
        np.zeros((0, 3)), np.zeros((3, 0)).T, np.array(1.5), np.array([1, 2], np.uint8),
        np.array([True]), np.ones((1, 5)), CUBE[0].astype(">f4"), CUBE[0] * 1j,
    ],
)  # fmt: skip
@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_keep_values_and_the_order_of_axes_in_memory(array, writeable):
    array = array.view()
    array.flags.writeable = writeable
    found = back([array])[0]
    kept = array.copy(order="K")  # what a client in this process would get
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes()
    assert found.strides == kept.strides or array.size <= 1
    assert found.flags.writeable == writeable and found.flags.aligned


class Pair(NamedTuple):
    a: int
    b: np.ndarray


def test_objects_cross_by_the_names_of_their_classes():
    found = back(Pair(1, np.eye(2)))
    assert type(found) is Pair and found.a == 1 and (found.b == np.eye(2)).all()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.array([None]), "object entries"), (np.ma.masked_array([1.0], [True]), "masked"),
        (np.array(["text"]), "<U4"), (open, "built"), (object(), "a object"),
    ],
)  # fmt: skip
def test_what_is_no_plain_value_is_refused(value, name):
    with pytest.raises(RefusedError, match=name):
        encode([value])


def test_bytes_of_another_kind_and_damaged_ones_are_refused():
    data = encode({"V": np.eye(3)})
    other = data.replace(b"f8", b"O8")
    for wrong in (b"", b"PK\x03\x04", data[:-1], data + b"\0", data[:20], other):
        with pytest.raises(RefusedError):
            decode(wrong)
