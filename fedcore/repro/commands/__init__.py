"""Commands of the Snakemake workflow, which `fedcore.__main__` adds to the command line."""

from fedcore.repro.commands.certify import certify
from fedcore.repro.commands.decide import decide
from fedcore.repro.commands.jobs import job
from fedcore.repro.commands.verdicts import verdicts

COMMANDS = (verdicts, certify, decide, job)
