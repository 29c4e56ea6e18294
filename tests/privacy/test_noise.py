"""Privacy noise has a stream of its own: who knows the seed of a run cannot draw it again."""

from __future__ import annotations

import functools
from dataclasses import fields

import numpy as np
import pytest

import cells
import fedcore
from fedcore import algorithms
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell, trial
from fedcore.federation import lockstep
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.history import History
from fedcore.privacy.noise import SECRET, SIMULATED, simulated
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder, Recording
from fedcore.seeds import CLIENT, child

UPPER = np.triu_indices(5)
# Every private algorithm, with parameters that fit 60 rows and that make it draw.
PRIVATE = {
    "adaptive_power": {"rounds": 2},
    "adaptive_search": {"guesses": 2, "unit": 1.0},
    "analyze_gauss": {},
    "dn26": {"epsilon": 100.0},
    "dp_pca": {"batches": 2, "epsilon": 100.0},
    "fedpower": {"iterations": 2},
    "noisy_power": {"rounds": 2},
    "private_oja": {"batch": 20},
}


def release(rows: np.ndarray, *, seed: int = 0, epsilon: float = 0.1, **options) -> np.ndarray:
    """What Analyze Gauss uploads: the upper triangle of AᵀA with noise."""
    seen = Transcript()
    fedcore.run("analyze_gauss", [rows], 1, seed=seed, epsilon=epsilon, transcript=seen, **options)
    return seen.exchanges[0].sent


def scale(epsilon: float) -> float:
    analyze = algorithms.get("analyze_gauss")
    settings = analyze.params({"n_components": 1, "epsilon": epsilon})
    return analyze.module.noise_multiplier(settings)


def attack(sent: np.ndarray, source: np.random.SeedSequence) -> np.ndarray:
    """Subtract the noise that `source` gives."""
    return sent - scale(0.1) * np.random.default_rng(source).standard_normal(len(UPPER[0]))


def test_the_noise_cannot_be_drawn_again_from_the_seed(rows):
    exact, root = (rows.T @ rows)[UPPER], np.random.SeedSequence(0)
    sent = release(rows)
    for kind in range(4):
        for key in ((kind,), (kind, 0)):
            # 15 entries of standard deviation 43: all within 1 by chance once in 10^25.
            assert np.abs(attack(sent, child(root, *key)) - exact).max() > 1.0
    # In a simulation it can, by the key that the run derives; hence no guarantee.
    source = simulated(root, "analyze_gauss", {"n_components": 1, "start": None, "epsilon": 0.1})
    sent = release(rows, simulate=True)
    np.testing.assert_allclose(attack(sent, child(source, 2, 0)), exact, rtol=0, atol=1e-12)


def eliminated(first: np.ndarray, second: np.ndarray, epsilons: tuple[float, float]) -> np.ndarray:
    """Two releases with the same noise at two scales: two equations, two unknowns."""
    a, b = (scale(epsilon) for epsilon in epsilons)
    return (b * first - a * second) / (b - a)


@pytest.mark.parametrize("simulate", [True, False])
def test_two_epsilons_under_one_seed_do_not_give_the_data_away(rows, simulate):
    exact, both = (rows.T @ rows)[UPPER], (0.1, 0.2)
    shared = np.random.default_rng(3).standard_normal(len(exact))
    known = eliminated(*(exact + scale(e) * shared for e in both), both)
    np.testing.assert_allclose(known, exact, rtol=0, atol=1e-12)  # so did the old way
    sent = [release(rows, epsilon=e, simulate=simulate) for e in both]
    assert np.abs(eliminated(*sent, both) - exact).max() > 1.0


def cell(epsilon: float, algorithm: str = "analyze_gauss", **changes) -> Cell:
    given = {"name": f"x-{epsilon}", "repeats": 2, "metrics": ["objective"], **changes}
    return cells.cell(algorithm, {"n_components": 1, "epsilon": epsilon}, **given)


def of_cell(rows: np.ndarray, spec: Cell, epsilon: float) -> np.ndarray:
    seen, params = Transcript(), {"n_components": 1, "epsilon": epsilon}
    trial(spec, [Problem("x", [rows])], params, 0, Recording(), transcript=seen)
    return seen.exchanges[0].sent


@pytest.mark.parametrize("tuned", [False, True])
def test_cells_of_one_sweep_and_settings_of_one_grid_share_no_noise(rows, tuned):
    exact, both = (rows.T @ rows)[UPPER], (0.1, 0.2)
    sent = [of_cell(rows, cell(0.1 if tuned else e), e) for e in both]
    assert np.abs(eliminated(*sent, both) - exact).max() > 1.0
    np.testing.assert_array_equal(of_cell(rows, cell(0.1), 0.1), sent[0])  # each can be repeated
    for change in ({"name": "other"}, {"experiment": "f"}, {"seed": 1}):
        assert not np.isclose(of_cell(rows, cell(0.1, **change), 0.1), sent[0]).any()


