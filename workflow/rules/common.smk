# The plan of the configuration and the paths of its files. This file has no rules.
import gc
import json
import math
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.resources import Resources

from fedcore import algorithms
from fedcore.files.strict_yaml import read_yaml
from fedcore.datasets import download, registry
from fedcore.experiments import build
from fedcore.errors import FedcoreError
from fedcore.repro.config import configuration, papers
from fedcore.repro.plan import forecast, restored
from fedcore.experiments.cell import modules_of
from fedcore.experiments.fingerprint import data_files, digests, imported_by
from fedcore.repro.plan.plan import load_plan
from fedcore.reports import curve_styles
from fedcore.repro.site import left_out
from fedcore.repro.verdicts import verdict_pages

gc.freeze()  # what Snakemake has loaded stays: the collector need not look through it again
# Wherever the workflow runs and whatever includes it; "." in the checkout itself.
CHECKOUT = Path(os.path.relpath(Path(workflow.current_basedir.get_path_or_uri(True)).parents[1]))
# Jobs run this checkout's code and, if Snakemake makes no environment, this Python.
os.environ.update(PATH=f"{Path(sys.executable).parent}:{os.getenv('PATH', '')}")
os.environ.update(PYTHONPATH=f"{CHECKOUT.absolute()}:{os.getenv('PYTHONPATH', '')}")
# A notebook server's variables would give jobs another kernel, start-up file or backend of figures.
for name in os.environ.keys() & {"JUPYTER_PATH", "PYTHONSTARTUP", "MPLBACKEND"}:
    del os.environ[name]
OWN = configuration.files(CHECKOUT)  # config.yaml, and repeats.yaml if there is one
for path in [*OWN, *workflow.overwrite_configfiles]:
    read_yaml(path)  # says in a sentence why it cannot be read, and of keys that are there twice


configfile: str(OWN[0])


if len(OWN) > 1:

    configfile: str(OWN[1])


try:
    PLAN = load_plan(configuration.typed(config, workflow.config_settings.config), CHECKOUT)
    SERVERS = download.Servers(Path(PLAN.config["paths"]["raw"]))
    PLAN.leave_out_missing(SERVERS.answered)
    PLAN.check_files()
    EXPECTED = forecast.expected(PLAN, CHECKOUT)
    RESTORED = restored.paths(PLAN)
except FedcoreError as error:
    raise WorkflowError(str(error)) from None


def begin():
    """Write what jobs read, ask servers, and check what papers print; `-n` does none of it."""
    try:
        for paper in PLAN.judged:
            PLAN.claims_of(paper)
        PLAN.write()
    except FedcoreError as error:
        raise WorkflowError(str(error)) from None
    known = PLAN.unavailable | PLAN.missing_data(SERVERS.answered)
    lost = PLAN.missing_data(SERVERS.ask)
    SERVERS.save()
    for reason in sorted({lost[name] for name in lost.keys() - known.keys()}):
        print(f"{reason}. The next run leaves out what needs it.", file=sys.stderr)


# Snakemake starts a run without a module's `onstart`. Here it tells of `-n`, not of --dag or --lint.
if workflow.is_main_process and not workflow.modifier.is_main_snakefile():
    if not workflow.output_settings.dryrun:
        begin()

if workflow.is_main_process:  # also in a dry run
    changes = workflow.overwrite_configfiles
    files = [path for path in workflow.configfiles if path not in changes] + changes
    print("Configuration:", ", changed by ".join(map(os.path.relpath, files)), file=sys.stderr)
    # No error: repeats.yaml may have repeats of a paper elsewhere, which this run leaves out.
    ours = {*PLAN.papers, *papers.list_papers(CHECKOUT)}
    for paper in sorted(PLAN.config["repeats"].keys() - ours):
        print(
            f"repeats.{paper} is not used: no paper of this run or of papers/ has this name",
            file=sys.stderr,
        )
    if PLAN.not_run:
        print(
            f"{len(PLAN.not_run)} problems or experiments are not run; a run says why",
            file=sys.stderr,
        )
