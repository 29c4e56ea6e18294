"""Tables of privacy audits, which compare a claimed ε with a lower bound from many runs."""

from __future__ import annotations

from fedcore.audits import epsilon_bound as audit
from fedcore.errors import DataError
from fedcore.generators import canary
from fedcore.privacy.noise import WEAKENED
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows


def pairs(results: Results, experiment: str) -> dict[tuple[str, str], tuple[Run, Run]]:
    """Return for each algorithm and variant two runs, with and without the canary (planted row).

    A pair is left out if one of its two runs is missing.
    """
    found: dict[tuple[str, str], dict[bool, Run]] = {}
    for run in results.runs(experiment):
        params = results.plan["problems"][run.problem]["params"]
        relation = run.history.about["privacy"]["neighbours"]
        changes = [name for name in set(canary.NEIGHBOUR.values()) if params.get(name)]
        if changes not in ([], [canary.NEIGHBOUR[relation]]):
            raise DataError(
                f"{experiment}, {run.algorithm}: the neighbouring relation is '{relation}', but "
                f"problem {run.problem} has {changes[0]} = true: set "
                f"{canary.NEIGHBOUR[relation]} = true instead"
            )
        found.setdefault((run.algorithm, run.variant), {})[not changes] = run
    both = {key: worlds for key, worlds in found.items() if len(worlds) == 2}
    return {key: (worlds[True], worlds[False]) for key, worlds in both.items()}


def bounds(results: Results, *experiments: str) -> Rows:
    """Return one row per audit, with 95 % lower bounds on ε for the method and its weakened twin.

    The weakened twin is the same method with noise that is too small. The column ``claimed`` is the
    ε that the run was asked for, and ``accounted`` is the ε that the run recorded as spent. The
    twin's noise is multiplied by ``noise_left``. If ``weakened_bound`` is above ``claimed``, the
    audit can detect noise that is too small.
    """
    rows = []
    for experiment in experiments:
        found = pairs(results, experiment)
        for (algorithm, variant), (present, absent) in found.items():
            if "weakened" in present.history.about["privacy"]:
                continue
            twin = [run.history for run in found[algorithm, f"{variant}-{WEAKENED}"]]
            bound = audit.from_histories(present.history, absent.history)
            privacy = twin[0].about["privacy"]
            rows.append(
                {
                    "method": algorithm,
                    "variant": variant,
                    "neighbours": privacy["neighbours"],
                    "status": present.status,
                    "claimed": float(present.history.about["params"]["epsilon"]),
                    "accounted": float(present.last("epsilon").max()),
                    "lower_bound": bound.epsilon,
                    "hits": bound.hits,
                    "false_alarms": bound.false_alarms,
                    "runs": bound.runs,
                    "noise_left": privacy["weakened"],
                    "weakened_bound": audit.from_histories(*twin).epsilon,
                }
            )
    return rows
