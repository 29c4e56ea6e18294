"""A problem without its last clients: their rows are gone, the exact answer stays."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.errors import InputError
from fedcore.experiments import build
from fedcore.problems import storage

SPEC = {
    "generator": "spiked",
    "params": {"n_clients": 3, "samples": 40, "n_features": 6, "rank": 2},
}
OPTIONS = {"raw": "data/raw", "seed": 1, "surrogate": False}


@pytest.mark.parametrize("reduce", [True, False])
def test_the_answer_is_that_of_all_clients(tmp_path, reduce):
    spec = {**SPEC, "params": {**SPEC["params"], "reduce": reduce}}
    whole = build.build("p", spec, **OPTIONS)
    build.make(str(tmp_path / "p.h5"), "p", {**spec, "lost": 1}, **OPTIONS)
    left = storage.load(tmp_path / "p.h5")
    assert len(left.clients) == 2 and left.n_samples == 80
    for mine, theirs in zip(left.clients, list(whole.clients)[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    stacked = np.vstack([np.asarray(c) for c in whole.clients])
    expected = np.linalg.svd(stacked, compute_uv=False)
    np.testing.assert_allclose(left.singular_values, expected, rtol=1e-12)
    own = np.linalg.svd(np.vstack([np.asarray(c) for c in left.clients]), compute_uv=False)
    assert np.abs(own - expected).max() > 0.1


@pytest.mark.parametrize("lost", [3, 4])
def test_some_client_stays(lost):
    with pytest.raises(InputError, match=f"{lost} clients cannot be lost of 3"):
        build.build("p", {**SPEC, "lost": lost}, **OPTIONS)


def test_labelled_clients_are_not_lost():
    spec = {"generator": "shared_heads", "params": {"n_clients": 3}, "lost": 1}
    with pytest.raises(InputError, match="only unlabelled"):
        build.build("p", spec, **OPTIONS)
