"""Tables of `fedrep_linear`, on made-up histories and on tiny results of the workflow's road."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcore.experiments import build
from fedcore.history import History
from fedcore.problems import storage
from fedcore.repro.tables.rows import chosen, columns
from fedrep_linear import speeds, theory
from fedrep_linear import tables as report
from folder import Folder, without

SETTING = {"n_features": 10, "samples": 5, "rank": 2}


class Made(Folder):
    """Results that hold made-up histories."""

    def made(self, experiment, problem, variant, *, sigma=(1.0, 1.0), about=None, n=None,
             params=None, twin=None, **columns):  # fmt: skip
        arrays = {name: np.array(values, dtype=float) for name, values in columns.items()}
        trials, records = next(iter(arrays.values())).shape
        iteration = np.tile(np.arange(records), (trials, 1))
        whole = {"iteration": iteration, "round": iteration + 10.0} | arrays
        whole = {"diverged": np.zeros((trials, records))} | whole
        named = {"n_clients": 10, "n_samples": 50} | (about or {})
        twins = {"iteration": iteration} if twin else {}
        twins |= {name: np.array(values, dtype=float) for name, values in (twin or {}).items()}
        history = History(whole, about={"problem": named}, twin=twins)
        history.reference["head_singular_values"] = np.tile(sigma, (trials, 1))
        self.problems.setdefault(problem, {})
        tags = {"reading": "text", "n": n} if n else {}
        self.add(experiment, "fedrep_linear", problem, variant, history=history,
                 params=params or {}, tags=tags)  # fmt: skip

    def results(self):
        return super().results("fig3", "authors", "starts", "newcomers", "newcomers_exact")


@pytest.fixture
def folder(tmp_path):
    return Made(tmp_path, "fedrep_linear", {"n_components": 2}, [])


def decay(factor, floor=1e-3, rounds=200, trials=3, start=0.5):
    """Distance that falls by a factor per round down to a floor."""
    one = np.maximum(start * factor ** np.arange(rounds + 1.0), floor)
    return np.tile(one, (trials, 1))


def panels(folder, factors, **start):
    """Panels of Figure 3 with a factor of the distance per round for each n and method."""
    for n, by_method in factors.items():
        for method, factor in by_method.items():
            curve = decay(factor, **start)
            folder.made("fig3", f"text_{n}", method, n=n, representation_distance=curve)
    return speeds.panels(folder.results())


THREE = {
    10: {"fedrep": 0.95, "gd10": 0.955, "gd": 0.96},
    100: {"fedrep": 0.9, "gd10": 0.92, "gd": 0.95},
    1000: {"fedrep": 0.7, "gd10": 0.8, "gd": 0.93},
}


def test_the_speed_of_a_method_is_its_decrease_of_the_logarithm_per_round(folder):
    rows = panels(folder, THREE)
    assert [(row["n"], row["repeat"]) for row in rows] == [(n, i) for n in THREE for i in range(3)]
    for row in rows:
        assert (row["start"], row["floor"]) == (0.5, pytest.approx(1e-3))
        for method, factor in THREE[row["n"]].items():
            assert row[method] == pytest.approx(-np.log(factor), rel=1e-9)
        assert row["fedrep_fastest"] is True and row["more_steps_faster"] is True


def test_the_order_of_the_methods_turns_with_their_curves(folder):
    rows = panels(folder, {10: {"fedrep": 0.96, "gd10": 0.97, "gd": 0.955}})
    assert not any(row["fedrep_fastest"] or row["more_steps_faster"] for row in rows)


def test_a_panel_whose_starts_lie_at_the_floor_measures_nothing(folder):
    """As the text's at n = 1000: the start is better than any end, and all need 0 rounds."""
    rows = panels(folder, {10: THREE[10], 1000: THREE[1000]}, floor=0.4)
    assert len(rows) == 6 and all(row["fedrep_fastest"] is None for row in rows)
    assert all(row["fedrep_gains"] is None for row in speeds.scaling(folder.results()))
    (row, *_) = report.convergence(folder.results())
    assert row["above_floor"] is False and row["floor"] == pytest.approx(0.4)


