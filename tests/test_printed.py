"""Every block that a page prints is run; or parsed, where the page says why it is not run."""

from __future__ import annotations

import doctest
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from fedcore.__main__ import main
from printed import PARSERS, ROOT, Block, blocks, pages, parsed, require_output, session

PAGES = [page for page in pages() if blocks(page)]
# Blocks that a test of their own runs, with more to say of them than that they run.
ELSEWHERE = {
    ("README.md", "python"): "test_readme.py",
    ("README.md", "console"): "test_readme.py",
    ("docs/tutorial.md", "console"): "test_tutorial.py",
}
NEEDS = {"docs/networks.md": "torch"}
OF_SPHINX = (
    "{include}",
    "{literalinclude}",
    "{made}",
    "{toctree}",
    "mermaid",
)  # building the site runs these


def drawn(code: str) -> bool:
    """Whether a block is a picture of letters, in which no line is a command."""
    words = [line.split() for line in code.splitlines() if line.strip()]
    return bool(words) and not any(w[0] in ("$", ">>>", *PARSERS) for w in words)


HELD = {"toml": tomllib.loads, "yaml": yaml.safe_load, "text": drawn}


def clients() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [5.0 + rng.standard_normal((40, 12)) * 0.6 ** np.arange(12) for _ in range(4)]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_prints_runs_in_its_order(page, tmp_path, monkeypatch):
    if (package := NEEDS.get(named(page))) is not None:
        pytest.importorskip(package, reason="networks need PyTorch, the extra deep")
    monkeypatch.chdir(tmp_path)
    scope: dict = {"clients": clients()}
    for block in blocks(page):
        if block.language in OF_SPHINX or (block.page, block.language) in ELSEWHERE:
            continue
        if block.dry is None:
            run(block, scope)


def run(block: Block, scope: dict) -> None:
    """Run a block in the present folder."""
    if block.language == "python":
        exec(compile(block.code, str(block), "exec"), scope)
    elif block.language == "pycon":
        test = doctest.DocTestParser().get_doctest(block.code, scope, str(block), block.page, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        said: list[str] = []
        assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
        scope |= test.globs
    elif block.language == "console":
        for words, printed in session(block):
            assert words[0] == "fedcore", f"{block}: say why {words} is not run, or run it"
            done = CliRunner().invoke(main, words[1:])
            assert done.exit_code == 0, (str(block), words, done.output)
            require_output(block, words, printed, done.stdout)
    else:
        assert block.language in HELD, f"{block}: nothing runs a block of '{block.language}'"
        assert HELD[block.language](block.code)


@pytest.mark.parametrize("block", [b for p in PAGES for b in blocks(p) if b.dry], ids=str)
def test_what_is_not_run_is_at_least_understood(block):
    assert block.language == "console" and len(block.dry) > 10
    for words, _ in session(block):
        parsed(words)
