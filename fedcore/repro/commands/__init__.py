"""Commands of the Snakemake workflow; `fedcore.__main__` adds them to the command line."""

from fedcore.repro.commands.certify import certify
from fedcore.repro.commands.decide import decide
from fedcore.repro.commands.jobs import job
from fedcore.repro.commands.verdicts import verdicts

COMMANDS = (verdicts, certify, decide, job)
