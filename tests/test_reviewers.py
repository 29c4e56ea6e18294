"""What reviewers ask for is made from what is kept, and names what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

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
