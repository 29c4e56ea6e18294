"""Histories as text for a terminal: results, costs and contents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.parts.residuals import UNDETERMINED
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import components
from fedcore.reports.history_summary import ORDERED, bounds, ended, measured, spent
from fedcore.reports.replay import Replay
from fedcore.reports.tables import show
from fedcore.words import counted

MOST_FEATURES, MOST_COMPONENTS = 20, 6  # that are printed
LARGEST = 10  # features that are printed of more


def describe_run(history: History) -> str:
    """Algorithm, data, the last value of every metric, the components, and the ledger."""
    measures = _measures(history)
    parts = [_head(history), measures, _components(history), _ledger(history)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _head(history: History) -> list[str]:
    """Lines on what was run on which data."""
    data, *note = on_data(history)
    return [f"{history.about.get('algorithm', '?')} on {data}", *note]


def on_data(history: History) -> list[str]:
    """Name, status and sizes of a history's data, and its repeats; then the data's note."""
    about, problem = history.about, history.about.get("problem", {})
    relation = about.get("privacy", {}).get("neighbours")
    centred = " less their mean" if about.get("centred") else ""
    hidden = f" ({NOT_RELEASED})" if relation == "add_or_remove_one" else ""
    line = (
        f"{problem.get('name', '?')} [{problem.get('status', 'unknown')} data]: "
        f"{sizes(problem, hidden)}{centred}; {counted(history.repeats, 'repeat')}"
    )
    return [line, *([problem["note"]] if problem.get("note") else [])]


def _measures(history: History) -> list[str]:
    """Lines on the last value of every metric, beside its bounds, and remarks on them."""
    several = history.repeats > 1
    heads = ("metric", "median" if several else "last", *(("min", "max") if several else ()), "")
    rows: list[tuple[str, ...]] = []
    for name in measured(history):
        last = history.last(name)
        values = (np.median(last), last.min(), last.max()) if several else (last[0],)
        units = history.units.get(name, ("", ""))[0]
        words = ["" if units == "1" else units, _unreleased(history, name)]
        rows.append((name, *(show(float(v)) for v in values), ", ".join(filter(None, words))))
    rows, remarks = _beside_bounds(history, rows)
    table = [columns([heads, *rows], right=range(1, len(heads) - 1))] if rows else []
    return [*table, *remarks, *filter(None, [why_left_out([history])])]


def why_left_out(histories: Iterable[History]) -> str:
    """Say which measures private runs have not kept, and why; empty if there are none."""
    every = [history.about.get("privacy", {}).get("left_out", ()) for history in histories]
    names = sorted({name for left_out in every for name in left_out})
    if not names:
        return ""
    return (
        "a private run with real noise keeps no measure that is exact and not released "
        f"({', '.join(names)}): run it with --keep-exact"
    )


def _components(history: History) -> list[str]:
    """Lines on the components, and what they mean."""
    found = components.read_components(history)
    if not found:
        return []
    private = "explained_variance" not in found
    centre = " less the mean," if history.about.get("centred") else ""
    about = "" if centre or private else ", about zero (--center: about the mean)"
    head = f"components: a sample's score is the sum of its values{centre} times these weights"
    lines = weights(**found, about=about)
    if private:
        lines.append("private: the run has released directions, and no variances")
    if history.repeats > 1:
        lines.append("of the first repeat")
    return [head, *lines]


def weights(
    features: Sequence[str] | None, weights: np.ndarray, explained_variance: Any = None,
    explained_variance_ratio: Any = None, about: str = "",
) -> list[str]:  # fmt: skip
    """Lines on components: a row of weights for each feature, and their variances.

    Parameters
    ----------
    features : sequence of str or None
    weights : ndarray of shape (r, d)
    explained_variance, explained_variance_ratio : ndarray of shape (r,), optional
    about : str
        What the variance is about.
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


