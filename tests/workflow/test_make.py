"""`make` says in a sentence what stops it before the first job, and the way out, which works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.conftest import BREAKS

ENVIRONMENT = Path(sys.prefix)
TINY = "--configfile tiny.yaml"
DRY = f"{TINY} -n"
MAKE = pytest.mark.skipif(not shutil.which("make"), reason="needs make")
pytestmark = MAKE


def make(checkout, *words, snakemake=TINY, **environment):
    """Run `make` with the environment that runs this test, which it does not touch."""
    ready = ENVIRONMENT / ".fedcore-ready"
    command = ["make", "-o", str(ready), f"VENV={ENVIRONMENT}", "CORES=1", *words]
    done = subprocess.run(
        [*command, f"SNAKEMAKE_ARGS={snakemake}"], cwd=checkout.root,
        env=checkout.environment | environment, text=True, timeout=1200,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, " ".join(done.stdout.split())


def stopped(checkout, *says, words=("reproduce",), **options):
    """Require that make fails, without a traceback, and says this."""
    status, text = make(checkout, *words, **options)
    assert status != 0
    assert "Traceback" not in text
    for part in says:
        assert part in text
    return text


@pytest.mark.parametrize("target", ["quickstart", "reproduce"])
def test_an_unknown_paper(pristine, target):
    text = stopped(pristine, "'tinny'", "'tiny'", words=(target, "PAPERS=tinny"), snakemake=DRY)
    assert "quick run" not in text


def test_the_lock_of_a_killed_run(done):
    """As `kill -9` leaves it; tests/workflow/test_kills.py goes on from there."""
    (done.root / "results/tiny/verdicts.tsv").unlink()
    locks = done.root / ".snakemake/locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text("results/tiny/verdicts.tsv\n")
    stopped(done, "--unlock")


@pytest.mark.parametrize(
    ("name", "executor"),
    [("slurm", "slurm"), ("lsf", "lsf"), ("kubernetes", "cluster-generic")],
)
def test_a_plugin_that_is_missing_is_named_with_the_command_that_installs_it(
    pristine, tmp_path, name, executor
):
    plugin = f"snakemake_executor_plugin_{executor.replace('-', '_')}"
    (tmp_path / f"{plugin}.py").write_text("raise ImportError\n")  # also where it is installed
    text = stopped(
        pristine, f"-m pip install snakemake-executor-plugin-{executor}",
        words=("reproduce", f"PROFILE=workflow/profiles/{name}"), snakemake="-n",
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(pristine.root)]),
    )  # fmt: skip
    assert "invalid choice" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [(("reproduce", "PROFILE=slurm"), "workflow/profiles/slurm"), (("decide",), "HOURS=3")],
)
def test_what_a_run_lacks_is_said_before_an_environment_is_made(pristine, tmp_path, words, says):
    none = (f"VENV={tmp_path}/none", "PYTHON=none")
    assert "tried: none" not in stopped(pristine, says, words=(*words, *none))


def test_targets_reach_snakemake(pristine):
    """Papers by their names, and whatever else Snakemake takes."""
    for words, options in (
        (("PAPERS=factorization fedpower",), "-n"),
        ((), "factorization fedpower -n"),
    ):
        status, text = make(pristine, "reproduce", *words, snakemake=options)
        assert status == 0, text
        assert "tables_factorization" in text and "tables_fedpower" in text
        assert "tables_faps" not in text and ("report" in text) == bool(words)
    status, text = make(pristine, "quickstart", "PAPERS=tiny", snakemake=DRY)
    assert status == 0 and "tables_tiny" in text and "report" in text


def test_a_failed_job_is_named_with_its_log(done):
    bug = "\n\ndef broken(*_):\n    raise ValueError('oops')\n"
    done.append("fedcore/algorithms/wk2023.py", bug + BREAKS)
    status, text = make(done, "reproduce")
    assert status != 0
    assert "run_wk2023" in text and "ValueError: oops" in text
    assert "results/tiny/logs/run/tiny/first/wk2023/" in text.replace(" ", "")
