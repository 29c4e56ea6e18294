"""``python -m fedcore`` is the command line."""

from fedcore.cli import main

main(prog_name="fedcore")
