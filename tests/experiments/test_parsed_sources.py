"""What fingerprints keep of fedcore's code in a file, and when they read it again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fedcore

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from fedcore.experiments import fingerprint, sources
assert fingerprint.__file__.startswith(sys.argv[1])
if len(sys.argv) > 2:
    fingerprint.keep_in(sys.argv[2], write=True)
parsed, read = sources.parsed, []
sources.parsed = lambda text, what: read.append(what.as_posix()) or parsed(text, what)
code = ["fedcore.experiments.cell", "fedcore.algorithms.ssi"]
found = fingerprint.fingerprint(*code), fingerprint.parts(*code)
print(json.dumps([found, sorted(set(read))]))
"""


@pytest.fixture
def copied(tmp_path):
    """Return the folder of a copy of fedcore that may be edited."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(fedcore.__file__).parent, tmp_path / "fedcore", ignore=ignore)
    return tmp_path


def read(copied: Path, kept: Path | None = None) -> tuple[list, list[str]]:
    """Return what a new process finds, and the files below fedcore/ that it parses for that."""
    call = [sys.executable, "-c", SCRIPT, str(copied), *([] if kept is None else [str(kept)])]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=copied)
    found, files = json.loads(done.stdout)
    return found, [os.path.relpath(file, copied / "fedcore") for file in files]


def test_what_is_kept_is_what_is_read(copied, tmp_path):
    kept = tmp_path / "notes" / "code.json"
    plain, files = read(copied)
    assert len(files) > 30
    assert read(copied, kept) == (plain, files)
    assert read(copied, kept) == (plain, [])  # none is read again


@pytest.mark.parametrize(
    ("path", "text", "again"),
    [
        ("algorithms/ssi.py", "\nADDED = 1\n", ["algorithms/ssi.py"]),
        ("algorithms/wk2023.py", "\nADDED = 1\n", []),  # not used
        ("metrics/__init__.py", "\nADDED = 1\n", None),  # may say what another's import is
        ("experiments/sources.py", "\nADDED = 1\n", None),
        ("algorithms/new.py", "", None),
    ],
)
def test_what_has_changed_is_read_again(copied, tmp_path, path, text, again):
    kept = tmp_path / "code.json"
    _, files = read(copied, kept)
    with open(copied / "fedcore" / path, "a") as file:
        file.write(text)
    found, read_again = read(copied, kept)
    assert found == read(copied)[0]
    assert [f for f in read_again if again is None or not f.endswith("__init__.py")] == (
        files if again is None else again
    )


def test_a_damaged_file_is_made_again(copied, tmp_path):
    kept = tmp_path / "code.json"
    plain, files = read(copied, kept)
    whole = kept.read_bytes()
    for damaged in (b"", whole[:5000], whole.replace(b"ssi", b"isi"), b"\xff\n{}"):
        kept.write_bytes(damaged)
        assert read(copied, kept) == (plain, files)
        assert kept.read_bytes() == whole


def test_a_file_that_cannot_be_written_is_passed(copied, tmp_path):
    (tmp_path / "code.json").mkdir()
    assert read(copied, tmp_path / "code.json")[0] == read(copied)[0]
