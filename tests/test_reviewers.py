"""What reviewers ask for is made from what is kept, and names what there is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from fedcore.repro.verdicts.claim_tests import Part
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
    "readings, growth",
    [
        ([[part(8, 10)]], 1.7),  # 13 of 15 hold, and 14 of 17; 12 of 15 does not
        ([[part(10, 10, "holds"), part(8, 10)]], 1.7),
        ([[part(8, 10), part(5, 10, lack="our runs spread too far")]], 0),
        ([[part(8, 10)], [part(10, 10, "holds")]], 1.7),
        ([[part(8, 10)], [part(0, 10, "fails")]], 0),  # more runs would make the two disagree
        ([[part(2, 10), part(8, 10)], [part(0, 10, "fails")]], 1.7),
        ([[part(10, 10, "holds")], [part(0, 10, "fails")]], 0),
    ],
)
def test_what_would_decide_an_item(tool, readings, growth):
    """So many runs that agree as often, unless readings as printed then disagree."""
    states = [{one.state for one in parts} for parts in readings]
    made = tuple(
        Reading(
            state="undecided" if "undecided" in found else found.pop(),
            lack="what runs lack",
            parts={str(i): one for i, one in enumerate(parts)},
        )
        for parts, found in zip(readings, states, strict=True)
    )
    told = {field.name: "" for field in fields(Verdict)}
    verdict = Verdict(**told | {"word": "undecided", "readings": made})
    item = {"readings": [{"replaces": []}]}
    found, said = tool("reviewers").what_decides(verdict, item, {})
    assert found == pytest.approx(growth)
    assert bool(said)
