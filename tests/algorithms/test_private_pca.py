"""Methods of the paper `dppower`: sensitivities, calibrations and budgets, each shown by itself."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import fedcore
from fedcore import algorithms
from fedcore.algorithms import (
    adaptive_power,
    analyze_gauss,
    dn26,
    dp_pca,
    noisy_power,
    private_oja,
)
from fedcore.errors import InputError
from fedcore.federation.transcript import Transcript
from fedcore.generators import generate
from fedcore.parts import budget, filtering
from fedcore.privacy import accounting, calibration
from fedcore.privacy.events import Bounded, Gaussian
from fedcore.privacy.mechanisms import Mechanisms
from fedcore.problems.problem import Problem
from fedcore.runs import execute
from gaussian import gaussian_delta
from refused import refused

PRIVATE = [
    ("analyze_gauss", {}),
    ("analyze_gauss", {"calibration": "paper"}),
    ("adaptive_power", {}),
    ("adaptive_power", {"calibration": "paper"}),
    ("adaptive_power", {"calibration": "paper", "constant": "proof"}),
    ("adaptive_power", {"search_share": 0.5, "ratio": 1.2}),
    ("adaptive_search", {"guesses": 3, "unit": 2.0}),
    *(
        ("noisy_power", {"protects": protects, "calibration": calibration})
        for protects in ("row", "entry", "row_by_entries")
        for calibration in ("tight", "paper")
    ),
    ("dn26", {"protects": "entry"}),
    ("dn26", {"calibration": "paper"}),
    ("private_oja", {"batch": 20}),
    ("dp_pca", {"batches": 5}),
    ("dp_pca", {"batches": 5, "calibration": "paper"}),
]
every_private_method = pytest.mark.parametrize(
    ("name", "options"), PRIVATE, ids=lambda value: str(value)
)


def spiked(n: int = 4000, d: int = 6, **params) -> list[np.ndarray]:
    return generate(
        "spiked_rows", np.random.default_rng(1), {"n_samples": n, "n_features": d, **params}
    )


def run(name: str, clients: list[np.ndarray], seed: int = 0, **options):
    """Ledger, columns and basis of a run for one component."""
    chosen = algorithms.get(name)
    params = chosen.params({"n_components": 1, **options})
    noise = np.random.SeedSequence(seed)
    recorder, output = execute(chosen, Problem("x", clients), params, seed, noise=noise)
    return recorder.ledger, recorder.columns(), output["basis"]


# --- budgets ------------------------------------------------------------------------------------


@every_private_method
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_accountant_never_finds_more_than_the_stated_epsilon(name, options, epsilon):
    _, columns, _ = run(name, spiked(), epsilon=epsilon, delta=1e-5, **options)
    spent = columns["epsilon"]
    assert spent[0] <= spent[-1] <= epsilon * (1 + 1e-12)
    assert (np.diff(spent) >= 0).all()
    assert spent[-1] > 0
    if options.get("calibration") != "paper" and name != "dn26":  # which may stop after its bound
        assert spent[-1] == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("steps", [1, 3, 10, 40, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("constant", ["statement", "proof"])
def test_lemma_3_1_is_solved_exactly_and_holds(steps, epsilon, constant):
    params = adaptive_power.Params(
        1, epsilon=epsilon, delta=1e-6, calibration="paper", constant=constant, rounds=steps
    )
    noise, part = adaptive_power.calibrate(params), 1e-6 / (steps + 1)
    e = noise.search
    assert 2 * (steps * e**2 + math.sqrt(2 * math.log(1 / part) * steps) * e) == pytest.approx(
        epsilon, rel=1e-12
    )
    z = {"statement": math.sqrt(2 * math.log(2 / part)), "proof": 2 * math.sqrt(math.log(2 / part))}
    assert noise.multiplier == pytest.approx(z[constant] / e, rel=1e-12)
    spent = accounting.epsilon({Gaussian(noise.multiplier): steps, Bounded(e): steps}, 1e-6)
    assert spent <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_tight_gaussian_noise_is_that_of_balle_and_wang(epsilon):
    one = {"n_components": 1, "epsilon": epsilon, "delta": 1e-6}
    sigma = analyze_gauss.noise_multiplier(analyze_gauss.Params(**one))
    assert gaussian_delta(sigma, epsilon) == pytest.approx(1e-6, rel=1e-3)
    for protects, releases in (("row", 10), ("entry", 20)):
        params = noisy_power.Params(**one, rounds=10, protects=protects)
        assert noisy_power.noise_multiplier(params) == pytest.approx(sigma * math.sqrt(releases))


def test_printed_noise():
    one = {"n_components": 1, "epsilon": 0.5, "delta": 1e-5, "calibration": "paper"}
    assert analyze_gauss.noise_multiplier(analyze_gauss.Params(**one)) == pytest.approx(
        math.sqrt(2 * math.log(1.25e5)) / 0.5
    )
    params = noisy_power.Params(**one, rounds=7, protects="entry")
    assert noisy_power.noise_multiplier(params) == pytest.approx(
        math.sqrt(4 * 14 * math.log(1e5)) / 0.5
    )


PAPER = {"calibration": "paper"}


def longer(norm: float) -> list[np.ndarray]:
    rows = spiked(200)[0].astype(np.float64)
    rows[3] *= norm / np.linalg.norm(rows[3])
    return [rows]


def factors() -> list[np.ndarray]:
    return generate("spiked", np.random.default_rng(0), {"samples": 300, "n_clients": 1})


REFUSED = [  # what a theorem or a sensitivity does not hold for
    *((name, spiked(), {"epsilon": epsilon, **PAPER}, "epsilon") for name, epsilon in (
        ("analyze_gauss", 1.01), ("dn26", 2.1), ("dp_pca", 4.1), ("private_oja", 0.1))),
    *((name, longer(2.0), {}, "row 3", "norm 2")
      for name in ("analyze_gauss", "noisy_power", "dn26", "adaptive_search")),
    ("analyze_gauss", longer(1 + 5e-7), {}, "row 3"),  # no rounding of doubles
    *((name, factors(), {}, "single rows")
      for name in ("adaptive_power", "dn26", "private_oja", "dp_pca", "adaptive_search")),
    ("dp_pca", spiked(12), {}, "batches = 20", "12"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_private_methods_refuse(number):
    name, clients, options, *names = REFUSED[number]
    refused(lambda: run(name, clients, **options), InputError, *names)


def test_what_they_do_not_refuse():
    limit = math.sqrt(math.log(4000 / 1e-6) / 4000)
    run("private_oja", spiked(), epsilon=0.99 * limit, calibration="paper")
    run("analyze_gauss", longer(2.0), epsilon=None)  # nothing is claimed
    for name in ("analyze_gauss", "noisy_power"):
        run(name, factors())
    assert run("dp_pca", spiked(12), batches=12)[0].privacy.epsilon() == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.4, 1e-2, 1e-6])
@pytest.mark.parametrize("protects", ["row", "entry", "row_by_entries"])
def test_the_papers_noisy_power_method_spends_no_more_than_it_is_asked_for(delta, protects):
    """z = √(4 L log(1/δ))/ε grows too slowly with ε, and is refused where it is too little."""

    def excess(epsilon: float) -> float:
        """δ(ε) of L releases, by the closed form of Balle & Wang (2018), less δ."""
        mu = epsilon / math.sqrt(4.0 * math.log(1.0 / delta))
        beyond = stats.norm.logcdf(-mu / 2 - epsilon / mu) + epsilon
        return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(beyond) - delta

    def noise(epsilon: float) -> float:
        one = {"epsilon": epsilon, "delta": delta, "calibration": "paper"}
        return noisy_power.noise_multiplier(noisy_power.Params(1, protects=protects, **one))

    largest = optimize.brentq(excess, 0.1, 1e3)
    releases = 10 if protects == "row" else 20
    exact = math.sqrt(4.0 * releases * math.log(1.0 / delta)) / (0.999 * largest)
    assert noise(0.999 * largest) == pytest.approx(exact)
    refused(lambda: noise(1.001 * largest), InputError, "calibration")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_shuffling_keeps_within_the_theorem(epsilon):
    """Feldman, McMillan & Talwar (2021), Theorems 3.1 and 3.8, written down once more."""
    last = 0.0
    for n in (100, 10_000, 1_000_000):
        found = budget.local_budget(epsilon, 1e-6, n)
        highest = math.log(n / (16 * math.log(2 / 5e-7)))
        assert (found is None) == (highest <= epsilon)
        if found is None:
            continue
        local, small = found
        assert last < local <= highest + 1e-9
        last, e = local, math.exp(local)
        inner = 8 * math.sqrt(e * math.log(4 / 5e-7)) / math.sqrt(n) + 8 * e / n
        assert math.log(1 + (e - 1) / (e + 1) * inner) <= epsilon + 1e-9
        total = 5e-7 + (math.exp(epsilon) + 1) * (1 + math.exp(-local) / 2) * n * small
        assert total <= 1e-6 * (1 + 1e-12)


# --- sensitivities ------------------------------------------------------------------------------


def protected(rows):
    federation = fedcore.federation.federation.Federation([rows], noise=np.random.SeedSequence(0))
    federation.protect(delta=1e-5, neighbours="add_or_remove_one")
    return federation


def test_the_filtered_product_is_the_sum_over_rows_within_its_threshold():
    rows = spiked(300)[0]
    X = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 1)))[0]
    noise = filtering.Noise(search=0.5, multiplier=1e-9, query_scale=2.0)
    step = filtering.filtered_product(noise, failure=0.05, ratio=2.0)
    federation = protected(rows)
    federation.broadcast(X)
    reply = federation.gather(step)[0]
    (theta,) = federation.client_state("threshold")
    terms = [np.outer(a, a @ X) for a in rows]
    kept = [t for t in terms if np.linalg.norm(t) <= theta]
    np.testing.assert_allclose(reply, sum(kept), rtol=0, atol=1e-6)
    assert federation.client_state("filtered") == [len(terms) - len(kept)]
    assert math.log2(theta) == round(math.log2(theta))


def test_the_number_of_filtered_rows_keeps_to_lemma_b1():
    """1 − 2β of the steps at least, β = 0.05, Lap(2/ε) and Lap(4/ε) as in the lemma."""
    rows, epsilon, beta, T = spiked(20_000, 50)[0], 0.3, 0.05, 200
    noise = filtering.Noise(search=epsilon, multiplier=1e-9, query_scale=4.0)
    step = filtering.filtered_product(noise, failure=beta, ratio=2.0)
    federation = protected(rows)
    bound = 8 * (math.log(math.log(20_000)) + 2 * math.log(2 / beta)) / epsilon
    rng, over, some = np.random.default_rng(5), 0, 0
    for _ in range(T):
        federation.broadcast(np.linalg.qr(rng.standard_normal((50, 1)))[0])
        federation.gather(step)
        over += federation.client_state("filtered")[0] > bound
        some += federation.client_state("filtered")[0] > 0
    assert stats.binom.sf(over - 1, T, 2 * beta) > 1e-3  # no more than chance allows
    assert some > T / 10  # and the filter does something


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_products_of_the_noisy_power_method_move_as_little_as_they_say(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((7, 4))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    X, Y = rng.standard_normal((4, 2)), rng.standard_normal((7, 2))
    Q = np.linalg.qr(X)[0]
    reach = {name: max(np.linalg.norm(row) for row in M) for name, M in (("X", X), ("Y", Y))}
    entry, row = A.copy(), A.copy()
    entry[rng.integers(7), rng.integers(4)] += rng.uniform(-1, 1)
    row[rng.integers(7)] = 0.0
    for other, root in ((entry, 1.0), (row, 2.0)):  # √d = 2
        assert np.linalg.norm((other - A) @ X) <= root * reach["X"] * (1 + 1e-12)
        assert np.linalg.norm((other - A).T @ Y) <= root * reach["Y"] * (1 + 1e-12)
    assert np.linalg.norm((row.T @ row - A.T @ A) @ Q) <= 1 + 1e-12
    upper = np.triu_indices(4)
    assert np.linalg.norm((row.T @ row - A.T @ A)[upper]) <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 2))
def test_singular_vectors_and_coherence_move_as_little_as_dn26_says(seed, whole_row, k):
    rng = np.random.default_rng(seed)
    left, right = (
        np.linalg.qr(rng.standard_normal((9, 4)))[0],
        np.linalg.qr(rng.normal(size=(4, 4)))[0],
    )
    sigma = np.array([20.0, 20.0, 6.0, 1.0]) if k == 2 else np.array([14.0, 7.0, 6.0, 1.0])
    A = left * sigma @ right.T
    E, b = np.zeros_like(A), 1.0
    if whole_row:
        E[rng.integers(9)], b = rng.standard_normal(4), 2.0
        E /= np.linalg.norm(E)
    else:
        E[rng.integers(9), rng.integers(4)] = rng.uniform(-1, 1)
    (_, gap, m), (V2, gap2, m2) = (dn26.leading(M, M, k) for M in (A, A + E))
    assert abs(gap - gap2) <= 2 + 1e-9
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    assert gap == pytest.approx(s[k - 1] - s[k])
    assert m == pytest.approx(max(np.linalg.norm(r) for r in [*U[:, :k], *Vt[:k].T]))
    Z = np.vstack([np.linalg.svd(A)[0][:, :k], Vt[:k].T]) / math.sqrt(2)
    Z2 = np.vstack([(A + E) @ V2 / np.linalg.norm((A + E) @ V2, axis=0), V2]) / math.sqrt(2)
    sines = np.linalg.norm(Z2 - Z @ (Z.T @ Z2))
    assert sines <= b * m / (gap - 1) * (1 + 1e-9)
    assert abs(math.log(m / m2)) <= math.log1p(2 * b / (gap - 3))


# --- what the noise is --------------------------------------------------------------------------


def test_analyze_gauss_has_the_variance_of_its_closed_form():
    """300 000 entries: the standard error of the variance is 0.26 %, the claim is 2 %."""
    rows, d = spiked(2000, 100)[0], 100
    sigma = analyze_gauss.noise_multiplier(analyze_gauss.Params(1))
    noise, upper = [], np.triu_indices(d)
    chosen = algorithms.get("analyze_gauss")
    for seed in range(60):
        transcript = Transcript()
        params = chosen.params({"n_components": 1})
        source, problem = np.random.SeedSequence(seed), Problem("x", [rows])
        execute(chosen, problem, params, seed, transcript=transcript, noise=source)
        noise.append(transcript.exchanges[0].sent - (rows.T @ rows)[upper])
    values = np.concatenate(noise)
    assert np.var(values) == pytest.approx(sigma**2, rel=0.02)
    assert abs(np.mean(values)) < 5 * sigma / math.sqrt(values.size)


@pytest.mark.parametrize(
    ("name", "options"),
    [(n, o) for n, o in PRIVATE if n != "dn26"],
    ids=lambda value: str(value),
)
def test_a_huge_row_does_not_move_the_noise(name, options):
    """Noise hangs on the parameters, or on what has been paid for, not on the size of the data."""
    rows = spiked(4000)[0]
    huge = rows.copy()
    huge[17] *= 1e6
    clip = name != "adaptive_power"  # which needs no bound on the rows at all
    plain, cut = (run(name, [r], seed=4, clip=clip, **options)[0] for r in (rows, huge))
    events = [ledger.privacy.accounts[0].events for ledger in (plain, cut)]
    if options.get("protects", "row") != "row":  # scaled by ‖Y‖, which has been released
        events = [{e.noise_multiplier for e in some} for some in events]
    assert events[0] == events[1]


# --- parts --------------------------------------------------------------------------------------


def test_the_private_mean_is_the_mean_up_to_its_noise():
    rng = np.random.default_rng(2)
    values = rng.normal(3.0, 0.5, (200_000, 4))
    noise = dp_pca.calibrate(dp_pca.Params(1, epsilon=4.0), 4)
    tau = 2**0.25 * math.sqrt(2 * 0.25 * 2**0.25 * math.log(200_000 * 4 * 10 / 0.01))
    error = dp_pca.private_mean(values, noise, 10, rng) - values.mean(axis=0)
    scale = 4 * tau * 2 / 200_000 * noise.multiplier
    assert np.abs(error).max() < 6 * scale
    assert np.abs(error).max() > scale / 100


def test_the_top_eigenvalue_is_found_to_its_bin():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((100_000, 3)) * np.array([2.0, 1.0, 0.5])
    found = dp_pca.top_eigenvalue(values, 1.0, 1e-6, rng)
    assert 4.0 / 2**0.5 <= found <= 4.0 * 2**0.5
    assert dp_pca.top_eigenvalue(values[:100], 1.0, 1e-6, rng) is None


def test_a_private_histogram_sees_only_full_bins():
    rng = np.random.default_rng(1)
    bins = np.concatenate([np.full(500, 7), np.full(100, -(10**9))])
    assert dp_pca.largest_bin(bins, 1.0, 1e-6, rng) == 7
    few = [dp_pca.largest_bin(np.full(10, 7), 1.0, 1e-6, rng) for _ in range(200)]
    assert few == [None] * 200  # the threshold is at 30
    assert dp_pca.largest_bin(np.array([], int), 1.0, 1e-6, rng) is None


# --- what a row can move, where it was more than it was charged for -----------------------------


@pytest.mark.parametrize(("n", "batch"), [(20, 20), (20, 2000), (25, 20)])
def test_a_row_of_an_incomplete_batch_moves_oja_by_no_more_than_it_is_charged_for(n, batch):
    """2β/batch, also where a batch has fewer rows: w moves by the step's size times that."""
    step = 1e-6  # of every batch, to a part in a million
    w = np.array([[1.0], [0.0]])
    toward, away = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
    settings = {"epsilon": None, "batch": batch, "gap": 1.0, "rate": 1.0, "offset": 1e6, "start": w}
    rows = np.tile([[1.0, 0.0]], (n, 1))
    worlds = [np.vstack([rows[:-1], last]) for last in (toward, away)]
    for seed in range(20):  # in some of which the row falls into the last batch
        first, second = (run("private_oja", [world], seed, **settings)[2] for world in worlds)
        assert 0 < np.linalg.norm(first - second) / step <= 2.0 / batch * (1 + 1e-3)


