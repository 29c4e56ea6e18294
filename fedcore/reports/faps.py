"""Tables of the paper `faps`, from the histories of its cells.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*.
Rounds are counted under two stopping rules from one run: ``kkt``, the end ‖P⊥ AAᵀZ‖_F ≤ 1e−4 ‖A‖₂²
that explains the printed errors, and ``rule27``, a relative change of Σ‖AᵢᵀZ‖²_F of at most 1e−10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.results import Results

Rows = list[dict[str, Any]]

KKT_LIMIT, RULE_27 = 1e-4, 1e-10
EXPERIMENTS = ("table4", "inner", "table1", "fig2m", "fig2p", "fig2xi", "fig3", "fig4")


def counts(results: Results) -> Rows:
    """Rounds, bytes, errors and inner products at either stop, a row per start; NaN when never."""
    rows = []
    for experiment in EXPERIMENTS:
        for problem, algorithm, variant, history in results.select(experiment):
            for repeat in range(history.repeats):
                for rule, record in stops(history, repeat).items():
                    rows.append(
                        {
                            "experiment": experiment,
                            "problem": problem,
                            "status": history.about["problem"]["status"],
                            "algorithm": algorithm,
                            "variant": variant,
                            "p": history.about["params"]["n_components"],
                            "repeat": repeat,
                            "rule": rule,
                            "rounds": _at(history, "round", repeat, record),
                            "bytes_up": _at(history, "bytes_up", repeat, record),
                            "kkt": _at(history, "kkt", repeat, record),
                            "singular_value_error": _at(
                                history, "singular_value_error", repeat, record
                            ),
                            "inner_products": _at(history, "inner_products", repeat, record),
                        }
                    )
    return rows


def stops(history: History, repeat: int) -> dict[str, int | None]:
    """First record at which either rule holds in a repeat, or None."""
    captured = history["captured"][repeat]
    change = np.abs(np.diff(captured, prepend=np.nan)) / captured
    held = {
        "kkt": history["kkt_residual"][repeat] <= KKT_LIMIT,
        "rule27": change <= RULE_27,
    }
    return {
        rule: int(np.argmax(records)) if records.any() else None for rule, records in held.items()
    }


def leakage(results: Results) -> Rows:
    """Error of the rebuilt Gram matrix when the method itself has come to given KKT violations."""
    rows = []
    for experiment in ("fig1a", "fig1b"):
        for problem, algorithm, variant, history in results.select(experiment):
            for repeat in range(history.repeats):
                for limit in (1e-2, 1e-3, 1e-4, 1e-5):
                    reached = np.flatnonzero(history["kkt_residual"][repeat] <= limit)
                    record = int(reached[0]) if reached.size else None
                    leaked = np.flatnonzero(history["leakage"][repeat] <= limit)
                    known = int(leaked[0]) if leaked.size else None
                    rows.append(
                        {
                            "experiment": experiment,
                            "problem": problem,
                            "status": history.about["problem"]["status"],
                            "algorithm": algorithm,
                            "variant": variant,
                            "repeat": repeat,
                            "limit": limit,
                            "rounds_kkt": _at(history, "round", repeat, record),
                            "rounds_leakage": _at(history, "round", repeat, known),
                            "ratio": _at(history, "round", repeat, known)
                            / _at(history, "round", repeat, record),
                            "leakage_at_kkt": _at(history, "leakage", repeat, record),
                        }
                    )
    return rows


def orderings(results: Results) -> Rows:
    """Claims of Figures 3 and 4: which method needs fewer rounds to the KKT stop, by medians.

    FAPS is taken in its best variant.
    """
    rows = []
    for experiment in ("fig3", "fig4"):
        for problem in results.problems(experiment):
            medians: dict[str, float] = {}
            for other, algorithm, _, history in results.select(experiment):
                if other == problem:
                    found = [_at(history, "round", i, stops(history, i)["kkt"])
                             for i in range(history.repeats)]  # fmt: skip
                    median = float(np.median(found))
                    medians[algorithm] = min(median, medians.get(algorithm, np.inf))
                    status = history.about["problem"]["status"]
            faps, local, ssi = (medians.get(k, np.nan) for k in ("faps", "local_power", "ssi"))
            for claim, holds in (
                ("faps-before-local-power", faps < local),
                ("local-power-before-ssi", local <= ssi),
            ):
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": status,
                        "claim": claim,
                        "holds": bool(holds),
                    }
                )
    return rows


def _at(history: History, column: str, repeat: int, record: int | None) -> float:
    if record is None or column not in history.columns:
        return float("nan")
    return float(history[column][repeat, record])
