# The plan that the configuration asks for, and where its files lie. No rules.

import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from fedcore import datasets, experiments, verdicts
from fedcore.errors import FedcoreError
from fedcore.fingerprint import fingerprint
from fedcore.jobs import forget_killed_run

try:
    PLAN = experiments.load_plan(config, answers=datasets.answers)
    CELLS = PLAN.cells
except FedcoreError as error:
    raise WorkflowError(str(error)) from None

RAW, CLIENTS, RESULTS = (PLAN.config["paths"][key] for key in ("raw", "clients", "results"))

if workflow.is_main_process:
    ALIVE = forget_killed_run(Path(".snakemake"))
    for problem, reason in PLAN.unavailable.items():
        print(f"Not run, for want of data: {problem}. {reason}", file=sys.stderr)


wildcard_constraints:
    paper="[a-z_]+",
    problem="[a-z0-9_]+",
    experiment="[a-z0-9_]+",
    cell="[a-zA-Z0-9_-]+",


def raw_files(wildcards):
    dataset = PLAN.problems["{paper}/{problem}".format(**wildcards)].get("dataset")
    needed = dataset and not PLAN.config["surrogates"]
    return f"{RAW}/{dataset}/fetched.json" if needed else []


def cell_of(wildcards):
    return CELLS["{paper}/{experiment}/{algorithm}/{cell}".format(**wildcards)]


def histories_of(wildcards):
    return [f"{RESULTS}/histories/{cell.path}.h5" for cell in PLAN.cells_of(wildcards.paper)]


def summarise_verdicts():
    """Combine the verdicts of all papers that have run; return the lines that say how many hold."""
    return verdicts.summary(verdicts.combine(f"{RESULTS}/verdicts", f"{RESULTS}/verdicts.tsv"))