def test_the_noise_of_oja_counts_the_batches_that_a_row_may_fall_into():
    """⌊n/batch⌋: a slot that the last, incomplete batch has not got amplifies nothing."""
    whole, uneven = (
        private_oja.noise_multiplier(private_oja.Params(1, epsilon=1.0, delta=1e-5, batch=10), n)
        for n in (30_000, 30_009)
    )
    assert uneven == whole
    assert private_oja.noise_multiplier(private_oja.Params(1, batch=2000), 20) == (
        calibration.gaussian_noise_multiplier(1.0, 1e-6)  # one batch: nothing to shuffle with
    )


def spied(monkeypatch, name, **changes):
    """Lists of what a mechanism is given and of what it releases."""
    given, released, real = [], [], getattr(Mechanisms, name)

    def spy(self, value, **options):
        given.append(np.array(value))
        released.append(real(self, value, **options | changes))
        return released[-1]

    monkeypatch.setattr(Mechanisms, name, spy)
    return given, released


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("noisy_power", {"rounds": 1}),
        ("adaptive_power", {"rounds": 1, "epsilon": 100.0}),
        ("fedpower", {"iterations": 1, "local_steps": 1, "calibration": "tight"}),
        ("analyze_gauss", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_row_of_single_precision_moves_a_sum_by_no_more_than_it_is(name, options, monkeypatch):
    """Sums of float32 rows are made in double: their roundings are another sum without the row."""
    noiseless, _ = spied(monkeypatch, "gaussian")
    row = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32) / np.float32(math.sqrt(30.0))
    rows = np.tile(row, (1_000_000, 1))
    if name != "analyze_gauss":
        options = {**options, "start": row.T}
    for world in (rows, rows[:-1]):
        run(name, [world], **options)
    triangle = np.linalg.norm((row.T @ row)[np.triu_indices(4)])
    moved = np.linalg.norm(noiseless[0].astype(float) - noiseless[1])
    # A million roundings of doubles and, of the row itself, one of a single.
    assert moved == pytest.approx(triangle if name == "analyze_gauss" else 1.0, rel=1e-6)


