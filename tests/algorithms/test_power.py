"""Algorithm 1 and the descent of Algorithm 2, against what the paper says in formulas."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest

import fedcore
from contract.cases import Draws, gaussian
from fedcore.errors import InputError, RoundingWarning
from refused import refused

RANK = 3
POWER_METHODS = ["power_iteration", "power_exact", "power_gd", "power_prox"]


@pytest.mark.parametrize("name", POWER_METHODS)
def test_with_a_start_there_is_nothing_to_sample(name, clients):
    call = partial(fedcore.run, name, clients, RANK, start=np.eye(9, RANK))
    refused(lambda: call(samples=2), InputError, "samples", "got 2")
    call(samples=1)


def descent(clients, **options):
    measure = ["objective", "exact_objective"]
    return fedcore.run("power_gd", clients, RANK, measure=measure, **options)


def test_the_excess_falls_as_the_eigenvalues_of_v_say(low_rank_clients):
    result = descent(low_rank_clients, local_steps=60)
    V, excess = result.output["V"], result.history["objective"]
    assert (result.history["exact_objective"] < 1e-27).all()  # noise-free: all is excess
    S, draws = np.vstack(low_rank_clients), Draws(0, 4)
    gaussian(low_rank_clients, draws, RANK)  # Φ comes first
    U0 = np.vstack([g / np.sqrt(len(g)) for g in gaussian(low_rank_clients, draws, RANK)])
    eigenvalues, T = np.linalg.eigh(V.T @ V)
    energy = np.sum(((U0 - S @ np.linalg.pinv(V).T) @ T) ** 2, axis=0)
    for t in range(61):
        factors = (1 - eigenvalues / eigenvalues[-1]) ** (2 * t)
        # κ(V)² · eps of the eigenvalues, raised to the power 2t = 120.
        assert excess[t] == pytest.approx(
            0.5 * np.sum(eigenvalues * factors * energy), rel=1e-9, abs=0
        )


@pytest.mark.filterwarnings("ignore::fedcore.errors.RoundingWarning")  # of what is not there
@pytest.mark.parametrize("power", [0, 1])
def test_a_rank_deficient_v_is_handled_like_numpys_pseudo_inverse(matrix_with, power):
    S = matrix_with(30, 7, np.array([2.0, 1.0]), seed=3)  # rank 2, and four components
    parts = [S[:4], S[4:]]
    exact = fedcore.run("power_exact", parts, 4, power=power)
    V, U = exact.output["V"], np.vstack(exact.output["U"])
    expected = S @ np.linalg.pinv(V, rcond=1e-12).T
    # κ of the non-zero part is below 1e3.
    np.testing.assert_allclose(U, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert exact.history["objective"][0] < 1e-26  # (eps ‖S‖)² times the number of entries

    gd = fedcore.run("power_gd", parts, 4, power=power, local_steps=2000, momentum=True)
    U, V = np.vstack(gd.output["U"]), gd.output["V"]
    draws = Draws(0, 2)
    gaussian(parts, draws, 4)
    U0 = np.vstack([g / np.sqrt(len(g)) for g in gaussian(parts, draws, 4)])
    # Descent changes U within the row space of V only, and there it reaches the solution: what is
    # left after 2000 accelerated steps is below 1e-6 of it.
    in_range = np.linalg.pinv(V, rcond=1e-12) @ V
    np.testing.assert_allclose(U - U @ in_range, U0 - U0 @ in_range, atol=1e-11)
    np.testing.assert_allclose(U @ in_range, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def descent_in_60_digits(ratio, steps, momentum):
    """What is done, 1 − p, of an error along a singular value that is `ratio` of the largest."""
    with localcontext() as context:
        context.prec = 60
        rate = Decimal(ratio) ** 2  # exact: the ratio is a binary fraction
        p = ahead = Decimal(1)
        for k in range(steps):
            p, old = (1 - rate) * ahead, p
            ahead = p + (Decimal(k) / (k + 3) if momentum else 0) * (p - old)
        return float(1 - p)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("steps", [1, 200, 3000])
def test_directions_of_small_singular_values_move_as_far_as_they_should(steps, momentum):
    """Orthonormal columns of Hadamard's matrix and V = start: every number here is exact."""
    H = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    S, ratios = np.vstack([H, np.zeros((4, 4))])[:, :3], np.array([1.0, 2.0**-10, 2.0**-20])
    options = {"start": np.diag(ratios), "local_steps": steps, "momentum": momentum}
    result = fedcore.run("power_gd", [S[:5], S[5:]], 3, seed=1, **options)
    np.testing.assert_array_equal(result.output["V"], np.diag(ratios))
    U0 = np.vstack([g / np.sqrt(len(g)) for g in gaussian([S[:5], S[5:]], Draws(1, 2), 3)])
    done = np.array([descent_in_60_digits(ratio, steps, momentum) for ratio in ratios])
    expected = U0 - (U0 - S / ratios) * done
    # Some roundings per step in `done`, each carried on by momentum; nothing cancels against 1,
    # which would leave an error of eps/done = 1e-8.
    scale = np.abs(U0) + np.abs(S / ratios) * done
    error = np.abs(np.vstack(result.output["U"]) - expected)
    assert (error <= 20 * np.finfo(float).eps * steps * scale).all()


