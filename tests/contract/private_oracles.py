"""The methods of the paper `dppower` in their plainest form, for the table of `cases`.

Noise comes from each client's noise stream, in the order of the method's description. Its size
comes from the algorithms; tests/privacy tests the size.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedcore.algorithms import (
    adaptive_power,
    adaptive_search,
    analyze_gauss,
    dn26,
    dp_pca,
    noisy_power,
    private_oja,
)
from fedcore.algorithms.dp_pca import private_mean

Solution = tuple[np.ndarray, None]


def same_sign(matrix: np.ndarray) -> np.ndarray:
    """Q of the QR factorisation with a positive diagonal in R."""
    q, r = np.linalg.qr(matrix)
    return q * np.sign(np.diag(r))


def clipped(clients: list[np.ndarray], params: Any) -> list[np.ndarray]:
    if not params.clip:
        return clients
    return [np.array([a / max(1.0, np.linalg.norm(a)) for a in S]) for S in clients]


def streams(draws: Any, params: Any) -> list[np.random.Generator]:
    """The clients' streams; in a private run even permutations come from the noise stream."""
    return draws.clients if params.epsilon is None else draws.noise


def start_of(clients: list[np.ndarray], draws: Any, params: Any) -> np.ndarray:
    if params.start is None:
        X = draws.server.standard_normal((clients[0].shape[1], params.n_components))
    else:
        X = params.start
    return same_sign(X)


