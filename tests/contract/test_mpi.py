"""The contract over ranks of MPI: every algorithm equal to plain steps, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpiexec import needs_mpi, run

METHODS = "ssi or wk2023 or fedrep_linear or one_shot or noisy_power"


@needs_mpi
@pytest.mark.in_process  # of itself; the ranks are started here
def test_over_two_ranks_a_method_of_each_kind_is_equal_bit_for_bit():
    """docs/engines.md has the command for all methods and more ranks."""
    tests = Path(__file__).with_name("over_ranks.py")
    options = "-n", "0", "-q", "--transport", "mpi", "-p", "no:cacheprovider", "-k", METHODS
    done = run(2, "-m", "pytest", tests, *options)
    assert done.returncode == 0, done.stdout + done.stderr