def test_a_trial_that_diverges_is_a_missing_value_and_one_that_never_arrives_is_slow(folder):
    diverging, never = decay(0.9), decay(0.999)
    diverging[1, 3:] = np.nan
    for method, curve in (("fedrep", decay(0.9)), ("gd10", diverging), ("gd", never)):
        folder.made("fig3", "text_10", method, n=10, representation_distance=curve)
    rows = speeds.panels(folder.results())
    assert [row["fedrep_fastest"] for row in rows] == [False, None, False]  # as fast as 10GD-GD
    assert [row["more_steps_faster"] for row in rows] == [True, None, True]
    assert rows[0]["gd"] == pytest.approx(-np.log(0.999))  # over all 200 rounds
    (run,) = folder.results().runs("fig3", variant="gd10")
    assert report.lost(run) == ""  # nothing is said of it unless the history says "diverged"


def test_values_of_a_trial_that_diverges_are_missing(folder):
    curve = decay(0.9)
    curve[1, 2:4] = 1e300, np.inf
    folder.made("fig3", "text_10", "gd", n=10, representation_distance=curve)
    (run,) = folder.results().runs("fig3")
    found = report.trajectory(run, "representation_distance")
    assert np.isnan(found[1, 2:4]).all() and np.isfinite(found[[0, 2]]).all()


FLAGS = ("fedrep_gains", "gd_gains_less", "gd10_gains_less")


def test_gains_of_speed_with_n_are_compared_with_those_of_fedrep(folder):
    panels(folder, THREE)
    rows = speeds.scaling(folder.results())
    assert [(row["repeat"], row["step"]) for row in rows] == [
        (trial, step) for trial in range(3) for step in ("10 to 100", "100 to 1000")
    ]
    assert rows[1]["gain_fedrep"] == pytest.approx(np.log(0.7) / np.log(0.9), rel=1e-9)
    assert rows[1]["gain_gd"] == pytest.approx(np.log(0.93) / np.log(0.95), rel=1e-9)
    assert all(row[name] is True for row in rows for name in FLAGS)


def test_a_method_that_gains_as_much_as_fedrep_scales(folder):
    panels(folder, {n: dict.fromkeys(speeds.METHODS, f) for n, f in ((10, 0.9), (100, 0.8))})
    for row in speeds.scaling(folder.results()):
        assert [row[name] for name in FLAGS] == [True, False, False]


def test_the_floor_of_a_problem_is_that_of_all_learning_rates(folder):
    for experiment, factor in (("fig3", 0.9), ("authors", 0.999)):
        for method in speeds.METHODS:
            folder.made(experiment, "text_10", method, n=10,
                        representation_distance=decay(factor))  # fmt: skip
    rows = speeds.panels(folder.results())
    slow = chosen(rows, experiment="authors")
    assert len(slow) == 3 and slow[0]["floor"] == pytest.approx(1e-3)
    assert slow[0]["fedrep"] == pytest.approx(-np.log(0.999))


def test_rounds_to_a_distance_lie_between_two_rounds():
    distance = np.array([[0.5, 0.25, 0.125], [0.5, 0.4, 0.3], [0.1, 0.1, 0.1]])
    found = speeds.crossing(distance, np.array([0.25 / 2**0.5, 0.2, 0.2]))
    np.testing.assert_allclose(found, [1.5, np.nan, 0.0])


@pytest.mark.parametrize(("steps", "name"), [(None, "FedRep"), (1, "GD-GD"), (10, "10GD-GD")])
def test_a_method_is_named_by_its_steps_on_heads(folder, steps, name):
    params = {"head_steps": steps}
    folder.made("fig3", "text_10", "m", params=params, representation_distance=decay(0.5))
    (run,) = folder.results().runs("fig3")
    assert report.method(run) == name and report.lost(run) == ""


