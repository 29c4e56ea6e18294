"""Format the descriptions and contents of histories as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.recorder import NOT_RELEASED
from fedcore.reports.measures import why_left_out
from fedcore.reports.replay import Replay
from fedcore.reports.tables import show
from fedcore.words import counted, in_line

MOST_FEATURES, MOST_COMPONENTS = 20, 6  # most that are printed
LARGEST = 10  # number of features that are printed if there are more than MOST_FEATURES
LEDGER = ("round", "scalars_up", "bytes_up", "scalars_down", "bytes_down")
Description = Mapping[str, Any]  # of `fedcore.reports.description.describe`


def one_run(found: Description) -> str:
    """Describe a run as text: algorithm, data, last value of each metric, components, costs."""
    data, *note = _data(found)
    head = [f"{found['algorithm'] or '?'} on {data}", *note]
    parts = [head, _measures(found), _components(found), _ledger(found)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def side_by_side(histories: Mapping[str, Description]) -> str:
    """Return a table of each history's last metric values and costs (medians over its repeats).

    If the best possible values of metrics are known, a last row shows them.
    """
    every = list(histories.values())
    metrics = sorted({name for found in every for name in found["metrics"]})
    spent = ["epsilon"] if any("epsilon" in found["ledger"] for found in every) else []
    heads = ["method", *metrics, "rounds", "bytes up", "bytes down", *spent, "CPU s"]
    rows = [(*heads, "")]
    for name, found in histories.items():
        ledger, values = found["ledger"], found["metrics"]
        rows.append((
            name,
            *(show(values.get(metric, {}).get("median", np.nan)) for metric in metrics),
            *(f"{ledger.get(count, np.nan):,.0f}" for count in ("round", "bytes_up", "bytes_down")),
            *(show(ledger.get(word, np.nan)) for word in spent),
            show(found.get("seconds", np.nan)),
            _end(found),
        ))  # fmt: skip
    best = {
        name: metric["at best"]["median"]  # the same for all, on the same data
        for found in every
        for name, metric in found["metrics"].items()
        if "at best" in metric
    }
    if best:
        rest = [""] * (len(heads) - len(metrics))
        rows.append(("at best", *(show(best.get(metric, np.nan)) for metric in metrics), *rest))
    lines = [*_data(every[0]), "", columns(rows, right=range(1, len(heads))), why_left_out(every)]
    return "\n".join(lines).rstrip()


def _end(found: Description) -> str:
    if found.get("diverged"):
        return "diverged"
    if "converged" not in found:
        return ""
    return "converged" if found["converged"] == found["repeats"] else "not converged"


def _data(found: Description) -> list[str]:
    """Return a line with name, origin and sizes of the data, and a line with the data's note."""
    problem = found["problem"]
    relation = found.get("privacy", {}).get("neighbours")
    centred = " less their mean" if found["centred"] else ""
    hidden = f" ({NOT_RELEASED})" if relation == "add_or_remove_one" else ""
    clients, samples, features = (
        counted(problem.get(f"n_{noun}s", "?"), noun) for noun in ("client", "sample", "feature")
    )
    data = f"{problem.get('status', 'unknown')} data"
    name = problem.get("name")
    line = (
        f"{f'{name} [{data}]' if name else data}: {clients}, "
        f"{samples}{hidden}, {features}{centred}; {counted(found['repeats'], 'repeat')}"
    )
    return [in_line(line), *([problem["note"]] if problem.get("note") else [])]


def _measures(found: Description) -> list[str]:
    """Return lines with the last and the best possible value of each metric, and with remarks."""
    repeats, remarks = found["repeats"], []
    shown = ("median", "min", "max")[: 3 if repeats > 1 else 1]
    heads = ("metric", *(shown if repeats > 1 else ["last"]), "")
    rows: list[tuple[str, ...]] = [heads]
    if "converged" in found:
        met = found["converged"]
        which = "converged" if met == repeats else "NOT converged: allow more rounds"
        remarks.append(f"{which} ({met} of {repeats} within the tolerance)")
    if loose := found.get("undetermined"):
        r = found["params"]["n_components"]
        remarks.append(
            f"components are arbitrary ({loose} of {repeats}): singular values {r} and "
            f"{r + 1} are too near each other in the precision of the data"
        )
    if found.get("diverged"):
        remarks.append(f"DIVERGED: not finite at the end ({found['diverged']} of {repeats})")
    for name, metric in found["metrics"].items():
        units = "" if metric["units"] == "1" else metric["units"]
        hidden = "" if metric.get("released", True) else NOT_RELEASED
        words = ", ".join(filter(None, [units, hidden]))
        rows.append((name, *(show(metric[word]) for word in shown), words))
        if values := metric.get("at best"):
            # Whoever knows the metric knows that the best is 0.
            said = words if any(values.values()) else ""
            rows.append(("  at best", *(show(values[word]) for word in shown), said))
    table = [columns(rows, right=range(1, len(heads) - 1))] if found["metrics"] else []
    return [*table, *remarks, *filter(None, [why_left_out([found])])]


def _components(found: Description) -> list[str]:
    """Return lines with the components and an explanation of their meaning."""
    if "components" not in found:
        return []
    private = "explained_variance" not in found["components"]
    centre = " less the mean," if found["centred"] else ""
    about = "" if centre or private else ", about zero (--center: about the mean)"
    values = "scaled values" if found["scaled"] else "values"
    head = f"components: a sample's score is the sum of its {values}{centre} times these weights"
    lines = weights(**found["components"], about=about)
    if private:
        lines.append("private: the run has released directions, and no variances")
    if found["repeats"] > 1:
        lines.append("of the first repeat")
    return [head, *lines]


