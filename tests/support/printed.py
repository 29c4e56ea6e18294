"""Blocks of code that pages print: what they are, and how the tests run them.

A block that cannot be run has a comment below it, which no reader sees: ``<!-- dry: reason -->``.
The commands of such a block are parsed by the program that they call, and not run.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from snakemake.cli import get_argument_parser

from fedcore.__main__ import main
from processes import program, python

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<fence>```+)(?P<language>\S*)[^\n]*\n(?P<code>.*?)^(?P=fence)[ \t]*$"
    r"(?:\n+<!-- dry: (?P<dry>.+?) -->$)?",
    re.M | re.S,
)
CHECKER = doctest.OutputChecker()
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BUILTIN = {".", "cd", "export"}  # of the shell: they leave nothing to check


@dataclass(frozen=True)
class Block:
    """A block of a page; `dry` is the reason why it is not run."""

    page: str
    line: int
    language: str
    code: str
    dry: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """All pages that people read; the site shows them, too, but for README."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    folders = ("config", "data", "benchmarks", "examples/plugin")
    others = [ROOT / name / "README.md" for name in folders]
    papers = sorted(ROOT.glob("papers/*/README.md"))
    return [*top, *others, *papers, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    return [
        Block(
            name, text[: m.start()].count("\n") + 1, m["language"], m["code"],
            m["dry"] and " ".join(m["dry"].split()),
        )
        for m in BLOCK.finditer(text)
    ]  # fmt: skip


def session(block: Block) -> Iterator[tuple[list[str], str]]:
    """Yield the words of every command of a console block, and the output printed below it."""
    for line, output in typed(block.code):
        *before, last = _commands(line)
        yield from ((words, "") for words in before)
        yield last, output


def typed(code: str) -> Iterator[tuple[str, str]]:
    """Yield every line that is typed in a console, and the output printed below it."""
    for part in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.M):
        if part.strip():
            line, _, output = part.partition("\n")
            yield line, output


def _commands(line: str) -> list[list[str]]:
    """Split a line at every ``&&``."""
    words = shlex.split(line, comments=True)
    found: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            found.append([])
        else:
            found[-1].append(word)
    return found


def require_output(block: Block, words: list[str], printed: str, got: str) -> None:
    """Fail if a command does not print what the page says; ``...`` stands for anything."""
    if printed.strip() and not CHECKER.check_output(printed, got, LOOSE):
        raise AssertionError(f"{block}, {shlex.join(words)}: it prints\n{got}\nand not\n{printed}")


def parsed(words: list[str]) -> None:
    """Fail if a program would not take these words; nothing is run."""
    program, *rest = words
    if program not in BUILTIN:
        PARSERS[program](rest)


def _mpiexec(words: list[str]) -> None:
    option, number, *program = words
    assert option == "-n" and number.isdigit()
    parsed(program)


def _make(words: list[str]) -> None:
    program("make", "-n", *words, cwd=ROOT)


def _snakemake(words: list[str]) -> None:
    options = get_argument_parser().parse_args(words)
    named = [*(options.configfile or []), *filter(None, [options.workflow_profile])]
    missing = [str(name) for name in named if not (ROOT / name).exists()]
    assert not missing, f"not there: {missing}"


def _fedcore(words: list[str]) -> None:
    command: click.Command = main
    while isinstance(command, click.Group):
        name, *words = words
        assert name in command.commands, f"no command {name}"
        command = command.commands[name]
    command.make_context(command.name, words)


def _pip(words: list[str]) -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert words[0] == "install" and len(words) == 2, words
    extras = re.search(r"\[(.*)\]$", words[1])
    known = settings["project"]["optional-dependencies"]
    assert not extras or set(extras[1].split(",")) <= set(known), words


def _git(words: list[str]) -> None:
    assert words[0] == "clone", words


def _pytest(words: list[str]) -> None:
    named = [word for word in words if word.startswith("tests")]
    assert named and all((ROOT / name).exists() for name in named), words


def _python(words: list[str]) -> None:
    """Hold the options of a script of the repository against those that it has."""
    if words[:2] == ["-m", "venv"]:
        return
    python(*words, "--help", cwd=ROOT)


PARSERS: dict[str, Callable[[list[str]], None]] = {
    "mpiexec": _mpiexec,
    "make": _make, "snakemake": _snakemake, "fedcore": _fedcore, "pip": _pip, "git": _git,
    "pytest": _pytest, "python": _python, "python3": _python,
}  # fmt: skip