def test_rounds_from_a_random_start_are_compared_with_those_of_the_same_trial_from_pgd(folder):
    for variant, start, factor, params in (
        ("fedrep-pgd-qr", 0.25, 0.5, {}),
        ("fedrep-random-qr", 1.0, 0.5, {}),
        ("gd-pgd-qr", 0.25, 0.8, {"head_steps": 1}),
        ("gd-random-qr", 1.0, 0.999, {"head_steps": 1}),
    ):
        distance = decay(factor, floor=2.0**-10, start=start)
        init = {"init": variant.split("-")[1]}
        folder.made("starts", "text_100", variant, n=100, params=params | init,
                    representation_distance=distance)  # fmt: skip
    rows = {(row["method"], row["init"]): row for row in report.initialisation(folder.results())
            if row["repeat"] == 0}  # fmt: skip
    # The target is halfway from 2⁻² to 2⁻¹⁰: four halvings from PGD, six from the random start.
    assert rows["fedrep", "pgd"]["rounds"] == pytest.approx(4)
    assert rows["fedrep", "random"]["sensitivity"] == pytest.approx(6 / 4)
    assert rows["gd", "random"]["failed"] is True
    assert rows["gd", "random"]["sensitivity"] == np.inf
    assert rows["gd", "random"]["more_sensitive"] is True
    assert rows["fedrep", "random"]["more_sensitive"] is False


def test_the_bound_of_theorem_1(folder):
    """(1 − η E₀ σ̄²_min / 2)^(t/2) dist₀ by hand: η = 0.25/4, E₀ = 0.75, σ̄²_min = 1."""
    above = decay(0.5, rounds=4)
    above[0, 3] = 0.499
    for variant, distance in (("fresh5", decay(0.5, rounds=4)), ("above", above)):
        folder.made("theorem1", "exact", variant, sigma=(2.0, 1.0),
                    params={"step": 0.25, "batch": 5},
                    representation_distance=distance)  # fmt: skip
    results = folder.results()
    factor = 1 - 0.25 / 4 * 0.75 / 2
    expected = 0.5 * factor ** (np.arange(5) / 2)
    (run,) = results.runs("theorem1", variant="fresh5")
    np.testing.assert_allclose(report.theorem1_bound(run)[0], expected, rtol=1e-14)
    row, *others = report.rate(results)
    assert row["below_bound"] and row["factor"] == pytest.approx(0.5)
    assert row["bound"] == pytest.approx(np.sqrt(factor))
    assert row["steady"] == pytest.approx(1) and row["r"] == 1
    assert [other["below_bound"] for other in others] == [True, True, False, True, True]
    assert row["below_whole"]  # 0.5 a round is faster than 1 − 0.25/4 · 0.75 = 0.953, too


def test_the_bound_of_theorem_1_is_told_from_one_without_its_halves(folder):
    """0.97 a round is below √(1 − 0.047/2) = 0.988 and above 1 − 0.047 = 0.953."""
    slow = np.tile(0.5 * 0.97 ** np.arange(9), (2, 1))
    folder.made("theorem1", "exact", "fresh5", sigma=(2.0, 1.0),
                params={"step": 0.25, "batch": 5}, representation_distance=slow)  # fmt: skip
    results = folder.results()
    (run,) = results.runs("theorem1")
    whole = 0.5 * (1 - 0.25 / 4 * 0.75) ** np.arange(9)
    np.testing.assert_allclose(report.theorem1_bound(run, half=1.0)[0], whole, rtol=1e-14)
    assert {(row["below_bound"], row["below_whole"]) for row in report.rate(results)} == {
        (True, False)
    }


def test_the_bound_takes_a_given_size_of_the_heads(folder):
    """η = 0.25/√2² for head_sigma = √2."""
    params = {"step": 0.25, "batch": 5, "head_sigma": 2**0.5, "participation": 0.5}
    folder.made("theorem1", "exact", "half10", sigma=(2.0, 1.0), params=params,
                representation_distance=decay(0.5, rounds=4))  # fmt: skip
    (run,) = folder.results().runs("theorem1")
    factor = 1 - 0.125 * 0.75 / 2
    np.testing.assert_allclose(report.theorem1_bound(run)[0], 0.5 * factor ** (np.arange(5) / 2))


