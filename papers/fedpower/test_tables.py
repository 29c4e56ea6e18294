"""Tables of `fedpower` on tiny results, and its claims on curves that are made up."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fedcore.history import History
from fedpower import examples, theory
from fedpower import tables as report
from folder import Folder, without

PARAMS = {"n_components": 3, "target": 2, "iterations": 6, "delta": 1e-4}


@pytest.fixture
def unit_clients():
    rng = np.random.default_rng(4)
    clients = [rng.standard_normal((60, 8)) * [5, 4, 1, 1, 1, 1, 1, 1] for _ in range(5)]
    return [c / np.linalg.norm(c, axis=1, keepdims=True) for c in clients]


@pytest.fixture
def folder(tmp_path, unit_clients):
    metrics = ["projection_distance", "misalignment"]
    folder = Folder(tmp_path, "fedpower", PARAMS, metrics)
    folder.add_problem("model1", unit_clients)
    return folder


def made_up(distance, **columns):
    """History of curves, one per repeat, with a communication per record."""
    distance = np.atleast_2d(distance)
    rounds = np.tile(np.arange(distance.shape[1]), (len(distance), 1))
    return History(
        {"iteration": rounds, "round": rounds, "projection_distance": distance, **columns}
    )


CLAIMS = {
    "alignment": report.alignment_claims,
    "alignment_noisy": report.alignment_claims,
    "decay": report.decay_claims,
    "machines": report.machine_claims,
    "few_machines": report.few_machine_claims,
    "similarity": report.similarity_claims,
    "sampling": report.sampling_claims,
}


def claim(results, name, experiment="fig3"):
    """Column of ratios and column of flags of a claim."""
    rows = CLAIMS.get(experiment, report.panel_claims)(results)
    found = [r for r in rows if (r["experiment"], r["claim"]) == (experiment, name)]
    assert [row["repeat"] for row in found] == list(range(len(found))) and found
    return [row["ratio"] for row in found], [row["holds"] for row in found]


PANEL = {
    "default": [1.0, 0.6, 0.3, 0.11, 0.1],
    "p1": [1.0, 0.9, 0.6, 0.3, 0.11, 0.1],
    "p4": [1.0, 0.3, 0.11],
    "eps1": [1.0, 0.5, 0.2, 0.06, 0.05],
    "eps10": [1.0, 0.4, 0.1, 0.02, 0.01],
    "K20": [1.0, 0.7, 0.4, 0.2, 0.12],
    "K12": [1.0, 0.7, 0.4, 0.2, 0.14],
    "K8": [1.0, 0.7, 0.4, 0.2, 0.17],
    "K8-once": [1.0, 0.7, 0.4, 0.2, 0.16],
}
VARIED = {
    "p1": {"local_steps": 1},
    "p4": {"local_steps": 4},
    "eps1": {"epsilon": 1.0},
    "eps10": {"epsilon": 10.0},
    "K20": {"participants": 20},
    "K12": {"participants": 12},
    "K8": {"participants": 8},
    "K8-once": {"participants": 8, "replacement": False},
}


def results_of(folder, curves):
    for experiment in report.FIGURES:
        for variant, curve in curves.items():
            history, params = made_up(curve), VARIED.get(variant, {})
            folder.add(experiment, "fedpower", "model1", variant, history=history, params=params)
    return folder.results()


def test_claims_that_the_curves_bear_out(folder):
    results = results_of(folder, PANEL)
    for name, ratio in {
        "larger-p-wins": 0.6 / 0.9, "larger-p-nearer": (0.1 / 0.9) ** 0.25,
        "larger-eps-wins": 0.5, "larger-K-wins": 0.12 / 0.17,
        "larger-K-wins-full": 0.1 / 0.17, "larger-K-wins-all": 0.1 / 0.16,
        "K-influence": 0.17 / 0.12, "K8-effective": 0.17, "K8-once-effective": 0.16,
    }.items():  # fmt: skip
        assert claim(results, name) == (pytest.approx([ratio]), [True]), name
    assert claim(results, "K-influence-full") == (pytest.approx([1.7]), [False])
    assert claim(results, "K-influence-all") == (pytest.approx([1.6]), [False])


@pytest.mark.parametrize(
    ("variant", "curve", "name"),
    [
        ("p4", [1.0, 0.91, 0.31], "larger-p-wins"),  # behind p = 1 at the first communication
        ("default", [1.0, 0.6, 0.61, 0.11, 0.1], "larger-p-wins"),
        ("eps1", [1.0, 0.5, 0.2, 0.1, 0.101], "larger-eps-wins"),
        ("K8", [1.0, 0.7, 0.4, 0.2, 0.11], "larger-K-wins"),
        ("K8", [1.0, 0.7, 0.4, 0.2, 0.09], "larger-K-wins-full"),
        ("K8-once", [1.0, 0.7, 0.4, 0.2, 0.09], "larger-K-wins-all"),
        ("K8", [1.0, 0.7, 0.4, 0.2, 0.19], "K-influence"),
        ("K8-once", [1.0, 0.9, 0.8, 0.7, 0.6], "K8-once-effective"),
        ("K8", [1.0, 0.9, 0.8, 0.7, 0.6], "K8-effective"),
    ],
)
def test_claims_that_one_curve_spoils(folder, variant, curve, name):
    """The same in each of two repeats: the first as it should be, the second spoilt."""
    curves = {key: [own, own] for key, own in PANEL.items()}
    curves[variant] = [PANEL[variant], curve]
    assert claim(results_of(folder, curves), name)[1] == [True, False]


def test_where_nothing_is_found_the_number_of_machines_shows_nothing(folder):
    flat = [1.0] * 5
    results = results_of(folder, {**PANEL, "K20": flat, "K8": flat, "K8-once": flat})
    for name in ("K-influence", "K-influence-full", "K-influence-all"):
        ratio, holds = claim(results, name)
        assert ratio == holds == [None]


def test_a_curve_that_has_settled_at_once_tells_nothing_about_p(folder):
    results = results_of(folder, {**PANEL, "p1": [0.1] * 6})
    ratio, holds = claim(results, "larger-p-wins")
    assert ratio == holds == [None]
    assert claim(results, "larger-p-nearer")[1] == [False]  # p = 1 is nearer from the start


def test_runs_are_read_from_histories(folder):
    params = {"participants": 3, "local_steps": 3, "epsilon": 40.0, "calibration": "tight"}
    made = {
        experiment: folder.add(experiment, "fedpower", "model1", "K3", params=params)
        for experiment in (*report.FIGURES, "calibration")
    }
    rows = report.runs(folder.results())
    assert [(row["experiment"], row["repeat"]) for row in rows] == list(product(made, range(2)))
    for row in rows:
        assert (row["p"], row["share"], row["epsilon"], row["rounds"]) == (3, 0.6, 40.0, 3)
        assert row["epsilon_spent"] == pytest.approx(40.0, rel=1e-6)
        assert row["distance"] == made[row["experiment"]].last("projection_distance")[row["repeat"]]


def test_the_noise_table_predicts_what_is_measured(folder, unit_clients):
    """A small noise on a clear gap: the floor is that of the formula, to the spread of a norm."""
    for epsilon in (300.0, 3000.0):
        folder.add(
            "calibration", "fedpower", "model1", f"tight-{epsilon:g}", repeats=10,
            params={"epsilon": epsilon, "calibration": "tight", "iterations": 12, "local_steps": 1},
        )  # fmt: skip
    S = np.vstack(unit_clients)
    eigenvalues = np.linalg.eigvalsh(S.T @ S / len(S))[::-1]
    for row in report.noise(folder.results()):
        assert row["sigma_k"] == pytest.approx(eigenvalues[1])
        assert row["sigma_next"] == pytest.approx(eigenvalues[2])
        norm = row["nu"] * (np.sqrt(8) + np.sqrt(3)) / np.sqrt(5)
        assert row["noise_norm"] == pytest.approx(norm)
        assert 0.4 < row["measured"] / row["predicted"] < 1.3


def test_calibrations_split_into_their_factors():
    rows = report.calibrations()
    assert max(row["share_paper"] for row in rows) <= 1
    assert max(row["share_tenth"] for row in rows if row["epsilon"] == 0.5) > 1
    for row in rows:
        product = row["from_sensitivity"] * row["from_conversion"]
        assert row["ratio"] == pytest.approx(product) and row["ratio"] > 1


def test_misalignments_and_decays_have_a_row_per_repeat(folder, unit_clients):
    folder.add("dissimilarity", "fedpower", "model1", metrics=["dissimilarity"],
               params={"iterations": 0, "epsilon": None})  # fmt: skip
    for alignment in ("none", "procrustes"):
        folder.add(
            "alignment", "fedpower", "model1", f"{alignment}-p3",
            params={"epsilon": None, "alignment": alignment, "schedule": "constant",
                    "local_steps": 3},
        )  # fmt: skip
    results = folder.results()
    rows = report.misalignments(results)
    alone = report.misalignments(without(results, "dissimilarity"))
    assert [row["misalignment"] for row in alone] == [row["misalignment"] for row in rows]
    assert all(row["share_opt"] is row["share_unrelated"] is None for row in alone)
    assert [(row["alignment"], row["p"], row["repeat"]) for row in rows] == [
        ("none", 3, 0), ("none", 3, 1), ("procrustes", 3, 0), ("procrustes", 3, 1),
    ]  # fmt: skip
    assert all(0 < row["misalignment"] < 2 for row in rows)
    assert [row["sent_over_plain"] for row in rows] == [1, 1, 2, 2]
    grams = [C.T @ C for C in unit_clients]
    A = sum(grams) / 300
    eigenvalues = np.linalg.eigvalsh(A)[::-1]
    eta = max(np.linalg.norm(5 * G / 300 - A, 2) for G in grams) / eigenvalues[0]
    kappa = np.linalg.cond(np.vstack(unit_clients))
    for row in rows:
        bound = 4 * np.e * np.sqrt(3) * 2 * kappa**2 * eta
        assert row["share_none"] == pytest.approx(row["misalignment"] / bound)
        assert row["share_unrelated"] == pytest.approx(np.sqrt(2) / bound)


def test_theorem_8_in_closed_form():
    """Eigenvalues 4, 4, 1, 1 and η = 1/8: ‖A_i − A‖ ≤ ½, so that the sine is 1/5, γ 3/7; κ is 2."""
    with_opt, without = theory.theorem_8(np.array([4.0, 4.0, 1.0, 1.0]), 2, 0.125, p=5)
    assert with_opt == pytest.approx(0.2 + 2 * 3 / 7 / np.sqrt(24))
    assert without == pytest.approx(4 * np.e * np.sqrt(2) * 4 * 16 * 0.125)


def test_bounds_of_theorems_7_and_9(folder, unit_clients):
    folder.add("dissimilarity", "fedpower", "model1", metrics=["dissimilarity"],
               params={"iterations": 0, "epsilon": None})  # fmt: skip
    for variant, params in {"default": {}, "K3": {"participants": 3}}.items():
        folder.add("fig3", "fedpower", "model1", variant, params=params)
    constant = {"n_components": 2, "target": None, "epsilon": None, "local_steps": 1}
    curve = made_up([[0.9, 0.5, 0.25]] * 2)
    curve.reference["singular_values"] = np.sqrt(np.array([3, 2, 1, 0, 0, 0, 0, 0.0]))
    curve.about = {"problem": {"n_samples": 1, "n_features": 8}}
    folder.add("theorem1", "fedpower", "model1", "default", history=curve, params=constant)
    results = folder.results()
    rows = theory.bounds(results)
    assert theory.bounds(without(results, "dissimilarity")) == rows[4:]  # Theorem 1 needs no η
    assert [row["bound"] for row in rows] == ["theorem7"] * 2 + ["theorem9"] * 2 + ["theorem1"] * 2
    S = np.vstack(unit_clients)
    eigenvalues = np.linalg.eigvalsh(S.T @ S / 300)[::-1]
    gap, log = eigenvalues[1] - eigenvalues[2], np.log(8 * 6)
    grams = [5 * C.T @ C / 300 for C in unit_clients]
    spread = max(np.linalg.norm(G - S.T @ S / 300, 2) for G in grams)
    nu = 2 * np.sqrt(3) * 5 / 300 * 2 * np.sqrt(2 * 6 * np.log(1e4)) / 0.5
    seven = (nu * np.sqrt(8 * log / 5) + 2 * spread) / gap
    nine = (nu * max(np.sqrt(8 * log / 3), log / 3) + 2 * spread) / gap
    nine += eigenvalues[0] * max(np.sqrt(log / 3), log / 3) / gap
    for row, limit in zip(rows, [seven] * 2 + [nine] * 2, strict=False):
        assert row["limit"] == pytest.approx(limit)
    # d exp(−t σ₃/σ₂) = 8, 4.85, 2.94 for t = 0, 1, 2
    assert rows[-1]["limit"] == pytest.approx(8 * np.exp(-1.0))
    assert rows[-1]["share"] == pytest.approx(0.9 / 8)
    assert rows[-1]["share_start"] == pytest.approx(0.9 / (8 * np.exp(-1.0)))


def test_algorithm_3_spends_no_more_than_stated(folder):
    for variant, params in {"default": {}, "K3": {"participants": 3}}.items():
        folder.add("fig3", "fedpower", "model1", variant, params=params)
    rows = theory.partial(folder.results("fig4", "fig4_tight"))
    assert [(row["variant"], row["repeat"]) for row in rows] == [("K3", 0), ("K3", 1)]
    assert all(0 < row["share"] <= 1 < row["share_tenth"] for row in rows)


def test_the_growth_of_the_bound_without_alignment_over_that_with_it(folder):
    """κ = √(8 / 0.5) = 4, σ₂ = 4, σ₃ = 1 and η = 1e-3, and a round aligns after p − 1 steps."""
    folder.add("dissimilarity", "fedpower", "model1",
               history=made_up([[0.0]], dissimilarity=np.array([[1e-3]])))  # fmt: skip
    for p in (2, 4, 8):
        curve = made_up([[1.0]])
        curve.reference["singular_values"] = np.sqrt(np.array([8.0, 4.0, 1.0, 0.5]))
        curve.about = {"problem": {"n_samples": 1}}
        folder.add("alignment", "fedpower", "model1", f"p{p}", history=curve,
                   params={"n_components": 2, "local_steps": p})  # fmt: skip
    rows = theory.printed_bounds(folder.results())
    sine, gamma = 8e-3 / (3 - 8e-3), 1.008 / 3.992
    second = [sine + 2 * gamma ** (q / 4) * sine / np.sqrt(1 - sine**2) for q in (1, 3, 7)]
    first = [2 * np.e**2 * 4.0**q * q * 1e-3 for q in (1, 3, 7)]
    least = [min(pair) for pair in zip(first, second, strict=True)]
    assert [(row["p"], row["exponential"]) for row in rows] == [(4, 16), (8, 256)]
    assert [row["growth"] for row in rows] == pytest.approx(
        [48 * least[0] / least[1], 256 * 7 / 3 * least[1] / least[2]]
    )


def decay_results(folder, **changes):
    falling = np.geomspace(1.0, 1e-6, 31)
    curves = {
        "constant-1": falling,
        "constant-4": np.r_[1.0, 0.5, np.maximum(falling[2:], 0.01)],
        "constant-8": np.r_[1.0, 0.4, np.maximum(falling[2:], 0.02)],
        "linear-8": np.r_[1.0, 0.4, falling[2:]],
    }
    for variant, curve in curves.items():
        schedule, p = variant.split("-")
        folder.add(
            "decay", "fedpower", "model1", variant,
            history=made_up([curve, changes.get(variant, curve)]),
            params={"schedule": schedule, "local_steps": int(p)},
        )  # fmt: skip
    return folder.results()


TRUE = (
    "larger-p-first", "larger-p-ends-higher", "p1-ends-lowest", "decay-first", "decay-ends-low",
)  # fmt: skip


def test_claims_about_p(folder):
    results = decay_results(folder)
    for name in TRUE:
        assert claim(results, name, "decay")[1] == [True, True], name
    assert claim(results, "decay-ends-low", "decay")[0] == pytest.approx([1.0] * 2)
    assert claim(results, "larger-p-ends-lower", "decay")[1] == [False, False]


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("constant-4", "larger-p-ends-higher"),
        ("linear-8", "decay-ends-low"),
        ("linear-8", "decay-first"),
        ("constant-8", "larger-p-first"),
        ("constant-1", "p1-ends-lowest"),
    ],
)
def test_claims_about_p_that_one_curve_spoils(folder, variant, name):
    curve = np.r_[1.0, 0.9, np.linspace(0.5, 0.03, 29)]
    results = decay_results(folder, **{variant: curve})
    assert claim(results, name, "decay")[1] == [True, False]


def test_communications_are_counted_to_twice_the_level_of_the_largest_p(folder):
    """Level 0.04: p = 1 needs 7 communications, p = 4 two, and p = 8 one or, spoilt, four."""
    seven = np.r_[1.0, np.full(6, 0.5), np.full(24, 1e-3)]
    two, one = np.r_[1.0, 0.5, np.full(29, 0.01)], np.r_[1.0, np.full(30, 0.02)]
    four = np.r_[1.0, np.full(3, 0.5), np.full(27, 0.02)]
    for variant, first, second in (
        ("constant-1", seven, seven), ("constant-4", two, two), ("constant-8", one, four),
        ("linear-8", one, one),
    ):  # fmt: skip
        schedule, p = variant.split("-")
        folder.add("decay", "fedpower", "model1", variant, history=made_up([first, second]),
                   params={"schedule": schedule, "local_steps": int(p)})  # fmt: skip
    results = folder.results()
    assert claim(results, "communications-p4", "decay") == (pytest.approx([8 / 7] * 2), [True] * 2)
    assert claim(results, "communications-p8", "decay")[1] == [True, False]
    assert claim(results, "p1-slowest", "decay") == (pytest.approx([2 / 7, 4 / 7]), [True] * 2)


def test_a_level_that_is_never_reached_is_a_missing_value(folder):
    results = decay_results(folder, **{"constant-1": np.full(31, 0.9)})
    ratio, holds = claim(results, "p1-slowest", "decay")
    assert ratio[1] is holds[1] is None
    ratio, holds = claim(results, "communications-p4", "decay")
    assert math.isinf(ratio[1]) and holds[1] is False


def ends(folder, experiment, problem, variant, values, column="projection_distance", **about):
    history = made_up([[1.0, 1.0]] * len(values))
    history.columns[column] = np.array([[1.0, value] for value in values])
    history.about = {"problem": about}
    params = {"participants": int(variant[1:])} if variant.startswith("K") else {}
    folder.add(experiment, "fedpower", problem, variant, history=history, params=params)


def test_claims_about_machines_rows_and_draws(folder):
    for problem, values in {
        "model1_five": [0.2, 0.2], "model1": [0.1, 0.3], "model1_25k": [0.4, 0.4],
    }.items():  # fmt: skip
        folder.problems.setdefault(problem, {})
        ends(folder, "machines", problem, "default", values)
    for rows, rho in {4000: [0.1, 0.3], 2000: [0.2, 0.2], 1000: [0.3, 0.4]}.items():
        folder.problems.setdefault(f"rows{rows}", {})
        for alignment in ("none", "procrustes"):
            ends(folder, "similarity", f"rows{rows}", alignment, rho, "misalignment",
                 n_samples=rows)  # fmt: skip
    ends(folder, "sampling", "model1", "K8", [0.2, 0.2])
    ends(folder, "sampling", "model1", "K20", [0.1, 0.3])
    results = folder.results()
    expected = {
        ("machines", "more-machines"): [True, False],
        ("machines", "more-machines-same-rows"): [False, False],
        ("similarity", "larger-eta-none"): [True, False],
        ("similarity", "larger-eta-procrustes"): [True, False],
        ("sampling", "larger-K-less-bias"): [True, False],
    }
    for (experiment, name), flags in expected.items():
        assert claim(results, name, experiment)[1] == flags, name
    few, many = (without(results, name) for name in ("model1_five", "model1_25k"))
    assert report.machine_claims(few) == []
    assert {row["claim"] for row in report.machine_claims(many)} == {"more-machines"}
    assert report.similarity_claims(without(results, "rows4000", "rows1000")) == []


def test_the_gain_of_a_larger_p_falls_with_machines_or_not(folder):
    """Gains after two communications, of both repeats: 8, 4, 2 or 8, 8, 2; 4 at five machines."""
    gains = {"model1_5x400k": (8, 8), "model1": (4, 8), "model1_80x25k": (2, 2)}
    for problem, both in (gains | {"model1_five": (4, 16)}).items():
        folder.problems.setdefault(problem, {})
        one = np.array([[1.0, 0.5, 0.4, 0.1]] * 2)
        four = np.array([[1.0, 0.3, 0.4 / gain] for gain in both])
        for variant, p, distance in (("p4", 4, four), ("p1", 1, one)):
            folder.add("few_machines", "fedpower", problem, variant, history=made_up(distance),
                       params={"local_steps": p})  # fmt: skip
    results = folder.results()
    ratios, flags = claim(results, "fewer-machines-gain", "few_machines")
    assert ratios == pytest.approx([2, 1]) and flags[0] is True
    ratios, flags = claim(results, "fewer-machines-gain-same-size", "few_machines")
    assert ratios == pytest.approx([1, 2]) and flags[1] is True
    found = report.few_machine_claims(without(results, "model1_80x25k"))
    assert {row["claim"] for row in found} == {"fewer-machines-gain-same-size"}
    assert report.few_machine_claims(without(results, "model1")) == []


def test_without_noise_algorithm_2_is_local_power(folder):
    both = {"n_components": 2, "local_steps": 3, "schedule": "linear", "alignment": "procrustes"}
    metrics = ["projection_distance"]
    folder.params = both
    folder.add("without_noise", "local_power", "model1", params={"rounds": 3}, metrics=metrics)
    for variant, epsilon in (("noiseless", None), ("noisy", 1000.0)):
        folder.add("without_noise", "fedpower", "model1", variant, metrics=metrics,
                   params={"iterations": 6, "epsilon": epsilon})  # fmt: skip
    rows = examples.identities(folder.results())
    assert [row["variant"] for row in rows] == ["noiseless"] * 2 + ["noisy"] * 2
    assert [row["difference"] < 1e-9 for row in rows] == [True] * 2 + [False] * 2


def test_the_size_of_lemma_25():
    """Four machines of 25 rows; 100 rows of which each axis has fifty have coherence 1."""
    values = np.array([[50.0, 50.0], [90.0, 10.0]]) ** 0.5
    found = examples.lemma_25(values, {"n_clients": 4, "n_samples": 100})
    assert found[0] == pytest.approx(np.sqrt(3 * 1 * 2 * np.log(2 * 4 / 0.05) / 25))
    assert found[1] == pytest.approx(found[0] * np.sqrt(5))


def test_a_partition_is_held_against_its_own_size_and_the_largest(folder):
    for problem, rows, eta in (("few", 100, [0.5, 0.4]), ("many", 10_000, [0.05, 0.04])):
        history = made_up([[1.0], [1.0]], dissimilarity=np.array(eta)[:, None])
        history.about = {"problem": {"n_samples": rows, "n_clients": 4, "n_features": 2}}
        history.reference["singular_values"] = np.full((2, 2), np.sqrt(rows / 2))
        folder.problems[problem] = {}
        folder.add("partition", "fedpower", problem, history=history)
    rows = examples.partitions(folder.results())
    assert [row["size"] for row in rows] == [25, 25, 2500, 2500]
    assert rows[0]["share"] == pytest.approx(rows[2]["share"])
    assert rows[0]["share_of_largest"] == pytest.approx(10 * rows[0]["share"])
    assert rows[2]["share_of_largest"] == rows[2]["share"]


def test_the_server_solves_for_a_machine_unless_there_is_noise(folder):
    for variant, epsilon in (("plain", None), ("noisy", 10.0)):
        folder.add("onlooker", "fedpower", "model1", variant, metrics=[], audit="leakage",
                   params={"local_steps": 1, "epsilon": epsilon})  # fmt: skip
    rows = examples.leaks(folder.results())
    assert [row["variant"] for row in rows] == ["plain"] * 2 + ["noisy"] * 2
    assert {(row["equations"], row["elements"]) for row in rows} == {(8 * 3 * 6, 64)}
    assert [row["least"] < 1e-6 for row in rows] == [True] * 2 + [False] * 2


def test_the_least_errors_are_those_of_the_definition():
    """Every point of the curve obeys both inequalities of (ε, δ)-DP, one of them as an equality."""
    missed, alarms = report.least_errors(0.7, 0.01)
    slack = np.minimum(
        np.exp(0.7) * alarms + 0.01 - (1 - missed), np.exp(0.7) * missed + 0.01 - (1 - alarms)
    )
    assert (slack >= -1e-12).all() and np.abs(slack[alarms > 0]).max() < 1e-12


def test_error_rates_of_made_up_scores():
    rng = np.random.default_rng(0)
    zero = np.zeros((2000, 1), int)
    pair = [
        History({"iteration": zero, "canary": rng.normal(mean, 1, (2000, 1))}) for mean in (3, 0)
    ]
    missed, alarms = report.error_rates(*pair)
    area = np.trapezoid(missed[::-1], alarms[::-1])  # P(score with < score without)
    assert area == pytest.approx(stats.norm.cdf(-3 / np.sqrt(2)), abs=0.004)  # 4 standard errors


def test_claims_of_theorem_8(folder):
    """ρ by record, twice; growth is that of the last record, the gain that of the largest."""
    rho = {("none", 2): [0, 0.4, 0.1], ("none", 4): [0, 0.5, 0.2], ("none", 16): [0, 1.6, 0.6],
           ("procrustes", 2): [0, 0.3, 0.2], ("procrustes", 4): [0, 0.3, 0.2],
           ("procrustes", 16): [0, 0.4, 0.21]}  # fmt: skip
    for (alignment, p), values in rho.items():
        history = made_up([[1.0, 0.5, 0.1]] * 2, misalignment=np.array([values] * 2, float))
        folder.add(
            "alignment", "fedpower", "model1", f"{alignment}-p{p}", history=history,
            params={"alignment": alignment, "local_steps": p},
        )  # fmt: skip
    results = folder.results()
    for name, ratio, holds in (
        ("growth-none", 3.0, True), ("growth-procrustes", 1.05, False),
        ("exponent-none", np.log(6) / np.log(8), True),
        ("exponent-procrustes", np.log(1.05) / np.log(8), True),
        ("alignment-helps", 0.75, True),
    ):  # fmt: skip
        expected = (pytest.approx([ratio] * 2), [holds] * 2)
        assert claim(results, name, "alignment") == expected, name
