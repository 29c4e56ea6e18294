from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from cells import cell
from fedcore.audits.leakage import Reconstruction, errors, pairs_of
from fedcore.experiments.repeats import run_repeats
from fedcore.federation.transcript import Exchange, Transcript
from fedcore.problems.problem import Problem


def gram_of(n: int, seed: int = 0, samples: int | None = None, decay: float = 0.9) -> np.ndarray:
    S = np.random.default_rng(seed).standard_normal((samples or 2 * n, n)) * decay ** np.arange(n)
    return S.T @ S


def exact(gram: np.ndarray, p: int, rounds: int, seed: int = 1) -> list:
    """Transcript of one client with a fresh random orthonormal Z each round."""
    rng = np.random.default_rng(seed)
    blocks = [np.linalg.qr(rng.standard_normal((len(gram), p)))[0] for _ in range(rounds)]
    return [(Z, gram @ Z) for Z in blocks]


def iteration(gram: np.ndarray, p: int, rounds: int, other: np.ndarray | float = 0.0) -> list:
    """Transcript of one client in subspace iteration with ``gram + other``."""
    Z = np.linalg.qr(np.random.default_rng(2).uniform(-1, 1, (len(gram), p)))[0]
    pairs = []
    for _ in range(rounds):
        pairs.append((Z, gram @ Z))
        Z = np.linalg.qr((gram + other) @ Z)[0]
    return pairs


def stacked(pairs: list) -> tuple[np.ndarray, np.ndarray]:
    received, sent = zip(*pairs, strict=True)
    return np.hstack(received), np.hstack(sent)


def relative(found: np.ndarray, gram: np.ndarray) -> float:
    return float(np.linalg.norm(found - gram) / np.linalg.norm(gram))


def reconstruct(pairs: list) -> np.ndarray:
    attack = Reconstruction(len(pairs[0][0]))
    for received, sent in pairs:
        attack.add(received, sent)
    return attack.images() @ attack.basis.T


def ranks(pairs: list) -> list[int]:
    attack = Reconstruction(len(pairs[0][0]))
    return np.cumsum([attack.add(*pair).shape[1] for pair in pairs]).tolist()


def test_a_full_span_gives_the_gram_matrix_away():
    gram = gram_of(60)
    pairs = exact(gram, 7, 9)  # 63 ≥ 60 columns
    assert relative(reconstruct(pairs), gram) < 1e-12  # rounding
    found = errors(pairs, gram)
    assert found[-1] < 1e-12 and (found[:-1] > 1e-3).all()
    assert ranks(pairs) == [7, 14, 21, 28, 35, 42, 49, 56, 60]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_it_is_the_least_norm_solution(n, p, rounds, seed):
    p = min(n, p)
    gram = gram_of(n, seed)
    pairs = exact(gram, p, rounds, seed)
    Z, Y = stacked(pairs)
    # The condition of Z is moderate (random blocks), except where kp is near n: hence the scale.
    sizes = np.linalg.svd(Z)[1]
    sizes = sizes[sizes > 1e-6]
    expected = np.linalg.lstsq(Z.T, Y.T, rcond=1e-6)[0].T
    tolerance = 1e-13 * np.linalg.norm(gram) * (sizes[0] / sizes[-1]) ** 2
    np.testing.assert_allclose(reconstruct(pairs), expected, rtol=0, atol=tolerance)


