"""Methods for eigenspaces as one would write them down in NumPy: no federation and no ledger.

Every method takes the clients' matrices Sᵢ, an orthonormal start of shape (d, r) and, if it goes on
in rounds, their number, and returns an orthonormal basis of shape (d, r).
"""

from __future__ import annotations

import numpy as np

LOCAL_STEPS = 4
Clients = list[np.ndarray]


def product(clients: Clients, Z: np.ndarray) -> np.ndarray:
    """``Σ SᵢᵀSᵢ Z``."""
    total = np.zeros_like(Z)
    for S in clients:
        total += S.T @ (S @ Z)
    return total


def orth(Y: np.ndarray) -> np.ndarray:
    Q, R = np.linalg.qr(Y)
    return Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)  # a sum of bases depends on their signs


def ssi(clients: Clients, Z: np.ndarray, rounds: int) -> np.ndarray:
    for _ in range(rounds):
        Z = orth(product(clients, Z))
    return Z


def power_iteration(clients: Clients, Z: np.ndarray, rounds: int) -> np.ndarray:
    for _ in range(rounds):
        Z = product(clients, Z)
        Z /= np.abs(Z).max()
    return orth(Z)


def local_power(clients: Clients, Z: np.ndarray, rounds: int) -> np.ndarray:
    for _ in range(rounds):
        total = np.zeros_like(Z)
        for S in clients:
            Y = S.T @ (S @ Z)
            for _ in range(LOCAL_STEPS - 1):
                Y = S.T @ (S @ orth(Y))
            total += Y
        Z = orth(total)
    return Z


def momentum_power(clients: Clients, Z: np.ndarray, rounds: int, beta: float) -> np.ndarray:
    carried = np.zeros_like(Z)
    for _ in range(rounds):
        Z_new, R = np.linalg.qr(product(clients, Z) - beta * carried)
        carried = Z @ np.linalg.inv(R)
        Z = Z_new
    return Z


def block_krylov(clients: Clients, Z: np.ndarray, rounds: int) -> np.ndarray:
    r, Q = Z.shape[1], Z
    V, GV = Q[:, :0], Q[:, :0]
    for _ in range(rounds):
        U = product(clients, Q)
        V, GV = np.hstack([V, Q]), np.hstack([GV, U])
        Q = U
        for _ in range(2):
            Q = orth(Q - V @ (V.T @ Q))
    S = np.linalg.eigh(V.T @ GV)[1][:, ::-1][:, :r]
    return orth(GV @ S)


def one_shot(clients: Clients, Z: np.ndarray) -> np.ndarray:
    r = Z.shape[1]
    mean = sum(V.T @ V for V in (np.linalg.svd(S, False)[2][:r] for S in clients))
    return np.linalg.eigh(mean)[1][:, ::-1][:, :r]