@pytest.mark.parametrize("protects", ["entry", "row_by_entries"])
def test_both_products_entry_by_entry_are_made_in_double(protects, monkeypatch):
    """Both are those of the float32 rows in exact arithmetic, to the rounding of doubles."""
    noiseless, released = spied(monkeypatch, "gaussian", noise_multiplier=1e-3)
    row = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32) / np.float32(math.sqrt(30.0))
    rows = row * np.linspace(1.0, 0.1, 300_000, dtype=np.float32)[:, None]  # in several pieces
    run("noisy_power", [rows], rounds=1, protects=protects, start=row.T)
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(noiseless[0], exact @ row.T.astype(np.float64), rtol=1e-6)
    np.testing.assert_allclose(noiseless[1], exact.T @ released[0], rtol=1e-11)


def test_the_factor_of_dn26_is_that_of_the_rows_in_double():
    rows = spiked(3000, 4)[0].astype(np.float32)
    R = dn26.factor(rows, SimpleNamespace(kept=SimpleNamespace()))
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(R.T @ R, exact.T @ exact, rtol=0, atol=1e-10)


def test_utilities_of_guesses_are_summed_in_double(monkeypatch):
    """One row more is one more; a sum in single precision gives another type."""
    seen, _ = spied(monkeypatch, "exponential")
    rows = np.ones((2**20 + 1, 1), np.float32)
    run("adaptive_search", [rows], guesses=1, unit=1.0)
    run("adaptive_search", [rows[:-1]], guesses=1, unit=1.0)
    assert seen[0].dtype == np.float64
    np.testing.assert_allclose(seen[0] - seen[1], 1.0, rtol=0, atol=1e-9)


