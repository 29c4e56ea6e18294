# The plan of the configuration and the paths of its files. This file has no rules.

import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from tqdm import tqdm

from fedcore import algorithms, datasets
from fedcore.config import papers as paper_files
from fedcore.experiments import build, controller, forking
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import load_plan
from fedcore.files import checksums
from fedcore.reports import left_out, looks
from fedcore.errors import FedcoreError
from fedcore.datasets import registry
from fedcore.experiments.fingerprint import fingerprint, keep_in
from fedcore.experiments.fingerprint import notebook as imported_by_notebook
from fedcore.experiments.job import remove_left_overs
from fedcore.config.strict_yaml import read_yaml

keep_in(".snakemake/fedcore-code.json", write=workflow.is_main_process)

CONFIG = "config/config.yaml"
STEPS = "fedcore.reports.steps"  # what jobs after the cells do


def code_of(step, *modules, words=()):
    return fingerprint(f"{STEPS}:{step}", *modules, words=words)


def code_of_report(paper):
    return code_of("tables", PLAN.files[paper].tables)


def code_of_site():
    """Fingerprint of its code, and of the templates and assets beside it."""
    folder = Path("fedcore/reports/site")
    files = sorted([*folder.glob("templates/*"), *folder.glob("assets/*")])
    drawn = looks.words(cell.algorithm for cell in CELLS.values())
    return [code_of("site", words=drawn), *map(checksums.of, files)]


def code_of_notebook(paper):
    modules = imported_by_notebook(PLAN.files[paper].notebook)
    drawn = looks.words(cell.algorithm for cell in PLAN.cells_of(paper))
    return code_of("notebook", *modules, words=drawn)


NOTES = ".snakemake" if os.path.isdir(".snakemake") else "."
if workflow.is_main_process and not os.access(NOTES, os.W_OK):
    raise WorkflowError(
        "this checkout cannot be written, and Snakemake keeps notes in .snakemake, also of a dry "
        "run: copy the checkout to where you may write"
    )

try:
    if not workflow.is_main_process:
        controller.require_current()
    for path in [CONFIG, *workflow.configfiles]:  # Snakemake accepts a key given twice
        read_yaml(Path(path))
except FedcoreError as error:
    raise WorkflowError(str(error)) from None


configfile: CONFIG


if workflow.remote_exec:  # a job of a cluster does not get it from the profile
    workflow.register_resource("turn", 1)

try:
    PLAN = load_plan(config, answers=controller.answers, check_claims=workflow.is_main_process)
    CELLS = PLAN.cells
    for paper in PLAN.papers:
        paper_files.make_importable(PLAN.files[paper])
        if workflow.is_main_process:  # an error in a rule's parameters would come with its frames
            paper_files.require_drawable(PLAN.files[paper], PLAN.papers[paper])
            code_of_report(paper)
            if PLAN.files[paper].notebook.is_file():
                code_of_notebook(paper)
except FedcoreError as error:
    raise WorkflowError(str(error)) from None

# Of the other papers nothing can run: they have verdicts, and neither tables nor figures.
DRAWN = [paper for paper in PLAN.papers if PLAN.cells_of(paper)]
WITH_NOTEBOOK = [paper for paper in DRAWN if PLAN.files[paper].notebook.is_file()]
RAW, CLIENTS, RESULTS = (PLAN.config["paths"][key] for key in ("raw", "clients", "results"))

if workflow.is_main_process:
    dry, damaged = workflow.output_settings.dryrun, list(checksums.damaged(RESULTS))
    for path in damaged:
        print(f"{path} is damaged or was edited: it is made again.", file=sys.stderr)
        if not dry:
            path.rename(f"{path}.damaged")
    if dry and damaged:  # a dry run leaves them in place, and Snakemake sees no change
        print("The jobs that make damaged files again are not listed here.", file=sys.stderr)
    for line in left_out.sentences(PLAN.unavailable):
        print(line, file=sys.stderr)
    for problem, reason in PLAN.kept.items():
        print(f"Kept as it was made before: {problem}. {reason}", file=sys.stderr)

NAME = "[a-zA-Z0-9_]+"
# Begins the path of a cell that runs over MPI, and of one that does not.
AHEAD = "|".join(re.escape(cell.path) for cell in CELLS.values() if cell.ranks.number)
OVER_RANKS = rf"(?=(?:{AHEAD})\.){NAME}"
IN_ONE_PROCESS = rf"(?!(?:{AHEAD})\.){NAME}" if AHEAD else NAME


