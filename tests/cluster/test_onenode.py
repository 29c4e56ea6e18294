"""Where there can be no SLURM, one sentence says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import onenode


def test_without_programs_and_apt_one_sentence_says_what_is_missing(tmp_path):
    script = Path(onenode.__file__)
    done = subprocess.run(
        [sys.executable, script, "--accounting"], env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "slurmctld" in done.stderr and "mariadbd" in done.stderr and "munge" in done.stderr


def test_a_slurm_of_the_machine_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(onenode, "ETC", tmp_path / "etc")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "slurm.conf").write_text("ClusterName=real\n")
    with pytest.raises(onenode.CannotError, match=r"slurm\.conf exists: this machine has a SLURM"):
        onenode.OneNode(tmp_path / "node").__enter__()
    assert (tmp_path / "etc" / "slurm.conf").read_text() == "ClusterName=real\n"


def test_only_root_starts_daemons(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(onenode.CannotError, match="run them as root"):
        onenode.OneNode(tmp_path).__enter__()
    assert not list(tmp_path.iterdir())


def test_a_link_of_a_test_that_was_killed_is_replaced(tmp_path, monkeypatch):
    etc, dead = tmp_path / "etc", tmp_path / "dead"
    monkeypatch.setattr(onenode, "ETC", etc)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(onenode.OneNode, "_start", lambda self: None)
    etc.mkdir()
    (etc / "slurm.conf").symlink_to(dead / "slurm.conf")
    with onenode.OneNode(tmp_path / "node", cpus=4, min_job_age=9):
        text = (etc / "slurm.conf").read_text()
    assert "CPUs=4 " in text and "MinJobAge=9\n" in text and "accounting_storage/none" in text
    assert not list(etc.iterdir())
