# The plan of the configuration and the paths of its files. This file has no rules.

import contextlib
import logging
import os
import re
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from tqdm import tqdm

from fedcore import algorithms, datasets
from fedcore.config import papers as paper_files
from fedcore.experiments import build, controller, expectation, forking, needs, progress, reasons
from fedcore.experiments import slurm
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import load_plan
from fedcore.files import checksums
from fedcore.reports import looks, verdict_pages
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
    PLAN = load_plan(config, answers=datasets.answers, check_claims=workflow.is_main_process)
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
    for reason in dict.fromkeys(PLAN.unavailable.values()):
        problems = ", ".join(p for p, why in PLAN.unavailable.items() if why == reason)
        print(f"Not run: {problems}. {reason}", file=sys.stderr)
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
    fork_in_jobs()
    """The file of a cell's problem, and that of its newcomers if it has some."""
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


def cells_to_run(dag):
    """Return the names of the cells that will run."""
    outputs = [output for job in dag.needrun_jobs() for output in job.output]
    return expectation.cells_of(outputs, Path(RESULTS, "histories"))


def say_what_it_takes(cells, planned):
    """Print how many cells will run, why again, and for how long, by the times of earlier runs."""
    again = reasons.counted(planned, Path(RESULTS))
    if again and not workflow.touch:
        print(again, file=sys.stderr)
    with contextlib.suppress(OSError):  # a full disk: the jobs say it
        reasons.keep(planned, Path(RESULTS))
    found = expectation.expected(cells, Path(RESULTS, "benchmarks"), USUAL)
    if found.unknown < found.cells and not workflow.touch:
        print(expectation.sentence(found, workflow.cores or 1), file=sys.stderr)


def prepare(dag):
    """Say what the run takes, and set how its jobs start."""
    cells = cells_to_run(dag)
    planned = [CELLS[name] for name in cells if name in CELLS]
    say_what_it_takes(cells, planned)
    after = ("plan", "tables", "notebook", "verdicts", "summary", "report")
    if any(job.rule.name.split("_")[0] in after for job in dag.needrun_jobs()):
        forking.also_import(forking.REPORTS)
    packages = {name for cell in planned for name in algorithms.get(cell.algorithm).task.packages}
    if any(cell.params.get("epsilon") is not None for cell in planned):
        packages.add("dp_accounting")
    forking.also_import(sorted(packages))  # one or two seconds of every cell that imports them
    if workflow.local_exec:
        # Of a limit on jobs a second, each round of the scheduler starts a timer for one more
        # round: after n jobs there are n rounds a second, until the end.
        workflow.scheduler.job_rate_limiter = None


def follow_killed_run():
    """Begin a run: jobs that a killed one has left in a cluster's queue are cancelled first."""
    if said := slurm.cancel_jobs_of(controller.begin(Path(".snakemake/runs"))):
        print(said, file=sys.stderr)


BARS = []  # of a run with --quiet all


def show_progress(dag):
    """Show a bar where Snakemake has been asked to be quiet."""
    if Quietness.ALL in (workflow.output_settings.quiet or ()):
        BARS.append((time.time(), progress.Bar(lambda: len(list(dag.needrun_jobs())))))
        BARS[0][1].start()
        forking.keep_quiet()
        for handler in logger.handlers:
            if isinstance(handler, logging.FileHandler):  # which Snakemake leaves empty, too
                for part in (*handler.filters, handler.formatter):
                    part.quiet = set()


def end_progress(dag=None):
    """End the bar; with the jobs of a run that failed, print the ends of their logs."""
    for since, bar in BARS:
        bar.end()
        logs = [log for job in dag.needrun_jobs() for log in job.log] if dag else []
        print(progress.failures(logs, since), end="\n" if dag else "", file=sys.stderr)


def cell_of(wildcards):
    return CELLS["{paper}/{experiment}/{algorithm}/{cell}".format(**wildcards)]


def on_a_cluster():
    """Whether the profile is that of a cluster, also in a dry run."""
    return bool(DEFAULTS) and DEFAULTS.get("turn") is not None


def cores_of(wildcards):
    """Ranks share this machine; a cluster gives each rank, a task, a core of its own."""
    return 1 if on_a_cluster() else cell_of(wildcards).ranks.number


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


# Of the papers' full runs, where this checkout has not run a cell itself.
USUAL = {} if PLAN.config["quick"] else expectation.kept(Path("docs/verdicts/run.json"))
DEFAULTS = workflow.resource_settings.default_resources  # of a profile
MINUTES = DEFAULTS.get("runtime") if DEFAULTS else None
MINUTES = getattr(MINUTES, "value", MINUTES) or 60


