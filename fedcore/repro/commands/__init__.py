"""Commands that only the workflow and its readers need; `fedcore.__main__` adds them."""

from fedcore.repro.commands.certify import certify
from fedcore.repro.commands.decide import decide
from fedcore.repro.commands.jobs import job
from fedcore.repro.commands.verdicts import verdicts

COMMANDS = (verdicts, certify, decide, job)
