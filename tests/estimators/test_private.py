"""A private FederatedPCA: every exchange has noise, its size is right, and ε is what it says."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fedcore
from fedcore import user_runs
from fedcore.audits.epsilon_bound import lower_bound
from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA, private
from fedcore.estimators.bounds import Ball, Box
from fedcore.federation.execution import protected
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.privacy.events import Gaussian
from fedcore.privacy.mechanisms import Mechanisms
from fedcore.privacy.noise import Weakened
from fedcore.user_tables.labelled import Features
from refused import refused

EPSILON, DELTA = 1.0, 1e-5
SETTINGS = [
    {"center": center, "scale": scale, "algorithm": algorithm}
    for center in (True, False)
    for scale in (True, False)
    for algorithm in ("analyze_gauss", "noisy_power")
]
BOUNDS = {
    "number": 3.0,
    "box": (-1.0, 2.0),
    "boxes": (np.array([-1.0, 0.0, 5.0]), np.array([1.0, 4.0, 6.0])),
}


@pytest.fixture
def clients():
    rng = np.random.default_rng(2)
    return [rng.standard_normal((n, 3)) * [2.0, 0.5, 0.1] for n in (30, 50)]


def fitted(clients, n_components=2, bounds=3.0, **changes):
    return FederatedPCA(
        n_components, epsilon=EPSILON, delta=DELTA, bounds=bounds, **changes
    ).fit(clients)  # fmt: skip


@pytest.mark.parametrize("changes", SETTINGS)
def test_epsilon_is_that_of_dp_accounting(clients, changes):
    pca = fitted(clients, **changes)
    for account in pca.ledger_.privacy.accounts:
        assert not account.unprotected and {type(e) for e in account.events} == {Gaussian}
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        for event, count in account.events.items():
            accountant.compose(GaussianDpEvent(event.noise_multiplier), count)
        # A loss distribution is an upper bound, by its grid.
        assert EPSILON * 0.999 <= accountant.get_epsilon(DELTA) <= EPSILON * 1.002
    assert EPSILON * (1 - 1e-6) <= pca.ledger_.privacy.epsilon() <= EPSILON
    rounds = changes["algorithm"] == "analyze_gauss" or 10
    assert pca.ledger_.rounds == 2 + rounds + changes["scale"]
    assert 0 < pca.error_estimate_ <= 1


def test_a_short_number_of_numpy_is_divided_in_double_precision():
    short, double = (
        private.Request.from_estimator(
            FederatedPCA(1, epsilon=EPSILON, delta=delta, bounds=3.0), Features(None, 3)
        )
        for delta in (np.half(DELTA), float(np.half(DELTA)))
    )
    assert private.multipliers(short) == private.multipliers(double)


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("kind", BOUNDS)
def test_no_release_moves_by_more_than_its_sensitivity(clients, changes, kind, monkeypatch):
    """On extremal records; later releases are compared after the same earlier ones."""
    seen: list[tuple[np.ndarray, float]] = []

    def gaussian(self, value, *, sensitivity, noise_multiplier):
        seen.append((np.array(value), sensitivity))
        rng = np.random.default_rng(len(seen))  # what is released does not depend on the data
        return self._release(rng.uniform(-0.3, 1.0, np.shape(value)))

    monkeypatch.setattr(Mechanisms, "gaussian", gaussian)
    low, high = BOUNDS[kind] if kind != "number" else (-3.0, 3.0)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    extremes = np.where(corners > 0, high, low)
    reached = 0.0
    for record in [*extremes, *(1e9 * corners[:2]), np.zeros(3), *(3.0 * np.eye(3))]:
        moved = []
        for data in (clients[0], np.vstack([clients[0], record])):
            seen.clear()
            fitted([data], bounds=BOUNDS[kind], **changes)
            moved.append(list(seen))
        assert len(moved[0]) == len(moved[1]) >= 3
        for (one, bound), (other, same) in zip(*moved, strict=True):
            assert bound == same
            share = np.linalg.norm(one - other) / bound
            assert share <= 1 + 1e-12
            reached = max(reached, share)
    assert reached > 0.99  # the sensitivities are not larger than they need to be


@pytest.mark.parametrize("center", [True, False])
def test_the_first_upload_has_the_noise_that_is_charged(center):
    """Its noise alone differs between runs on the same data."""
    firsts = []
    for seed in range(150):
        seen = Transcript()
        told = {"simulate": True, "transcript": seen}
        pca = fitted([np.zeros((40, 3))], random_state=seed, params=told, center=center)
        firsts.append(seen.exchanges[0].sent)
    noise = np.array(firsts)
    (z,) = {private.multipliers(private.Request.from_estimator(pca, Features(None, 3)))["mean"]}
    sensitivity = math.sqrt(center + private.COUNT**2)
    assert Gaussian(z, sensitivity) in pca.ledger_.privacy.accounts[0].events
    spread = np.sqrt(np.mean(np.var(noise, axis=0, ddof=1)))
    # Five standard errors; one column if only the number is released, four otherwise.
    assert abs(spread / (z * sensitivity) - 1) < 5 / math.sqrt(2 * 149 * noise.shape[1])


CANARY, RADIUS, CLAIM = np.array([3.0, 0.0]), 3.0, 8.0


def evidence(data: np.ndarray, seed: int, claimed: dict[str, float]) -> float:
    """Log-likelihood ratio of all that the server saw, for the data with the canary."""
    seen = Transcript()
    told = {"simulate": True, "transcript": seen}
    pca = FederatedPCA(
        1, epsilon=CLAIM, delta=DELTA, bounds=RADIUS, random_state=seed, params=told
    ).fit([data])
    first, rounds, last = seen.exchanges
    base = np.zeros((20, 2))
    reach = RADIUS + np.linalg.norm(pca.mean_)
    a, rows = CANARY / RADIUS, (base - pca.mean_) / reach
    b, triangle = (CANARY - pca.mean_) / reach, np.triu_indices(2)
    Z = last.received

    def moments(x):
        y = x @ Z
        return np.append((y.T @ y)[triangle], np.sum(x * x) - np.sum(y * y))

    total = 0.0
    count = private.COUNT
    for name, sent, without, change, sensitivity in (
        ("mean", first.sent, np.array([0, 0, count * 20]), np.append(a, count), (1 + count**2)**.5),
        ("rounds", rounds.sent, (rows.T @ rows)[triangle], np.outer(b, b)[triangle], 1.0),
        ("last", last.sent, moments(rows), moments(b[None]), 1.0),
    ):  # fmt: skip
        z = claimed[name] * sensitivity
        total += float((np.ravel(sent) - without - change / 2) @ change) / z**2
    return total


def scores(runs: int) -> tuple[list[float], list[float]]:
    asked = FederatedPCA(1, epsilon=CLAIM, delta=DELTA, bounds=RADIUS)
    claimed = private.multipliers(private.Request.from_estimator(asked, Features(None, 2)))
    absent = np.zeros((20, 2))
    present = np.vstack([absent, CANARY])
    return (
        [evidence(present, seed, claimed) for seed in range(runs)],
        [evidence(absent, 10**6 + seed, claimed) for seed in range(runs)],
    )


def test_an_audit_does_not_refute_epsilon_and_finds_a_tenth_of_the_noise_out(monkeypatch):
    honest = lower_bound(*scores(200), delta=DELTA, gaussian=True)
    assert 1.0 < honest.epsilon <= CLAIM  # it sees the canary, and no more than is claimed
    real = user_runs.simulated
    monkeypatch.setattr(user_runs, "simulated", lambda *given: Weakened(real(*given), 0.1))
    assert lower_bound(*scores(60), delta=DELTA, gaussian=True).epsilon > CLAIM


@pytest.mark.parametrize("changes", SETTINGS)
def test_a_fit_is_one_federation_that_is_protected_from_its_first_exchange(
    clients, changes, monkeypatch
):
    made, real = [], Federation.__init__

    def init(self, *given, **options):
        made.append(self)
        real(self, *given, **options)

    monkeypatch.setattr(Federation, "__init__", init)
    pca = fitted(clients, **changes)
    (federation,) = made
    assert pca.ledger_ is federation.ledger
    assert 0 < pca.history_["epsilon"][0] <= pca.history_["epsilon"][-1] < EPSILON


@pytest.mark.parametrize("mark", [protected, lambda exchange: exchange])
@pytest.mark.parametrize("noise", [True, False])
def test_an_exchange_beside_a_private_run_is_protected_or_refused(clients, mark, noise):
    """One that says so and adds no noise makes ε infinite."""

    def total(data, state, message):
        found = np.clip(data, -1.0, 1.0).sum(axis=0)
        return (
            state.privacy.gaussian(found, sensitivity=2.0, noise_multiplier=9.0) if noise else found
        )

    def before(federation):
        federation.protect(delta=DELTA, neighbours="add_or_remove_one")
        return {"before": federation.sum(total)}

    def after(federation, output):
        return {"after": federation.sum(total)}

    for exchanges in ({"begin": mark(before)}, {"finish": mark(after)}):

        def run(exchanges=exchanges):
            return fedcore.run("analyze_gauss", clients, 2, clip=True, delta=DELTA, **exchanges)

        if mark is not protected:
            refused(run, InputError, "would void")
            continue
        spent = run().ledger.privacy.epsilon()
        assert 1.0 < spent < 2.0 if noise else spent == math.inf


def by_numpy(x: np.ndarray, seed: int, noise: float = 1.0) -> np.ndarray:
    """Return the components of `private` for two clients within (−1, 1), from its text alone."""
    rng, (n, d), r = np.random.default_rng(seed), x.shape, 2
    asked = SimpleNamespace(epsilon=EPSILON, delta=DELTA, scale=False)
    sizes = {name: noise * math.sqrt(2) * z for name, z in private.multipliers(asked).items()}
    released = np.append(x.sum(axis=0) / math.sqrt(d), 0.5 * n)
    released += sizes["mean"] * math.sqrt(1.25) * rng.standard_normal(d + 1)
    mean = np.clip(math.sqrt(d) * released[:-1] / max(1, round(released[-1] / 0.5)), -1, 1)
    rows = (x - mean) / np.linalg.norm(1 + np.abs(mean))
    E = np.triu(sizes["rounds"] * rng.standard_normal((d, d)))
    values = np.linalg.eigh(rows.T @ rows + E + np.triu(E, 1).T)[1]
    return values[:, : -r - 1 : -1].T


def test_components_have_the_law_that_the_text_gives_them():
    """And half more noise is found out by as many fits."""
    rng = np.random.default_rng(4)
    x = np.clip(0.2 + rng.standard_normal((2000, 4)) * [0.6, 0.4, 0.25, 0.2], -1, 1)
    exact = np.linalg.svd(x - x.mean(axis=0))[2][:2]

    def sines(found):
        return [np.linalg.norm(V - V @ exact.T @ exact, 2) for V in found]

    fits = sines(
        fitted(np.split(x, 2), bounds=(-1.0, 1.0), params={"simulate": True}, random_state=seed)
        .components_ for seed in range(200)
    )  # fmt: skip
    for noise, same in ((1.0, True), (1.5, False)):
        drawn = sines(by_numpy(x, seed, noise) for seed in range(1000))
        assert (stats.ks_2samp(fits, drawn).pvalue > 0.001) == same


def test_with_little_noise_it_is_the_pca_of_the_data(matrix_with):
    drawn = matrix_with(4000, 4, np.array([60.0, 40.0, 10.0, 1.0]), seed=5)
    S = drawn + np.array([1.0, 0.5, 0.0, -1.0])
    parts = np.split(S, 2)
    exact = FederatedPCA(2).fit(parts)
    for bounds in ((S.min(axis=0), S.max(axis=0)), float(np.linalg.norm(S, axis=1).max())):
        pca = FederatedPCA(2, epsilon=5000.0, delta=DELTA, bounds=bounds).fit(parts)
        np.testing.assert_allclose(pca.components_, exact.components_, atol=0.02)
        np.testing.assert_allclose(pca.mean_, exact.mean_, atol=0.02)
        np.testing.assert_allclose(
            pca.explained_variance_, exact.explained_variance_, rtol=0.02, atol=0.001
        )
        np.testing.assert_allclose(
            pca.explained_variance_ratio_, exact.explained_variance_ratio_, atol=0.01
        )
        assert abs(pca.n_samples_ - 4000) < 5
        scaled = FederatedPCA(2, scale=True, epsilon=5000.0, delta=DELTA, bounds=bounds).fit(parts)
        np.testing.assert_allclose(scaled.scale_, S.std(axis=0), rtol=0.03)


def test_noise_differs_unless_it_is_simulated(clients):
    one, other = fitted(clients), fitted(clients)
    assert not np.array_equal(one.mean_, other.mean_)
    again = [fitted(clients, params={"simulate": True}) for _ in range(2)]
    np.testing.assert_array_equal(again[0].mean_, again[1].mean_)
    np.testing.assert_array_equal(again[0].components_, again[1].components_)
    assert "simulated noise: no guarantee" in str(again[0])


def test_without_epsilon_a_private_method_runs_if_that_is_said(clients):
    free = FederatedPCA(2, algorithm="noisy_power", params={"epsilon": None}).fit(clients)
    assert free.ledger_.privacy is None


@pytest.mark.parametrize("bounds", [Ball(3.0, 2), Box(np.array([-1.0, 0]), np.array([2.0, 5.0]))])
def test_reach_and_widths_are_those_of_the_farthest_samples(bounds):
    rng = np.random.default_rng(0)
    rows = bounds.clip(10 * rng.standard_normal((20_000, 2)))
    for point in (bounds.middle, np.array([1.0, 0.5]), np.zeros(2)):
        for scale in (np.ones(2), np.array([0.5, 2.0])):
            norms = np.linalg.norm((rows - point) / scale, axis=1)
            assert norms.max() <= bounds.reach(point, scale) * (1 + 1e-12)
        assert np.all(np.abs(rows - point).max(axis=0) <= bounds.widths(point) * (1 + 1e-12))
        squares = ((rows - point) / bounds.widths(point)) ** 2
        assert np.linalg.norm(squares, axis=1).max() <= bounds.sum_of_fractions * (1 + 1e-12)
    norms = np.linalg.norm(rows - bounds.middle, axis=1)
    assert norms.max() > 0.99 * bounds.reach(bounds.middle, np.ones(2))


def test_the_ledgers_of_two_fits_add_up(clients):
    both = fitted(clients).ledger_ + fitted(clients).ledger_
    assert EPSILON < both.privacy.epsilon() < 2 * EPSILON
    other = fedcore.run("analyze_gauss", clients, 2, clip=True, epsilon=1.0, delta=DELTA).ledger
    assert (both + other).privacy.epsilon() > both.privacy.epsilon()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 300),
    d=st.integers(1, 6),
    epsilon=st.floats(-3, 3).map(lambda x: 10.0**x),
    unit=st.floats(-50, 50).map(lambda x: 10.0**x),
    kind=st.sampled_from(["spread", "zeros", "constant", "outside"]),
    changes=st.sampled_from(SETTINGS),
    ball=st.booleans(),
    share=st.floats(0, 1),
)
def test_what_follows_a_private_fit_is_finite_whatever_the_noise(
    seed, rows, d, epsilon, unit, kind, changes, ball, share
):
    rng = np.random.default_rng(seed)
    spread = {"spread": 1.0, "zeros": 0.0, "constant": 0.0, "outside": 100.0}[kind]
    clients = [
        unit * ((kind == "constant") + spread * rng.standard_normal((max(n, d), d)))
        for n in (rows, rows // 2)
    ]
    pca = FederatedPCA(
        1 + int(share * (d - 1)), epsilon=epsilon, delta=DELTA, random_state=seed,
        bounds=3 * unit if ball else (-3 * unit, 3 * unit), **changes,
    ).fit(clients)  # fmt: skip
    x = np.vstack(clients)
    assert (pca.explained_variance_ > 0).all() and pca.noise_variance_ >= 0
    shares = pca.explained_variance_ratio_
    assert (shares > 0).all() and shares.sum() <= 1 + 1e-12
    assert (np.diff(pca.explained_variance_) <= 0).all()
    samples = pca.score_samples(x)
    assert np.isfinite(samples).all() and math.isclose(pca.score(x), samples.mean(), rel_tol=1e-9)
    size = np.multiply.outer(pca.scale_, pca.scale_) * pca.explained_variance_.max()
    product = (pca.get_covariance() / size) @ (pca.get_precision() * size)
    if changes["scale"] is False:  # then all entries of `size` are equal
        np.testing.assert_allclose(product, np.eye(d), atol=1e-6)
        z = (x - pca.mean_) / np.sqrt(size[0, 0])
        density = stats.multivariate_normal(np.zeros(d), pca.get_covariance() / size)
        expected = density.logpdf(z) - 0.5 * d * np.log(size[0, 0])
        np.testing.assert_allclose(samples, np.atleast_1d(expected), rtol=1e-5, atol=1e-5)


@settings(max_examples=200, deadline=None)
@given(
    epsilon=st.floats(-13, 6).map(lambda x: 10.0**x),
    delta=st.one_of(st.floats(-300, -0.1).map(lambda x: 10.0**x), st.floats(1e-3, 0.999999)),
    scale=st.booleans(),
    algorithm=st.sampled_from(["analyze_gauss", "noisy_power"]),
)
def test_an_epsilon_that_is_refused_is_the_one_that_was_given_and_nothing_is_spent(
    epsilon, delta, scale, algorithm
):
    seen = Transcript()
    pca = FederatedPCA(
        1, epsilon=epsilon, delta=delta, bounds=3.0, scale=scale, algorithm=algorithm,
        params={"transcript": seen},
    )  # fmt: skip
    data = np.zeros((5, 2))
    try:
        pca.fit(data)
    except InputError as error:
        assert f"{epsilon!r}" in str(error) and not seen.exchanges
        pca.set_params(epsilon=1e4).fit(data)  # "choose a larger epsilon", or one in the range
    assert np.isfinite(pca.score(data))
