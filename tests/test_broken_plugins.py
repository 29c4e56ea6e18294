"""Broken plug-ins of other packages are named with the reason, and nothing else is in their way."""

from __future__ import annotations

import subprocess
import sys

import pytest

PARTS = "from dataclasses import dataclass\n\ndef run(*a): ...\ndef communication(*a): ...\n"
PARAMS = "@dataclass(frozen=True)\nclass Params:\n    n_components: int\n    start: object = None\n"
BROKEN = {
    "syntax": ("def run(:\n", "SyntaxError: invalid syntax"),
    "absent": (
        "import no_such_package\n",
        "ModuleNotFoundError: No module named 'no_such_package'",
    ),
    "ending": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "no_paper": (PARTS + PARAMS, "broken_no_paper has no PAPER"),
    "wrong_paper": (PARTS + PARAMS + "PAPER = 7\n", "PAPER of broken_wrong_paper is 7"),
    "no_shape": ("", "has no PAPER and no Params and no run and no communication"),
    "no_params": (PARTS + "PAPER = 'x'\nParams = 3\n", "has no n_components and no start"),
    "no_task": (PARTS + PARAMS + "PAPER = 'x'\nTASK = 'magic'\n", "unknown TASK 'magic'"),
}
ENTRIES = """
ssi = one_that_is_hidden
[fedcore.metrics]
bad = broken_syntax
none = broken_no_paper
[fedcore.generators]
bad = broken_absent
[fedcore.datasets]
bad = broken_ending:load
"""


@pytest.fixture
def fedcore_(tmp_path, installed):
    """Run a command of fedcore beside a package whose every plug-in is broken."""
    for name, (source, _) in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(source)
    algorithms = "".join(f"{name} = broken_{name}\n" for name in BROKEN)
    installed(tmp_path, "broken", f"[fedcore.algorithms]\ngone = not_there\n{algorithms}{ENTRIES}")

    def call(*words):
        start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        code = f"{start}from fedcore.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return call


def test_the_lists_name_each_with_its_reason_and_go_on(fedcore_):
    done = fedcore_("algorithms")
    assert done.returncode == 0 and "block_krylov" in done.stdout
    for name, (_, reason) in BROKEN.items():
        (line,) = (line for line in done.stderr.splitlines() if f"'{name}'" in line)
        assert line.startswith("Warning: ") and reason in line
    assert "algorithm 'gone' cannot be imported from not_there" in done.stderr
    hidden = "Warning: entry point fedcore.algorithms: 'ssi' = one_that_is_hidden is ignored: fedc"
    assert hidden in done.stderr and "UserWarning" not in done.stderr
    done = fedcore_("metrics")
    assert done.returncode == 0 and "subspace_distance" in done.stdout
    assert "Warning: metrics 'bad': " in done.stderr and "metrics 'none': " in done.stderr
    done = fedcore_("generators")
    assert done.returncode == 0 and "low_rank" in done.stdout
    assert "Warning: generator 'bad' cannot be imported from broken_absent" in done.stderr
    done = fedcore_("datasets")
    assert done.returncode == 0 and "w8a" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("bad "))
    assert line.split()[1] == "broken", line
    assert (
        "Warning: data set 'bad': broken_ending:load cannot be imported: SystemExit: 3"
        in done.stderr
    )


def test_methods_that_are_whole_run_and_broken_ones_end_in_a_sentence(fedcore_):
    done = fedcore_("run", "one_shot", "w8a", "--components", "2", "--surrogate")
    assert done.returncode == 0, done.stderr
    for words, reason in (
        (("run", "no_paper", "w8a", "--components", "2", "--surrogate"), "has no PAPER"),
        (("run", "one_shot", "bad", "--components", "2"), "cannot be imported"),
        (("check", "syntax"), "SyntaxError"),
    ):
        done = fedcore_(*words)
        assert done.returncode == 1, words
        assert reason in done.stdout + done.stderr, (words, done.stdout, done.stderr)


def test_the_doctor_lists_them_all(fedcore_):
    done = fedcore_("doctor")
    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if line.startswith("broken")]
    assert len([line for line in broken if "of the package broken: " in line]) == len(BROKEN) + 5


SKEWED = (
    PARTS.replace("def run(*a): ...\n", "")
    + PARAMS
    + """PAPER = "x"

def run(federation, params, rng, record):
    Z = 3.0 * rng.standard_normal((federation.shape.n_features, params.n_components))
    record(0, basis=Z)
    return {"basis": Z}
"""
)


def test_a_basis_that_is_not_orthonormal_ends_in_a_sentence(tmp_path, installed):
    (tmp_path / "skewed.py").write_text(SKEWED)
    installed(tmp_path, "skew", "[fedcore.algorithms]\nskewed = skewed\n")
    code = f"""import sys; sys.path.insert(0, {str(tmp_path)!r})
from fedcore.cli import main; main()"""
    for words in (
        ("run", "skewed", "w8a", "--components", "2", "--surrogate", "--out", "skewed.h5"),
        ("compare", "skewed", "w8a", "--components", "2", "--surrogate"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert "Error: skewed returns a basis whose columns are not orthonormal" in done.stderr
    assert not (tmp_path / "skewed.h5").exists()
    code = f"""import sys; sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, fedcore
fedcore.FederatedPCA(2, algorithm="skewed").fit(np.eye(5))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "InputError: skewed returns a basis whose columns are not orthonormal" in done.stderr
