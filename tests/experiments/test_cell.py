from __future__ import annotations

import json
from dataclasses import asdict, replace

import h5py
import numpy as np
import pytest

import cells
from fedcore.errors import ConfigError, FedcoreError, HistoryError
from fedcore.experiments import build
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell
from fedcore.history import History, read_seconds
from fedcore.problems import storage
from refused import refused

SPEC = {
    "generator": "low_rank",
    "params": {"n_clients": 3, "samples": 10, "n_features": 6, "rank": 2, "noise": 0.01},
}


@pytest.fixture
def problem_file(tmp_path):
    problem = build.build("factorization/tiny", SPEC, raw="nowhere", seed=0, surrogate=False)
    storage.save(problem, tmp_path / "problem.h5")
    return tmp_path / "problem.h5"


PLAIN = {"params": {"n_components": 2}, "repeats": 3, "metrics": ["objective", "kappa"], "seed": 7}


def cell(algorithm="power_gd", **changes):
    return cells.cell(**PLAIN | {"algorithm": algorithm} | changes)


def test_a_cell_becomes_one_history_file(problem_file, tmp_path):
    path = tmp_path / "results" / "cell.h5"
    spec = cell(params={"n_components": 2, "local_steps": 4}, code="0123")
    written = run_cell(spec, problem_file, path)
    history, problem = History.load(path), storage.load(problem_file)
    for group in ("columns", "final", "iterates", "reference"):
        ours, theirs = getattr(written, group), getattr(history, group)
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
    assert history.about == written.about
    assert history["objective"].shape == history["kappa"].shape == (3, 5)
    assert history.final["V"].shape == (3, 6, 2)
    assert set(history.final) == {"V", "exponent"}  # not the clients' own matrices
    np.testing.assert_array_equal(history.reference["singular_values"], problem.singular_values)
    about = history.about
    assert about["params"] == {"n_components": 2, "local_steps": 4}
    assert about["code"] == "0123"
    assert about["problem"]["sha256"] == problem.checksum
    assert about["problem"]["status"] == "synthetic"
    assert (about["problem"]["n_clients"], about["problem"]["n_samples"]) == (3, 30)


def test_repeats_differ_and_the_whole_cell_is_the_same_again(problem_file, tmp_path):
    history = run_cell(cell(), problem_file, tmp_path / "first.h5")
    assert len(set(history.last("kappa"))) == 3
    run_cell(cell(), problem_file, tmp_path / "second.h5")
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()


def test_the_first_repeats_do_not_depend_on_how_many_there_are(problem_file, tmp_path):
    three = run_cell(cell(), problem_file, tmp_path / "three.h5")
    one = run_cell(cell(repeats=1), problem_file, tmp_path / "one.h5")
    np.testing.assert_array_equal(one["objective"][0], three["objective"][0])


def test_competing_algorithms_share_sketches_and_starts(problem_file, tmp_path):
    def history(algorithm, **params):
        spec = cell(algorithm, params={"n_components": 2, **params})
        return run_cell(spec, problem_file, tmp_path / "cell.h5")

    plain = history("power_gd")
    for other in (
        history("power_gd", momentum=True),
        history("power_gd", local_steps=3),
        history("power_prox"),
        history("power_exact"),
        history("power_iteration"),
    ):
        np.testing.assert_array_equal(other.final["V"], plain.final["V"])
    for other in (history("power_gd", momentum=True), history("power_prox")):
        # The same U₀, computed by two formulas that are equal up to rounding.
        np.testing.assert_allclose(other["objective"][:, 0], plain["objective"][:, 0], rtol=1e-12)


@pytest.mark.parametrize("change", [{"seed": 8}, {"experiment": "other"}, {"problem": "other"}])
def test_draws_depend_on_seed_experiment_and_problem(problem_file, tmp_path, change):
    first = run_cell(cell(), problem_file, tmp_path / "cell.h5")
    other = run_cell(cell(**change), problem_file, tmp_path / "cell.h5")
    assert not np.array_equal(first.final["V"], other.final["V"])


@pytest.mark.parametrize("change", [{"algorithm": "wk2023"}, {"name": "x"}, {"metrics": []}])
def test_the_seed_of_a_repeat_does_not_depend_on_the_method(change):
    states = [cell(**c).repeat_seed(1).generate_state(4) for c in ({}, change)]
    np.testing.assert_array_equal(*states)
    assert not np.array_equal(states[0], cell().repeat_seed(2).generate_state(4))