RELATIONS = {"row": "add_or_remove_one", "entry": "change_entry", "row_by_entries": "zero_out_one"}


@pytest.mark.parametrize("protects", RELATIONS)
def test_entry_by_entry_protection_of_rows_is_declared_for_what_it_is_proved_for(protects):
    """‖Y‖ is a maximum over n noisy rows, so that the number of rows shows: it is public."""
    ledger, _, _ = run("noisy_power", spiked(50), protects=protects)
    assert ledger.privacy.about()["neighbours"] == RELATIONS[protects]


# --- edges ----------------------------------------------------------------------------------------


def test_dn26_gives_all_components_where_all_are_asked_for():
    rows = spiked(500, 4)[0]
    chosen = algorithms.get("dn26")
    for epsilon in (None, 1.0):
        params = chosen.params({"n_components": 4, "epsilon": epsilon})
        _, output = execute(chosen, Problem("x", [rows]), params, 0)
        np.testing.assert_allclose(output["basis"].T @ output["basis"], np.eye(4), atol=1e-13)
    V, gap, _ = dn26.leading(rows, rows, 4)
    sigma = np.linalg.svd(rows, compute_uv=False)
    assert gap == pytest.approx(sigma[3])
    np.testing.assert_allclose(np.linalg.norm(rows @ V, axis=0), sigma, rtol=1e-10)


