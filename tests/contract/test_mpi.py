"""The contract over three ranks of MPI: every algorithm equal to plain steps, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpiexec import needs_mpi, run


@needs_mpi
@pytest.mark.slow
@pytest.mark.in_process  # of itself; the ranks are started here
def test_over_three_ranks_every_algorithm_is_equal_bit_for_bit():
    tests = Path(__file__).with_name("test_bytes.py")
    done = run(3, "-m", "pytest", tests, "--transport", "mpi", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
