"""Clients of equal size compute as one array: the same answers as client by client."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fedcore
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.federation import Federation

METHODS = [
    ("local_power", {"rounds": 4, "schedule": "constant", "local_steps": 3}),
    ("local_power", {"rounds": 4, "alignment": "sign"}),
    ("local_power", {"rounds": 4, "alignment": "procrustes"}),
    ("fedpower", {"iterations": 7, "local_steps": 3, "epsilon": None}),
    ("fedpower", {"iterations": 7, "local_steps": 3, "epsilon": None, "participants": 3}),
    # Its last round is a plain step, after stacked ones.
    ("fedpower", {"iterations": 8, "local_steps": 3, "schedule": "constant", "epsilon": None}),
    ("faps", {"rounds": 7, "inner": "fixed", "inner_steps": 1}),
    ("faps", {"rounds": 7, "inner": "residual", "inner_start": "server"}),
    ("faps", {"rounds": 7, "inner": "fixed", "inner_steps": 2, "beta_norm": "frobenius"}),
    ("faps", {"rounds": 3, "inner": "residual", "solver": "krylov", "signs": "arbitrary"}),
]


@pytest.mark.parametrize(("name", "params"), METHODS)
@pytest.mark.parametrize("samples", [4, 30])  # products by the data, and by Gram matrices
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stacked_and_plain_steps_agree(name, params, samples, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    clients = list((rng.standard_normal((6, samples, 9)) * 0.6 ** np.arange(9)).astype(dtype))

    def found() -> fedcore.Result:
        return fedcore.run(name, clients, 3, iterates="none", **params)

    stacked = found()
    monkeypatch.setattr(Federation, "engine", staticmethod(partial(InProcess, plain=True)))
    plain = found()
    assert stacked.ledger == plain.ledger
    assert stacked.components.dtype == plain.components.dtype
    close = 1e-9 if dtype is np.float64 else 2e-3
    one, other = stacked.components, plain.components
    np.testing.assert_allclose(one.T @ one, other.T @ other, rtol=0, atol=close)
    for column in {"inner_products", "penalty"} & stacked.history.keys():
        np.testing.assert_allclose(stacked.history[column], plain.history[column], rtol=1e-5)
    for part in ("X", "W") if name == "faps" else ():
        for one, other in zip(stacked.output[part], plain.output[part], strict=True):
            scale = np.linalg.norm(other)
            np.testing.assert_allclose(one @ one.T, other @ other.T, atol=close * max(scale**2, 1))
