"""Noise and its charge are one call; what no mechanism has touched makes ε infinite."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.privacy.accounting import epsilon
from fedcore.privacy.bounded_rows import clip_rows
from fedcore.privacy.events import Bounded, Gaussian, Laplace
from fedcore.privacy.mechanisms import derived, post_processing
from refused import refused


def private(n_clients: int = 3, **options) -> Federation:
    clients = [np.eye(4) for _ in range(n_clients)]
    federation = Federation(clients, seed=3, noise=np.random.SeedSequence(3), **options)
    federation.protect(delta=1e-5, neighbours="replace_one")
    return federation


def noisy(data, state, message):
    return state.privacy.gaussian(data, sensitivity=0.5, noise_multiplier=4.0)


def bare(data, state, message):
    return data


def test_every_release_is_charged_to_its_client_and_the_largest_counts():
    federation = private()
    federation.observe(bare)  # a look from outside costs nothing
    assert federation.ledger.snapshot()["epsilon"] == 0.0
    federation.local(noisy)  # charged before anything is sent
    assert federation.ledger.privacy.epsilon() == epsilon({Gaussian(4.0): 1}, 1e-5)
    federation.gather(noisy, of=[1])
    events = [account.events for account in federation.ledger.privacy.accounts]
    assert [e[Gaussian(4.0, 0.5)] for e in events] == [1, 2, 1]
    assert federation.ledger.snapshot()["epsilon"] == epsilon({Gaussian(4.0): 2}, 1e-5)


def test_a_client_named_twice_takes_part_twice():
    """One participation after the other: two noises, two charges, two uploads."""
    federation = private(transcript=(seen := Transcript()))
    replies = federation.gather(noisy, of=[2, 0, 2, 2])
    privacy = federation.client_state("privacy")  # streams moved as far as the participations
    assert len(replies) == 4 and federation.ledger.scalars_up == 4 * 16
    counts = [a.events.total() for a in federation.ledger.privacy.accounts]
    assert counts == [1, 0, 3]
    stream = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(2, 2)))
    expected = [np.eye(4) + 2.0 * stream.standard_normal((4, 4)) for _ in range(3)]
    for reply, right in zip([replies[0], replies[2], replies[3]], expected, strict=True):
        np.testing.assert_array_equal(reply, right)
    assert privacy[2].hidden.bit_generator.state == stream.bit_generator.state
    assert [exchange.client for exchange in seen.exchanges] == [2, 0, 2, 2]
    np.testing.assert_array_equal(seen.exchanges[3].sent, replies[3])


@pytest.mark.parametrize("how", ["gather", "sum", "mean"])
def test_an_upload_without_a_mechanism_makes_epsilon_infinite(how):
    federation = private()
    federation.gather(noisy)
    getattr(federation, how)(bare)
    assert federation.ledger.privacy.epsilon() == np.inf


def test_a_sum_by_its_twin_is_an_upload_without_a_mechanism():
    from fedcore.parts.gram_products import gram_product

    federation = private()
    federation.broadcast(np.eye(4))
    federation.sum(gram_product)
    assert federation.ledger.privacy.epsilon() == np.inf


def test_what_has_been_released_before_and_what_is_empty_may_be_sent():
    federation = private()

    def keep(data, state, message):
        state.kept = noisy(data, state, message)

    @post_processing
    def send(data, state, message):
        return state.kept

    federation.gather(keep)
    federation.gather(send)
    assert federation.ledger.privacy.epsilon() == epsilon({Gaussian(4.0): 1}, 1e-5)


@pytest.mark.parametrize("exchange", [lambda late: late.gather(bare), Federation.center, None])
def test_protection_comes_first_and_once(exchange):
    federation = Federation([np.eye(3)]) if exchange else private()
    if exchange:
        exchange(federation)
    else:
        federation.protect(delta=1e-5, neighbours="replace_one")  # the terms that it has
    again = partial(federation.protect, delta=1e-6, neighbours="replace_one")
    twice = ["delta=1e-05", "delta=1e-06", "the same"]
    refused(again, InputError, *(["first upload", "center=False"] if exchange else twice))


def one_client() -> object:
    return private(1).client_state("privacy")[0]


ONE = {"sensitivity": 1.0, "noise_multiplier": 1.0}
NOISELESS = [
    *((ONE | {"noise_multiplier": v}, "noise_multiplier") for v in (0.0, -1.0, np.inf)),
    *((ONE | {"sensitivity": v}, "sensitivity") for v in (0.0, -1.0, np.inf)),
]
NUMBERS = [1j, np.ones(2, complex), np.array(["a"]), [None]]


@pytest.mark.parametrize(("options", "name"), NOISELESS)
def test_a_noise_of_nothing(options, name):
    for draw in (one_client().gaussian, one_client().laplace):
        refused(lambda draw=draw: draw(0.0, **options), InputError, name)


@pytest.mark.parametrize("bad", [*NUMBERS, np.nan, np.inf, -np.inf])
def test_what_is_no_finite_real_number_gets_no_noise_and_is_not_charged(bad):
    federation = private(1)
    privacy, other = federation.client_state("privacy")[0], {"sensitivity": 1.0, "epsilon": 1.0}
    calls = [lambda: privacy.gaussian(bad, **ONE), lambda: privacy.laplace(bad, **ONE)]
    begun = []  # a threshold is charged with the noise that it gets
    if isinstance(bad, float):
        calls.append(lambda: privacy.exponential([0.0, bad], **other))
        begun = [([], bad), ([0.0, bad], 1e9)]
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert not federation.ledger.privacy.accounts[0].events
    for queries, threshold in begun:
        with pytest.raises(InputError):
            privacy.above_threshold(queries, threshold, **other)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"delta": 0.0}, "delta"), ({"delta": 1.0}, "delta"), ({"neighbours": "replace"}, "_one'")],
)
def test_settings_of_a_protection(options, name):
    given = {"delta": 1e-5, "neighbours": "replace_one", **options}
    refused(lambda: Federation([np.eye(3)]).protect(**given), InputError, name)


def test_the_distribution_of_the_noise():
    privacy = one_client()
    zero = np.zeros(4000)
    gaussian = privacy.gaussian(zero, sensitivity=0.5, noise_multiplier=3.0)
    laplace = privacy.laplace(zero, sensitivity=2.0, noise_multiplier=0.25)
    assert stats.kstest(gaussian, stats.norm(scale=1.5).cdf).pvalue > 1e-3
    assert stats.kstest(laplace, stats.laplace(scale=0.5).cdf).pvalue > 1e-3
    assert isinstance(privacy.laplace(1.0, sensitivity=1.0, noise_multiplier=1.0), float)


def test_the_exponential_mechanism_draws_by_its_formula():
    privacy = one_client()
    scores, eps, sensitivity = np.array([0.0, 1.0, 3.0]), 1.2, 2.0
    counts = np.bincount(
        [privacy.exponential(scores, sensitivity=sensitivity, epsilon=eps) for _ in range(3000)]
    )
    weights = np.exp(eps * scores / (2 * sensitivity))
    assert stats.chisquare(counts, 3000 * weights / weights.sum()).pvalue > 1e-3


def test_above_threshold_stops_at_the_first_and_asks_no_further():
    privacy = one_client()
    asked = []

    def queries():
        for k in range(10):
            asked.append(k)
            yield 100.0 if k == 4 else -100.0

    found = privacy.above_threshold(queries(), 0.0, sensitivity=1.0, epsilon=2.0)
    assert found == 4 and asked == [0, 1, 2, 3, 4]
    assert privacy.above_threshold([-100.0], 0.0, sensitivity=1.0, epsilon=2.0) is None


@pytest.mark.parametrize(("monotone", "scale"), [(False, 4.0), (True, 2.0)])
def test_above_threshold_noise_is_lap_2_and_lap_4_or_2_of_monotone_queries(monotone, scale):
    """P(stop at once) = P(Lap(4/ε) − Lap(2/ε) ≥ threshold − query), by quadrature."""
    x = np.linspace(-200, 200, 400_001)
    tail = stats.laplace(scale=scale).sf(3.0 + x)
    exact = np.trapezoid(stats.laplace(scale=2.0).pdf(x) * tail, x)
    privacy = one_client()
    ask = partial(privacy.above_threshold, [0.0], 3.0, sensitivity=1.0, epsilon=1.0)
    hits = sum(ask(monotone=monotone) == 0 for _ in range(4000))
    assert stats.binomtest(hits, 4000, exact).pvalue > 1e-3


def test_each_mechanism_charges_its_own_event():
    federation = private(1)

    def charge(data, state, message):
        state.privacy.laplace(0.0, sensitivity=2.0, noise_multiplier=3.0)
        state.privacy.exponential([0.0, 1.0], sensitivity=1.0, epsilon=0.3)
        state.privacy.above_threshold([1.0], 0.0, sensitivity=1.0, epsilon=0.4)
        return derived(state, state.privacy.bounded(0.5, 1e-6, "own").standard_normal(2))

    federation.gather(charge)
    assert dict(federation.ledger.privacy.accounts[0].events) == {
        Laplace(3.0, 2.0): 1,
        Bounded(0.3, mechanism="exponential"): 1,
        Bounded(0.4, mechanism="sparse vector"): 1,
        Bounded(0.5, 1e-6, "own"): 1,  # of a proof of its own, as a whole
    }
    assert np.isfinite(federation.ledger.privacy.epsilon())


def test_long_rows_are_refused_or_clipped_and_never_change_the_bound():
    rows = np.array([[0.6, 0.8], [3.0, 4.0], [0.0, 0.0]])
    refused(Federation([rows[:1], rows]).bound_rows, InputError, "client 1", "row 1", "5")
    np.testing.assert_allclose(clip_rows(rows), [[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]])
    federation = Federation([rows[:1], rows])
    federation.bound_rows(clip=True)
    longest = [np.linalg.norm(data, axis=1).max() for data in federation.observe(bare)]
    assert max(longest) <= 1 + 1e-15
    federation.bound_rows()
    np.testing.assert_array_equal(rows[1], [3.0, 4.0])  # the caller's data are left alone


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_no_noise_is_rounded_away_from_whole_numbers(dtype):
    """Truncated Laplace noise of scale 1: log ratio 1 + ln 2 at 0, where 1 is charged."""
    privacy, n = one_client(), 40_000
    releases = []
    for value in (0, 1):
        released = privacy.laplace(np.full(n, value, dtype), sensitivity=1.0, noise_multiplier=1.0)
        assert released.dtype == np.float64
        assert stats.kstest(released - value, stats.laplace.cdf).pvalue > 1e-3
        releases.append(released)
    inside = [np.mean(np.abs(released) < 1) for released in releases]
    # P(|x| < 1) = 1 − 1/e and (1 − e⁻²)/2: a log ratio of 0.38; truncated, |x| < 1 is "is 0".
    exact = np.log((1 - np.exp(-1)) / (0.5 * (1 - np.exp(-2))))
    assert np.log(inside[0] / inside[1]) == pytest.approx(exact, abs=0.05)
    small = privacy.gaussian(np.zeros(n, dtype), sensitivity=1.0, noise_multiplier=0.1)
    assert (small != 0).all() and np.std(small) == pytest.approx(0.1, rel=0.05)
    assert isinstance(privacy.gaussian(3, sensitivity=1.0, noise_multiplier=0.1), float)


def test_single_precision_is_rounded_after_the_noise():
    """The value is below half a rounding of the noise: added in single precision it vanishes."""
    value = np.full(20_000, 2.0**-20, np.float32)
    privacy, again = one_client(), one_client()
    released = privacy.gaussian(value, sensitivity=1.0, noise_multiplier=1.0)
    noise = again.hidden.standard_normal(value.shape)
    np.testing.assert_array_equal(released, (value.astype(float) + noise).astype(np.float32))
    assert released.dtype == np.float32


def scalar_and_raw(data, state, message):
    state.privacy.laplace(float(data.sum()), sensitivity=1.0, noise_multiplier=20.0)
    return data


def raw_beside_noise(data, state, message):
    return noisy(data, state, message), data


def forgotten(data, state, message):
    return noisy(data, state, message) - data


def noisy_view(data, state, message):
    return {"first": noisy(data, state, message).T, "none": None, "empty": np.zeros((0, 3))}


def declared(data, state, message):
    return derived(state, 2.0 * noisy(data, state, message))


def changed_later(data, state, message):
    """Identity tells what this call released, not what older objects have become."""
    before = getattr(state, "Y", None)
    state.Y = noisy(data, state, message)
    return before


def raw_index(data, state, message):
    state.privacy.exponential([0.0, 1e6], sensitivity=1.0, epsilon=10.0)
    return int(np.argmax([0.0, 1e6]))


@pytest.mark.parametrize(
    ("step", "protected"),
    [
        (scalar_and_raw, False), (raw_beside_noise, False), (forgotten, False),
        (changed_later, False), (raw_index, False),
        (noisy_view, True), (declared, True),
    ],
)  # fmt: skip
def test_every_part_of_a_reply_comes_out_of_a_mechanism_or_is_declared(step, protected):
    """Charging a number and uploading the matrix showed ε = 0.06."""
    federation = private()
    federation.local(step)
    federation.gather(step)
    privacy = federation.ledger.privacy
    assert np.isfinite(privacy.epsilon()) == protected
    assert privacy.unprotected == (set() if protected else {step.__name__})
    assert protected or privacy.about()["unprotected"] == [step.__name__]


def test_local_noise_is_not_kept():
    federation = private(1)
    for _ in range(5):
        federation.local(noisy)
    assert len(federation.client_state("privacy")[0].released) == 1


def test_a_release_cannot_be_edited_into_something_else():
    """By `-=`, `out=` or an index a raw matrix would take the place of the noisy one."""
    federation = private(1)

    def smuggle(data, state, message):
        reply = state.privacy.gaussian(data, sensitivity=1.0, noise_multiplier=10.0)
        reply -= reply
        reply += data
        return reply

    with pytest.raises(ValueError, match="read-only"):
        federation.gather(smuggle)
