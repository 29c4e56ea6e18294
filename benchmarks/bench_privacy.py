"""CPU time of an ε with every round, by `fedcore.privacy.accounting` and by recomposing each time.

100 rounds of one Gaussian release each, and 100 rounds of one Gaussian release and one sparse
vector, ε at δ after every round: ours the first time, ours when another repeat has asked before,
and a new `PLDAccountant` of dp-accounting per round, composed from the start. The exit status is 1
when ours is not at most theirs, up to 1e-3 of it: both are upper bounds. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import sys
import time
from collections.abc import Callable

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Event, Gaussian

ROUNDS, DELTA = 100, 1e-5
SIGMA, EPSILON = 40.0, 0.02


def events(rounds: int, sparse: bool) -> dict[Event, int]:
    """What a client has been charged after so many rounds."""
    return {Gaussian(SIGMA): rounds} | ({Bounded(EPSILON): rounds} if sparse else {})


def ours(rounds: int, sparse: bool) -> float:
    return accounting.epsilon(events(rounds, sparse), DELTA)


def recomposed(rounds: int, sparse: bool) -> float:
    """Randomised response dominates the sparse vector; it needs the relation REPLACE_ONE."""
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_event.GaussianDpEvent(SIGMA), rounds)
    if sparse:
        noise = 2 / (1 + 2.718281828459045**EPSILON)
        for _ in range(rounds):
            accountant.compose(dp_event.RandomizedResponseDpEvent(noise, 2))
    return accountant.get_epsilon(DELTA)


def timed(function: Callable[[int, bool], float], sparse: bool, every: int = 1) -> tuple:
    """Seconds of CPU for all rounds (of which only some are timed), and the last ε."""
    start = time.process_time()
    for rounds in range(every, ROUNDS + 1, every):
        last = function(rounds, sparse)
    return (time.process_time() - start) * every, last


def main() -> int:
    wrong = False
    ours(1, False)  # the library is imported
    print(f"{ROUNDS} rounds, CPU seconds{'':14}first   again   recomposed   ratio      ε")
    for sparse in (False, True):
        first, found = timed(ours, sparse)
        again, _ = timed(ours, sparse)
        other, theirs = timed(recomposed, sparse, every=20)
        name = "Gaussian and sparse vector" if sparse else "Gaussian"
        print(f"  {name:28}{first:12.4f}{again:8.4f}{other:13.2f}{other / first:8.0f}{found:8.4f}")
        wrong |= found > theirs * (1 + 1e-3)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
