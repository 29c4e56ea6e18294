"""``python -m fedcore``: the command line without the installed script."""

from fedcore.cli import main

main(prog_name="fedcore")
