"""The documentation site: it builds without a warning, has no dead link, is searched offline."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from printed import ROOT

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


# Which method when


# In a browser