def test_reference_stands_for_the_singular_values_of_the_data(problem_file, tmp_path):
    def history(**params):
        spec = cell("yd2021", params={"n_components": 2, "rounds": 2, **params}, iterates="all")
        return run_cell(spec, problem_file, tmp_path / "cell.h5")

    S = np.vstack(storage.load(problem_file).clients)
    sigma = np.linalg.svd(S)[1]
    named = history(sigma_max="reference", sigma_r="reference")
    given = history(sigma_max=float(sigma[0]), sigma_r=float(sigma[1]))
    # Two SVDs of the same matrix differ by rounding.
    np.testing.assert_allclose(named.iterates["shared"], given.iterates["shared"], rtol=1e-12)
    assert named.about["params"]["sigma_max"] == "reference"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"algorithm": "power_dg"}, "'power_gd'"),
        ({"metrics": ["objectiv"]}, "'objective'"),
        ({"params": {"n_components": 2, "powr": 1}}, "'power'"),
        ({"params": {"n_components": 9}}, "n_components = 9"),
        ({"iterates": "some"}, "iterates = 'some'"),
        ({"params": {"n_components": 2, "power": "reference"}}, "power"),
        ({"algorithm": "yd2021", "params": {"sigma_max": "reference"}}, "n_components"),
        ({"algorithm": "yd2021", "params": {"n_components": 7, "sigma_r": "reference"}}, "7"),
        *(
            ({"params": {"n_components": 2, "start": start}}, "start")
            for start in ([[1, 0], [0]], [[1, 0], [0, 1]], [[1, "a"]], 1)
        ),
    ],
)
def test_a_cell_that_does_not_fit_is_refused_and_writes_nothing(
    problem_file, tmp_path, changes, name
):
    path = tmp_path / "cell.h5"
    refused(lambda: run_cell(cell(**changes), problem_file, path), FedcoreError, name)
    assert list(tmp_path.iterdir()) == [problem_file]


def test_no_clock_host_or_path_is_in_the_provenance(problem_file, tmp_path):
    run_cell(cell(), problem_file, tmp_path / "cell.h5")
    with h5py.File(tmp_path / "cell.h5") as file:
        about = json.loads(file.attrs["about"])
    assert str(tmp_path) not in json.dumps(about)
    # All fields: who adds one must check here that equal runs keep equal bytes.
    assert set(about) == {
        "paper", "experiment", "algorithm", "name", "params", "problem", "seed", "code", "versions",
        "references", "commit", "iterates",
    }  # fmt: skip
    assert set(about["versions"]) == {"python", "fedcore", "numpy", "scipy", "h5py"}


def test_seconds_go_to_a_file_of_their_own(problem_file, tmp_path):
    spec, file = cell(params={"n_components": 2, "local_steps": 4}), tmp_path / "seconds.tsv"
    written = run_cell(spec, problem_file, tmp_path / "cell.h5", file)
    seconds = read_seconds(file)
    assert seconds.shape == (3, 5) and (np.diff(seconds, axis=1) >= 0).all()
    np.testing.assert_allclose(seconds, written.seconds, atol=1e-6)
    assert History.load(tmp_path / "cell.h5").seconds is None


@pytest.mark.parametrize("text", ["repeat 0\n0.1\n0.2\t", "repeat 0\nx\n", None])
def test_damaged_seconds_are_a_history_error(tmp_path, text):
    file = tmp_path / "seconds.tsv"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    refused(lambda: read_seconds(file), HistoryError, "seconds.tsv")


def test_a_cell_comes_back_from_json():
    written = cell(tags={"k": 2}, recipes=["a"], code="b", mem_mb=5)
    assert Cell.read(json.loads(json.dumps(asdict(written)))) == written
    again = Cell.read(json.loads(json.dumps(written.spec())))
    assert again == replace(written, tags={}, mem_mb=None, recipes=[], code="")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (asdict(cell()) | {"metrix": []}, "'metrics'"),
        ({k: v for k, v in asdict(cell()).items() if k != "repeats"}, "'repeats'"),
        ([], "JSON"),
    ],
)
def test_json_that_is_no_cell_is_refused(given, name):
    refused(lambda: Cell.read(given), ConfigError, name)