def weights(
    features: Sequence[str] | None, weights: np.ndarray, explained_variance: Any = None,
    explained_variance_ratio: Any = None, about: str = "",
) -> list[str]:  # fmt: skip
    """Return lines with a row of weights for each feature, and with the components' variances.

    Parameters
    ----------
    features : sequence of str or None
        Names of the features; None numbers the features.
    weights : ndarray of shape (r, d)
    explained_variance, explained_variance_ratio : ndarray of shape (r,), optional
        Variance of each component, and its share of the total variance.
    about : str
        Text that names the point (zero or the mean) about which the variance is measured.
    """
    r, d = weights.shape
    names = features or [f"feature {i}" for i in range(d)]
    shown = range(min(r, MOST_COMPONENTS))
    which: Sequence[int] = range(d)
    if d > MOST_FEATURES:
        which = np.argsort(-np.abs(weights[shown]).max(axis=0), kind="stable")[:LARGEST].tolist()
    rows = [("", *(str(k + 1) for k in shown))]
    rows += [(f"  {names[i]}", *(f"{weights[k, i]:.3f}" for k in shown)) for i in which]
    remarks = []
    counts = ((d - len(which), "feature"), (r - len(shown), "component"))
    left_out = [counted(count, noun) for count, noun in counts if count]
    if left_out:
        remarks.append(f"not shown: {' of smaller weights, '.join(left_out)}")
    if explained_variance is not None:
        rows.append(("variance", *(f"{explained_variance[k]:.4g}" for k in shown)))
        rows.append(("share of all", *(f"{explained_variance_ratio[k]:.1%}" for k in shown)))
        part = float(np.sum(explained_variance_ratio))
        remarks.append(
            f"component 1 has the most variance{about}; together they have {part:.1%} of it"
        )
    return [columns(rows, right=range(1, len(shown) + 1)), *remarks]


def _ledger(found: Description) -> list[str]:
    """Return lines on the run's traffic between clients and server, and on its privacy loss ε."""
    total, several = found["ledger"], found["repeats"] > 1
    if not total.keys() >= set(LEDGER):  # columns of a user's own
        return []
    rows = [("  rounds", f"{total['round']:,.0f}", "", "")]
    for way in ("up", "down"):
        scalars, size = total[f"scalars_{way}"], total[f"bytes_{way}"]
        rows.append((f"  {way}", f"{scalars:,.0f}", "scalars", f"{size:,.0f} bytes"))
    privacy = found.get("privacy", {})  # a run without a result has not said it
    notes = [privacy.get("noise"), found.get("tuning", {}).get("note")]
    if "epsilon" in total:
        terms = privacy and f"at delta = {privacy['delta']:g}, neighbours = {privacy['neighbours']}"
        rows.append(("  epsilon", show(total["epsilon"]), terms or "", ""))
        if several:
            notes.append("this is the epsilon of one repeat: repeats on the same data add up")
    head = f"ledger, all clients together{', median of the repeats' if several else ''}"
    return [head, columns(rows, right=(1, 3)), *(f"  {note}" for note in notes if note)]


def contents(history: History) -> str:
    """Describe a history as text: its provenance, its columns with units, and its arrays."""
    about = history.about
    exact = _unreleased(history)
    origin = [
        ("cell", "/".join(str(about.get(k, "?")) for k in ("paper", "experiment", "name"))),
        ("parameters", _words(about.get("params", {}))),
        ("data sha256", f"{about.get('problem', {}).get('sha256', 'not kept')}  {exact}"),
        ("seed", _words(about.get("seed", {}))),
        ("code", about.get("code") or "?"),
        ("versions", _words(about.get("versions", {}))),
    ]
    shape = " x ".join(map(str, history.columns["iteration"].shape))
    lines = [columns(origin), "", f"columns, each repeats x records = {shape}"]
    described = [
        (f"  {name}", *history.units[name], _unreleased(history, name))
        for name in sorted(history.columns)
    ]
    lines.append(columns(described))
    for group in ("clients", "final", "iterates", "client_iterates", "reference", "twin"):
        mark = "" if group in ("final", "iterates") else exact
        for name, array in sorted(getattr(history, group).items()):
            size = " x ".join(map(str, array.shape)) or "scalar"
            lines.append(f"  {group}/{name}  {size}  {mark}".rstrip())
    return "\n".join(lines)


def replayed(history: History, found: Replay) -> str:
    """Return a table of recomputed and recorded angles, and how many iterates were not kept."""
    rows: list[tuple[str, ...]] = [("repeat", "iteration", "recomputed", "recorded")]
    for repeat, snapshot in zip(*np.nonzero(found.iteration >= 0), strict=True):
        place = repeat, snapshot
        values = (show(float(found.recomputed[place])), show(float(found.recorded[place])))
        rows.append((str(repeat), str(found.iteration[place]), *values))
    kept = history.about.get("iterates", {})
    lacking = {name: count for name, count in kept.get("left_out", {}).items() if count}
    words = ", ".join(counted(count, name.removesuffix("s")) for name, count in lacking.items())
    parts = [
        f"{found.measure} of the iterates that are kept ({kept.get('policy', '?')})",
        columns(rows, right=(0, 1, 2, 3)),
        f"largest difference: {found.difference:.2g}",
        f"left out, because a history keeps 50 MB of iterates: {words}" if words else "",
    ]
    return "\n".join(filter(None, parts))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Align cells in columns, with two blanks between; `right` lists right-aligned columns."""
    rows = [[*map(in_line, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def _unreleased(history: History, name: str | None = None) -> str:
    """Return a mark if the run is private and does not release the column `name`, else ""."""
    return "" if history.released is None or name in history.released else NOT_RELEASED


def _words(mapping: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in mapping.items()) or "–"
