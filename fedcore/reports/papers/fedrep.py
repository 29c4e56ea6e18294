"""Tables of the paper `fedrep`: networks on real data, Section 5.2.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning* (ICML 2021). A seed is a partition of the data and the random numbers of every
method on it; it stands for the paper's repeats, so that tables have a row per seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedcore.config import claims as printed_claims
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run
from fedcore.reports.rows import Row, Rows, chosen, flags, groups
from fedcore.reports.summaries import by_group, without

LAST = 10  # rounds whose mean Table 1 prints
# Rows of Table 1 by algorithm, in the order of the paper; further rows are fine-tuned.
METHODS = {
    "local_only": "Local Only",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "fed_mtl": "Fed-MTL",
    "per_fedavg": "PerFedAvg",
    "lg_fedavg": "LG-Fed",
    "l2gd": "L2GD",
    "apfl": "APFL",
    "ditto": "Ditto",
    "fedper": "FedPer",
    "fedrep": "FedRep",
}
TUNED = "+FT"
CLAIMS = Path("config/claims/fedrep.yaml")


def trained(run: Run) -> np.ndarray:
    """Return which records are of the training, without the fine-tuned one, (records,)."""
    return (run["iteration"][0] >= 0) & (run["iteration"][0] <= run.params.rounds)


def measured(run: Run) -> np.ndarray:
    """Return the records of the training in which accuracies were computed, (records,)."""
    return trained(run) & ~np.isnan(run["test_accuracy"][0])


def final(run: Run) -> np.ndarray:
    """Return every client's mean accuracy over the last rounds, in percent; NaN after divergence.

    It is the mean over those of the last rounds in which accuracies were computed.
    """
    each = run.history.clients["test_accuracy"][0]
    if run.last("diverged")[0]:
        return np.full(each.shape[1], np.nan)
    late = measured(run) & (run["iteration"][0] > run.params.rounds - LAST)
    return np.asarray(100 * each[late].mean(axis=0))


def tuned(run: Run) -> np.ndarray | None:
    """Return every client's accuracy after fine-tuning in percent; None without it."""
    if not getattr(run.params, "fine_tune", 0) or run["iteration"][0, -1] <= run.params.rounds:
        return None
    return np.asarray(100 * run.history.clients["test_accuracy"][0, -1])


def printed() -> dict[tuple[str, str], float]:
    """Return the printed accuracies by setting and method.

    There are none where the claims file is not in the working directory.
    """
    if not CLAIMS.is_file():
        return {}
    table = printed_claims.read(CLAIMS)["tables"]["table1"]
    labels = table["labels"]
    return {
        (column, labels[row]): float(value)
        for row, values in table["rows"].items()
        for column, value in zip(table["columns"], values, strict=True)
    }


def ends(run: Run) -> dict[str, np.ndarray]:
    """Return the accuracies of a run's clients by the rows of Table 1 that it gives."""
    name, after = METHODS[run.algorithm], tuned(run)
    found = {name: final(run)}
    return found if after is None else found | {name + TUNED: after}


def title(run: Run) -> str:
    """Return the name of a run's setting in figures: that of its problem without the seed."""
    return run.label.partition(", seed")[0]


def row(run: Run, **columns: object) -> Row:
    """Return a row of a run; its seed takes the place of the repeat."""
    return run.row(repeat=run.tags["seed"], **columns)


def accuracy(results: Results) -> Rows:
    """Table 1: mean over the clients of their test accuracy, a row per method and seed."""
    return [
        row(
            run,
            method=name,
            accuracy=float(each.mean()),
            diverged=bool(run.last("diverged")[0]),
            rounds=int(run["iteration"][0][trained(run)].max()),
        )
        for run in results.runs("table1")
        for name, each in ends(run).items()
    ]


