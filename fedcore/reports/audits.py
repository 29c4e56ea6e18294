"""Audits of claimed ε, each beside its weakened twin."""

from __future__ import annotations

from typing import Any

from fedcore.audits import canary as audit
from fedcore.errors import DataError
from fedcore.generators import canary
from fedcore.history import History
from fedcore.privacy.noise import WEAKENED
from fedcore.reports.results import Results
from fedcore.reports.rows import status


def pairs(results: Results, experiment: str) -> dict[tuple[str, str], tuple[History, History]]:
    """Return the histories with the canary and without, by algorithm and variant.

    Raises
    ------
    DataError
        When the two problems of an audit are no neighbours by the relation that its ledger names.
    """
    found: dict[tuple[str, str], dict[bool, History]] = {}
    for problem, algorithm, variant, history in results.select(experiment):
        params = results.plan["problems"][problem]["params"]
        relation = history.about["privacy"]["neighbours"]
        changes = [name for name in set(canary.NEIGHBOUR.values()) if params.get(name)]
        if changes not in ([], [canary.NEIGHBOUR[relation]]):
            raise DataError(
                f"{experiment}, {algorithm}: the ledger's neighbours are '{relation}', and problem "
                f"{problem} has {changes[0]} = true: give it {canary.NEIGHBOUR[relation]} = true"
            )
        found.setdefault((algorithm, variant), {})[not changes] = history
    return {key: (worlds[True], worlds[False]) for key, worlds in found.items()}


def bounds(results: Results, *experiments: str) -> list[dict[str, Any]]:
    """Return a row per audit: lower bounds on ε, 95 %, for the method and for its weakened twin.

    ``claimed`` is what was asked for, ``accounted`` what the ledger says, ``noise_left`` the part
    of its noise that the twin still has. The audit could have failed if ``weakened_bound`` is
    above ``claimed``.
    """
    rows = []
    for experiment in experiments:
        found = pairs(results, experiment)
        for (algorithm, variant), honest in found.items():
            if variant.endswith(f"-{WEAKENED}"):
                continue
            twin = found[algorithm, f"{variant}-{WEAKENED}"]
            bound, privacy = audit.from_histories(*honest), twin[0].about["privacy"]
            rows.append(
                {
                    "method": algorithm,
                    "variant": variant,
                    "neighbours": privacy["neighbours"],
                    "status": status(honest[0]),
                    "claimed": float(honest[0].about["params"]["epsilon"]),
                    "accounted": float(honest[0].last("epsilon").max()),
                    "lower_bound": bound.epsilon,
                    "hits": bound.hits,
                    "false_alarms": bound.false_alarms,
                    "runs": bound.runs,
                    "noise_left": privacy["weakened"],
                    "weakened_bound": audit.from_histories(*twin).epsilon,
                }
            )
    return rows
