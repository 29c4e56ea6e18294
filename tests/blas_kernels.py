"""Run the tests that compare numbers under other kernels of OpenBLAS, as other machines would.

``python tests/blas_kernels.py other [pytest's arguments]``
    under one kernel that this machine can run and does not take by itself;
``python tests/blas_kernels.py all [pytest's arguments]``
    under every kernel that it can run, with one BLAS thread and with two.

OpenBLAS chooses its kernel by the CPU, and the kernel sets the order of summation. Where OpenBLAS
is not the BLAS, or has been built for one CPU, there is no second kernel, which is then said.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

# Oldest first: the first has no fused multiplication and addition, and runs on any x86-64.
KERNELS = (
    "Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "SapphireRapids",
    "ARMV8", "NEOVERSEN1", "NEOVERSEV1", "POWER8", "POWER9", "POWER10",
)  # fmt: skip
# What compares numbers that BLAS has computed, in the process of the test.
NUMERICAL = (
    "fedcore/estimators", "fedcore/testing", "fedcore/user_runs.py", "papers/factorization",
    "papers/faps/test_theory.py", "papers/fedpower/test_tables.py", *(f"tests/{name}" for name in (
        "algorithms", "audits/test_leakage.py", "contract/test_algorithms.py",
        "contract/test_replay.py", "contract/test_sparse.py", "estimators",
        "experiments/test_twins.py", "federation/test_centring.py",
        "federation/test_federation.py", "federation/test_lockstep.py", "generators", "metrics",
        "parts", "problems", "test_estimators.py", "test_estimators_sklearn.py", "test_linalg.py",
        "test_rowspace.py", "test_sparse.py",
    )),
)  # fmt: skip
# Also multiplies and decomposes: a CPU without the kernel's instructions dies of it.
PROBE = """
import json, numpy, scipy.linalg, threadpoolctl
a = numpy.random.default_rng(0).standard_normal((80, 80))
scipy.linalg.svd(a @ a); numpy.linalg.svd(a @ a.astype("f") @ a)
found = threadpoolctl.threadpool_info()
print(json.dumps([[library["internal_api"], library.get("architecture")] for library in found]))
"""


class Kernel(NamedTuple):
    """What OpenBLAS is told to take, and what it then says that it has taken."""

    name: str
    taken: tuple[str, ...]  # by each OpenBLAS in the process: NumPy's and SciPy's


def taken(name: str | None) -> tuple[str, ...] | None:
    """Return what every OpenBLAS takes when told `name`, () without any; None if it dies of it."""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment |= {} if name is None else {"OPENBLAS_CORETYPE": name}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True)
    if done.returncode and name is not None:
        return None
    done.check_returncode()
    libraries = json.loads(done.stdout)
    return tuple(sorted(core for api, core in libraries if api == "openblas"))


def others() -> Iterator[Kernel]:
    """Yield the kernels that this machine can run beside the one that it takes by itself."""
    default = taken(None)
    known = {default}
    for name in KERNELS if default else ():
        cores = taken(name)
        if cores and cores not in known and not set(cores) & set(default):
            known.add(cores)
            yield Kernel(name, cores)


def run(kernel: Kernel | None, threads: int, arguments: list[str]) -> int:
    """Run the numerical tests; return pytest's status, 0 where the arguments select none."""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(threads))
    if kernel is not None:
        environment["OPENBLAS_CORETYPE"] = kernel.name
    told = "the machine's own" if kernel is None else f"{kernel.name} ({', '.join(kernel.taken)})"
    print(f"== numerical tests with the kernel {told}, BLAS threads: {threads}", flush=True)
    command = [sys.executable, "-m", "pytest", "-o", f"testpaths={' '.join(NUMERICAL)}", *arguments]
    status = subprocess.run(command, env=environment).returncode
    return 0 if status == 5 else status


def main(which: str, arguments: list[str]) -> int:
    """Run under one other kernel, or under all; return 1 if any test failed."""
    found = list(itertools.islice(others(), 1 if which == "other" else None))
    if not found:
        print("== no second kernel: NumPy's BLAS is not OpenBLAS, or was built for this CPU alone")
    if which == "other":
        return run(found[0], 1, arguments) if found else 0
    failed = [
        f"{kernel.name if kernel else 'own'} with {threads}"
        for kernel in (None, *found)
        for threads in (1, 2)
        if run(kernel, threads, arguments)
    ]
    passed = f"== passed under {1 + len(found)} kernels with 1 and 2 threads"
    print(f"== failed: {', '.join(failed)}" if failed else passed)
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=["other", "all"])
    chosen, of_pytest = parser.parse_known_args()
    sys.exit(main(chosen.which, of_pytest))
