"""Tables of the paper `faps`, from the histories of its cells.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*.
Rounds are counted under two stopping rules from one run: ``kkt``, the end ‖P⊥ AAᵀZ‖_F ≤ 1e−4 ‖A‖₂²
that explains the printed errors, and ``rule27``, a relative change of Σ‖AᵢᵀZ‖²_F of at most 1e−10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.reports import at, first, status
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
                            "status": status(history),
                            "algorithm": algorithm,
                            "variant": variant,
                            "p": history.about["params"]["n_components"],
                            "repeat": repeat,
                            "rule": rule,
                            "rounds": at(history, "round", repeat, record),
                            "bytes_up": at(history, "bytes_up", repeat, record),
                            "kkt": at(history, "kkt", repeat, record),
                            "singular_value_error": at(
                                history, "singular_value_error", repeat, record
                            ),
                            "inner_products": (  # counted by FAPS alone
                                at(history, "inner_products", repeat, record)
                                if "inner_products" in history.columns
                                else float("nan")
                            ),
                        }
                    )
    return rows


def stops(history: History, repeat: int) -> dict[str, int | None]:
    """First record at which either rule holds in a repeat, or None."""
    captured = history["captured"][repeat]
    change = np.abs(np.diff(captured, prepend=np.nan)) / captured
    return {
        "kkt": first(history["kkt_residual"][repeat] <= KKT_LIMIT),
        "rule27": first(change <= RULE_27),
    }


def leakage(results: Results) -> Rows:
    """Error of the rebuilt Gram matrix when the method itself has come to given KKT violations."""
    rows = []
    for experiment in ("fig1a", "fig1b"):
        for problem, algorithm, variant, history in results.select(experiment):
            for repeat in range(history.repeats):
                for limit in (1e-2, 1e-3, 1e-4, 1e-5):
                    record = first(history["kkt_residual"][repeat] <= limit)
                    known = first(history["leakage"][repeat] <= limit)
                    rows.append(
                        {
                            "experiment": experiment,
                            "problem": problem,
                            "status": status(history),
                            "algorithm": algorithm,
                            "variant": variant,
                            "repeat": repeat,
                            "limit": limit,
                            "rounds_kkt": at(history, "round", repeat, record),
                            "rounds_leakage": at(history, "round", repeat, known),
                            "ratio": at(history, "round", repeat, known)
                            / at(history, "round", repeat, record),
                            "leakage_at_kkt": at(history, "leakage", repeat, record),
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
                    found = [at(history, "round", i, stops(history, i)["kkt"])
                             for i in range(history.repeats)]  # fmt: skip
                    median = float(np.median(found))
                    medians[algorithm] = min(median, medians.get(algorithm, np.inf))
                    origin = status(history)
            faps, local, ssi = (medians.get(k, np.nan) for k in ("faps", "local_power", "ssi"))
            for claim, holds in (
                ("faps-before-local-power", faps < local),
                ("local-power-before-ssi", local <= ssi),
            ):
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": origin,
                        "claim": claim,
                        "holds": bool(holds),
                    }
                )
    return rows
