"""Texts on the kept verdicts that README.md, docs/privacy.md and paper.md have between comments.

The questions come from the claims files (papers/*/claims.yaml). All verdicts, counts and answers
come from the kept verdicts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kept_verdicts import read, run_that_judged

from fedcore.errors import DataError
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.verdicts import answers, verdict_pages

ROOT = Path(__file__).parents[1]
START = "<!-- `python tools/verdicts.py` writes what follows, to the next comment -->"
END = "<!-- end of what `python tools/verdicts.py` writes -->"
NONE = "No verdicts are kept: run `make reproduce`, then `python tools/verdicts.py`.\n"


def inserted(root: Path) -> dict[str, str]:
    """Return the whole texts of these pages, with new text between the comments."""
    parts = {
        "README.md": section(root),
        "docs/privacy.md": audits(root),
        "paper.md": found_so_far(root),
    }
    return {
        page: between_comments((ROOT / page).read_text(encoding="utf-8"), part, page)
        for page, part in parts.items()
    }


def between_comments(text: str, between: str, page: str, start: str = START, end: str = END) -> str:
    """Return the text of a page, with `between` in place of the text between two comments."""
    if text.count(start) != 1 or text.count(end) != 1:
        raise DataError(f"{page} needs the lines '{start}' and '{end}' once each")
    head, rest = text.split(start)
    return f"{head}{start}\n\n{between}\n{end}{rest.split(end)[1]}"


def section(root: Path) -> str:
    """Return the text for README.md, a table with each paper's question and answer."""
    verdicts, run = read(root)
    if not verdicts:
        return NONE
    rows: list[tables.Row] = []
    for paper, found in verdicts.items():
        printed = verdict_pages.printed_items(found)
        lines = answers.headlines(printed)
        rows.append(
            {"paper": tables.Link(f"{run[paper]['title']}", f"papers/{paper}/README.md"),
             "question": question_of(root, paper),
             "answer": answers.answer(printed),
             "headline claims, as printed": answers.count_words(lines),
             "otherwise": answers.count_words(lines, otherwise=True)}
        )  # fmt: skip
    return tables.markdown(rows)


def found_so_far(root: Path) -> str:
    """Return the text for paper.md, which says how many items have each verdict."""
    verdicts, _ = read(root)
    printed = [v for found in verdicts.values() for v in verdict_pages.printed_items(found)]
    return f"Of {len(printed)} items today: {answers.count_words(printed)}.\n"


def question_of(root: Path, paper: str) -> str:
    """Return a paper's question, which the verdicts on its headline claims answer.

    The text is empty if the paper has no claims file.
    """
    file = root / "papers" / paper / "claims.yaml"
    return str(read_yaml(file).get("question", "")) if file.is_file() else ""


def audits(root: Path) -> str:
    """Return the text for docs/privacy.md, a table of the kept verdicts of privacy audits."""
    verdicts, run = read(root)
    rows: list[tables.Row] = [
        {"audit": v.title, "bounds": v.readings[0].measured if v.readings else v.why,
         "word": v.word, "run of": run_that_judged(v.id, run[v.paper])["date"]}
        for items in verdicts.values()
        for v in verdict_pages.checks(items)
        if v.id.startswith("audit-")
    ]  # fmt: skip
    return tables.markdown(rows) if rows else NONE


def every_paper() -> dict[str, Any]:
    """Return the contents of papers/*/claims.yaml, by paper."""
    files = sorted(ROOT.glob("papers/*/claims.yaml"))
    return {path.parent.name: claims.read(path) for path in files}
