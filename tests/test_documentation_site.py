"""The documentation site: it builds without a warning, has no dead link, is searched offline."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import fedcore
from fedcore.__main__ import main
from fedcore.algorithms import names
from fedcore.reports import tables
from printed import ROOT
from site_pages import BROWSER, FLAGS, in_a_browser, visited

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


# Which method when


def test_the_choices_are_those_of_the_kept_tables(tool):
    methods = tool("../docs/site/methods")
    results, ranks = (tables.read(methods.KEPT / f"{name}.tsv") for name in ("results", "ranks"))
    rows = methods.first_choices(results, ranks)
    assert len(rows) > 6
    for row in rows:
        places: dict[str, list[int]] = {}
        for r in ranks:
            if (r["privacy"], str(r["budget"])) == (row["guarantee"], str(row["rounds"])):
                places.setdefault(r["method"], []).append(int(r["rank"]))
        best = re.search(r"`(\w+)`", row["take"])[1]
        assert statistics.mean(places[best]) == min(map(statistics.mean, places.values()))
        errors = [float(r[f"error_{row['rounds']}"]) for r in results if r["method"] == best]
        assert row["median error"] == f"{statistics.median(errors):.2g}"


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