@pytest.mark.parametrize("name", ["private_oja", "dp_pca", "adaptive_power"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_at_the_edge_of_floating_point_is_not_told_by_a_failure(name, dtype):
    rows = spiked(400)[0].astype(dtype)
    rows[7] = np.finfo(dtype).max
    options = {"batches": 5} if name == "dp_pca" else {}
    assert np.isfinite(run(name, [rows], **options)[2]).all()


@pytest.mark.parametrize(
    ("name", "epsilon", "options"),
    [
        *(
            (name, epsilon, {})
            for name in ("fedpower", "analyze_gauss", "noisy_power", "private_oja")
            for epsilon in (1e-300, 1e-9, 710.0, 1e4, 1e300)
        ),
        ("fedpower", 1e-9, {"calibration": "paper"}),
        ("noisy_power", 1e4, {"calibration": "paper"}),
        ("adaptive_power", 1e-9, {"calibration": "paper"}),
        ("adaptive_search", 1e4, {"guesses": 1, "unit": 1.0}),
        ("dn26", 1e4, {}),
        ("dp_pca", 1e300, {"batches": 5}),
    ],
)
def test_the_ends_of_the_range_of_epsilon_end_in_a_run_or_in_a_sentence(name, epsilon, options):
    try:
        ledger, _, _ = run(name, spiked(300), epsilon=epsilon, **options)
    except InputError as error:
        assert "epsilon" in str(error)
    else:
        assert 0 <= ledger.privacy.epsilon() < math.inf


def test_the_gap_of_dn26_is_not_the_rounding_of_a_gram_matrix():
    """Entries around 10⁸, one of them changed by 1: a singular value moves by at most 1."""
    rng = np.random.default_rng(0)
    A = 1e8 + 10.0 * rng.standard_normal((200, 5))
    B = A.copy()
    B[3, 2] += 1.0
    gaps = []
    for M in (A, B):
        found = dn26.leading(M, dn26.factor(M, SimpleNamespace(kept=SimpleNamespace())), 2)[1]
        sigma = np.linalg.svd(M, compute_uv=False)
        assert found == pytest.approx(sigma[1] - sigma[2], abs=1e-5)  # 4e9 roundings of 1e-16 each
        gaps.append(found)
    assert abs(gaps[0] - gaps[1]) <= 2.0


def test_the_private_mean_of_values_far_from_zero_is_rounded_by_their_spread():
    """One vector of 2·10⁴ replaced moves the mean by no more than the noise is made for."""
    rng = np.random.default_rng(0)
    values = 1e9 * (1 + 1e-13 * rng.standard_normal((20_000, 1)))
    other = values.copy()
    other[7] = 1e9 * (1 + 3e-13)
    noise = dp_pca.Budget((1.0, 1e-6), (1.0, 1e-6), 1e-300)
    first, second = (
        dp_pca.private_mean(v, noise, 1, np.random.default_rng(1)) for v in (values, other)
    )
    spread = np.ptp(np.concatenate([values, other]))
    # The means as given are rounded to 1e9 · 1e-16; nothing else may part them.
    assert abs(first - second)[0] <= spread / 20_000 + 2 * np.spacing(1e9)


def test_a_row_whose_score_underflows_sits_out():
    """(1e153, 1e-163) scores 0 against e₂ in floating point, and would be taken for a short row."""
    rows = np.vstack([spiked(50, 2)[0], [[1e153, 1e-163]]])
    federation = protected(rows)
    federation.broadcast(np.array([[0.0], [1.0]]))
    federation.gather(filtering.filtered_product(filtering.Noise(50.0, 1e-9, 2.0), 0.05, 2.0))
    assert federation.client_state("filtered")[0] >= 1
