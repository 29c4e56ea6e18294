"""What README and docs/privacy.md say of the kept verdicts, between two comments.

``papers/findings.yaml`` says which items are findings; what was measured of them is never typed.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kept_verdicts import read, run_that_judged

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.tables.rows import Rows
from fedcore.repro.verdicts import verdict_pages
from fedcore.repro.verdicts.verdicts import VERDICTS, Verdict
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "papers" / "findings.yaml"
START = "<!-- `python tools/verdicts.py` writes what follows, to the next comment -->"
END = "<!-- end of what `python tools/verdicts.py` writes -->"
NONE = "No verdicts are kept: run `make reproduce`, then `python tools/verdicts.py`.\n"


def inserted(root: Path) -> dict[str, str]:
    """Return the whole text of the pages that people write, with their written parts made anew."""
    parts = {"README.md": section(root), "docs/privacy.md": audits(root)}
    return {
        page: between_comments((ROOT / page).read_text(encoding="utf-8"), part, page)
        for page, part in parts.items()
    }


def between_comments(text: str, between: str, page: str, start: str = START, end: str = END) -> str:
    """Return the text of a page with `between` in place of what stands between two comments."""
    if text.count(start) != 1 or text.count(end) != 1:
        raise DataError(f"{page} needs the lines '{start}' and '{end}' once each")
    head, rest = text.split(start)
    return f"{head}{start}\n\n{between}\n{end}{rest.split(end)[1]}"


def section(root: Path) -> str:
    """Return what README says between `START` and `END`, of the checkout in this folder."""
    verdicts, run = read(root)
    found = [verdict for items in verdicts.values() for verdict in items]
    if not found:
        return f"{NONE}\n{table_of_inventory(inventory())}"
    labels = {
        paper: tables.Link(
            f"{paper}: {run[paper]['title']} ({run[paper]['citation']})",
            f"papers/{paper}/README.md",
        )
        for paper in verdicts
    }
    parts = [tables.markdown(verdict_pages.counts(found, labels))]
    gone = [
        f"No verdicts are kept of `{row['paper']}`: "
        f"{counted(row['printed items'], 'printed item')}, "
        f"{row['with a check']} with a check.\n"
        for row in inventory()
        if row["paper"] not in run
    ]
    return "\n".join([*parts, *gone])


def table_of_findings(found: Iterable[Verdict], findings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the findings as a table; those of papers without kept verdicts are left out.

    `findings` says something of items, by ``<paper>/<id>``. In what it ``says``,
    ``{<paper>/<id>}`` stands for what was measured of another item, so that no measured number is
    typed.

    Raises
    ------
    DataError
        When an item is not in the table of its paper, or nothing was measured of it.
    """
    known = {f"{v.paper}/{v.id}": v for v in found}
    kept = {v.paper for v in known.values()}

    def of(name: str) -> Verdict:
        if name not in known or not known[name].measured:
            raise DataError(f"findings.yaml: nothing is kept that was measured of {name}")
        return known[name]

    rows: list[tables.Row] = []
    for item, finding in findings.items():
        if item.split("/")[0] in kept:
            v = of(item)
            says = re.sub(r"\{([^{}]+/[^{}]+)\}", lambda m: of(m[1]).measured, finding["says"])
            printed = f"{v.quantity}: {v.printed} ({v.source})"
            rows.append(
                {"paper": f"`{v.paper}`", "printed": printed, "measured": v.measured,
                 "verdict": v.verdict, "finding": " ".join(says.split())}
            )  # fmt: skip
    return tables.markdown(rows) if rows else ""


def stale(found: Iterable[Verdict], findings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return in words which findings were written for other verdicts than those that are kept."""
    now = {f"{v.paper}/{v.id}": v.verdict for v in found}
    return [
        f"{item}: {other} is '{now.get(other)}', and the finding was written for '{verdict}'"
        for item, finding in findings.items()
        for other, verdict in ({item: finding["verdict"]} | finding.get("rests_on", {})).items()
        if now.get(other) != verdict
    ]


def audits(root: Path) -> str:
    """Return what docs/privacy.md says between `START` and `END`: the audits of the last runs."""
    verdicts, run = read(root)
    rows: list[tables.Row] = [
        {"audit": v.quantity, "bound": v.measured, "with less noise": v.counterfactual,
         "outcome": v.verdict, "run of": run_that_judged(v.id, run[v.paper])["date"]}
        for items in verdicts.values()
        for v in verdict_pages.checks(items)
        if v.id.startswith("audit-")
    ]  # fmt: skip
    return tables.markdown(rows) if rows else NONE


def every_paper() -> dict[str, Any]:
    """Return what is in papers/*/claims.yaml, by paper."""
    files = sorted(ROOT.glob("papers/*/claims.yaml"))
    return {path.parent.name: claims.read(path) for path in files}


def inventory() -> Rows:
    """Return a row per claims file: how many items it has, and how many with a check."""
    rows: Rows = []
    for paper, claimed in every_paper().items():
        reasons = Counter(i.get("unchecked", {}).get("verdict", "") for i in claimed["claims"])
        rows.append(
            {
                "paper": paper,
                "printed items": len(claimed["claims"]),
                "with a check": reasons[""],
                "not comparable": reasons["not comparable"],
                "not run": reasons["not run"],
                "departures": len(claimed["departures"]),
            }
        )
    return rows


def table_of_inventory(rows: Rows) -> str:
    """Return the rows of `inventory` as a table, with a total."""
    sums = {name: sum(row[name] for row in rows) for name in list(rows[0])[1:]}
    named = [row | {"paper": f"`{row['paper']}`"} for row in rows]
    return tables.markdown([*named, {"paper": "total", **sums}])


def meanings(verdicts: list[Verdict]) -> str:
    """Return what the verdicts on printed items mean, as lines of prose."""
    there = verdict_pages.occurring(verdict_pages.printed_items(verdicts))
    words = [f"*{name.capitalize()}*: {VERDICTS[name]}" for name in there]
    return textwrap.fill(" ".join(words), 100, break_on_hyphens=False) + "\n"