def test_cells_of_one_sweep_share_starts_sketches_and_samples(rows):
    """Only the noise is apart: without noise the algorithms start as they did."""
    firsts = []
    for epsilon in (0.1, 0.2, None):
        spec = cell(epsilon, algorithm="noisy_power")
        params = {**spec.params, "rounds": 1}
        recorder, _ = trial(spec, [Problem("x", [rows])], params, 0, Recording(iterates="all"))
        firsts.append(recorder.snapshots.kept[0].shared)
    np.testing.assert_array_equal(firsts[0], firsts[1])
    np.testing.assert_array_equal(firsts[0], firsts[2])


def run_twice(name: str, rows: np.ndarray, **options) -> list[np.ndarray]:
    clients = [rows[:30], rows[30:]]
    params = PRIVATE[name]
    return [fedcore.run(name, clients, 1, **params, **options).components for _ in range(2)]


@pytest.mark.parametrize("name", PRIVATE)
def test_equal_seeds_give_equal_results_in_a_simulation_and_only_there(name, rows):
    first, second = run_twice(name, rows, simulate=True)
    assert first.tobytes() == second.tobytes()
    first, second = run_twice(name, rows)
    assert first.tobytes() != second.tobytes()


@pytest.mark.parametrize("name", PRIVATE)
def test_clients_of_a_private_run_draw_from_nothing_but_their_hidden_stream(name, rows):
    """So that no noise, shuffle or rotation is a secret that the seed gives away."""
    chosen, problem = algorithms.get(name), Problem("x", [rows[:30], rows[30:]])
    settings = chosen.params({"n_components": 1, **PRIVATE[name]})
    federation = Federation(problem.clients, 0)
    record = Recorder(problem, federation.ledger)
    chosen.run(federation, settings, federation.rng, record)
    public = [np.random.default_rng(child(np.random.SeedSequence(0), CLIENT, i)) for i in (0, 1)]
    for ours, fresh in zip(federation.client_state("rng"), public, strict=True):
        assert ours.bit_generator.state == fresh.bit_generator.state


def test_every_algorithm_that_protects_is_in_this_table():
    assert {name for name in algorithms.names() if has_budget(name)} == set(PRIVATE)


def has_budget(name: str) -> bool:
    return "epsilon" in {field.name for field in fields(algorithms.get(name).parameters)}


def test_runs_side_by_side_draw_the_same(rows):
    clients = np.array_split(rows, 6)

    def call(seed: int) -> np.ndarray:
        return fedcore.run("noisy_power", clients, 2, seed=seed, rounds=3, simulate=True).components

    alone = [call(seed) for seed in range(3)]
    beside = lockstep.run_all([functools.partial(call, seed) for seed in range(3)])
    for one, other in zip(alone, beside, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)  # wide products, one rounding


def test_clients_have_different_noise_and_a_client_keeps_its_own(rows):
    def noise(seed: int, ids: list[int]) -> list[np.ndarray]:
        federation = Federation(
            [rows] * len(ids), ids=ids, noise=None if seed < 0 else np.random.SeedSequence(seed)
        )
        federation.protect(delta=1e-5, neighbours="replace_one")
        return [privacy.hidden.standard_normal(4) for privacy in federation.client_state("privacy")]

    a, b = noise(1, [4, 7])
    assert not np.isclose(a, b).any()
    np.testing.assert_array_equal(noise(1, [7, 4])[0], b)
    assert not np.isclose(*noise(-1, [4, 7])).any()


def test_whatever_differs_between_two_runs_changes_the_key():
    root = np.random.SeedSequence(0)
    base = {"n_components": 1, "epsilon": 1.0, "start": None}
    key = simulated(root, "a", base).spawn_key
    assert simulated(root, "a", {**base, "epsilon": 1}).spawn_key == key  # the same number
    start = np.eye(3, 1)
    with_start = simulated(root, "a", {**base, "start": start}).spawn_key
    assert simulated(root, "a", {**base, "start": start.astype(int)}).spawn_key == with_start
    others = [
        simulated(root, "b", base),
        simulated(root, "a", {**base, "epsilon": np.nextafter(1.0, 2.0)}),
        simulated(root, "a", {**base, "start": -start}),
        simulated(root, "a", {**base, "clip": True}),
    ]
    keys = {key, with_start, *(other.spawn_key for other in others)}
    assert len(keys) == 6


def test_ledger_history_and_file_say_whose_noise_it_is(rows, tmp_path):
    for simulate, words in ((True, SIMULATED), (False, SECRET)):
        result = fedcore.run("analyze_gauss", [rows], 1, simulate=simulate)
        assert result.ledger.privacy.about()["noise"] == words
        assert result.ledger.privacy.simulated == simulate
        storage.save(Problem("x", [rows]), tmp_path / "x.h5")
        files = [tmp_path / "a.h5", tmp_path / "b.h5"]
        for file in files:
            run_cell(cell(0.1, simulate=simulate), tmp_path / "x.h5", file)
        assert History.load(files[0]).about["privacy"]["noise"] == words
        assert (files[0].read_bytes() == files[1].read_bytes()) == simulate
