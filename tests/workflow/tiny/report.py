"""Table of the small paper; becomes fedcore/reports/papers/tiny.py of the copy."""

from __future__ import annotations


def ends(results):
    """Return the last loss of every repeat of the first experiment."""
    return [
        {
            "problem": problem,
            "status": history.about["problem"]["status"],
            "algorithm": algorithm,
            "objective": float(value),
        }
        for problem, algorithm, _, history in results.select("first")
        for value in history.last("objective")
    ]
