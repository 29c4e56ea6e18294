"""Run the program ``fedcore``, with the library's and the workflow's commands.

If the package `fedcore.repro` is missing, the program has only the library's commands.
"""

import os
import sys
import warnings
from importlib.util import find_spec

from fedcore.cli import main

# Figures go to files: a notebook server's backend, which may not be installed, is not asked for.
os.environ["MPLBACKEND"] = "agg"  # noqa: TID251
# They have no date, and Matplotlib fails on one that it cannot read.
os.environ.pop("SOURCE_DATE_EPOCH", None)  # noqa: TID251
# A warning that became an error would end a command when its ε is spent, without its answer.
if any(option.startswith("e") for option in sys.warnoptions):
    warnings.simplefilter("default")  # noqa: TID251

if find_spec("fedcore.repro"):
    from fedcore.repro.commands import COMMANDS

    for command in COMMANDS:
        main.add_command(command)

if __name__ == "__main__":
    main(prog_name="fedcore")
