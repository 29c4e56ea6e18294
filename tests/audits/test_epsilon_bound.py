"""The audit: below the truth where the claim is true, above the claim where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy import stats

import fedcore
from cells import cell
from fedcore import algorithms
from fedcore.audits import epsilon_bound as audit
from fedcore.errors import ConfigError, InputError
from fedcore.experiments.repeats import run_cell
from fedcore.federation.transcript import Exchange
from fedcore.generators import canary
from fedcore.privacy import noise
from fedcore.privacy.calibration import gaussian_noise_multiplier
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.repro.plan.plan import load_plan, read_yaml
from fedcore.runs import execute
from refused import refused

SETTINGS = {"iterations": 3, "local_steps": 1, "epsilon": 0.5, "delta": 1e-4}


def test_the_claimed_epsilon_holds():
    for calibration in ("paper", "tight"):
        found = audit.audit("fedpower", 2, runs=400, calibration=calibration, **SETTINGS)
        assert found.epsilon <= 0.5


@pytest.mark.parametrize("local_steps", [1, 3])
def test_a_weakened_run_is_found_out_though_its_ledger_claims_the_same(local_steps):
    settings = {**SETTINGS, "local_steps": local_steps, "calibration": "tight"}
    found = audit.audit("fedpower", 2, runs=400, noise_factor=0.1, **settings)
    assert found.epsilon > 1.0


def test_only_the_noise_is_weakened():
    """A tenth of the noise, of every kind, and the same choices and ledger."""
    source = np.random.SeedSequence(7)
    honest, twin = noise.stream(source, 0), noise.stream(noise.Weakened(source, 0.1), 0)
    for draw in ("standard_normal", "normal", "laplace", "gumbel"):
        options = {} if draw == "standard_normal" else {"scale": 2.0}
        expected = 0.1 * getattr(honest, draw)(size=5, **options)
        np.testing.assert_allclose(getattr(twin, draw)(size=5, **options), expected, rtol=1e-15)
    assert twin.normal(3.0) == pytest.approx(3.0 + 0.1 * honest.normal())
    np.testing.assert_array_equal(twin.permutation(9), honest.permutation(9))
    problem = Problem("canary", canary.generate(np.random.default_rng(0)))
    chosen, kept = algorithms.get("noisy_power"), []
    settings = chosen.params({"n_components": 1, "rounds": 1})
    for of in (source, noise.Weakened(source, 0.1)):
        transcript = audit.start_transcript()
        recorder, _ = execute(chosen, problem, settings, 0, transcript=transcript, noise=of)
        kept.append((transcript.exchanges[0], recorder.ledger.privacy))
    (one, ledger), (other, weaker) = kept
    true = problem.clients[0].T @ (problem.clients[0] @ one.received)
    np.testing.assert_allclose(other.sent - true, 0.1 * (one.sent - true), rtol=1e-6)
    assert ledger.accounts == weaker.accounts and ledger.epsilon() == weaker.epsilon()
    assert (ledger.about().get("weakened"), weaker.about()["weakened"]) == (None, 0.1)
    assert "0.1" in weaker.about()["noise"]


def test_fedcore_run_has_no_way_to_weaken():
    data = canary.generate(np.random.default_rng(0))
    weaker = noise.Weakened(np.random.SeedSequence(0), 0.1)
    for options in ({"noise": weaker}, {"noise_factor": 0.1}):
        with pytest.raises(InputError, match="has no parameter"):
            fedcore.run("analyze_gauss", data, 1, **options)


def test_the_direction_of_the_score_does_not_matter():
    rng = np.random.default_rng(1)
    present, absent = rng.normal(2, 1, 2000), rng.normal(0, 1, 2000)
    assert audit.lower_bound(absent, present, delta=1e-5).epsilon > 1.0
    # One-sided evidence: an event that only ever happens on the second data set.
    rare = np.where(np.arange(2000) % 5 < 1, -9.0, 0.0)
    assert audit.lower_bound(np.zeros(2000), rare, delta=1e-5).epsilon > 2.0


@pytest.mark.parametrize("gaussian", [True, False])
def test_true_noise_is_accused_in_few_of_many_audits(gaussian):
    """Ideal pairs at (0.5, 1e-4), by both bounds: each may fail in 5 % of all audits."""
    rng, z, failed = np.random.default_rng(3), gaussian_noise_multiplier(0.5, 1e-4), 0
    for _ in range(200):
        scores = rng.normal(1.0 / z, 1.0, 1000), rng.normal(0.0, 1.0, 1000)
        found = audit.lower_bound(*map(np.exp, scores), delta=1e-4, gaussian=gaussian)
        failed += found.epsilon > 0.5
    assert failed <= stats.binom.isf(0.001, 200, 0.05)


def test_half_the_noise_is_found_in_nineteen_of_twenty_audits():
    """Claimed (0.5, 1e-4), 10⁴ runs, ideal pairs; the bound for any method finds few of them."""
    rng, z, found = np.random.default_rng(4), gaussian_noise_multiplier(0.5, 1e-4), {}
    for _ in range(20):
        scores = rng.normal(2.0 / z, 1.0, 10_000), rng.normal(0.0, 1.0, 10_000)
        for gaussian in (True, False):
            bound = audit.lower_bound(*scores, delta=1e-4, gaussian=gaussian).epsilon
            found[gaussian] = found.get(gaussian, 0) + (bound > 0.5)
    assert found[True] >= 19
    assert found[False] <= 10


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_bounds_are_those_of_their_closed_forms(gaussian):
    """Of counts far apart: by Clopper and Pearson's limits, and Balle & Wang's δ(ε) of their μ."""
    hits, alarms = np.r_[np.ones(600), np.zeros(400)], np.r_[np.ones(100), np.zeros(900)]
    order = np.random.default_rng(0).permutation(1000)
    found = audit.lower_bound(hits[order], alarms[order], delta=1e-5, gaussian=gaussian)
    low = stats.binomtest(found.hits, 500).proportion_ci(0.95).low
    high = stats.binomtest(found.false_alarms, 500).proportion_ci(0.95).high
    assert stats.binom.sf(found.hits - 1, 500, low) == pytest.approx(0.025, rel=1e-6)
    if gaussian:
        mu, e = stats.norm.ppf(low) - stats.norm.ppf(high), found.epsilon
        delta = stats.norm.cdf(mu / 2 - e / mu) - np.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)
        assert delta == pytest.approx(1e-5, rel=1e-6)
    else:
        assert found.epsilon == pytest.approx(np.log((low - 1e-5) / high), rel=1e-9)


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_score_that_is_no_number_tells_all(gaussian):
    """Half of the runs NaN on one data set and none on the other: an event of its own."""
    rng = np.random.default_rng(5)
    clean, broken = rng.standard_normal((2, 1000))
    broken[rng.random(1000) < 0.5] = np.nan
    for pair in ((clean, broken), (broken, clean), (clean, np.full(1000, np.nan))):
        assert audit.lower_bound(*pair, delta=1e-5, gaussian=gaussian).epsilon > 3.0
    same = np.where(rng.random((2, 1000)) < 0.5, np.nan, rng.standard_normal((2, 1000)))
    assert audit.lower_bound(*same, delta=1e-5, gaussian=gaussian).epsilon < 0.5


HONEST = [
    ("analyze_gauss", {}, "add_or_remove_one"),
    ("noisy_power", {"rounds": 2}, "add_or_remove_one"),
    ("noisy_power", {"rounds": 1, "protects": "entry"}, "change_entry"),
    ("fedpower", {"iterations": 2, "local_steps": 1}, "replace_one"),
]


@pytest.mark.parametrize(("algorithm", "params", "relation"), HONEST)
def test_the_audit_tests_what_the_algorithm_declares_at_the_delta_asked_for(
    algorithm, params, relation, monkeypatch
):
    """Neighbours under its own relation, and one δ for run and bound."""
    seen = []

    def run(chosen, problem, settings, *args, **options):
        recorder, output = execute(chosen, problem, settings, *args, **options)
        seen.append((problem.clients[0], settings.delta, recorder.ledger.privacy))
        return recorder, output

    monkeypatch.setattr(audit, "execute", run)
    found = audit.audit(algorithm, 1, runs=60, delta=0.05, epsilon=2.0, **params)
    assert found.epsilon <= 2.0
    assert {(delta, privacy.delta) for _, delta, privacy in seen} == {(0.05, 0.05)}
    assert {privacy.neighbours for *_, privacy in seen} == {relation}
    present, absent = seen[0][0], seen[-1][0]
    change = np.diag([1.0, -1.0 if relation == "replace_one" else 0.0])
    np.testing.assert_allclose(present.T @ present - absent.T @ absent, change, atol=1e-12)
    assert len(present) - len(absent) == (relation == "add_or_remove_one")


def test_an_honest_claim_for_rows_added_or_removed_is_not_refuted():
    """Analyze Gauss at ε = 2: a row replaced, which is two steps, would give one of 2.14."""
    found = audit.audit("analyze_gauss", 1, runs=1500, delta=1e-6, epsilon=2.0)
    assert 0.3 < found.epsilon <= 2.0


@pytest.mark.parametrize(
    ("neighbours", "options"),
    [
        ("replace_one", {"replaced": True}),
        ("replace_one", {"replaced": True, "lean": 0.5}),
        ("add_or_remove_one", {"removed": True}),
        ("zero_out_one", {"zeroed": True}),
        ("change_entry", {"zeroed": True, "held": 3.0}),
    ],
)
def test_the_score_is_the_log_likelihood_ratio(neighbours, options):
    """Of a noisy product, whichever of the two data sets it comes from."""
    rng = np.random.default_rng(0)
    shared = {key: options[key] for key in ("held", "lean") if key in options}
    (present,) = canary.generate(rng, samples=9, n_features=4, **shared)
    (absent,) = canary.generate(rng, samples=9, n_features=4, **options)
    Z = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    Y = present.T @ (present @ Z) + 0.7 * rng.standard_normal((4, 2))
    expected = 0.49 * sum(
        sign * stats.norm.logpdf(Y, data.T @ (data @ Z), 0.7).sum()
        for data, sign in ((present, 1.0), (absent, -1.0))
    )
    for data in (present, absent):
        pair = canary.pair(data, neighbours)
        assert audit.score(pair, Exchange(1, 0, Z, Y)) == pytest.approx(expected, rel=1e-9)


def test_local_steps_are_measured_against_what_is_sent_along():
    """A client that took local steps has a basis of its own; the broadcast one explains nothing."""
    rng = np.random.default_rng(0)
    (data,) = canary.generate(rng, samples=9, n_features=4)
    pair = canary.pair(data, "replace_one")
    broadcast, own = (np.linalg.qr(rng.standard_normal((4, 2)))[0] for _ in range(2))
    local = Exchange(1, 0, broadcast, (data.T @ (data @ own), own))
    assert audit.score(pair, local) == pytest.approx(0.5 * np.sum(own[:2] ** 2))


def test_the_score_of_other_replies():
    rng = np.random.default_rng(0)
    (data,) = canary.generate(rng, samples=9, n_features=4)
    pair = canary.pair(data, "replace_one")
    Z = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    assert audit.score(pair, Exchange(1, 0, None, data.T @ data)) == pytest.approx(1.0)
    noisy = data.T @ data + np.diag([0.3, -0.2, 0.1, 0.7]) + 0.4
    whole, triangle = (audit.score(pair, Exchange(1, 0, None, sent))
                       for sent in (noisy, noisy[np.triu_indices(4)]))  # fmt: skip
    assert triangle == pytest.approx(whole) and whole != pytest.approx(1.0)
    vote = Exchange(1, 0, [Z, Z], np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    assert audit.score(pair, vote) == 0.0
    V = np.array([[0.6], [0.0], [0.0], [0.8]])
    # Released, or passed on in answer to another basis: no product with a Gram matrix.
    for received in (None, Z[:, :1]):
        assert audit.score(pair, Exchange(1, 0, received, V)) == pytest.approx(0.36)


def test_rounds_weigh_by_their_noise():
    """Twice the threshold, twice the noise: a quarter of the weight in the likelihood."""
    (data,) = canary.generate(np.random.default_rng(0), samples=9, n_features=4)
    Z = np.eye(4)[:, :2]
    transcript = SimpleNamespace(exchanges=[Exchange(r, 0, Z, data.T @ data @ Z) for r in (1, 2)])
    rows = [{"round": r, "threshold": 2.0 * r} for r in (0, 1, 2)]
    ledger = SimpleNamespace(privacy=SimpleNamespace(neighbours="add_or_remove_one"))
    recorder = SimpleNamespace(rows=rows, ledger=ledger)
    problem = SimpleNamespace(clients=[data])
    # ½ per round: the canary's e₁e₁ᵀ less its half, along e₁.
    assert audit.column(problem, transcript, recorder) == pytest.approx([0, 0.125, 0.125 + 0.03125])


@pytest.mark.parametrize("paper", ["fedpower", "dppower"])
def test_every_audit_of_a_paper_has_its_weakened_twin(paper):
    """A cell each, and a verdict that counts only if the twin is found out."""
    root = Path(__file__).parents[2]
    plan = load_plan({"papers": [paper]}, root, answers=lambda _: True)
    audited = {path: cell for path, cell in plan.cells.items() if cell.audit == "canary"}
    honest = {path for path, cell in audited.items() if cell.noise_factor is None}
    assert honest and {f"{path}-weakened" for path in honest} == audited.keys() - honest
    for path in honest:
        twin = audited[f"{path}-weakened"]
        assert twin == replace(audited[path], name=twin.name, noise_factor=twin.noise_factor)
        assert 0 < twin.noise_factor < 1
    read = plan.claims_of(paper)
    items = read["items"] + read["software"]
    readings = [one for item in items for one in item.get("readings", [])]
    audits = []
    for reading in readings:
        selects = [cell["select"] for cell in reading["cells"].values()]
        audits.append({s["column"] for s in selects if s["table"] == "audits"})
    judged = [columns for columns in audits if "lower_bound" in columns]
    assert judged and all("weakened_bound" in columns for columns in judged)


def test_a_history_names_the_mechanisms_of_all_repeats(tmp_path):
    """dn26 where its first step ends half of all runs: whether all is Gaussian, no one run says."""
    data = canary.generate(np.random.default_rng(0), samples=3, held=125.6)
    storage.save(Problem("canary", data), tmp_path / "canary.h5")
    params = {"n_components": 1, "protects": "entry"}
    for n, names in ((1, ["Bounded", "Laplace"]), (6, ["Bounded", "Gaussian", "Laplace"])):
        spec = cell("dn26", params, name="canary", experiment="audit", paper="dppower", repeats=n)
        history = run_cell(spec, tmp_path / "canary.h5", tmp_path / "history.h5")
        assert history.about["privacy"]["mechanisms"] == names


def test_an_audit_without_a_twin_is_refused(tmp_path):
    root = Path(__file__).parents[2]
    paper = read_yaml(root / "papers/fedpower/experiments.yaml")
    del paper["experiments"]["audit"]["runs"][0]["noise_factor"]
    (tmp_path / "papers/fedpower").mkdir(parents=True)
    (tmp_path / "papers/fedpower/experiments.yaml").write_text(yaml.safe_dump(paper))
    with pytest.raises(ConfigError, match="noise_factor"):
        _ = load_plan({"papers": ["fedpower"]}, tmp_path, answers=lambda _: True).cells


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ({"removed": True}, [[1, 0], [0, 0]]),
        ({"zeroed": True}, [[1, 0], [0, 0]]),
        ({"replaced": True}, [[1, 0], [0, -1]]),
        ({"zeroed": True, "held": 5.0}, [[1, 5], [5, 0]]),
        ({"replaced": True, "lean": 0.75}, [[0.28, 0], [0, -0.28]]),
        ({"zeroed": True, "axes": True}, [[1, 0], [0, 0]]),
    ],
)
def test_neighbours_share_all_rows_but_the_canary(other, change):
    rng = np.random.default_rng(0)
    shared = {key: other[key] for key in ("held", "lean", "axes") if key in other}
    (present,) = canary.generate(rng, samples=9, n_features=2, **shared)
    (absent,) = canary.generate(rng, samples=9, n_features=2, **other)
    assert len(absent) == (8 if "removed" in other else 9)
    np.testing.assert_array_equal(present[:8], absent[:8])
    np.testing.assert_allclose(present.T @ present - absent.T @ absent, change, atol=1e-12)


TWO = [{"removed": True, "zeroed": True}, {"held": 1.0, "replaced": True},
       {"lean": 1.0, "removed": True}]  # fmt: skip


def test_what_cannot_be_audited():
    rng = np.random.default_rng(0)
    for options in TWO:
        refused(lambda o=options: canary.generate(rng, **o), InputError, "one neighbour")
    (data,) = canary.generate(rng, samples=9, n_features=4, length=0.5)
    np.testing.assert_allclose(np.linalg.norm(data, axis=1), [0.5] * 8 + [1.0])
    exchange = Exchange(1, 0, data[:4].T, data)
    calls = [
        lambda: canary.pair(data, "friends"),
        lambda: audit.score(canary.pair(data, "replace_one"), exchange),
        lambda: audit.lower_bound([1.0, 2.0], [0.0, 1.0], delta=1e-5),  # too few runs
        lambda: audit.audit("analyze_gauss", 1, runs=4, delta=1e-6, epsilon=None),  # no claim
        lambda: noise.stream(noise.Weakened(np.random.SeedSequence(7), 0.0), 0),
    ]
    for call in calls:
        with pytest.raises(InputError):
            call()
