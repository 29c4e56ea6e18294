"""Tables of the paper `fedrep`: networks on real data, Section 5.2.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning* (ICML 2021). A seed is a partition of the data and the random numbers of every
method on it; it stands for the paper's repeats, so that tables have a row per seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedcore.repro.config.claims import printed_table
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Row, Rows, chosen, flags, groups
from fedcore.repro.tables.summaries import by_group, without

LAST = 10  # rounds whose mean Table 1 prints
PLAIN = "default"  # the variant that is a row of Table 1; others are readings
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
# As printed, Per-FedAvg has no fine-tuned row.
TABLE1 = {*METHODS.values(), *(METHODS[name] + TUNED for name in ("fedavg", "fedprox", "scaffold"))}
# Rows of Table 1 that Section 5.2 calls personalized, FedRep's own left out.
PERSONALIZED = ("FedPer", "Fed-MTL", "PerFedAvg", "LG-Fed", "APFL", "L2GD", "Ditto")
# PerFedAvg by how a client adapts before its test: a step at the inner rate, or epochs of its head.
ADAPTATIONS = {"step": "PerFedAvg", "head": f"PerFedAvg{TUNED}"}
# Columns of Table 1: data set, number of clients, and classes of a client.
COLUMNS = {
    "cifar10-100-2": "CIFAR10\n(100, 2)",
    "cifar10-100-5": "CIFAR10\n(100, 5)",
    "cifar10-1000-2": "CIFAR10\n(1000, 2)",
    "cifar100-100-5": "CIFAR100\n(100, 5)",
    "cifar100-100-20": "CIFAR100\n(100, 20)",
    "sent140-183-2": "Sent140\n(183, 2)",
    "femnist-150-3": "FEMNIST\n(150, 3)",
}
CLAIMS = Path(__file__).with_name("claims.yaml")
FIGURE6 = ("fedrep", "fedavg", "per_fedavg", "lg_fedavg", "apfl", "l2gd", "fedprox")
NEWCOMERS = "newcomer_accuracy"  # in histories, see `fedcore.deep.newcomers`


def trained(run: Run) -> np.ndarray:
    """Return which records are of the training, without the fine-tuned one, (records,)."""
    return (run["iteration"][0] >= 0) & (run["iteration"][0] <= run.params.rounds)


def measured(run: Run) -> np.ndarray:
    """Return the records of the training in which accuracies were computed, (records,)."""
    return trained(run) & ~np.isnan(run["test_accuracy"][0])


def final(run: Run) -> np.ndarray:
    """Return every client's mean accuracy over the last rounds, in percent; NaN after divergence.

    It is the mean over those of the last rounds in which accuracies were computed, the start left
    out.
    """
    each = run.history.clients["test_accuracy"][0]
    late = measured(run) & (run["iteration"][0] > max(0, run.params.rounds - LAST))
    if run["diverged"][0, trained(run)].any() or not late.any():
        return np.full(each.shape[1], np.nan)
    return np.asarray(100 * each[late].mean(axis=0))


def tuned(run: Run) -> np.ndarray | None:
    """Return every client's accuracy after fine-tuning in percent; None where there is none.

    NaN when the training or the fine-tuning diverged.
    """
    if not getattr(run.params, "fine_tune", 0):
        return None
    each = run.history.clients["test_accuracy"][0]
    if run.last("diverged")[0]:
        return np.full(each.shape[1], np.nan)
    return np.asarray(100 * each[-1])


def printed() -> dict[str, dict[str, float]]:
    """Return the printed accuracies by method and setting."""
    return printed_table(CLAIMS, "table1")


def ends(run: Run) -> dict[str, np.ndarray]:
    """Return the accuracies of a run's clients by the rows of Table 1 that it gives."""
    name, after = METHODS[run.algorithm], tuned(run)
    found = {name: final(run)}
    return found if after is None else found | {name + TUNED: after}


def title(run: Run) -> str:
    """Return the name of a run's setting in figures: that of its problem without the seed."""
    return run.label.partition(", seed")[0]


def spent(run: Run, unit: str) -> np.ndarray:
    """Return what a run has spent until its records, (1, records): rounds, bytes or CPU seconds."""
    if unit == "seconds":
        return run.seconds
    return run["iteration"] if unit == "rounds" else run["bytes_up"] + run["bytes_down"]


def row(run: Run, **columns: object) -> Row:
    """Return a row of a run; its seed takes the place of the repeat."""
    return run.row(repeat=run.tags["seed"], **columns)


def accuracy(results: Results) -> Rows:
    """Table 1: mean over the clients of their test accuracy, a row per method, variant and seed."""
    return [
        row(
            run,
            method=name,
            accuracy=float(each.mean()),
            diverged=bool(run.last("diverged")[0]),
            rounds=int(run["iteration"][0][trained(run)].max()),
        )
        for experiment in ("table1", "code", "everyone", "alone")
        for run in results.runs(experiment)
        for name, each in ends(run).items()
    ]