def test_a_law_slower_than_linear_is_not_steady(folder):
    slow = np.tile(0.5 / (1.0 + np.arange(201.0)) ** 2, (3, 1))
    folder.made("theorem1", "exact", "slow", params={"step": 0.25, "batch": 5},
                representation_distance=slow)  # fmt: skip
    assert all(row["steady"] < 0.5 for row in report.rate(folder.results()))


def test_the_smallest_number_of_samples_from_which_on_a_trial_recovers(folder):
    good = {2: 0, 3: 8, 4: 9, 5: 10}
    settings = [{"n_clients": 100, "samples": m} for m in good for _ in range(10)]
    ends = [[1e-5 if i < good[m] else 0.3] for m in good for i in range(10)]
    ends[10] = [0.3]  # trial 0 with m = 3
    folder.problems["need_n"] = {"params": {"n_features": 20}}
    about = {"settings": settings}
    folder.made("need", "need_n", "fedrep", representation_distance=ends, about=about)
    results = folder.results()
    assert [row["recovered"] for row in report.samples(results)] == [0, 7, 9, 10]
    rows = report.need(results)
    assert [row["m"] for row in rows] == [4, 3, 3, 3, 3, 3, 3, 3, 4, 5]
    for row in rows:
        asked = 4 * (20 / 100 + 2 * np.log(100))
        assert (row["n"], row["d"], row["asked"]) == (100, 20, pytest.approx(asked))
        assert row["ratio"] == pytest.approx(row["m"] / asked)
        assert row["share_alone"] is None
        assert row["unknowns"] == pytest.approx(2 + 2 * 18 / 100)


def test_the_need_of_twins_stands_beside_that_of_the_trials(folder):
    about = {"settings": [{"n_clients": 100, "samples": m} for m in (2, 3, 4) for _ in range(2)]}
    folder.problems["need_n"] = {"params": {"n_features": 20}}
    ends, others = [[[e] for e in (0.3, 0.3, 1e-5, last, 1e-5, 1e-5)] for last in (1e-5, 0.3)]
    for twin in ({"representation_distance": others}, None):
        folder.made("need", "need_n", "fedrep", representation_distance=ends, about=about,
                    twin=twin)  # fmt: skip
        found = [(row["m"], row["twin_m"]) for row in report.need(folder.results())]
        assert found == ([(3, 3), (3, 4)] if twin else [(3, None), (3, None)])


def test_a_trial_that_no_number_of_samples_recovers_has_none(folder):
    about = {"settings": [{"n_clients": 100, "samples": m} for m in (2, 3)]}
    folder.problems["need_n"] = {"params": {"n_features": 20}}
    folder.made("need", "need_n", "fedrep", representation_distance=[[1e-5], [0.3]], about=about)
    (row,) = report.need(folder.results())
    assert np.isnan(row["m"]) and row["ratio"] is None  # (11) asks for 37, and 3 are most here


@pytest.mark.parametrize(
    ("m", "by", "largest", "expected"),
    [(4, 8, 20, 0.5), (np.nan, 8, 20, np.inf), (np.nan, 8, 4, None), (np.nan, 8, np.nan, None)],
)
def test_a_need_beyond_all_sizes_shows_what_the_largest_one_does(m, by, largest, expected):
    assert theory.share(m, by, largest) == expected


def fresh(folder, problem, ends, **about):
    """Cells of a problem, with the round in which each of two trials recovers, by batch."""
    about = {"n_clients": 100, "n_features": 20} | about
    params = {name: about[name] for name in ("n_clients", "n_features")} | {"samples": 480}
    folder.problems[problem] = {"params": params}
    for batch, rounds in ends.items():
        curves = [[0.3] * t + [1e-5] * (9 - t) if t else [0.3] * 9 for t in rounds]
        folder.made("fresh", problem, f"m{batch}", about=about, sigma=about["sigma"],
                    params={"batch": batch, "n_components": len(about["sigma"])},
                    representation_distance=curves)  # fmt: skip


