"""The attack of `fedcore.audits.leakage`, but without the messages of the first three rounds.

The attack is for runs of LocalPower that begin with q = 8 local steps and halve q in every round.
The replies of the first three rounds are not linear in the message Z, so no single matrix Φ gives
all replies as Φ Z. From the fourth round on, q is 1, and each round is a step of subspace
iteration. The attacking server knows this and begins with the fourth round.
"""

from __future__ import annotations

from fedcore.audits import leakage
from fedcore.audits.leakage import start_transcript as start_transcript
from fedcore.federation.transcript import Transcript
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder

SKIPPED_PAIRS = 3

COLUMN = (leakage.COLUMN[0], f"{leakage.COLUMN[1]} without the first {SKIPPED_PAIRS} rounds")


def column(problem: Problem, transcript: Transcript, recorder: Recorder) -> list[float]:
    """Return the attack's error at each row of the history; NaN before the fourth pair (Z, Y)."""
    return leakage.column(problem, transcript, recorder, left_out=SKIPPED_PAIRS)