def _ledger(history: History) -> list[str]:
    """Lines on what crossed between the clients and the server, and on ε."""
    about, several = history.about, history.repeats > 1
    total = spent(history)
    rows = [("  rounds", f"{total['round']:,.0f}", "", "")]
    for way in ("up", "down"):
        scalars, size = f"{total[f'scalars_{way}']:,.0f}", as_bytes(total[f"bytes_{way}"])
        rows.append((f"  {way}", scalars, "scalars", size))
    privacy = about.get("privacy", {})  # a run without a result has not said it
    notes = [privacy.get("noise"), about.get("tuning", {}).get("note")]
    if "epsilon" in total:
        terms = privacy and f"at delta = {privacy['delta']:g}, neighbours = {privacy['neighbours']}"
        rows.append(("  epsilon", show(total["epsilon"]), terms or "", ""))
        if several:
            notes.append("epsilon is that of one repeat: repeats on the same data add up")
    head = f"ledger, all clients together{', median of the repeats' if several else ''}"
    return [head, columns(rows, right=(1, 3)), *(f"  {note}" for note in notes if note)]


def sizes(problem: Mapping[str, Any], hidden: str = "") -> str:
    """Clients, samples (with the remark `hidden`) and features of a history's problem."""
    clients, samples, features = (
        counted(problem.get(f"n_{noun}s", "?"), noun) for noun in ("client", "sample", "feature")
    )
    return f"{clients}, {samples}{hidden}, {features}"


def contents(history: History) -> str:
    """Provenance of a history, its columns with their units, and its arrays."""
    about = history.about
    exact = _unreleased(history)
    origin = [
        ("cell", "/".join(str(about.get(k, "?")) for k in ("paper", "experiment", "name"))),
        ("parameters", _words(about.get("params", {}))),
        ("data sha256", f"{about.get('problem', {}).get('sha256', 'not kept')}  {exact}"),
        ("seed", _words(about.get("seed", {}))),
        ("sums", _sums(about.get("sums", ORDERED))),
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
    """Angles of all iterates that are kept, recomputed and recorded, and what was left out."""
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
    """Align cells in columns two blanks apart; the columns numbered in `right` to the right."""
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
    """Mark of a column that a private run did not release; of exact values without a `name`."""
    return "" if history.released is None or name in history.released else NOT_RELEASED


def _beside_bounds(
    history: History, rows: list[tuple[str, ...]]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Add the best possible values, and those of a zero model, below the metrics; add remarks."""
    remarks, end = [], ended(history)
    if (met := end.get("converged")) is not None:
        which = "converged" if met == history.repeats else "NOT converged: allow more rounds"
        remarks.append(f"{which} ({met} of {history.repeats} within the tolerance)")
    if loose := _undetermined(history):
        r = history.about["params"]["n_components"]
        remarks.append(
            f"components are arbitrary ({loose} of {history.repeats}): singular values {r} and "
            f"{r + 1} are too near each other in the precision of the data"
        )
    if gone := end.get("diverged"):
        remarks.append(f"DIVERGED: not finite at the end ({gone} of {history.repeats})")
    below = []
    for row in rows:
        below.append(row)
        found = bounds(history, row[0])
        for name, bound in found.items():
            several = (np.median(bound), bound.min(), bound.max())
            values = several[: 3 if len(row) == 5 else 1]
            words = row[-1] if np.any(bound) else ""  # whoever knows the metric knows that it is 0
            below.append((f"  {name}", *(show(float(value)) for value in values), words))
        if "all zero" in found and np.median(history.last(row[0])) > np.median(found["all zero"]):
            remarks.append(f"{row[0]} is above that of a model that is zero everywhere")
    return below, remarks


def _undetermined(history: History) -> int:
    """Return how many repeats have met the tolerance with a subspace that rounding may turn."""
    angle, met = history.final.get("angle_estimate"), history.final.get("converged")
    if angle is None or met is None:
        return 0
    most = max(UNDETERMINED, history.about["params"].get("tol") or 0.0)
    return int(np.sum((np.ravel(angle) > most) & (np.ravel(met) > 0)))


def as_bytes(size: float) -> str:
    """Return a size in decimal units, such as ``'1.2 MB'``."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= 999.5 and len(units) > 1:
        size, units = size / 1000.0, units[1:]
    return f"{size:.3g} {units[0]}"


def _sums(taken: Mapping[str, Any]) -> str:
    if taken == ORDERED:
        return "over the clients in a fixed order"
    ranks = counted(taken.get("ranks", "?"), "rank")
    return f"over the clients in {taken.get('order', '?')} order, by MPI at {ranks}"


def _words(mapping: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in mapping.items()) or "–"
