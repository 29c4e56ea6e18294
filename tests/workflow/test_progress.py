"""A quiet run shows a bar and the end; one that fails shows the ends of the logs."""

from __future__ import annotations

import os
import time

from fedcore.experiments import forking, progress


def test_a_quiet_run_is_a_bar_and_its_end(done):
    done.append("fedcore/history.py", "\nEDITED = True\n")
    run = done.snakemake("--quiet", "all")
    assert run.status == 0, run.text
    lines = run.text.replace("\r", "\n").splitlines()
    assert len([line for line in lines if line.strip()]) < 40
    (full, *_) = [line for line in lines if "100%" in line]
    assert "job/s" in full or "s/job" in full
    assert any(line.startswith("To run: 6 cells, about") for line in lines)
    assert lines[-1].startswith("To look at: ") and lines[-1].endswith("report/index.html")
    assert any(line.startswith("tiny: 1 reproduced") for line in lines)
    logs = (done.root / ".snakemake/log").glob("*.log")
    said = max(logs, key=lambda log: log.stat().st_mtime).read_text(encoding="utf-8")
    assert "rule report:" in said and "reason: " in said


def test_a_quiet_run_that_fails_says_where(done):
    done.append("fedcore/algorithms/wk2023.py", "\n\ndef run(*_):\n    raise ValueError('oops')\n")
    run = done.snakemake("--quiet", "all")
    assert run.status != 0
    said = run.text.replace("\r", "\n")
    assert "Not finished: results/tiny/logs/run/tiny/first/wk2023/" in said
    assert "  ValueError: oops" in said
    bar = said.partition("Not finished: ")[0]  # nothing else breaks into it
    assert "Traceback" not in bar and "ForkServerProcess" not in bar and "oops" not in bar


def test_only_logs_of_this_run_are_told(tmp_path):
    for name, text in (("old", "before"), ("new", "\n".join(map(str, range(20))))):
        (tmp_path / name).write_text(text + "\n")
    os.utime(tmp_path / "old", (1, 1))
    logs = [str(tmp_path / name) for name in ("old", "new", "none")]
    said = progress.failures(logs, time.time() - 60).splitlines()
    assert said[0].endswith("new ends with") and said[1:] == [f"  {i}" for i in range(12, 20)]
    assert progress.failures([], 0.0) == ""


def test_the_bar_counts_what_is_left(capsys, monkeypatch):
    left = [4]
    monkeypatch.setattr(forking, "_RUNNING", {"results/logs/run/p/e/ssi/x-default.log"})
    bar = progress.Bar(lambda: left[0], every=0.001)
    bar.start()
    left[0] = 1
    time.sleep(0.2)
    bar.end()
    said = capsys.readouterr().err
    assert "3/4" in said and "ssi/x-default" in said
    assert not bar.is_alive()


def test_pages_that_do_not_show_a_run_are_not_called_its_own(done):
    done.edit("fedcore/algorithms/wk2023.py", "def run(", "def run_(*_):\n    pass\n\n\ndef run(")
    run = done.snakemake("tiny")
    assert run.status == 0, run.text
    asked = "snakemake --config papers='[tiny]' makes it anew."
    assert f"It does not show this run of tiny: {asked}" in run.text
    assert (
        "It does not show" not in done.snakemake("--force", "results/tiny/report/index.html").text
    )
