"""``python -m fedcore``, the program ``fedcore``: the library's commands, and the workflow's.

The library works without the room `fedcore.repro`; the program then has fewer commands.
"""

import os
from importlib.util import find_spec

from fedcore.cli import main

# Figures go to files: a notebook server's backend, which may not be installed, is not asked for.
os.environ["MPLBACKEND"] = "agg"  # noqa: TID251

if find_spec("fedcore.repro"):
    from fedcore.repro.commands import COMMANDS

    for command in COMMANDS:
        main.add_command(command)

if __name__ == "__main__":
    main(prog_name="fedcore")
