"""What notebooks say of items, in words, rests on items that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fedcore.config import claims

ROOT = Path(__file__).parents[2]
PAPERS = sorted(path.stem for path in (ROOT / "config" / "claims").glob("*.yaml"))


def cited(paper: str) -> set[str]:
    """Return the words with a dash that a notebook's text sets as code: ids, and names of runs."""
    text = (ROOT / "notebooks" / f"{paper}.ipynb").read_text(encoding="utf-8")
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
    words = "".join("".join(cell["source"]) for cell in cells)
    return set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9…]+)+)`", words))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_that_a_notebook_names_is_in_the_inventory(paper):
    claimed = claims.read(ROOT / "config" / "claims" / f"{paper}.yaml")
    known = {item["id"] for item in (*claimed["claims"], *claimed["software"])}
    runs = (ROOT / "config" / "papers" / f"{paper}.yaml").read_text(encoding="utf-8")
    for name in cited(paper):
        start = name.removesuffix("…")
        if re.search(rf"^ *{start}[\w-]*:", runs, re.MULTILINE):  # a variant
            continue
        assert any(i == name or (start != name and i.startswith(start)) for i in known), name


def test_some_notebooks_name_items():
    assert sum(len(cited(paper)) for paper in PAPERS) > 20