def last_of(wildcards):
    """Seconds and MB of the last run of a cell, or else of its experiment."""
    cell = cell_of(wildcards)
    own = expectation.measured(Path(beside(wildcards)["benchmark"]))
    return own or USUAL.get(f"{cell.paper}/{cell.experiment}")


def ended_badly(wildcards):
    log = Path(f"{RESULTS}/logs/run/{cell_of(wildcards).path}.log")
    return needs.ended_badly(log, Path(beside(wildcards)["benchmark"]))


def benchmark_of_problem(wildcards):
    return "{}/benchmarks/problems/{paper}/{problem}.tsv".format(RESULTS, **wildcards)


def memory(last, declared, attempt, failed=False):
    remote = workflow.non_local_exec
    return needs.memory(last, declared, attempt=attempt, remote=remote, failed=failed)


def benchmark_of(wildcards, step):
    return f"{RESULTS}/benchmarks/{wildcards.paper}/{step}.tsv"


def memory_as_measured(step, declared=2000):
    """A function for `resources` of a step of a paper."""
    return lambda wildcards, attempt: memory(
        expectation.measured(Path(benchmark_of(wildcards, step))), declared, attempt
    )


def minutes_of(wildcards, attempt):
    otherwise = 5 if PLAN.config["quick"] else MINUTES
    return needs.minutes(last_of(wildcards), otherwise, attempt=attempt)


def memory_of(wildcards, input, attempt):
    """Each rank is a process, and some algorithms keep every client's Gram matrix beside its data."""
    cell = cell_of(wildcards)
    declared = cell.mem_mb or 1000 * max(1, cell.ranks.number) + round(2.5 * input.size_mb)
    return memory(last_of(wildcards), declared, attempt, ended_badly(wildcards))


def asked_by(algorithm):
    """What a cell asks for, in one process or over ranks, in the words of Snakemake and its plugin
    for SLURM: `gpu=1` is there only where FEDCORE_DEVICE names one."""
    gpu = needs.accelerators(algorithms.get(algorithm).task.packages, os.environ)
    return {**({"gpu": gpu} if gpu else {}), "mem_mb": memory_of, "runtime": minutes_of}


def group_of(wildcards):
    """Cells of one problem share jobs of a cluster if they take seconds; how many do is set by
    `--group-components short=20`. One that did not end well is run by itself the next time."""
    if not on_a_cluster():
        return None
    short = needs.is_short(last_of(wildcards), quick=PLAN.config["quick"])
    if ended_badly(wildcards) or not short:
        return None
    group = "{paper}-{}".format(cell_of(wildcards).problem, **wildcards)
    workflow.parent_groupids[group] = "short"  # as Snakemake does for a group with wildcards
    return group


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


def say_where_to_look(page):
    """Print where the pages are, or which papers they show as they were before."""
    if not page.is_file():
        return
    made = page.stat().st_mtime
    files = {paper: Path(RESULTS, "tables", paper).glob("*.tsv") for paper in PLAN.papers}
    later = [p for p, found in files.items() if any(f.stat().st_mtime > made for f in found)]
    print(f"To look at: {page.absolute()}")
    if later:
        asked = f"--config papers='[{','.join(later)}]'"
        print(f"It does not show this run of {', '.join(later)}: snakemake {asked} makes it anew.")


def summarise_verdicts():
    """Print how many printed items were reproduced. If `summary` has not run, because a job
    failed or one paper was asked for, combine the finished papers' verdicts first.
    """
    unfinished = list(workflow.dag.needrun_jobs())
    behind = [job.wildcards.paper for job in unfinished if job.rule.name == "verdicts"]
    table = Path(RESULTS, "verdicts.tsv")
    files = {paper: Path(RESULTS, "verdicts", f"{paper}.tsv") for paper in PLAN.judged}
    papers = [p for p, file in files.items() if file.is_file() and p not in behind]
    made = {job.rule.name for job in workflow.dag.jobs} - {job.rule.name for job in unfinished}
    if behind:
        print(f"Not finished, so not in {table}: {', '.join(behind)}.", file=sys.stderr)
    try:
        if papers and "summary" not in made:
            verdict_pages.combine(table.with_suffix(""), table, papers)
            # Older than its parts, so that `summary` makes it again when it is asked for.
            before = min(files[paper].stat().st_mtime for paper in papers) - 1
            os.utime(table, (before, before))
            # Snakemake notes a failed job as if it had made its files.
            for job in unfinished:
                if job.rule.name == "summary":
                    workflow.persistence.cleanup(job)
        if papers:
            print(verdict_pages.summary(verdict_pages.read(table)))
        if not behind:
            say_where_to_look(Path(RESULTS, "report", "index.html"))
    except FedcoreError as error:
        print(f"Error: {error}", file=sys.stderr)
