"""The pages of a quick run: the kept answers, marked as kept, and what it ran."""

import html
from dataclasses import replace
from pathlib import Path

from fedcore.repro.site import build
from fedcore.repro.verdicts import answers, verdict_pages
from fedcore.repro.verdicts.verdicts import RAN, SOFTWARE
from site_pages import dead_links

ROOT = Path(__file__).parents[3]


def test_kept_answers_stand_beside_what_ran(tmp_path):
    kept = verdict_pages.read(ROOT / "papers/dppower/verdicts.tsv")
    quick = [v if v.section == SOFTWARE else replace(v, word=RAN, why="") for v in kept]
    (tmp_path / "verdicts").mkdir()
    verdict_pages.write(quick, tmp_path / "verdicts/dppower.tsv")
    front = build.write(tmp_path, tmp_path / "report", ROOT)
    shown = front.read_text(encoding="utf-8")
    assert html.escape(answers.answer(kept)) in shown and 'class="kept"' in shown
    assert 'class="w ran"' in shown
    for v in verdict_pages.printed_items(kept):
        page = (front.parent / f"dppower/{v.id}.html").read_text(encoding="utf-8")
        assert f'class="w {v.word.replace(" ", "-")}"' in page and 'class="w ran"' in page
    assert dead_links(front.parent) == []
