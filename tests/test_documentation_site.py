"""The documentation site: it builds without a warning, has no dead link, is searched offline."""

from __future__ import annotations

import csv
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import yaml
from printed import ROOT
from site_pages import BROWSER, FLAGS, in_a_browser, visited

import fedcore
from fedcore.algorithms import names
from fedcore.cli import main
from fedcore.reports import tables
from fedcore.reports.rows import chosen

pytest.importorskip("sphinx", reason="needs the extra docs: make env")


def built(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E"]
    return subprocess.run(
        [*command, "-c", str(ROOT / "docs/site"), str(source), str(out)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = built(ROOT / "docs", out)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(out / ".doctrees")
    return out


@pytest.fixture(scope="module")
def script(docs_script):
    return lambda name: docs_script(f"site/{name}")


class Links(HTMLParser):
    """Links, ids and pictures of a page, and what it loads without a click."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.ids: set[str] = set()
        self.silent = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        target = found.get("href") or found.get("src")
        if target:
            self.links.add(target)
            if tag != "a":
                self.loaded.add(target)
        self.silent += tag == "img" and not found.get("alt")


def pages_of(folder: Path) -> list[Path]:
    """All pages of the site; the theme's own files are none."""
    return sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)


def dead(folder: Path) -> list[str]:
    """Links that lead to no file of the site, or to no place in it."""
    pages = {path.resolve(): Links(path) for path in pages_of(folder)}
    found = []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            lost = target in pages and anchor and anchor not in pages[target].ids
            if not target.is_file() or lost:
                found.append(f"{path.relative_to(folder.resolve())}: {link}")
    return found


def test_no_link_is_dead_and_nothing_needs_a_network(site):
    assert dead(site) == []
    for path in pages_of(site):
        page = Links(path)
        assert not [link for link in page.loaded if re.match(r"(https?:)?//", link)], path
        assert page.silent == 0, f"{path} has a picture without words"


def test_a_dead_link_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html">b</a><a href="#y">y</a></p>')
    assert sorted(dead(tmp_path)) == ["a.html: #y", "a.html: b.html"]


def test_a_warning_is_an_error(tmp_path):
    source = tmp_path / "pages"
    source.mkdir()
    (source / "index.md").write_text("# Title\n\n[nowhere](none.md)\n")
    done = built(source, tmp_path / "out")
    assert done.returncode != 0 and "none.md" in done.stderr


def test_every_page_of_the_repository_and_every_public_name_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        where = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert where.is_file(), page
    library = Links(site / "library.html").ids
    assert {f"fedcore.{name}" for name in fedcore.__all__ if name[0] != "_"} <= library
    assert {"fedcore.History.load", "fedcore.FederatedPCA.set_params"} <= library  # inherited
    sections = Links(site / "algorithms.html").ids
    assert {name.replace("_", "-") for name in names()} <= sections
    commands = Links(site / "commands.html").ids
    assert {f"fedcore-{name}" for name in main.commands} <= commands
    for included in ("configuration", "data", "contributing", "changelog", "benchmarks"):
        assert len((site / f"{included}.html").read_text(encoding="utf-8")) > 8000


def test_links_to_files_offer_the_files(site):
    offered = {path.name for path in (site / "_downloads").rglob("*.*")}
    assert {"synthetic_hospitals.py", "ditto.py"} <= offered
    assert "Sphinx" not in (site / "index.html").read_text(encoding="utf-8").partition("<main")[2]


# Which method when


def test_the_choices_are_those_of_the_kept_tables(script):
    methods = script("methods")
    with (ROOT / "docs/arena/ranks.tsv").open(encoding="utf-8") as file:
        ranks = list(csv.DictReader(file, delimiter="\t"))
    with (ROOT / "docs/arena/results.tsv").open(encoding="utf-8") as file:
        results = list(csv.DictReader(file, delimiter="\t"))
    kept = [tables.read(methods.KEPT / f"{name}.tsv") for name in ("results", "ranks")]
    rows = methods.first_choices(*kept)
    assert len(rows) > 6
    for row in rows:
        mine = [
            r for r in ranks
            if (r["privacy"], r["budget"]) == (row["guarantee"], str(row["rounds"]))
        ]  # fmt: skip
        places: dict[str, list[int]] = {}
        for r in mine:
            places.setdefault(r["method"], []).append(int(r["rank"]))
        least = min(statistics.mean(found) for found in places.values())
        best = re.search(r"`(\w+)`", row["take"])[1]
        assert statistics.mean(places[best]) == least
        errors = [float(r[f"error_{row['rounds']}"]) for r in results if r["method"] == best]
        assert row["median error"] == f"{statistics.median(errors):.2g}"


def test_another_table_gives_another_page(script, tmp_path):
    methods = script("methods")
    kept = tmp_path / "arena"
    shutil.copytree(methods.KEPT, kept)
    before, path = methods.page(kept), kept / "results.tsv"
    rows = tables.read(path)
    for row in chosen(rows, method="block_krylov"):
        row["error_5"] = 0.123
    tables.write(rows, path)
    after = methods.page(kept)
    assert "0.12" in after and after != before
    assert not re.search(r"\d", re.sub(r"yd2021|wk2023", "", methods_page_by_hand()))


def methods_page_by_hand() -> str:
    """What is written by hand below the title of docs/methods.md, without what 0 and 1 mean."""
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    for known in ("0 is exact, and 1 says", "near 0 it knows", "and 1 says only"):
        text = text.replace(known, "")
    return text


# The gallery


def gallery_of(script, root: Path) -> str:
    return script("gallery").page(root)


@pytest.fixture
def bare(tmp_path):
    """A checkout as a clone is, without results; with no kept pictures but one of the docs."""
    for name in ("config/claims", "config/papers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/factorization-fig3.png", tmp_path / "docs")
    return tmp_path


def figures_of_the_plans() -> set[str]:
    files = [*(ROOT / "config/papers").glob("*.yaml"), ROOT / "config/arena.yaml"]
    return {
        f"{file.stem}/{name}"
        for file in files
        for name in yaml.safe_load(file.read_text(encoding="utf-8"))["figures"]
    }


def test_every_figure_of_the_plans_is_kept_and_no_other(script):
    folder, planned = ROOT / "docs/gallery", figures_of_the_plans()
    pictures = {p.relative_to(folder).with_suffix("").as_posix(): p for p in folder.rglob("*.png")}
    assert pictures.keys() == planned and len(planned) > 40
    assert max(p.stat().st_size for p in pictures.values()) < 100_000
    assert sum(p.stat().st_size for p in pictures.values()) < 1.5e6
    drawn = {path.name for path in (ROOT / "docs").glob("*.png")}
    assert drawn == script("gallery").OTHERS.keys()


def test_the_gallery_of_a_clone_shows_all_with_run_and_command(script, bare):
    shutil.copy(ROOT / "config/arena.yaml", bare / "config")
    shutil.copytree(ROOT / "docs/gallery", bare / "docs/gallery")
    shutil.copy(ROOT / "docs/mpi_scaling.png", bare / "docs")
    page = gallery_of(script, bare)
    shown = re.findall(r"^!\[[^\]]+\]\((?:gallery/)?([\w/-]+)\.png\)", page, re.M)
    assert sorted(shown) == sorted({*figures_of_the_plans(), "factorization-fig3", "mpi_scaling"})
    notes = json.loads((ROOT / "docs/gallery/run.json").read_text(encoding="utf-8"))
    assert len(notes) == len({f.split("/")[0] for f in shown if "/" in f})
    earlier = [note["earlier"] for note in notes.values() if "earlier" in note]
    assert page.count("kept on ") == len(notes) + sum(map(len, earlier))
    for paper, note in notes.items():
        assert f"kept on {note['date']} at commit {note['commit']}" in page
        assert f"-- {note['run']}/figures/{paper}/" in page
    assert page.count("Made by\n`") == len(shown) and "built beside no results" in page


def test_what_is_kept_is_small_and_of_the_better_run(docs_script, script, bare):
    kept_figures, image = docs_script("kept_figures"), pytest.importorskip("PIL.Image")
    kept = bare / "docs/gallery"
    assert kept_figures.collect(bare, kept) == {}
    (kept / "faps").mkdir()
    for old in ("spectra", "none_of_the_plan"):
        (kept / "faps" / f"{old}.png").write_bytes(b"old")
    red = image.new("RGB", (1800, 90), (204, 31, 5))
    for run, papers in (("results/quick", ("faps", "dppower")), ("results", ("faps",))):
        for paper in papers:
            name = {"faps": "images", "dppower": "budget"}[paper]
            plan = {"title": paper, "figures": {name: "x"}, "judged": False}
            for part in ("plans", f"figures/{paper}"):
                (bare / run / part).mkdir(parents=True, exist_ok=True)
            (bare / run / f"plans/{paper}.json").write_text(json.dumps(plan), encoding="utf-8")
            red.save(bare / run / f"figures/{paper}/{name}.png")
    notes = kept_figures.collect(bare, kept)
    assert {p: n["run"] for p, n in notes.items()} == {
        "faps": "results", "dppower": "results/quick",
    }  # fmt: skip
    names = sorted(p.relative_to(kept).as_posix() for p in kept.rglob("*.png"))
    assert names == ["dppower/budget.png", "faps/images.png", "faps/spectra.png"]
    with image.open(kept / "faps/images.png") as small:
        assert small.size == (900, 45)
        assert np.abs(np.array(small.convert("RGB"))[20, 400] - [204, 31, 5]).max() <= 8


def test_a_quick_run_alone_does_not_replace_pictures_of_the_papers_size(docs_script, bare):
    kept_figures, image = docs_script("kept_figures"), pytest.importorskip("PIL.Image")
    kept, plan = (
        bare / "docs/gallery",
        {"title": "faps", "figures": {"images": "x"}, "judged": False},
    )
    for run, hue in (("results", (204, 31, 5)), ("results/quick", (5, 31, 204))):
        for part in ("plans", "figures/faps"):
            (bare / run / part).mkdir(parents=True, exist_ok=True)
        (bare / run / "plans/faps.json").write_text(json.dumps(plan), encoding="utf-8")
        image.new("RGB", (90, 90), hue).save(bare / run / "figures/faps/images.png")
    notes = kept_figures.collect(bare, kept)
    (bare / "results/plans/faps.json").unlink()
    assert kept_figures.collect(bare, kept) == notes and notes["faps"]["run"] == "results"
    with image.open(kept / "faps/images.png") as shown:
        assert shown.convert("RGB").getpixel((40, 40))[0] > 150


def test_the_picture_of_a_figure_that_a_run_left_out_stays_and_says_of_which_run_it_is(
    docs_script, script, bare
):
    kept_figures, kept = docs_script("kept_figures"), bare / "docs/gallery"
    image, plotting = (
        pytest.importorskip("PIL.Image"),
        pytest.importorskip("fedcore.reports.plotting"),
    )
    run = bare / "results/quick"
    shutil.copytree(kept_figures.KEPT, kept, dirs_exist_ok=True)
    notes = {"faps": {"run": "results/quick", "commit": "abc1234", "date": "2026-01-01"}}
    (kept / "run.json").write_text(json.dumps(notes), encoding="utf-8")
    before = {name: (kept / f"faps/{name}.png").read_bytes() for name in ("images", "sweeps")}
    for part in ("plans", "figures/faps"):
        (run / part).mkdir(parents=True)
    plan = {"title": "faps", "figures": {"images": "x", "sweeps": "y"}, "judged": False}
    (run / "plans/faps.json").write_text(json.dumps(plan), encoding="utf-8")
    assert list(plotting.panels(run / "figures/faps/images", [])) == []  # nothing was run
    image.new("RGB", (90, 90), (204, 31, 5)).save(run / "figures/faps/sweeps.png")
    for _ in range(2):  # of a further run without it, too
        found = kept_figures.collect(bare, kept)["faps"]
        assert found["earlier"] == {"images": notes["faps"]} and found["commit"] != "abc1234"
    assert (kept / "faps/images.png").read_bytes() == before["images"]
    assert (kept / "faps/sweeps.png").read_bytes() != before["sweeps"]
    shutil.rmtree(bare / "results")
    page = gallery_of(script, bare)
    assert page.count("kept on 2026-01-01 at commit abc1234") == 1
    assert f"kept on {found['date']} at commit {found['commit']}" in page


def test_without_results_the_gallery_says_so_and_shows_what_is_kept(script, bare):
    page = gallery_of(script, bare)
    assert "built beside no results" in page and "](factorization-fig3.png)" in page
    assert "-- results/figures/factorization/fig3.png" in page


def test_the_gallery_has_every_figure_of_the_last_run_and_its_command(script, bare):
    for folder in ("results/quick", "results"):
        plan = {"title": "A [paper]", "figures": {"one": "First", "two": "Second"}, "judged": False}
        (bare / folder / "plans").mkdir(parents=True)
        (bare / folder / "plans/faps.json").write_text(json.dumps(plan), encoding="utf-8")
        (bare / folder / "figures/faps").mkdir(parents=True)
        shutil.copy(bare / "docs/factorization-fig3.png", bare / folder / "figures/faps/one.png")
        page = gallery_of(script, bare)
        assert f"](../{folder}/figures/faps/one.png)" in page and "First." in page
        assert "two.png" not in page and "built beside no results" not in page
        assert f"-- {folder}/figures/faps/one.png" in page
        assert ("config/quick.yaml" in page) == (folder == "results/quick")


# What Sphinx reads in place of a page


def test_links_lead_where_the_site_has_what_they_name(script):
    expand = script("expand")

    def shown(text, page="docs/adding.md", file=None):
        return expand.expanded(text, ROOT / page, file and ROOT / file)

    assert shown("[c](../config/README.md#seeds)") == "[c](configuration.md#seeds)"
    assert shown("[f](../fedcore/api.py)") == "[f](../fedcore/api.py)"
    assert shown("[folder](../config/claims)") == "folder"
    assert shown("[a](https://a.b/c.md) [s](#x)") == "[a](https://a.b/c.md) [s](#x)"
    included = shown("[p](../docs/privacy.md)", "docs/configuration.md", "config/README.md")
    assert included == "[p](privacy.md)"
    code = "```python\n[x](../config/README.md)\n```"
    assert shown(code) == code


def test_diagrams_become_tables_of_their_arrows(script):
    table = script("expand").arrows(
        'flowchart LR\n  a[config/x.yaml] --> plan\n  plan --> b["h/…/c.h5"]\n  plan --> d\n'
    )
    assert "| `config/x.yaml` | `plan` |" in table and "| `plan` | `h/…/c.h5`, `d` |" in table


def test_docstrings_need_no_markup_of_sphinx(script):
    lines = ["shape (n_components_, r), |x| ≤ 1", "``|S| n_`` and `mean_` and a_b"]
    script("expand").escaped(None, "class", "x", None, None, lines)
    assert lines == ["shape (n_components\\_, r), \\|x| ≤ 1", "``|S| n_`` and `mean_` and a_b"]


# In a browser


def in_chromium(url: str, *flags: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=300).stdout


@in_a_browser
def test_search_finds_a_page_without_a_server(site):
    url = f"{(site / 'search.html').as_uri()}?q=stragglers"
    text = in_chromium(url, "--virtual-time-budget=20000", "--dump-dom")
    found = re.findall(r'<a href="([\w/.-]+\.html)[^"]*"', text.partition('id="search-results"')[2])
    assert "communication.html" in found


@in_a_browser
@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_the_window(site, width):
    pages = sorted(
        path.relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if path.parts[-2] == site.name and path.stem not in ("genindex", "py-modindex")
    )
    found = visited(site, pages, width)
    assert sorted(found) == pages
    for page, seen in found.items():
        told = "[PST]: "  # what the theme tells the console of colours and places is no error
        assert [line for line in seen["errors"] if not line.startswith(told)] == [], page
        assert seen["wide"] <= width, f"{page} is {seen['wide']} pixels wide"