def test_errors_are_those_of_the_reconstruction_and_of_the_formula():
    gram = gram_of(30)
    pairs = exact(gram, 4, 8)
    found = errors(pairs, gram)
    for k in range(1, 9):
        phi = reconstruct(pairs[:k])
        assert found[k - 1] == pytest.approx(relative(phi, gram), rel=1e-10, abs=1e-13)
        Q = np.linalg.svd(stacked(pairs[:k])[0], full_matrices=False)[0][:, : min(4 * k, 30)]
        expected = np.linalg.norm(gram - gram @ Q @ Q.T) / np.linalg.norm(gram)
        assert found[k - 1] == pytest.approx(expected, rel=1e-8, abs=1e-13)


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 25), st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_errors_never_grow(n, p, seed, definite):
    gram = gram_of(n, seed)
    if not definite:  # positive semidefiniteness has no part in it
        gram = gram - np.trace(gram) / n * np.eye(n)
    pairs = exact(gram, p, n // p + 2, seed)
    # A direction of which 1e-6 is left would have this error.
    assert (np.diff(errors(pairs, gram)) <= 1e-9).all()


def test_repeated_and_deficient_blocks_add_nothing():
    gram = gram_of(20)
    pairs = exact(gram, 3, 3)
    turned = [(Z @ np.array([[0, 2.0, 0], [1, 0, 1], [0, 0, 0]]), None) for Z, _ in pairs]
    more = pairs + [(Z, gram @ Z) for Z, _ in turned] + [(0 * Z, 0 * Y) for Z, Y in pairs]
    assert ranks(more) == [3, 6, 9, 9, 9, 9, 9, 9, 9]
    np.testing.assert_allclose(reconstruct(more), reconstruct(pairs), atol=1e-12)
    # A block that brings one new direction along with two known ones.
    Z = np.column_stack([pairs[0][0][:, :2], np.eye(20)[:, 7]])
    assert ranks([*pairs, (Z, gram @ Z)])[-1] == 10


def test_the_basis_stays_orthonormal_when_new_parts_are_tiny():
    gram, rng = gram_of(40), np.random.default_rng(3)
    attack = Reconstruction(40)
    Z = np.linalg.qr(rng.standard_normal((40, 5)))[0]
    for _ in range(7):
        attack.add(Z, gram @ Z)
        Z = np.linalg.qr(Z + 1e-6 * rng.standard_normal((40, 5)))[0]
    Q = attack.basis
    assert Q.shape == (40, 35)
    np.testing.assert_allclose(Q.T @ Q, np.eye(35), rtol=0, atol=1e-13)
    # eps / 1e-6, times the number of terms.
    assert np.linalg.norm(attack.images() - gram @ Q) < 1e-8 * np.linalg.norm(gram)


def test_all_rounds_count_as_in_one_least_squares_problem():
    # The span is complete after 10 rounds, the last directions of it barely; later rounds sharpen
    # them, as they do in least squares over all pairs. The paper's (Z Zᵀ)⁻¹ fails here.
    S = np.random.default_rng(0).standard_normal((1000, 100))
    gram = S[:100].T @ S[:100]
    pairs = iteration(gram, 10, 20, S[100:].T @ S[100:])
    found = errors(pairs, gram)
    assert found[8] > 0.1 and found[10] < 1e-5 and found[-1] < found[10] / 10
    for k in (10, 14, 20):
        Z, Y = stacked(pairs[:k])
        expected = relative(np.linalg.lstsq(Z.T, Y.T, rcond=1e-13)[0].T, gram)
        assert found[k - 1] < 10 * expected  # both are rounding errors, amplified alike


def test_contradicting_replies_are_averaged():
    gram, rng = gram_of(12), np.random.default_rng(5)
    pairs = [(Z, Y + 0.1 * rng.standard_normal(Y.shape)) for Z, Y in exact(gram, 4, 200)]
    Z, Y = stacked(pairs)
    expected = np.linalg.lstsq(Z.T, Y.T, rcond=None)[0].T
    np.testing.assert_allclose(reconstruct(pairs), expected, rtol=0, atol=1e-12 * len(pairs))
    found = errors(pairs, gram)
    assert found[-1] < found[3] / 3  # noise goes down like 1/√rounds


def test_replies_that_are_no_linear_function_do_not_break_the_attack():
    gram = gram_of(20)
    pairs = [(Z, np.linalg.qr(Y)[0]) for Z, Y in exact(gram, 4, 8)]
    found = errors(pairs, gram)
    assert np.isfinite(found).all() and found[-1] > 0.1


def test_single_precision_messages_stop_at_their_own_digits():
    gram = gram_of(30)
    pairs = [(Z.astype(np.float32), (gram @ Z).astype(np.float32)) for Z, _ in exact(gram, 5, 7)]
    found = errors(pairs, gram)
    assert 1e-9 < found[-1] < 1e-3  # 6e-8 divided by at least √6e-8


def test_the_transcript_of_a_run_feeds_the_attack(clients):
    S = clients[1]
    seen = Transcript()
    fedcore.run("power_iteration", clients, 3, power=4, transcript=seen)
    pairs = pairs_of(seen.exchanges_of(1))  # the sketch has no Z, so four pairs
    assert len(pairs) == 4
    found = errors(pairs, S.T @ S)
    assert (np.diff(found) <= 1e-9).all() and found[-1] < found[0]


TENS = {"n_components": 10, "rounds": 8}


def test_local_power_leaks_like_subspace_iteration_three_rounds_later():
    """Its first three replies are not linear; without them six blocks of 10 of n = 60 suffice."""
    rng = np.random.default_rng(4)
    problem = Problem("p", [rng.standard_normal((90, 60)) for _ in range(3)])
    (plain,), (late,) = (
        run_repeats(cell("local_power", TENS | {"rounds": 16}, audit=audit), [problem])[audit]
        for audit in ("leakage", "late_leakage")
    )
    assert plain[16] > 1 and np.isnan(late[:4]).all()
    assert not np.isnan(late[4:]).any() and late[4] > 0.1 and late[16] < 1e-9


def test_an_audit_compares_each_repeat_with_its_own_draw():
    rng = np.random.default_rng(4)
    first, second = (Problem("p", [rng.standard_normal((90, 60))]) for _ in range(2))
    spec = cell("ssi", TENS, repeats=2, audit="leakage")
    both, alone = (run_repeats(spec, draws)["leakage"] for draws in ([first, second], [second] * 2))
    np.testing.assert_array_equal(both[1], alone[1])
    assert not np.array_equal(both[0], alone[0], equal_nan=True)


def test_matrices_are_found_inside_messages():
    Z, Y = np.ones((3, 2)), np.zeros((3, 2))
    exchanges = [
        Exchange(1, 0, received, sent)
        for received, sent in [
            ({"steps": 3, "Z": Z}, (1.0, Y)), (None, Y), (Z, 1.0), (Z, Y[:2]), ("Z", Y), (Z, Y),
        ]
    ]  # fmt: skip
    found = pairs_of(exchanges)
    assert len(found) == 2 and found[0][0] is Z and found[0][1] is Y
