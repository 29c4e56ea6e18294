"""What `make test-readme` runs, and that it notices failures; the run itself takes minutes."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from fresh_readme import INSTEAD, Command, Shell, commands, of_page, run
from printed import ROOT, Block, parsed, session

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FOUND = [command.line for command in commands(TEXT)]


def test_every_command_of_readme_is_found_in_its_order():
    assert len(FOUND) == len(set(FOUND)) > 25
    order = ["make quickstart", "make docs", "pip install .", "fedcore show run.h5",
             "make cluster && . .venv/bin/activate"]  # fmt: skip
    places = [FOUND.index(line) for line in order]
    assert places == sorted(places)
    assert sum(line.startswith("mpiexec") for line in FOUND) == 1


def test_the_tutorial_is_run_as_it_is_printed():
    found = [command.line for command in of_page("docs/tutorial.md")]
    assert found[2].startswith("pip install '.[") and not set(found) & set(INSTEAD)
    assert len(found) == 8
    for line in (line for line in found if line.startswith("fedcore")):
        for words, _ in session(Block("docs/tutorial.md", 1, "console", f"$ {line}\n", None)):
            parsed(words)


def test_what_stands_in_for_a_command_has_a_reason_and_a_command():
    assert set(INSTEAD) <= set(FOUND) | {"make test-readme"}
    assert all(len(why) > 10 for _, why in INSTEAD.values())


@pytest.mark.parametrize("line", [line for line in FOUND if line not in INSTEAD])
def test_what_runs_as_printed_is_no_placeholder(line):
    for words, _ in session(Block("README.md", 1, "console", f"$ {line}\n", None)):
        parsed(words)


def test_commands_of_blocks_and_prose_are_told_apart():
    text = (
        "<!-- `make hidden` -->\nUse `make docs` and `fedcore\nshow run.h5`, `x.y`, or `make`.\n\n"
        "```console\n$ make docs  # pages\n...\n$ fedcore run ssi\\\n w8a\n```\n\n"
        "```text\n$ make nothing\n```\n\n`make help`, then `make help`\n"
    )
    assert commands(text) == [
        Command("fedcore show run.h5", in_prose=True),
        Command("make docs"),
        Command("fedcore run ssi  w8a"),
        Command("make help", in_prose=True),
    ]


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_a_shell_keeps_what_a_line_sets_and_tells_what_fails(tmp_path, capsys):
    shell = Shell(tmp_path, tmp_path / "output")
    assert shell.run("cd / && here=kept")[0] == 0
    status, seconds, output = shell.run("pwd; echo $here; cat  # nothing to read")
    assert (status, output) == (0, "/\nkept\n") and 0 <= seconds < 60
    assert run(shell, Command("make no-such-target -f /dev/null")) is True
    said = capsys.readouterr().out
    assert "$ make no-such-target" in said and "FAILED, " in said and "No rule" in said
    assert run(shell, Command("true")) is False


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_data_that_cannot_be_had_are_said_and_stood_in_for(tmp_path, capsys):
    fetch = tmp_path / "fetch"
    fetch.write_text('case "$*" in *--surrogate) ;; *) echo could not be downloaded; exit 1;; esac')
    shell = Shell(tmp_path, tmp_path / "output")
    assert run(shell, Command(f"sh {shlex.quote(str(fetch))} w8a")) is False
    assert "its data could not be downloaded" in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_shell_knows_nothing_of_the_tests_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    shell = Shell(tmp_path, tmp_path / "output")
    _, _, output = shell.run('echo "[$MAKEFLAGS$PYTHONPATH$VIRTUAL_ENV]"; echo "$PATH"')
    rest, path = output.splitlines()
    assert rest == "[]" and str(Path(sys.prefix) / "bin") not in path.split(os.pathsep)
