"""Principal components that `fedcore run` and `show` print, against NumPy's on the pooled table."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore.__main__ import main
from fedcore.history import History

NAMES = ["age", "bmi", "glucose", "pulse", "height"]


def call(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(4)
    S = 50 + rng.standard_normal((90, 5)) @ np.diag([9.0, 5, 3, 1, 0.5]) @ rng.normal(size=(5, 5))
    files = []
    for name, part in (("north", S[:40]), ("south", S[40:])):
        files.append(tmp_path / f"{name}.csv")
        np.savetxt(files[-1], part, delimiter=",", header=",".join(NAMES), comments="")
    return S, files, tmp_path / "run.h5"


def exact(S, r, center):
    S = S - S.mean(axis=0) if center else S
    _, sigma, right_t = np.linalg.svd(S, full_matrices=False)
    rows = right_t[:r] * np.sign(right_t[np.arange(r), np.abs(right_t[:r]).argmax(axis=1)])[:, None]
    return rows, sigma[:r] ** 2 / (len(S) - center), sigma[:r] ** 2 / np.sum(sigma**2)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("algorithm", ["block_krylov", "ssi", "centralized_svd", "momentum_power"])
def test_run_and_show_print_the_components_of_the_pooled_table(tables, algorithm, center):
    S, files, out = tables
    asked = ["run", algorithm, *files, "-r", 2, "--out", out, *["--center"] * center]
    text, shown = call(*asked), call("show", out)
    weights, variance, ratio = exact(S, 2, center)
    for said in (
        json.loads(call(*asked, "--json", "--force")),
        json.loads(call("show", out, "--json")),
    ):
        found = said["components"]
        assert found["features"] == NAMES
        np.testing.assert_allclose(found["weights"], weights, atol=1e-6)
        np.testing.assert_allclose(found["explained_variance"], variance, rtol=1e-6)
        np.testing.assert_allclose(found["explained_variance_ratio"], ratio, rtol=1e-6)
    for printed in (text, shown):
        lines = {words[0]: words[1:] for line in printed.splitlines() if len(words := line.split())}
        table = np.array([lines[name] for name in NAMES], dtype=float)
        np.testing.assert_allclose(table, weights.T, atol=5.1e-4)
        np.testing.assert_allclose(np.array(lines["variance"], float), variance, rtol=1e-3)
    assert History.load(out).final["components"].shape == (1, 5, 2)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_private_run_tells_its_directions_and_nothing_exact(tables, repeats):
    _, files, out = tables
    asked = [f"--set={word}" for word in ("epsilon=1", "delta=1e-6", "clip=true")]
    call("run", "analyze_gauss", *files, "-r", 2, *asked, "--out", out, "--repeats", repeats)
    found = json.loads(call("show", out, "--json"))["components"]
    assert found.keys() == {"features", "weights"}
    basis = History.load(out).final["basis"][0]
    np.testing.assert_allclose(np.abs(found["weights"]), np.abs(basis.T))
    assert not {"components", "explained_variance"} & History.load(out).final.keys()
    assert "variance " not in call("show", out).partition("ledger")[0]


def test_of_many_features_those_of_the_largest_weights_are_printed(tmp_path):
    rng = np.random.default_rng(1)
    S = rng.standard_normal((60, 300)) * 0.1
    S[:, 217] += 30 * rng.standard_normal(60)
    np.savez(tmp_path / "a.npz", x=S)
    said = call("run", "block_krylov", tmp_path / "a.npz", "-r", 8, "--center")
    table = said.partition("components:")[2].partition("ledger")[0]
    first, *_ = re.findall(r"^  (.*\S)  +1\.000", table, re.M)
    assert "217" in first and len(table.splitlines()) < 20


def test_what_is_no_pca_prints_no_components(tables):
    _, files, _ = tables
    said = call("run", "fedrep_linear", *files, "-r", 2, "--labels", "pulse", "--set", "rounds=2")
    assert "components:" not in said
