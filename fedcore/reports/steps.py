"""What the workflow's jobs do after the cells, a function for each rule; see `forking.run`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedcore.files import atomic
from fedcore.reports import executed, report, verdict_pages, verdicts
from fedcore.reports.site import build


def plan(described: Mapping[str, Any], to: str) -> None:
    """Write what a paper's tables and notebook need: labels, cells, and problems without data."""
    with atomic.replace(to, summed=True) as path:
        path.write_text(json.dumps(described, indent=1))


def tables(plan: str) -> None:
    """Write the tables of one paper."""
    report.write_tables(plan)


def notebook(notebook: str, to: str, **options: Any) -> None:
    """Execute the notebook of one paper, which draws its figures; `options` as there."""
    executed.execute(notebook, to, **options)


def verdict(paper: str, claims: Mapping[str, Any], tables: str, to: str, **options: Any) -> None:
    """Judge what one paper prints; `options` as `verdicts.judge`."""
    verdict_pages.write(verdicts.judge(paper, claims, tables, **options), to)


def summary(to: str, papers: Iterable[str]) -> None:
    """Combine the verdicts of all papers, which lie in a folder beside the table."""
    verdict_pages.combine(Path(to).with_suffix(""), to, papers)


def site(to: str, **options: Any) -> None:
    """Write the site of a run, whose first page is `to`; `options` as `site.build.write`."""
    build.write(Path(to).parents[1], Path(to).parent, **options)
