# What a run says before, while and after its jobs run. This file has no rules.

import contextlib
import logging
import time

from snakemake.logging import logger
from snakemake.settings.enums import Quietness

from fedcore.experiments import expectation, progress, reasons, slurm
from fedcore.reports import verdict_pages


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