def orderings(results: Results) -> Rows:
    """What Section 5.2 reads from Table 1, a row per setting and seed.

    ``behind`` is how many percentage points FedRep is behind the best method.
    """
    rows = []
    for named, mine in groups(accuracy(results), "setting", "status", "repeat"):
        found = {r["method"]: r["accuracy"] for r in mine}
        if not METHODS.keys() <= {r["algorithm"] for r in mine}:
            continue  # methods are still missing
        average, fine = found["FedAvg"], found["FedAvg" + TUNED]
        others = [found[name + TUNED] for name in ("FedProx", "SCAFFOLD")]
        rows.append(
            named
            | {
                "behind": max(found.values()) - found["FedRep"],
                "fedavg_behind": max(found.values()) - average,
                "best": max(found, key=lambda name: found[name]),
                "tuned_above": min(fine - average, *(x - average for x in others)),
                "fedavg_tuned_first": flags(fine > max(others), fine, *others),
                "fedavg_above_scaffold": flags(
                    average > found["SCAFFOLD"], average, found["SCAFFOLD"]
                ),
                "personal_above": min(found[name] for name in ("FedRep", "FedPer")) - average,
            }
        )
    return rows


def epochs(results: Results) -> Rows:
    """Figure 5: mean test error in percent by local epochs E, a row per method, E and seed."""
    return [
        row(run, method=METHODS[run.algorithm], error=100 - float(final(run).mean()),
            diverged=bool(run.last("diverged")[0]))
        for run in results.runs("fig5")
    ]  # fmt: skip


def monotone(results: Results) -> Rows:
    """Figure 5: whether an error rises from one E to the next, a row per method and seed.

    ``rise`` is the largest such rise in percentage points. ``worse`` says whether the error at the
    E of Table 1 is above that in Table 1, which has other batches and another rate.
    """
    table = accuracy(results)
    usual = {"FedAvg": 1, "FedRep": 10}  # E in the columns of Table 1 with n = 100
    rows = []
    for named, mine in groups(epochs(results), "problem", "status", "method", "repeat"):
        errors = {r["epochs"]: r["error"] for r in sorted(mine, key=lambda r: int(r["epochs"]))}
        steps = np.diff(list(errors.values()))
        there = chosen(table, method=named["method"], problem=named["problem"])
        before = 100 - there[0]["accuracy"] if there else np.nan
        here = errors.get(usual[named["method"]], np.nan)
        rows.append(
            named
            | {
                "rise": float(steps.max()) if steps.size else np.nan,
                "rises": flags(bool((steps > 0).any()), *errors.values()),
                "never_rises": flags(not (steps > 0).any(), *errors.values()),
                "worse": flags(here > before, here, before),
            }
        )
    return rows


def clients(results: Results) -> Rows:
    """Accuracy of the single clients in percent, a row per method and seed.

    ``gaining`` is the share of clients for which a method is better than Local Only.
    """
    rows = []
    for run in results.runs("table1"):
        alone = list(results.runs("table1", algorithm="local_only", problem=run.problem))
        for name, each in ends(run).items():
            low, high = np.percentile(each, [10, 90])
            gain = each - final(alone[0]) if alone else np.full(len(each), np.nan)
            rows.append(
                row(
                    run,
                    method=name,
                    mean=float(each.mean()),
                    deviation=float(each.std()),
                    tenth=float(low),
                    nine_tenths=float(high),
                    gaining=float((gain > 0).mean()) if alone else np.nan,
                )
            )
    return rows


def communication(results: Results) -> Rows:
    """Numbers sent per participant and round, and bytes until the last round, a row per run."""
    rows = []
    for run in results.runs("table1"):
        last = int(np.flatnonzero(trained(run))[-1])
        crossings = run["iteration"][0, last] * run.params.n_participants(run.data["n_clients"])
        up, down = (run[f"scalars_{way}"][0] for way in ("up", "down"))
        sent = run["bytes_up"][0, last] + run["bytes_down"][0, last]
        rows.append(
            row(
                run,
                method=METHODS[run.algorithm],
                up_per_round=float(up[last] - up[0]) / crossings,
                down_per_round=float(down[last] - down[0]) / crossings,
                bytes=float(sent),
            )
        )
    return rows


SHOWN = without("experiment", "algorithm", "variant")
TABLES = {
    "accuracy": Table(accuracy, by_group("accuracy", "setting", "method")),
    "orderings": Table(orderings),
    "epochs": Table(epochs, by_group("error", "method", "epochs")),
    "monotone": Table(monotone),
    "clients": Table(
        clients, by_group(("mean", "deviation", "tenth", "gaining"), "setting", "method")
    ),
    "communication": Table(communication, SHOWN),
}
