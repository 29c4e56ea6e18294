"""Twins: what one rounding of the start does to a run."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import cells
from fedcore.errors import ConfigError
from fedcore.experiments import build, twins
from fedcore.experiments.repeats import run_cell
from fedcore.history import History
from fedcore.linalg import sin_theta
from fedcore.problems import storage
from fedcore.repro.plan.plan import load_plan, read_yaml
from refused import refused

ROOT = Path(__file__).parents[2]
EPS = np.finfo(float).eps
SPEC = {
    "generator": "spectrum",
    "params": {"n_features": 60, "sizes": [60, 120, 180, 240], "xi": 1.05},
}
P = 3


@pytest.fixture(scope="module")
def problem_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("twins") / "problem.h5"
    problem = build.build("faps/tiny", SPEC, raw="nowhere", seed=0, surrogate=False)
    storage.save(problem, file)
    return file


PLAIN = {"paper": "faps", "experiment": "tiny", "problem": "tiny", "repeats": 2,
         "metrics": ["kkt_residual"], "twin": "rounding",
         "stop": {"kkt_residual": {"at_most": 1e-4}}}  # fmt: skip


def cell(algorithm="ssi", params=None, **changes):
    return cells.cell(algorithm, {"n_components": P, **(params or {})}, **PLAIN | changes)


def first_start(repeat):
    """The matrix that the server draws first in a repeat."""
    seed = cell().repeat_seed(repeat)
    server = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0))
    return np.random.default_rng(server).uniform(-1, 1, (60, P))


def test_every_entry_moves_to_a_neighbour():
    for dtype in (np.float64, np.float32):
        matrix = np.random.default_rng(1).standard_normal((40, 5)).astype(dtype)
        moved = twins.nudge(matrix)
        up, down = np.nextafter(matrix, dtype(np.inf)), np.nextafter(matrix, dtype(-np.inf))
        assert moved.dtype == dtype
        assert ((moved == up) | (moved == down)).all()
        assert (moved == up).any() and (moved == down).any()
        np.testing.assert_array_equal(moved, twins.nudge(matrix))


def test_a_nudged_stream_is_the_same_stream():
    plain, nudged = np.random.default_rng(3), twins.Nudged(np.random.default_rng(3))
    assert plain.standard_normal() == nudged.standard_normal()  # single numbers stay as they are
    assert nudged.arrays == 0
    for name in ("random", "uniform", "normal", "standard_normal"):
        expected, found = (getattr(rng, name)(size=(9, 2)) for rng in (plain, nudged))
        np.testing.assert_array_equal(found, twins.nudge(expected))
    np.testing.assert_array_equal(plain.permutation(30), nudged.permutation(30))
    assert nudged.arrays == 4


@pytest.mark.parametrize("share_products", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("ssi", {}),
        ("local_power", {}),
        ("block_krylov", {}),
        ("momentum_power", {}),
        ("faps", {"inner": "residual"}),
    ],
)
def test_a_stable_method_moves_by_rounding(
    problem_file, tmp_path, algorithm, params, share_products
):
    """One rounding turns range(Z₀) by at most ε ‖Z₀‖_F / σ_min(Z₀).

    Let C and S be the parts of Z₀ inside and outside of the dominant space, and T = S C⁻¹. A round
    of SSI multiplies every entry of T by a ratio of eigenvalues below 1. So the turn grows by at
    most 1/cos² with cos = σ_min(C), and a round adds its own roundings of at most n ε. The other
    methods reach the dominant space faster.
    """
    spec = cell(algorithm, params, share_products=share_products)
    history = run_cell(spec, problem_file, tmp_path / "cell.h5")
    top = storage.load(problem_file).right_vectors[:, :P]
    for repeat in range(2):
        distance = history["twin_distance"][repeat]
        distance = distance[~np.isnan(distance)]
        records = (history["iteration"][repeat] >= 0).sum()
        start = first_start(repeat)
        basis = np.linalg.qr(start)[0]
        cos = np.linalg.svd(top.T @ basis, compute_uv=False)[-1]
        turn = EPS * np.linalg.norm(start) / np.linalg.svd(start, compute_uv=False)[-1]
        assert distance[0] <= turn + 60 * EPS
        assert distance.max() <= (turn + records * 60 * EPS) / cos**2 < 1e-9
    np.testing.assert_array_equal(history.twins["round"], history["round"])


def test_faps_as_printed_amplifies_the_same_rounding(problem_file, tmp_path):
    """Z₀ is an unstable invariant space of the first inner problems (see `algorithms.faps`)."""
    stable = run_cell(cell("ssi"), problem_file, tmp_path / "ssi.h5")
    faps = run_cell(cell("faps"), problem_file, tmp_path / "faps.h5")
    np.testing.assert_array_equal(faps["twin_distance"][:, 0], stable["twin_distance"][:, 0])
    assert (np.nanmax(faps["twin_distance"], axis=1) > 1e-8).all()
    assert (np.nanmax(stable["twin_distance"], axis=1) < 1e-9).all()


def test_of_ten_roundings_the_one_that_ends_furthest_is_kept(problem_file, tmp_path):
    """FAPS from each of the ten changed starts, and SSI, which no rounding turns."""
    runs = [
        run_cell(cell(name, twin=twin), problem_file, tmp_path / "cell.h5")
        for name in ("faps", "ssi") for twin in ("rounding", "ten_roundings")
    ]  # fmt: skip
    assert runs[0].twin["round"].tobytes() != runs[1].twin["round"].tobytes()
    assert runs[2].twin["round"].tobytes() == runs[3].twin["round"].tobytes()
    for repeat in range(2):
        found = []
        for pattern in range(10):
            start = twins.nudge(first_start(repeat), pattern)
            given = cell("faps", {"start": start.tolist()}, twin="none", repeats=1)
            history = run_cell(given, problem_file, tmp_path / "cell.h5")
            found.append(len(history["round"][0]))
        made, first, kept = (
            (column[repeat] >= 0).sum()
            for column in (
                runs[1]["iteration"],
                runs[0].twin["iteration"],
                runs[1].twin["iteration"],
            )
        )
        assert first == found[0] and kept in found
        assert abs(kept - made) == max(abs(np.array(found) - made))


def test_a_twin_changes_nothing_of_its_run(problem_file, tmp_path):
    alone = run_cell(cell("faps", twin="none"), problem_file, tmp_path / "alone.h5")
    assert alone.twins is None and "twin" not in alone.about
    both = run_cell(cell("faps"), problem_file, tmp_path / "both.h5")
    for name, column in alone.columns.items():
        np.testing.assert_array_equal(both[name], column)
    np.testing.assert_array_equal(both.final["basis"], alone.final["basis"])
    assert both.about["twin"] == "rounding"


def test_the_history_keeps_the_twins(problem_file, tmp_path):
    written = run_cell(cell("faps"), problem_file, tmp_path / "cell.h5")
    history = History.load(tmp_path / "cell.h5")
    assert history.twin.keys() == set(history.columns) - {"twin_distance"}
    for name, column in written.twin.items():
        np.testing.assert_array_equal(history.twins[name], column)
    assert (history.twins.last("kkt_residual") <= 1e-4).all()
    assert history.units["twin_distance"] == twins.COLUMN
    assert history.twins.repeats == 2


def test_a_given_start_is_changed_too(problem_file, tmp_path):
    start = np.random.default_rng(5).standard_normal((60, P))
    params = {"start": start.tolist(), "power": 1}
    spec = cell("power_exact", params, stop={}, repeats=1, metrics=["objective"])
    history = run_cell(spec, problem_file, tmp_path / "cell.h5")
    data = np.vstack(storage.load(problem_file).clients)
    ends = [data.T @ (data @ s) for s in (start, twins.nudge(start))]
    expected = sin_theta(*(np.linalg.qr(end)[0] for end in ends))
    # Both add about ten roundings of the same size, in another order.
    assert history["twin_distance"][0, -1] == pytest.approx(expected, abs=60 * EPS)
    assert history["twin_distance"][0, -1] > 0


def test_a_start_that_the_clients_computed_is_changed_when_it_is_sent(problem_file, tmp_path):
    """V = Σ SᵢᵀΦᵢ comes from the clients' draws, and the next product turns it by its rounding."""
    spec = cell("power_exact", {"power": 1}, stop={}, repeats=1, metrics=["objective"])
    plain = run_cell(replace(spec, twin="none", iterates="all"), problem_file, tmp_path / "1.h5")
    both = run_cell(spec, problem_file, tmp_path / "2.h5")
    data = np.vstack(storage.load(problem_file).clients)
    start = plain.iterates["shared"][0, 0]
    ends = [data.T @ (data @ s) for s in (start, twins.nudge(start))]
    expected = sin_theta(*(np.linalg.qr(end)[0] for end in ends))
    assert both["twin_distance"][0, -1] == pytest.approx(expected, abs=60 * EPS)
    assert both["twin_distance"][0, -1] > 0


