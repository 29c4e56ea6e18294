"""What reviewers ask for is made from what is kept, and names what there is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from fedcore.repro.verdicts.decision_rules import Part
from fedcore.repro.verdicts.verdicts import Reading, Verdict

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_written_files_are_up_to_date(tool):
    for name, text in tool("reviewers").written(ROOT).items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, "python tools/reviewers.py"


def test_the_article_cites_what_its_bibliography_has_and_no_more():
    article = (ROOT / "paper.md").read_text(encoding="utf-8")
    _, head, body = article.split("---\n", 2)
    known = re.findall(r"^@\w+{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.M)
    assert sorted(set(re.findall(r"@(\w+)", body))) == sorted(known)
    settings = yaml.safe_load(head)
    assert set(settings["tags"]) <= {*PROJECT["keywords"], "Python"}
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [who["name"] for who in settings["authors"]] == [w["name"] for w in cited["authors"]]


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "paper.md"])
def test_links_to_files_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def part(k, n, state="undecided", lack="too few runs"):
    return Part(state, (k, n), lack if state == "undecided" else "")


@pytest.mark.parametrize(
    "readings, found",
    [
        ([[part(8, 10)]], ("More runs", 1.7, "holds")),  # 14 of 17 weigh 20; 13 of 16 do not
        ([[part(2, 10)]], ("More runs", 1.7, "fails")),
        ([[part(10, 10, "holds"), part(8, 10)]], ("More runs", 1.7, "holds")),
        ([[part(8, 10), part(2, 10)]], ("More runs", 2.2, "fails")),
        ([[part(8, 10)], [part(10, 10, "holds")]], ("More runs", 1.7, "holds")),
        ([[part(2, 10)], [part(0, 10, "fails")]], ("More runs", 1.7, "fails")),
        ([[part(8, 10)], [part(0, 10, "fails")]], ("A word of the authors", 0, "")),
        ([[part(10, 10, "holds")], [part(0, 10, "fails")]], ("A word of the authors", 0, "")),
        ([[part(6, 10, lack="few runs agree")]], ("More runs", 0, "fails")),
        ([[part(0, 10, lack="no result")]], ("Longer runs, or other sizes", 0, "")),
        (
            [[part(8, 10), part(5, 9, lack="rounding decides")]],
            ("Nothing that a run can give", 0, ""),
        ),
    ],
)
def test_what_would_decide_an_item(tool, readings, found):
    """So many runs that agree as often, unless readings as printed then disagree."""
    states = [{one.state for one in parts} for parts in readings]
    made = tuple(
        Reading(
            state="undecided" if "undecided" in words else words.pop(),
            lack="what runs lack",
            parts={str(i): one for i, one in enumerate(parts)},
        )
        for parts, words in zip(readings, states, strict=True)
    )
    told = {field.name: "" for field in fields(Verdict)}
    verdict = Verdict(**told | {"word": "undecided", "readings": made})
    item = {"readings": [{"replaces": []}]}
    kind, growth, then = tool("reviewers").what_decides(verdict, item, {})
    assert (kind, pytest.approx(growth), then) == found
