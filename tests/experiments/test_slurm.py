"""What is asked of SLURM, by programs that stand in for its own."""

from __future__ import annotations

import pytest

from fedcore.experiments import slurm

PROGRAMS = {
    "sacct": "exit $(cat accounting)",
    "scontrol": 'echo "MessageTimeout = 10 sec"; echo "MinJobAge               = $(cat age) sec"',
    "squeue": "cat queue",
    "scancel": 'echo "$@" > cancelled; sed "/other-run/!d" queue > rest; mv rest queue',
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A folder with SLURM's programs, and nothing but the system's in the path beside it."""
    for name, body in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "queue").touch()
    (tmp_path / "age").write_text("300")
    (tmp_path / "accounting").write_text("1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    caches = (slurm.has_accounting, slurm.status_command, slurm.seconds_between_looks)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


@pytest.mark.fault(
    "cluster",
    "a program of SLURM that fails or is not there",
    told="… sacct does not answer …",
)
def test_squeue_is_asked_where_sacct_does_not_answer(cluster, capsys):
    assert slurm.status_command() == "squeue"
    assert "sacct does not answer" in capsys.readouterr().err


@pytest.mark.fault(
    "cluster",
    "a SLURM without accounting that forgets jobs soon after their end",
    told="… SLURM's MinJobAge should be 300 seconds and is …",
)
@pytest.mark.parametrize(
    ("age", "short"), [("0", True), ("30", True), ("180", True), ("300", False)]
)
def test_a_cluster_that_forgets_too_soon_is_told_of(cluster, capsys, age, short):
    """Snakemake's plugin waits up to 180 s between two looks."""
    (cluster / "age").write_text(age)
    assert slurm.status_command() == "squeue"
    said = f"SLURM's MinJobAge should be 300 seconds and is {age}: " in capsys.readouterr().err
    assert said == short


def test_sacct_is_asked_where_it_answers(cluster, capsys):
    (cluster / "accounting").write_text("0")
    assert slurm.status_command() == "sacct" and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("age", "accounting", "seconds"),
    [("300", "1", 20), ("30", "1", 10), ("2", "1", 1), ("30", "0", 20), ("0", "1", 20)],
)
def test_jobs_are_looked_at_before_they_are_forgotten(cluster, age, accounting, seconds):
    (cluster / "age").write_text(age)
    (cluster / "accounting").write_text(accounting)
    assert slurm.seconds_between_looks() == seconds


def test_only_the_jobs_of_the_killed_run_are_cancelled(cluster):
    jobs = ["11|RUNNING|fedcore-a_1", "12|PENDING|fedcore-a_1", "13|RUNNING|other-run"]
    (cluster / "queue").write_text("\n".join(jobs) + "\n")
    assert slurm.cancel_jobs_of([]) == "" == slurm.cancel_jobs_of(["fedcore-b"])
    said = slurm.cancel_jobs_of(["fedcore-a"])
    assert said == "The killed run had left 2 jobs in the queue (1 running): cancelled."
    assert (cluster / "cancelled").read_text().split() == ["11", "12"]


@pytest.mark.fault(
    "cluster",
    "a job of a killed run that cannot be cancelled",
    told="… Still there: …",
)
def test_what_stays_is_named(cluster, monkeypatch):
    monkeypatch.setattr(slurm, "PATIENCE", 0.1)
    (cluster / "scancel").write_text("#!/bin/sh\n")
    (cluster / "queue").write_text("11|RUNNING|fedcore-a_1\n")
    assert slurm.cancel_jobs_of(["fedcore-a"]).endswith("Still there: 11.")


@pytest.mark.fault("cluster", "a program of SLURM that fails or is not there")
def test_without_slurm_nothing_is_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert slurm.cancel_jobs_of(["fedcore-a"]) == ""