def test_fresh_samples_are_those_of_the_best_batch_and_of_the_start(folder):
    fresh(folder, "scale_d", {3: (8, None), 4: (4, None)}, sigma=(1.5, 1.0),
          settings=[{"n_features": 40}, {"n_features": 80}])  # fmt: skip
    rows = theory.fresh(folder.results())
    found = [(row["n"], row["d"], row["total"]) for row in rows]
    assert found == [(100, 40, 4 * 5), (100, 80, np.inf)]
    asked = 1.5**4 * 4 * (40 / 100 + 2 * np.log(100)) * np.log(1e4)
    assert rows[0]["ratio"] == pytest.approx(20 / asked)
    assert rows[1]["ratio"] is None  # 480 samples are fewer than ten times (11)


def test_the_growth_of_fresh_samples_is_held_against_that_of_11(folder):
    fresh(folder, "fresh_rank_1", {4: (4, 4)}, sigma=(1.0,))
    fresh(folder, "fresh_rank_2", {4: (4, None)}, sigma=(1.0, 1.0))
    fresh(folder, "fresh_kappa_100", {4: (1, 4)}, sigma=(1.0, 1.0))
    fresh(folder, "fresh_kappa_150", {4: (3, 4)}, sigma=(1.5, 1.0))
    rows = theory.growths(folder.results())
    assert [(row["size"], row["growth"]) for row in rows] == [
        ("rank", 1), ("rank", np.inf), ("kappa", 2), ("kappa", 1),
    ]  # fmt: skip
    asked = [k**2 * (0.2 + k * np.log(100)) for k in (1, 2)]
    assert rows[0]["share"] == pytest.approx(asked[0] / asked[1])
    assert rows[2]["share"] == pytest.approx(2 / 5.0625)


@pytest.mark.parametrize(("more", "share"), [(4, 0.25), (16, 1.0)])
def test_federation_helps_if_samples_grow_less_than_those_of_a_client_alone(folder, more, share):
    fresh(folder, "scale_few", {4: (3, None)}, sigma=(1.0, 1.0), settings=[{"n_clients": 10}] * 2)
    fresh(folder, "scale_many", {4: (3, 3)}, sigma=(1.0, 1.0))
    fresh(folder, "scale_d", {more: (3, 3)}, sigma=(1.0, 1.0), n_features=80)
    rows = {(row["problem"], row["repeat"]): row for row in theory.fresh(folder.results())}
    assert [rows["scale_d", i]["share_alone"] for i in (0, 1)] == [share] * 2
    assert rows["scale_few", 0]["share_alone"] is None
    first, lost, *_ = theory.growths(folder.results())
    assert first["share"] == pytest.approx((2 + np.log(10)) / (0.2 + np.log(100)))
    assert np.isnan(lost["share"])  # the trial with 10 clients was not enough


def test_the_need_at_a_quarter_of_d_is_that_of_the_same_trial(folder):
    sizes = [(d, m) for d in (20, 80) for m in (2, 3, 6)]
    about = {"settings": [{"n_features": d, "samples": m} for d, m in sizes]}
    folder.problems["need_d"] = {"params": {"n_clients": 100}}
    ends = [[1e-5 if m >= (3 if d == 20 else 6) else 0.3] for d, m in sizes]
    folder.made("need", "need_d", "fedrep", representation_distance=ends, about=about)
    assert [row["share_alone"] for row in report.need(folder.results())] == [None, 0.5]


def test_what_the_start_tells_is_a_row_per_draw(folder):
    folder.made("moments", "moments_5", "fedrep", membership_advantage=[[1.0], [0.9]],
                rebuilt_sample=[[0.8], [0.7]], representation_distance=[[0.5], [0.6]],
                about={"n_features": 20})  # fmt: skip
    rows = theory.moments(folder.results())
    assert [(row["told"], row["rebuilt"], row["distance"], row["d"]) for row in rows] == [
        (1.0, 0.8, 0.5, 20), (0.9, 0.7, 0.6, 20),
    ]  # fmt: skip