def statistics(results: Results) -> Rows:
    """Table 2: number of clients, and samples of a client, held-out ones included."""
    rows: Rows = []
    for problem in dict.fromkeys(run.problem for run in results.runs("table1")):
        run = next(results.runs("table1", problem=problem))
        known = run.history.reference
        if "training_samples" not in known:
            continue  # a kept history of older code
        samples = known["training_samples"] + known["held_out_samples"]
        rows.append(
            row(run, users=len(samples), average=float(samples.mean()), minimum=int(samples.min()))
        )
    return rows


def tuned_settings(results: Results) -> Rows:
    """Appendix A.2: whether FEMNIST's own rates are better than the usual, a row per method."""
    table, rows = chosen(accuracy(results), setting="femnist-150-3"), []
    for method, usual in (("L2GD", "rate-01"), ("SCAFFOLD", "server-rate-1")):
        for named, mine in groups(chosen(table, method=method), "setting", "status", "repeat"):
            found = {r["variant"]: r["accuracy"] for r in mine}
            if {PLAIN, usual} <= found.keys():
                own, other = found[PLAIN], found[usual]
                better = flags(own > other, own, other, failed=np.isnan(own))
                rows.append(named | {"method": method, "better": better})
    return rows


def of_table1(results: Results) -> Iterator[tuple[Row, dict[str, float]]]:
    """Yield setting, status and seed, and the accuracies by method, PerFedAvg's fine-tuned one too.

    ``repeat`` numbers them over all settings, as other seeds were drawn for each. ``cifar`` says
    whether the setting is one of CIFAR.
    """
    plain = chosen(accuracy(results), variant=PLAIN)
    for number, (named, mine) in enumerate(groups(plain, "setting", "status", "repeat")):
        shown = {*TABLE1, *ADAPTATIONS.values()}
        found = {r["method"]: r["accuracy"] for r in mine if r["method"] in shown}
        seed, cifar = named["repeat"], named["setting"].startswith("cifar")
        yield named | {"seed": seed, "repeat": number, "cifar": cifar}, found


def above_fedavg(results: Results) -> Rows:
    """Section 1: how far a method is above FedAvg, a row per method and seed.

    ``above`` is in percentage points, ``ratio`` that of the accuracies, and ``least`` the root of
    the printed ratio. Seeds count in which other methods are still missing.
    """
    known, rows = printed(), []
    for named, found in of_table1(results):
        for method in METHODS.values() if "FedAvg" in found else ():
            if method in found and method != "FedAvg":
                theirs, base = (known[name].get(named["setting"]) for name in (method, "FedAvg"))
                rows.append(
                    named
                    | {
                        "method": method,
                        "above": found[method] - found["FedAvg"],
                        "ratio": found[method] / found["FedAvg"],
                        "least": math.sqrt(theirs / base) if theirs and base else None,
                    }
                )
    return rows


def orderings(results: Results) -> Rows:
    """What is read from the whole of Table 1, a row per setting, seed and way to adapt PerFedAvg.

    ``adaptation`` is a key of `ADAPTATIONS`; there are rows for those that were run.
    ``behind`` and ``mtl_behind`` are how many percentage points FedRep and Fed-MTL are behind the
    best method. A method that diverged is not the best. ``tuned_above`` is how far the worst row
    +FT is above FedAvg, and ``untuned_above`` the worse of FedProx and SCAFFOLD themselves.
    ``tuned_over_personalized`` is the mean of the rows +FT less that of the personalized methods.
    """
    return [
        named | {"adaptation": way} | _orderings(found | {"PerFedAvg": found[name]})
        for named, found in of_table1(results)
        for way, name in ADAPTATIONS.items()
        if found.keys() >= {*TABLE1, name}  # no method is missing
    ]


def _orderings(accuracies: dict[str, float]) -> Row:
    """Return what `orderings` reads from the accuracies of all methods."""
    found = {name: value for name, value in accuracies.items() if name in TABLE1}
    average, fine = found["FedAvg"], found["FedAvg" + TUNED]
    others = [found[name + TUNED] for name in ("FedProx", "SCAFFOLD")]
    known = {name: value for name, value in found.items() if np.isfinite(value)}
    best = max(known, key=lambda name: known[name], default=None)
    top = known[best] if best else np.nan
    mine, personal = found["FedRep"], [found[name] for name in PERSONALIZED]
    return {
        "behind": top - found["FedRep"],
        "mtl_behind": top - found["Fed-MTL"],
        "best": best,
        "tuned_above": float(np.min([x - average for x in (fine, *others)])),
        "tuned_over_personalized": float(np.mean([fine, *others]) - np.mean(personal)),
        "untuned_above": min(found["FedProx"], found["SCAFFOLD"]) - average,
        "fedavg_tuned_first": flags(fine > max(others), fine, *others, failed=np.isnan(fine)),
        "fedavg_above_scaffold": flags(
            average > found["SCAFFOLD"], average, found["SCAFFOLD"], failed=np.isnan(average)
        ),
        "personalized_below": flags(mine > np.fmax.reduce(personal), mine, failed=np.isnan(mine)),
    }