wildcard_constraints:
    paper=NAME,
    problem="[a-z0-9_]+",
    experiment="[a-z0-9_]+",
    cell="[a-zA-Z0-9_-]+",


def fork_in_jobs():
    """Let a job of a cluster fork its cells: `force-use-threads` of a profile does not reach it.
    The settings are there when the first input is asked for, and not before."""
    if workflow.remote_exec:
        workflow.execution_settings.use_threads = True


def problem_of(wildcards):
    """The file of a cell's problem, and that of its newcomers if it has some."""
    fork_in_jobs()
    return [f"{CLIENTS}/{wildcards.paper}/{name}.h5" for name in cell_of(wildcards).problems]


def raw_files(wildcards):
    fork_in_jobs()
    dataset = PLAN.problems["{paper}/{problem}".format(**wildcards)].get("dataset")
    needed = dataset and not PLAN.config["surrogates"]
    return [f"{RAW}/{dataset}/fetched.json", *files_of_plugin(dataset)] if needed else []


def files_of_plugin(dataset):
    """Raw files of another package's data set, which no registry entry lists."""
    entry, _ = registry.find(dataset)
    found = [] if entry else sorted(Path(RAW, dataset).rglob("[!.]*"))
    return [str(file) for file in found if file.is_file() and file.name != "fetched.json"]


def checksums_of(dataset):
    """Checksums against which `fetch` checks the files of a data set."""
    entry, _ = registry.find(dataset)
    return [registry.sums(source) for source in (entry or {"sources": []})["sources"]]


def cell_of(wildcards):
    return CELLS["{paper}/{experiment}/{algorithm}/{cell}".format(**wildcards)]


def order_of(wildcards):
    ranks = cell_of(wildcards).ranks
    return ranks.order if ranks.order == "chain" else list(ranks)


def beside(wildcards):
    """Files of a job of a cell that are no outputs."""
    path = cell_of(wildcards).path
    return {
        "benchmark": f"{RESULTS}/benchmarks/{path}.tsv",
        "checkpoints": f"{RESULTS}/checkpoints/{path}",
        **{"newcomers_file": file for file in problem_of(wildcards)[1:]},
    }


def histories_of(wildcards):
    fork_in_jobs()
    return [f"{RESULTS}/histories/{cell.path}.h5" for cell in PLAN.cells_of(wildcards.paper)]


def drawn(paper, settings):
    """Figures and tables of a paper, by kind of file; a quick run has no figures to print."""
    figures = [f"{RESULTS}/figures/{paper}/{name}" for name in settings["figures"]]
    tables = [f"{RESULTS}/tables/{paper}/{name}" for name in settings["tables"]]
    return {
        "figures": [f"{figure}.png" for figure in figures],
        "vector": [] if PLAN.config["quick"] else [f"{figure}.pdf" for figure in figures],
        "tables": [f"{table}.tsv" for table in tables],
        "markdown": [f"{table}.md" for table in tables],
    }


def tables_of(wildcards):
    fork_in_jobs()
    paper = wildcards.paper
    return drawn(paper, PLAN.papers[paper])["tables"] if paper in DRAWN else []


def products(paper):
    """Every file of a paper, for its target. If a failed job has removed an intermediate file whose
    products exist, Snakemake makes the file again only if a target names it."""
    files = [f"{RESULTS}/plans/{paper}.json"]
    if paper in PLAN.judged:
        files += [f"{RESULTS}/verdicts/{paper}.{kind}" for kind in ("tsv", "md")]
    if paper not in DRAWN:
        return files
    cells = PLAN.cells_of(paper)
    return [
        *sorted({f"{CLIENTS}/{paper}/{name}.h5" for cell in cells for name in cell.problems}),
        *(f"{RESULTS}/histories/{cell.path}.h5" for cell in cells),
        *([f"{RESULTS}/notebooks/{paper}.ipynb"] if paper in WITH_NOTEBOOK else []),
        *(file for kind in drawn(paper, PLAN.papers[paper]).values() for file in kind),
        *files,
    ]


def of_all_papers(wildcards):
    fork_in_jobs()
    combined = [f"{RESULTS}/verdicts.tsv"] if PLAN.judged else []
    return combined + [file for paper in PLAN.papers for file in products(paper)]


include: "resources.smk"  # what jobs ask for
include: "console.smk"  # what a run says