def test_the_need_of_new_clients_by_k(folder):
    """5 % of k/2 is 0.125 at k = 5; a number of samples counts if all larger ones are enough."""
    for variant, by_size in {
        "fedrep": {5: [9.0, 0.1], 10: [0.1, 0.13], 20: [0.1, 0.12]},
        "local": {5: [9.0, 9.0], 10: [9.0, 9.0], 20: [0.2, 0.12]},
    }.items():
        columns = {f"new_client_error_{s}": [[e] for e in errors] for s, errors in by_size.items()}
        folder.made("newcomers", "newcomers_5", variant, params={"n_components": 5},
                    representation_distance=[[0.1]] * 2, **columns)  # fmt: skip
    for path, cell in folder.cells.items():
        folder.cells[path] = replace(cell, tags={"k": 5})
    rows = theory.newcomers(folder.results())
    assert [row["over_k"] for row in rows] == [2, 4, np.inf, 4]
    assert [row["share"] for row in rows] == pytest.approx([1, 1, np.nan, 1], nan_ok=True)


@pytest.mark.parametrize(("sizes", "share"), [((5, 10), 1.0), ((5, 20), 2.0), ((10, 10), 0.5)])
def test_the_need_of_new_clients_grows_as_k_or_not(folder, sizes, share):
    for k, size in zip((5, 10), sizes, strict=True):
        errors = {f"new_client_error_{s}": [[0.0 if s >= size else 9.0]] for s in (5, 10, 20)}
        folder.made("newcomers", f"newcomers_{k}", "fedrep", params={"n_components": k},
                    representation_distance=[[0.1]], **errors)  # fmt: skip
    for path, cell in folder.cells.items():
        folder.cells[path] = replace(cell, tags={"k": int(cell.problem.split("_")[-1])})
    assert [row["share"] for row in theory.newcomers(folder.results())] == [1.0, share]


def test_the_need_of_new_clients_is_paired_within_an_experiment(folder):
    """With noise twice as many are needed as without, at each k, so that both shares are 1."""
    for name, sizes in (("newcomers", {5: 10, 10: 20}), ("newcomers_exact", {5: 5, 10: 10})):
        for k, size in sizes.items():
            errors = {f"new_client_error_{s}": [[9.0 * (s < size)]] for s in (5, 10, 20)}
            folder.made(name, f"{name}_{k}", "fedrep", params={"n_components": k},
                        representation_distance=[[0.1]], **errors)  # fmt: skip
    for path, cell in folder.cells.items():
        folder.cells[path] = replace(cell, tags={"k": int(cell.problem.split("_")[-1])})
    found = theory.newcomers(folder.results())
    assert [row["over_k"] for row in found] == [2, 2, 1, 1]
    assert [row["share"] for row in found] == [1, 1, 1, 1]


@pytest.mark.parametrize("law", ["linear", "slow"])
def test_gradient_steps_on_heads(folder, law):
    t = np.arange(101.0)
    excess = 0.7**t if law == "linear" else 1.0 / (1.0 + t) ** 2
    folder.made("head_steps", "two_heads", "gd", training_loss=[0.1 + excess],
                fitted_loss=[np.full(101, 0.1)])  # fmt: skip
    (row,) = theory.head_steps(folder.results())
    assert row["steps"] == 65 if law == "linear" else np.isnan(row["steps"])
    assert (
        row["steady"] == pytest.approx(33 / 32, rel=1e-3)
        if law == "linear"
        else row["steady"] < 0.5
    )


def test_operations_of_a_head_by_hand():
    rows = theory.head_operations(None)
    for part, d in (("whole", 1), ("given features", 0)):
        found = chosen(rows, part=part)
        assert [(row["m"], row["k"], row["d"]) for row in found] == theory.HEADS
        by_hand = [
            d * 2 * row["m"] * row["d"] * row["k"]
            + 2 * (2 * row["m"] * row["k"] ** 2 - 2 * row["k"] ** 3 / 3)  # QR by reflections
            + 2 * row["k"] ** 3 / 3 + 2 * row["k"] ** 2  # LU
            + 2 * row["m"] * row["k"]
            for row in found
        ]  # fmt: skip
        np.testing.assert_allclose([row["counted"] for row in found], by_hand, rtol=1e-12)
        shares = [row["counted"] / (row["m"] * row["k"] ** 2 + row["k"] ** 3) for row in found]
        np.testing.assert_allclose([row["growth"] * shares[0] for row in found], shares)