def epochs(results: Results) -> Rows:
    """Figure 5: mean test error in percent by local epochs E, a row per method, E and seed."""
    return [
        row(run, method=METHODS[run.algorithm], error=100 - float(final(run).mean()),
            diverged=bool(run.last("diverged")[0]))
        for run in results.runs("fig5")
    ]  # fmt: skip


def monotone(results: Results) -> Rows:
    """Figure 5: how far an error rises from one E to the next, a row per method and seed.

    ``rise`` is the largest change in percentage points, and ``finite`` says that no run diverges;
    where one does, ``rise`` is NaN. ``last_above_first`` is the change from the least E to the
    largest. ``worse`` says whether the error at the E of Table 1 is above that in Table 1, which
    has other batches and another rate.
    """
    table = chosen(accuracy(results), variant=PLAIN)
    usual = {"FedAvg": 1, "FedRep": 10}  # E in the columns of Table 1 with n = 100
    rows = []
    for named, mine in groups(epochs(results), "problem", "status", "method", "repeat"):
        errors = {r["epochs"]: r["error"] for r in sorted(mine, key=lambda r: int(r["epochs"]))}
        ends = np.array([*errors.values()])
        there = chosen(table, method=named["method"], problem=named["problem"])
        before = 100 - there[0]["accuracy"] if there else np.nan
        here = errors.get(usual[named["method"]], np.nan)
        rows.append(
            named
            | {
                "rise": float(np.max(np.diff(ends))) if len(ends) > 1 else np.nan,
                "finite": bool(np.isfinite(ends).all()),
                "last_above_first": float(ends[-1] - ends[0]),
                "worse": flags(here > before, here, before),
            }
        )
    return rows


def newcomers(results: Results) -> Rows:
    """Figure 6: accuracy of newcomers in percent, a row per method, number of epochs and seed.

    ``deviation`` is that of the newcomers. Data that stand in for the letters, which the tag
    ``stands_for`` says, have a setting of their own, and are left out where letters have been run.
    """
    runs = [run for run in results.runs("fig6") if NEWCOMERS in run.history.final]
    letters = [run for run in runs if not run.tags.get("stands_for")]
    return [
        row(
            run,
            method=METHODS[run.algorithm],
            epoch=epoch,
            accuracy=float(each.mean()),
            deviation=float(each.std()),
        )
        for run in letters or runs
        for epoch, each in enumerate(100 * run.history.final[NEWCOMERS][0])
    ]


def by_epochs(rows: Rows) -> Rows:
    """Return the accuracies of `newcomers` with a column for each number of epochs."""
    return [
        named | {f"after {r['epoch']}": r["accuracy"] for r in mine}
        for named, mine in groups(rows, "setting", "status", "method", "repeat")
    ]


def newcomer_orders(results: Results) -> Rows:
    """Figure 6: how far FedRep and Per-FedAvg are above the best other method, a row per seed.

    In percentage points, after the last epoch. A method that diverged is not the best. FedAvg would
    be no rival to FedRep: its newcomers get the network of APFL's, so that it is above none.
    """
    rows: Rows = []
    for named, mine in groups(newcomers(results), "problem", "setting", "status", "repeat"):
        last = max(r["epoch"] for r in mine)
        found = {r["method"]: r["accuracy"] for r in chosen(mine, epoch=last)}
        if len(found) < len(FIGURE6):
            continue  # methods are still missing
        above = {
            f"{algorithm}_above": found[METHODS[algorithm]]
            - np.fmax.reduce([found[METHODS[other]] for other in FIGURE6 if other != algorithm])
            for algorithm in ("fedrep", "per_fedavg")
        }
        rows.append(named | {"epochs": last} | above)
    return rows


def clients(results: Results) -> Rows:
    """Accuracy of the single clients in percent, a row per method and seed.

    ``gaining`` is the share of clients for which a method is better than Local Only; equal is not
    better. A fine-tuned network is one record, and is held against a mean of several.
    """
    rows = []
    for run in results.runs("table1"):
        alone = list(
            results.runs("table1", algorithm="local_only", problem=run.problem, variant=PLAIN)
        )
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
                    gaining=float((gain > 0).mean()) if np.isfinite(gain).all() else np.nan,
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
    "statistics": Table(statistics, SHOWN),
    "tuned_settings": Table(tuned_settings),
    "accuracy": Table(accuracy, by_group("accuracy", "setting", "method", "variant")),
    "above_fedavg": Table(above_fedavg, by_group("above", "setting", "method")),
    "orderings": Table(orderings),
    "epochs": Table(epochs, by_group("error", "method", "epochs")),
    "monotone": Table(monotone),
    "newcomers": Table(newcomers, by_epochs),
    "newcomer_orders": Table(newcomer_orders),
    "clients": Table(
        clients, by_group(("mean", "deviation", "tenth", "gaining"), "setting", "method", "variant")
    ),
    "communication": Table(communication, SHOWN),
}