PRINTED = ("fedcore.words",)  # cells do not depend on it, but pages print its words
RAW, CLIENTS, RESULTS = (PLAN.config["paths"][key] for key in ("raw", "clients", "results"))
# Of the others nothing can run: they have verdicts, and neither tables nor figures.
DRAWN = [paper for paper in PLAN.papers if PLAN.cells_of(paper)]
WITH_NOTEBOOK = [paper for paper in DRAWN if PLAN.files[paper].notebook.is_file()]
QUICK = PLAN.config["quick"]
TABLE = ("tsv", "md", "tex")  # files of each table
VECTOR = [] if QUICK else ["pdf"]  # of each figure beside its PNG
# Of the profile or the command line; without a value if neither has one.
DEFAULT_RUNTIME = Resources.from_mapping(workflow.resource_settings.default_resources or {}).get(
    "runtime"
)


wildcard_constraints:
    paper="|".join(PLAN.papers),
    problem="[a-z0-9_]+",
    experiment="[a-z0-9_]+",
    cell="[a-zA-Z0-9_-]+",


def cell_of(wildcards):
    return PLAN.cell("{paper}/{experiment}/{algorithm}/{cell}".format(**wildcards))


# Each module that all jobs of a rule import is a parameter `(module, digest)`. So the reason of
# `snakemake -n` names the changed module. Modules of a single job are together in one parameter.
def measured_by(wildcards):
    cell = cell_of(wildcards)
    return sorted({*digests(*cell.modules)} - {*digests(*modules_of(cell.algorithm))})


def made_by(wildcards):
    return sorted(
        {*PLAN.problem_digests(problem_of(wildcards))} - {*digests(*build.COMMON_MODULES)}
    )


def memory_of(wildcards, input, attempt):
    """Room for every client's Gram matrix beside its data, which some algorithms keep."""
    return attempt * (cell_of(wildcards).mem_mb or 1000 + round(2.5 * input.size_mb))


def minutes_of(wildcards, attempt, **given):
    """Four times what it took in the last kept run; else what the profile gives."""
    path = cell_of(wildcards).path
    if path in EXPECTED:
        return attempt * math.ceil(2 + 4 * EXPECTED[path][0] / 60)
    return DEFAULT_RUNTIME.evaluate(wildcards, attempt=attempt, **given).value


def longest_first(wildcards):
    """CPU seconds of the last kept run: what takes longest starts first."""
    path = cell_of(wildcards).path
    return math.ceil(EXPECTED[path][0]) if path in EXPECTED else 0


def problem_of(wildcards):
    return PLAN.problem("{paper}/{problem}".format(**wildcards))


def looks_in(paper):
    return curve_styles.words(cell.algorithm for cell in PLAN.cells_of(paper))


def drawn(paper, kind, *endings):
    names = PLAN.papers[paper][kind] if paper in DRAWN else []
    return [f"{RESULTS}/{kind}/{paper}/{name}.{end}" for name in names for end in endings]


def histories_of(paper):
    return [f"{RESULTS}/histories/{cell.path}.h5" for cell in PLAN.cells_of(paper)]


def data_of(cell):
    """The problem files that a cell's job reads; a history that was put back needs none."""
    if cell.path in RESTORED:
        return []
    return [f"{CLIENTS}/{cell.paper}/{name}.h5" for name in cell.problems]


def products(paper):
    """Every file of a paper. Snakemake makes a lost intermediate one only if a target names it."""
    return [
        f"{RESULTS}/plans/{paper}.json",
        *sorted({file for cell in PLAN.cells_of(paper) for file in data_of(cell)}),
        *histories_of(paper),
        *drawn(paper, "tables", *TABLE),
        *drawn(paper, "figures", "png", *VECTOR),
        *([f"{RESULTS}/notebooks/{paper}.ipynb"] if paper in WITH_NOTEBOOK else []),
        *(f"{RESULTS}/verdicts/{paper}.{kind}" for kind in ("tsv", "md") if paper in PLAN.judged),
    ]


def last_of(paper):
    """What is made when all else of a paper is, but for its verdicts."""
    if paper in WITH_NOTEBOOK:
        return [f"{RESULTS}/notebooks/{paper}.ipynb"]
    return drawn(paper, "tables", "tsv") or [f"{RESULTS}/plans/{paper}.json"]
