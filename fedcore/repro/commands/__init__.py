"""Commands that only the workflow and its readers need; `fedcore.cli` adds them to its own."""

from fedcore.repro.commands.jobs import job
from fedcore.repro.commands.verdicts import verdicts

COMMANDS = (verdicts, job)