def test_a_method_whose_server_sends_no_start_has_no_twin(problem_file, tmp_path):
    spec = cell("one_shot", stop={}, metrics=["objective"])
    refused(lambda: run_cell(spec, problem_file, tmp_path / "cell.h5"), ConfigError, "one_shot")
    assert not (tmp_path / "cell.h5").exists()


def write(checkout, paper):
    file = checkout / "papers/faps/experiments.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(paper))


def test_a_run_may_say_otherwise_than_its_experiment(tmp_path):
    paper = read_yaml(ROOT / "papers/faps/experiments.yaml")
    runs = [{"algorithm": "ssi"}, {"algorithm": "one_shot", "twin": "none"}]
    paper["experiments"] = {
        "on": paper["experiments"]["table4"] | {"twin": "rounding", "runs": runs},
        "off": paper["experiments"]["fig1b"] | {"runs": [{"algorithm": "ssi"}]},
    }
    write(tmp_path, paper)
    plan = load_plan({"papers": ["faps"]}, tmp_path, answers=lambda address: True)
    found = {(c.experiment, c.algorithm): c.twin for c in plan.cells.values()}
    assert found == {
        ("on", "ssi"): "rounding", ("on", "one_shot"): "none", ("off", "ssi"): "none",
    }  # fmt: skip
    # Or it names the problems whose cells have twins.
    paper["experiments"]["on"] |= {"problems": ["uneven", "n2000"], "twin": ["n2000"]}
    write(tmp_path, paper)
    plan = load_plan({"papers": ["faps"]}, tmp_path, answers=lambda address: True)
    found = {c.problem: c.twin for c in plan.cells.values() if c.algorithm == "ssi"}
    assert (found["uneven"], found["n2000"]) == ("none", "rounding")
    for wrong in (["n200"], "data"):
        paper["experiments"]["on"]["twin"] = wrong
        write(tmp_path, paper)
        call = functools.partial(load_plan, {"papers": ["faps"]}, tmp_path, answers=bool)
        refused(call, ConfigError, "twin")


def test_every_reading_of_faps_that_judges_a_count_has_twins():
    """The printed rule (26) amplifies rounding. Twins on a cheap problem show it of a variant."""
    plan = load_plan({"papers": ["faps"]}, ROOT, answers=bool)
    faps = [cell for cell in plan.cells.values() if cell.algorithm == "faps"]
    twinned = {cell.tags.get("method") for cell in faps if cell.twin == "rounding"}
    readings = [r for item in plan.claims_of("faps")["items"] for r in item.get("readings", [])]
    selects = [cell["select"] for reading in readings for cell in reading["cells"].values()]
    counted = {s["where"].get("method") for s in selects if s["column"] == "rounds"}
    counted &= {cell.tags.get("method") for cell in faps}
    assert counted and counted <= twinned
