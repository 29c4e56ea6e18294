"""What fingerprints keep of fedcore's code in a file never makes them stale."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fedcore

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from fedcore.experiments import fingerprint
assert fingerprint.__file__.startswith(sys.argv[1])
if len(sys.argv) > 2:
    from fedcore.repro.plan.parsed_sources import keep_in
    kept = keep_in(sys.argv[2])
code = ["fedcore.experiments.repeats", "fedcore.algorithms.ssi"]
print(json.dumps([fingerprint.fingerprint(*code), fingerprint.parts(*code)]))
if len(sys.argv) > 2:
    kept.save()
"""


@pytest.fixture
def copied(tmp_path):
    """Return the folder of a copy of fedcore that may be edited."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(fedcore.__file__).parent, tmp_path / "fedcore", ignore=ignore)
    return tmp_path


def read(copied: Path, *kept: Path) -> list:
    """Return what a new process finds."""
    call = [sys.executable, "-c", SCRIPT, str(copied), *map(str, kept)]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=copied)
    return json.loads(done.stdout)


def test_a_damaged_file_is_made_again_and_one_that_cannot_be_written_is_passed(copied, tmp_path):
    kept = tmp_path / "code.json"
    plain = read(copied, kept)
    whole = kept.read_bytes()
    for damaged in (b"", whole[:5000], whole.replace(b"ssi", b"isi"), b"\xff\n{}"):
        kept.write_bytes(damaged)
        assert read(copied, kept) == plain
        assert kept.read_bytes() == whole
    kept.unlink()
    kept.mkdir()
    assert read(copied, kept) == plain
