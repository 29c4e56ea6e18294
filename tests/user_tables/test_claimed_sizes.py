"""Tables that lie about their size are refused before anything of that size is made."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.errors import DataError
from fedcore.user_tables import claimed_sizes
from refused import refused


def lying(shape, content=b"\0" * 64, dtype="<f8"):
    made = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(made, head)
    return made.getvalue() + content


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(10, 2**40), min_size=1, max_size=4).map(tuple),
    dtype=st.sampled_from(["<f8", "<i4", "|u1", "<c16"]),
    how=st.sampled_from(["npy", "stored", "deflated"]),
)
def test_a_false_head_is_refused_at_once(tmp_path_factory, shape, dtype, how):
    if np.prod(shape, dtype=object) * np.dtype(dtype).itemsize < 2000:
        return
    path = tmp_path_factory.mktemp("false") / "x.bin"
    if how == "npy":
        path.write_bytes(lying(shape, dtype=dtype))
    else:
        kind = zipfile.ZIP_STORED if how == "stored" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", kind) as archive:
            archive.writestr("x.npy", lying(shape, dtype=dtype))
    tracemalloc.start()
    try:
        refused(lambda: claimed_sizes.heads(path), DataError)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_what_numpy_and_scipy_write_is_taken(tmp_path):
    x = np.random.default_rng(0).standard_normal((30, 4))
    for name, save in {
        "a.npy": lambda p: np.save(p, x), "f.npy": lambda p: np.save(p, np.asfortranarray(x)),
        "s.npy": lambda p: np.save(p, np.float32(3)), "e.npy": lambda p: np.save(p, x[:0]),
        "b.npz": lambda p: np.savez(p, x=x, y=np.arange(30), c=np.array(["é", "b"])),
        "c.npz": lambda p: np.savez_compressed(p, x=np.zeros((1000, 1000))),
        "d.npz": lambda p: scipy.sparse.save_npz(p, scipy.sparse.csr_array(x)),
    }.items():  # fmt: skip
        save(tmp_path / name)
        claimed_sizes.heads(tmp_path / name)


def test_few_bytes_that_become_very_many_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(claimed_sizes, "MOST", 10**6)
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros((1000, 1000)))
    refused(lambda: claimed_sizes.heads(tmp_path / "zeros.npz"), DataError)
    np.savez(tmp_path / "zeros.npz", x=np.zeros((1000, 1000)))
    claimed_sizes.heads(tmp_path / "zeros.npz")


@pytest.mark.parametrize("columns", [claimed_sizes.WIDEST + 1, 2**31, 2**40])
def test_more_columns_than_a_table_can_have_are_refused(columns):
    refused(lambda: claimed_sizes.require_shape(__file__, 2, columns), DataError)
    claimed_sizes.require_shape(__file__, 2, claimed_sizes.WIDEST)