def gaussian_second_moment(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Eigenvectors of the sum of ``SᵀS + E``."""
    d, C = clients[0].shape[1], 0.0
    for S, rng in zip(clipped(clients, params), streams(draws, params), strict=True):
        C = C + S.T @ S
        if params.epsilon is not None:
            E = np.zeros((d, d))
            E[np.triu_indices(d)] = rng.standard_normal(d * (d + 1) // 2)
            E = E + np.triu(E, 1).T
            C = C + analyze_gauss.noise_multiplier(params) * E
    return np.linalg.eigh(C)[1][:, -params.n_components :], None


def filtered_power(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Algorithm 1, row by row and query by query."""
    clients, X = clipped(clients, params), start_of(clients, draws, params)
    noise = None
    if params.epsilon is not None and params.rounds:
        noise = adaptive_power.calibrate(params)
    for _ in range(params.rounds):
        X = same_sign(filtered_sum(clients, draws, X, noise, params.failure, params.ratio))
    return X, None


def filtered_sum(
    clients: list[np.ndarray], draws: Any, X: np.ndarray, noise: Any, failure: float, ratio: float
) -> np.ndarray:
    total = np.zeros_like(X)
    for S, rng in zip(clients, draws.noise, strict=True):
        if noise is None:
            total += S.T @ S @ X
            continue
        scores = [np.linalg.norm(a) * np.linalg.norm(a @ X) for a in S]
        margin = (2 + noise.query_scale) * math.log(1 / failure) / noise.search
        level = -margin + rng.laplace(0.0, 2 / noise.search)
        exponent = round(math.log(2.0**-40, ratio))
        while exponent < round(math.log(2.0**20, ratio)):
            above = sum(score > ratio**exponent for score in scores)
            if -above + rng.laplace(0.0, noise.query_scale / noise.search) >= level:
                break
            exponent += 1
        theta = ratio**exponent
        kept = [a for a, score in zip(S, scores, strict=True) if score <= theta]
        total += sum((np.outer(a, a @ X) for a in kept), np.zeros_like(X))
        total += theta * noise.multiplier * rng.standard_normal(X.shape)
    return total


def guessed_power(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Algorithm 1 for T, 2T, 4T, … from one start; clients vote with Gumbel noise."""
    clients, start = clipped(clients, params), start_of(clients, draws, params)
    noise = None
    if params.epsilon is not None:
        noise = adaptive_search.calibrate(params, params.epsilon)
    found = []
    for j in range(params.guesses):
        X = start
        for _ in range(math.ceil(params.unit * 2**j)):
            X = same_sign(filtered_sum(clients, draws, X, noise, 0.05, 2.0))
        found.append(X)
    votes = np.zeros(len(found))
    for S, rng in zip(clients, streams(draws, params), strict=True):
        utilities = np.array([np.sum((S @ X) ** 2) for X in found])
        if noise is None:
            votes += utilities
        else:
            weight = 0.5 * params.choice_share * params.epsilon
            votes[np.argmax(weight * utilities + rng.gumbel(size=len(found)))] += 1
    return found[int(np.argmax(votes))], None


def symmetrised_power(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """``Y = A X + noise``, ``X = AᵀY + noise``; or ``X = AᵀA X + noise`` for rows."""
    clients, X = clipped(clients, params), start_of(clients, draws, params)
    d = len(X)
    z = 0.0 if params.epsilon is None or not params.rounds else noisy_power.noise_multiplier(params)
    root = math.sqrt(d) if params.protects == "row_by_entries" else 1.0
    for _ in range(params.rounds):
        total = np.zeros_like(X)
        for S, rng in zip(clients, streams(draws, params), strict=True):
            if params.epsilon is None:
                total += S.T @ S @ X
            elif params.protects == "row":
                total += S.T @ S @ X + z * rng.standard_normal(X.shape)
            else:
                reach = max(np.linalg.norm(row) for row in X)
                Y = S @ X + root * reach * z * rng.standard_normal((len(S), X.shape[1]))
                reach = max(np.linalg.norm(row) for row in Y)
                total += S.T @ Y + root * reach * z * rng.standard_normal(X.shape)
        X = same_sign(total)
    return X, None


def perturbed_vectors(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Singular vectors with noise from gap and coherence, client by client; mean projection."""
    k, d, mean = params.n_components, clients[0].shape[1], 0.0
    root = math.sqrt(d) if params.protects == "row_by_entries" else 1.0
    for S, rng in zip(clipped(clients, params), streams(draws, params), strict=True):
        U, sigma, Vt = np.linalg.svd(S, full_matrices=False)
        V = Vt[:k].T
        if params.epsilon is not None:
            scale, log = 4 / params.epsilon, math.log(4 / params.delta)
            gap = sigma[k - 1] - np.append(sigma, 0.0)[k] + 2 * scale * (rng.laplace() - log)
            if gap <= 4:
                V = same_sign(rng.standard_normal((d, k)))
            else:
                m = max(np.linalg.norm(row) for row in [*U[:, :k], *V])
                s = math.log(1 + 2 * root / (gap - 3))
                m *= math.exp(s * scale * (log + rng.laplace()))
                # LAPACK's signs are arbitrary: take V from the algorithm.
                V = dn26.leading(S, S, k)[0]
                V = V @ same_sign(rng.standard_normal((k, k)))
                z = dn26.noise_multiplier(params)
                V = V + 2 * root * m / (gap - 1) * z * rng.standard_normal((d, k))
        Q = np.linalg.qr(V)[0]
        mean = mean + Q @ Q.T
    return np.linalg.eigh(mean)[1][:, -k:], None


def single_pass(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Oja's method, row after row, client after client."""
    W, clients = start_of(clients, draws, params), clipped(clients, params)
    for S, rng in zip(clients, streams(draws, params), strict=True):
        noise = 0.0
        if params.epsilon is not None:
            noise = private_oja.noise_multiplier(params, len(S)) * 2 * params.bound / params.batch
        order = rng.permutation(len(S))
        steps = math.ceil(len(S) / params.batch)
        draw = rng.standard_normal((steps, *W.shape)) if noise else np.zeros((steps, *W.shape))
        for t in range(steps):
            rows = S[order[t * params.batch : (t + 1) * params.batch]]
            gradients = [np.outer(a, a @ W) for a in rows]
            if noise:
                gradients = [g * min(1.0, params.bound / np.linalg.norm(g)) for g in gradients]
            rate = params.rate / (params.gap * (params.offset + t))
            W = same_sign(W + rate * (np.sum(gradients, axis=0) / params.batch + noise * draw[t]))
    return W, None


def minibatches(clients: list[np.ndarray], draws: Any, params: Any) -> Solution:
    """Oja's method on batches, with the algorithm's private mean, which has its own tests."""
    W, clients = start_of(clients, draws, params), clipped(clients, params)
    for S, rng in zip(clients, streams(draws, params), strict=True):
        for t, part in enumerate(np.array_split(rng.permutation(len(S)), params.batches)):
            gradients = np.array([np.outer(a, a @ W).ravel() for a in S[part]])
            gradients = gradients.reshape(len(part), W.size)
            if params.epsilon is None:
                mean = gradients.sum(axis=0) / max(len(part), 1)
            else:
                noise = dp_pca.calibrate(params, W.size)
                mean = private_mean(gradients, noise, params.batches, rng)
            rate = params.rate / (params.gap * (params.offset + t))
            W = same_sign(W + rate * mean.reshape(W.shape))
    return W, None
