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


def test_the_others_are_those_of_the_whole_problem():
    whole = build.build("p", SPEC, **OPTIONS)
    left = build.build("p_lost", {**SPEC, "lost": 1, "like": "p"}, **OPTIONS)
    assert left.name == "p_lost"
    np.testing.assert_array_equal(left.clients[0], whole.clients[0])
    other = build.build("p_lost", {**SPEC, "lost": 1}, **OPTIONS)
    assert np.abs(other.clients[0] - whole.clients[0]).max() > 0.1


def test_the_longest_row_gets_its_norm():
    spec = {"generator": "spectrum", "params": {"n_features": 6, "n_samples": 50, "n_clients": 2}}
    plain = build.build("p", spec, **OPTIONS)
    scaled = build.build("p", {**spec, "largest_row": 2.0}, **OPTIONS)
    rows = np.vstack([np.asarray(c) for c in scaled.clients])
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(2.0)
    sigma = np.linalg.svd(rows, compute_uv=False)
    np.testing.assert_allclose(scaled.singular_values, sigma, rtol=1e-10)
    ratio = sigma[0] / plain.singular_values[0]
    np.testing.assert_allclose(scaled.singular_values, ratio * plain.singular_values, rtol=1e-10)
    with pytest.raises(InputError, match="only unlabelled single rows"):
        build.build("p", {**SPEC, "largest_row": 1.0}, **OPTIONS)


def test_labelled_clients_are_not_lost():
    spec = {"generator": "shared_heads", "params": {"n_clients": 3}, "lost": 1}
    with pytest.raises(InputError, match="only unlabelled"):
        build.build("p", spec, **OPTIONS)