def recursion(S, V, U, steps):
    """Nesterov's descent as it is written."""
    point = U
    for k in range(steps):
        new = point - (point @ V.T - S) @ V / np.linalg.norm(V, 2) ** 2
        U, point = new, new + k / (k + 3) * (new - U)
    return U


@pytest.mark.parametrize("name", ["power_gd", "power_prox"])
@pytest.mark.parametrize("exponent", [-450, -240, 0, 240])  # 2^(−4·450) is no double
def test_the_descent_works_at_any_size_of_the_data(name, exponent, clients):
    """With S times s and V times s⁴, U − Û starts from U₀ − s⁻³ Û: one or the other is left."""
    start = np.random.default_rng(3).standard_normal((9, RANK))
    scaled = [np.ldexp(client, exponent) for client in clients]
    options = {"power": 1, "local_steps": 40, "momentum": True, "start": start}
    result = fedcore.run(name, scaled, RANK, **options)
    S, gram = np.vstack(clients), np.vstack(clients).T @ np.vstack(clients)
    V = gram @ gram @ start
    e = int(result.output["exponent"])
    assert (e != 0) == (exponent == -450)
    found = np.ldexp(result.output["V"], e - 4 * exponent)
    np.testing.assert_allclose(found, V, rtol=0, atol=1e-13 * np.abs(V).max())
    U0 = np.vstack([g / np.sqrt(len(g)) for g in gaussian(clients, Draws(0, 4), RANK)])
    if exponent > 0:  # ½‖S − U₀Vᵀ‖² is some 2^1930: no number of double precision
        assert result.history["diverged"].tolist() == [1]
        assert np.isinf(result.history["objective"]).all()
        result = fedcore.run(name, scaled, RANK, measure=[], **options)
        expected = recursion(0 * S, V, U0, 40)
    else:
        expected = recursion(S, V, 0 * U0 if exponent < 0 else U0, 40)
        loss = 0.5 * np.linalg.norm(S - expected @ V.T) ** 2
        assert not result.history["diverged"].any()
        assert np.ldexp(result.history["objective"][-1], -2 * exponent) == pytest.approx(loss)
    unit = np.vstack(result.output["U"])
    unit = np.ldexp(unit, 3 * exponent - e) if exponent < 0 else unit
    # 40 steps of rounding in two forms of the recursion, κ(V) some 1e3.
    np.testing.assert_allclose(unit, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("exponent", [-450, -266, -133, 133, 266, 450])
@pytest.mark.parametrize("name", ["power_iteration", "power_exact"])
def test_the_size_of_the_data_changes_no_bit_of_the_answer(name, exponent, clients):
    """Multiplied by a power of two; 2⁴⁵⁰ = 3e135, and V = (SᵀS)³SᵀΦ leaves double precision."""
    plain = fedcore.run(name, clients, RANK, power=3, measure=["kappa", "subspace_distance"])
    scaled = [np.ldexp(client, exponent) for client in clients]
    found = fedcore.run(name, scaled, RANK, power=3, measure=["kappa", "subspace_distance"])
    np.testing.assert_array_equal(found.components, plain.components)
    V, e = found.output["V"], int(found.output["exponent"])
    assert (e != 0) == (abs(exponent) > 133)  # 2^(7·133) = 2^931
    np.testing.assert_array_equal(np.ldexp(V, e - 7 * exponent), plain.output["V"])
    assert found.history["kappa"] == pytest.approx(plain.history["kappa"], rel=1e-14)
    # Of a reference by an SVD that scales in its own way.
    distance = plain.history["subspace_distance"]
    assert found.history["subspace_distance"] == pytest.approx(distance, abs=1e-14)
    if name == "power_exact":  # U Vᵀ fits S, whatever V's scale
        fit = np.vstack(found.output["U"]) @ V.T
        expected = np.vstack(plain.output["U"]) @ plain.output["V"].T
        np.testing.assert_allclose(np.ldexp(fit, -exponent), expected, rtol=0, atol=1e-12)


def test_data_of_0_to_255_in_single_precision_stand_a_power_of_4():
    rng = np.random.default_rng(0)
    S = rng.integers(0, 256, (300, 3)) @ rng.random((3, 40)) / 3  # rank 3, σ₁ some 1e4
    clients = [part.astype(np.float32) for part in np.split(S + rng.random(S.shape), 3)]
    found = fedcore.run("power_exact", clients, 1, power=4)
    V = found.output["V"]
    assert V.dtype == np.float32 and np.isfinite(V).all() and found.output["exponent"] > 0
    S = np.vstack(clients).astype(float)
    sigma = np.linalg.svd(S)[1]
    # (σ₂/σ₁)^18 from the best: nothing. Sums of squares in single precision.
    assert found.history["objective"][0] == pytest.approx(0.5 * np.sum(sigma[1:] ** 2), rel=1e-4)
    fit = np.vstack(found.output["U"]).astype(float) @ V.astype(float).T
    assert np.linalg.norm(S - fit) ** 2 == pytest.approx(np.sum(sigma[1:] ** 2), rel=1e-4)


def spread(dtype, power, decay, rows=200, columns=30):
    """Result of data of exact rank 4 with σ = 1, decay, decay², decay³, and their true space."""
    rng = np.random.default_rng(5)
    left, right = (np.linalg.qr(rng.standard_normal((m, 4)))[0] for m in (rows, columns))
    S = ((left * decay ** np.arange(4)) @ right.T).astype(dtype)
    measure = ["objective", "kappa", "subspace_distance"]
    found = fedcore.run("power_exact", np.split(S, 4), 4, power=power, measure=measure)
    P = found.components.T.astype(float)
    return found, float(np.linalg.norm(right - P @ (P.T @ right), 2))


@pytest.mark.parametrize(
    ("dtype", "power", "decay"),
    [(float, 0, 0.2), (float, 4, 0.5), (float, 2, 0.2), (np.float32, 1, 0.5), (np.float32, 0, 0.2)],
)
def test_no_direction_is_called_lost_while_the_answer_is_right(dtype, power, decay, recwarn):
    """Every power of data of rank 4 has range(V) = range(Sᵀ), known exactly."""
    found, error = spread(dtype, power, decay)
    assert found.history["lost_directions"].tolist() == [0]
    assert not [w for w in recwarn if w.category is RoundingWarning]
    assert error < 0.1  # 100 roundings and more of distance, and some 6 of error at most


@pytest.mark.parametrize(
    ("dtype", "power", "decay"), [(float, 6, 0.1), (float, 20, 0.5), (np.float32, 3, 0.1)]
)
@pytest.mark.parametrize("name", POWER_METHODS)
def test_directions_lost_to_rounding_are_counted_and_warned_of(name, dtype, power, decay, clients):
    with pytest.warns(RoundingWarning, match=r"in \d of the 4 directions"):
        found, error = spread(dtype, power, decay)
    assert found.history["lost_directions"][0] >= 1
    assert error > 0.1
    assert found.history["kappa"][0] > 1e-2 / np.finfo(dtype).eps
    S = np.vstack(clients).astype(dtype)
    with pytest.warns(RoundingWarning):
        history = fedcore.run(name, [S], 9, power=20, measure=[]).history
    assert history["lost_directions"][0] > 0 and not history["diverged"].any()


def test_a_start_that_the_data_do_not_see_is_told(clients):
    S = np.zeros((20, 9))
    S[:, :3] = np.random.default_rng(0).standard_normal((20, 3))
    start = np.eye(9)[:, 5:8]  # SᵀS start = 0 exactly
    for name in POWER_METHODS:
        with pytest.warns(RoundingWarning, match="in 3 of the 3 directions"):
            found = fedcore.run(name, [S[:8], S[8:]], RANK, start=start)
        assert (found.history["lost_directions"] == 3).all()
        assert np.isfinite(found.history["objective"]).all()


@pytest.mark.filterwarnings("ignore::fedcore.errors.RoundingWarning")  # the last digits of one
@pytest.mark.parametrize(("dtype", "power"), [(np.float32, 2), (float, 6)])
def test_what_is_measured_is_what_the_components_hold(dtype, power, matrix_with):
    """κ(V) is beyond 1/(d eps), where directions used to be dropped without a word."""
    d, r = 300, 5
    sigma = np.concatenate([np.geomspace(1, 0.11, r), np.full(20, 0.01)])
    S = matrix_with(400, d, sigma, seed=8).astype(dtype)
    measure = ["objective", "exact_objective", "kappa", "subspace_distance"]
    found = fedcore.run("power_exact", np.split(S, 4), r, power=power, measure=measure)
    Z, S = found.components.T.astype(float), S.astype(float)
    assert found.history["kappa"][0] > 1 / (d * np.finfo(dtype).eps)
    loss = 0.5 * np.linalg.norm(S - S @ Z @ Z.T) ** 2
    top = np.linalg.svd(S)[2][:r].T
    sine = np.linalg.norm(top - Z @ (Z.T @ top), 2)
    tolerance = 1e3 * float(np.finfo(dtype).eps)  # of an orthonormal basis in this precision
    for name in ("objective", "exact_objective"):
        assert found.history[name][0] == pytest.approx(loss, rel=tolerance)
    assert found.history["subspace_distance"][0] == pytest.approx(sine, rel=tolerance)
    np.testing.assert_allclose(np.sum(loss) * 2, np.sum(sigma[r:] ** 2), rtol=0.05)
