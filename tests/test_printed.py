"""Every block that a page prints is run; or parsed, where the page says why it is not run."""

from __future__ import annotations

import doctest
import re
import subprocess
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from markdown_it import MarkdownIt
from printed import BUILTIN, PARSERS, ROOT, Block, blocks, pages, parsed, require_output, session

from fedcore.cli import main

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


def test_blocks_that_are_run_elsewhere_are_there():
    for (page, language), file in ELSEWHERE.items():
        assert [b for b in blocks(ROOT / page) if b.language == language], page
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert Path(page).name in text and language in text
    for block in blocks(ROOT / "README.md"):
        if block.language == "console" and block.dry is None:
            programs = {words[0] for words, _ in session(block)}
            assert programs <= {"fedcore", *BUILTIN}, f"{block}: say why it is not run"


def test_no_fence_is_overlooked():
    for page in pages():
        text = page.read_text(encoding="utf-8")
        fences = re.findall(r"^[ \t]*(?:```|~~~)", text, re.M)
        assert len(fences) == 2 * len(blocks(page)), f"{named(page)}: an open or an indented fence"


def indented(text: str) -> list[str]:
    """Return the indented blocks of code: no test can know their language."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [token.content for token in tokens if token.type == "code_block"]


def test_no_block_of_code_is_indented():
    for page in pages():
        assert indented(page.read_text(encoding="utf-8")) == [], f"{named(page)}: put it in a fence"
    assert indented("Text\n\n    make bench\n\n* item\n\n      code\n") == [
        "make bench\n",
        "code\n",
    ]
    assert indented("* item\n\n    of two parts\n\n```console\n    $ x\n```\n") == []


def test_every_page_of_the_repository_is_looked_at():
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {named(page) for page in pages()} >= set(listed.stdout.split())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("make docs", "make doks"),
        ("fedcore run ssi a.csv --components 2", "fedcore run ssi a.csv --componnts 2"),
        ("fedcore doctor", "fedcore docter"),
        ("pip install '.[privacy]'", "pip install '.[secrecy]'"),
        (
            "snakemake --workflow-profile workflow/profiles/slurm",
            "snakemake --workflow-profile workflow/profiles/slum",
        ),
        ("snakemake -n --cores 2", "snakemake --kores 2"),
        (
            "python benchmarks/bench_mpi.py --size 9",
            "python benchmarks/bench_mpi.py --sizes 9",
        ),
    ],
)
def test_a_misspelt_command_is_noticed(words, wrong):
    def block(line):
        return Block("p.md", 1, "console", f"$ {line}\n", "a reason")

    for good, _ in session(block(words)):
        parsed(good)
    with pytest.raises((AssertionError, SystemExit, click.UsageError)):
        for bad, _ in session(block(wrong)):
            parsed(bad)


def test_wrong_output_and_failing_code_are_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    console = "$ fedcore --version\nfedcore, version 99\n"
    with pytest.raises(AssertionError, match="it prints"):
        run(Block("p.md", 1, "console", console, None), {})
    with pytest.raises(AssertionError, match="say why"):
        run(Block("p.md", 1, "console", "$ rm x\n", None), {})
    with pytest.raises(AssertionError, match="Expected"):
        run(Block("p.md", 1, "pycon", ">>> 1 + 1\n3\n", None), {})
    with pytest.raises(AssertionError, match="nothing runs"):
        run(Block("p.md", 1, "perl", "1;\n", None), {})
    with pytest.raises(AssertionError):
        run(Block("p.md", 1, "text", "a ──▶ b\nmake x\n", None), {})
    with pytest.raises(ZeroDivisionError):
        run(Block("p.md", 1, "python", "1 / 0\n", None), {})
