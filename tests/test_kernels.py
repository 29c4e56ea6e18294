from __future__ import annotations

import ast
import subprocess
import sys

import kernels
import pytest
import threadpoolctl

OPENBLAS = [x for x in threadpoolctl.threadpool_info() if x["internal_api"] == "openblas"]


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets what OpenBLAS takes, by what it is told, on a made-up machine."""

    def set_up(cores: dict) -> list:
        asked, ran = [], []
        monkeypatch.setattr(kernels, "taken", lambda name: asked.append(name) or cores.get(name))
        monkeypatch.setattr(
            kernels, "run", lambda kernel, threads, arguments: ran.append((kernel, threads)) or 0
        )
        return [asked, ran]

    return set_up


# Zen is Haswell by another name, a CPU without AVX-512 dies of SkylakeX, two libraries may differ.
OLD_CPU = {
    None: ("Haswell", "Haswell"),
    "Prescott": ("Katmai", "Prescott"),
    "Nehalem": ("Nehalem", "Haswell"),
    "Sandybridge": ("Sandybridge", "Sandybridge"),
    "Haswell": ("Haswell", "Haswell"),
    "Zen": ("Haswell", "Haswell"),
    "SkylakeX": None,
}


def test_every_other_kernel_that_runs_is_found_once(machine):
    machine(OLD_CPU)
    assert [kernel.name for kernel in kernels.others()] == ["Prescott", "Sandybridge"]


def test_one_other_kernel_or_all_of_them_with_one_and_two_threads(machine):
    asked, ran = machine(OLD_CPU)
    assert kernels.main("other", []) == 0
    assert [(kernel.name, threads) for kernel, threads in ran] == [("Prescott", 1)]
    assert asked == [None, "Prescott"]  # and no more than is needed
    ran.clear()
    assert kernels.main("all", []) == 0
    names = [(kernel.name if kernel else None, threads) for kernel, threads in ran]
    assert names == [(k, t) for k in (None, "Prescott", "Sandybridge") for t in (1, 2)]


@pytest.mark.parametrize("cores", [{None: ()}, {name: ("Haswell",) for name in OLD_CPU}])
def test_without_a_second_kernel_that_is_said(cores, machine, capsys):
    _, ran = machine(cores)
    assert kernels.main("other", []) == 0
    assert ran == [] and "no second kernel" in capsys.readouterr().out


def test_a_failure_is_named_and_no_test_at_all_is_none(machine, monkeypatch, capsys):
    machine(OLD_CPU)
    monkeypatch.setattr(kernels, "run", lambda kernel, threads, arguments: int(threads == 2))
    assert kernels.main("all", []) == 1
    assert "failed: own with 2, Prescott with 2, Sandybridge with 2" in capsys.readouterr().out
    monkeypatch.undo()
    for status, returned in ((0, 0), (1, 1), (5, 0)):  # 5: nothing selected by the arguments
        done = subprocess.CompletedProcess([], status)
        monkeypatch.setattr(subprocess, "run", lambda *a, done=done, **k: done)
        assert kernels.run(None, 1, []) == returned


@pytest.mark.skipif(not OPENBLAS, reason="NumPy's BLAS is not OpenBLAS")
def test_openblas_takes_what_it_is_told(monkeypatch):
    """The probe runs in a process of its own, since a kernel is chosen when NumPy is imported."""
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    own = kernels.taken(None)
    assert own
    for kernel in kernels.others():
        assert kernel.taken != own
        monkeypatch.setenv("OPENBLAS_CORETYPE", kernel.name)
        text = "import threadpoolctl, numpy; print(threadpoolctl.threadpool_info()[0])"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        # NumPy's and SciPy's OpenBLAS may be of two versions, with two names for one kernel.
        assert ast.literal_eval(done.stdout)["architecture"] in kernel.taken
        break
