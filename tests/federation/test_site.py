"""The client's side: its own account, which the ledger reads or is told of."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.federation import Federation

DELTA = 1e-5


def noisy(data: Any, state: Any, message: Any) -> np.ndarray:
    return state.privacy.gaussian(data.sum(axis=0), sensitivity=1.0, noise_multiplier=2.0)


def bare(data: Any, state: Any, message: Any) -> np.ndarray:
    return data.sum(axis=0)


def account_under(engine: Any) -> Any:
    federation = Federation([np.full((4, 3), 0.1 * (i + 1)) for i in range(3)], engine=engine)
    federation.protect(delta=DELTA, neighbours="replace_one")
    federation.sum(noisy)
    federation.gather(noisy, of=[0, 0])
    federation.sum(noisy, of=[2, 0, 1, 0])
    federation.gather(bare, of=[2])
    return federation.ledger.privacy


def test_the_ledger_knows_what_was_charged():
    privacy = account_under(InProcess)
    assert [a.events.total() for a in privacy.accounts] == [5, 2, 2]
    assert [a.unprotected for a in privacy.accounts] == [set(), set(), {"bare"}]