def test_draws_with_more_different_heads_are_paired_with_others(folder):
    apart = [0.1, 0.4, 0.2, 0.3]
    folder.made("heterogeneity", "mixed_heads", "fedsgd", head_distance=np.array([apart]).T,
                population_error=[[1.0], [1.5], [2.0], [3.0]])  # fmt: skip
    rows = theory.heterogeneity(folder.results())
    assert [(row["heads"], row["errors"], row["grows"]) for row in rows] == [
        (pytest.approx(3), 3, True), (pytest.approx(2), 0.75, False),
    ]  # fmt: skip


def test_the_error_of_one_model_is_over_that_of_the_best_one(folder):
    folder.made("one_model", "one_model", "fedsgd", population_error=[[3.0]],
                single_model_error=[[2.0]], representation_distance=[[0.9]])  # fmt: skip
    (row,) = theory.one_model(folder.results())
    assert (row["to_formula"], row["distance"]) == (1.5, 0.9)


def test_one_n_shows_no_growth(folder):
    for method, factor in (("fedrep", 0.8), ("gd", 0.9)):
        curve = decay(factor, rounds=300)
        folder.made("fig7", "text_10_m20", method, n=10, population_error=curve,
                    representation_distance=curve)  # fmt: skip
    assert [row["grows"] for row in report.improvement(folder.results())] == [None] * 3


@pytest.mark.parametrize("grows", [True, False])
def test_the_improvement_of_figure_7_grows_or_not(folder, grows):
    for n, gd in ((10, 0.9), (100, 0.95), (1000, 0.98 if grows else 0.9)):
        for method, factor in (("fedrep", 0.8), ("gd", gd)):
            curve = decay(factor, rounds=300)
            folder.made("fig7", f"text_{n}_m20", method, n=n, population_error=curve,
                        representation_distance=curve)  # fmt: skip
    results = folder.results()
    rows = report.functions(results)
    assert [row["n"] for row in rows] == [n for n in (10, 100, 1000) for _ in range(3)]
    assert rows[0]["ratio_10"] == pytest.approx((0.9 / 0.8) ** 10)
    assert rows[0]["similar"] == pytest.approx((0.9 / 0.8) ** 10)  # the curves are the same
    assert [row["grows"] for row in report.improvement(results)] == [grows] * 3


@pytest.mark.parametrize(("method", "grows"), [("fedrep", False), ("gd", None)])
def test_an_improvement_of_a_lost_fedrep_does_not_grow(folder, method, grows):
    for n, gd in ((10, 0.9), (100, 0.95)):
        for name, factor in (("fedrep", 0.8), ("gd", gd)):
            curve = decay(factor, rounds=300)
            if name == method:
                curve[0, 5:] = np.nan
            folder.made("fig7", f"text_{n}_m20", name, n=n, population_error=curve,
                        representation_distance=curve)  # fmt: skip
    found = report.improvement(folder.results())
    assert [row["grows"] for row in found] == [grows, True, True]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """All experiments, with two draws and few rounds."""
    metrics = ["representation_distance", "population_error"]
    folder = Folder(tmp_path_factory.mktemp("r"), "fedrep_linear", {"n_components": 2}, metrics)
    more = {"test_samples": 4, "new_clients": 3, "new_samples": 40, "noise": 0.1, "samples": 12}
    for name, extra in (("text_10", {"n_clients": 10}), ("train_text_20", more)):
        spec = {"generator": "shared_heads", "draws": 2,
                "params": {"n_clients": 20} | SETTING | extra}  # fmt: skip
        made = build.build_draws(name, spec, raw="", seed=1, surrogate=False)
        storage.save(made, folder.root / f"{name}.h5")
        folder.problems[name] = {"label": name}
    few = {"rounds": 6, "participation": 0.5}
    tune = {"by": "fitted_loss", "every": 2, "repeats": 2, "over": {"step": [0.01, 0.3]}}
    for variant, params in (
        ("fedrep", {}),
        ("gd", {"head_steps": 1}),
        ("gd10", {"head_steps": 10}),
    ):
        folder.add("fig3", "fedrep_linear", "text_10", variant, params=few | params, tune=tune,
                   tags={"reading": "text", "n": 10})  # fmt: skip
    errors = [*metrics, "noisy_population_error", "fitted_error", "test_error",
              "noisy_test_error", "fitted_test_error", "fitted_noisy_test_error",
              "single_model_error", "exact_new_client_error_2",
              *(f"new_client_error_{s}" for s in report.NEW_SAMPLES)]  # fmt: skip
    for experiment, algorithm, variant, params in (
        ("fig1", "fedrep_linear", "fedrep", {"rounds": 30}),
        ("fig1", "fedsgd_linear", "fedsgd", {"rounds": 30}),
        ("local", "local_linear", "local", {}),
    ):
        folder.add(experiment, algorithm, "train_text_20", variant, params=params, metrics=errors,
                   tags={"reading": "text"})  # fmt: skip
    return folder.results()


