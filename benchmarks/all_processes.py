"""CPU time of a command and of all processes that it starts, also of those that leave it.

A job of the workflow is a child of a process that is none of Snakemake's. On Linux, a process may
become the parent of all orphans below it (PR_SET_CHILD_SUBREAPER), and so sees what they used.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36


class Cost(NamedTuple):
    """Seconds of the wall, CPU seconds of all processes, and the load of the machine before."""

    wall: float
    cpu: float
    load: float


def cost(command: list[str], cwd: Path) -> Cost:
    """Run a command, and wait for all processes that it has started; raises when it fails."""
    call = [sys.executable, __file__, *command]
    done = subprocess.run(call, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True)
    return Cost(*json.loads(done.stdout))


def main() -> None:
    """Run the command of the arguments, and print the cost as JSON."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("this needs Linux: orphans cannot be counted here")
    load, start = os.getloadavg()[0], time.perf_counter()
    quiet = subprocess.DEVNULL
    command = subprocess.Popen(sys.argv[1:], stdout=quiet, stderr=quiet)
    failed = False
    while True:
        try:
            process, status = os.wait()
        except ChildProcessError:
            break
        failed = failed or (process == command.pid and status != 0)
    command.returncode = 0  # it has been waited for
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, load]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