def test_errors_are_compared_trial_by_trial(tiny):
    rows = report.errors(tiny)
    assert [row["method"] for row in rows] == ["fedrep"] * 2 + ["fedsgd"] * 2 + ["local"] * 2
    for row, best in zip(rows, rows[:2] * 3, strict=True):
        assert row["to_fedrep"] == pytest.approx(row["population_error"] / best["population_error"])
        # W* = √2 Q: ‖W*‖²/2n = 2·2/(2·20), what the model that says zero has.
        assert row["relative_error"] == pytest.approx(row["population_error"] / 0.1)
        assert (row["reading"], row["m"]) == ("text", 12)
        # The least error of one model, √2 Q with the mean head taken off, is just below.
        assert 0.9 < row["relative_error"] / row["to_single_model"] <= 1 + 1e-12
    new = report.new_clients(tiny)
    two = chosen(new, samples=2, method="fedrep")
    assert all(row["to_exact"] > 1 for row in two)
    assert all(row["accurate"] is (row["relative_error"] <= 0.05 or row["to_exact"] <= 4)
               for row in chosen(new, samples=2))  # fmt: skip
    assert all(np.isnan(row["to_exact"]) for row in chosen(new, samples=3))
    assert all(row["accurate"] is None for row in chosen(new, samples=3))
    assert all(row["to_local"] == 1 for row in chosen(new, method="local"))
    assert len(new) == 3 * 2 * len(report.NEW_SAMPLES)
    assert (
        new[0]["error"]
        == tiny["fig1/fedrep_linear/train_text_20-fedrep"].last("new_client_error_1")[0]
    )
    few, many = (columns(new, "error", samples=m, method="local")[0] for m in (2, 40))
    assert few.shape == many.shape == (2,) and (few > many).all()  # 2 of 10 coefficients, and all


def test_errors_are_compared_with_no_method_that_was_left_out(tiny):
    alone, methods = without(tiny, "fig1"), without(tiny, "local")
    ratios = ("to_fedrep", "fitted_to_fedrep", "to_fedsgd")
    assert [row["error"] for row in report.new_clients(alone)]
    assert all(row[name] is None for row in report.errors(alone) for name in ratios)
    assert all(row["to_local"] is None for row in report.new_clients(methods))
    assert [row["to_fedrep"] for row in report.errors(methods)[:2]] == [1, 1]


def test_numbers_that_cross_are_those_of_the_algorithms(tiny):
    rows = report.communication(tiny)
    up = {row["method"]: row["up_per_round"] for row in rows}
    assert up["fedrep"] == up["gd"] == 20 and up["fedsgd"] == 22  # d k, and (d + 1) k
    assert all(row["up_per_round"] == row["down_per_round"] for row in rows)
    assert all(row["start_up"] == 100 and row["start_down"] == 0 for row in rows)  # d² of moments
