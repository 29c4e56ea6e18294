# What jobs ask a machine or a cluster for: memory, minutes, cores, company. This file has no rules.

from fedcore.experiments import expectation, needs

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


def on_a_cluster():
    """Whether the profile is that of a cluster, also in a dry run."""
    return bool(DEFAULTS) and DEFAULTS.get("turn") is not None


def cores_of(wildcards):
    """Ranks share this machine; a cluster gives each rank, a task, a core of its own."""
    return 1 if on_a_cluster() else cell_of(wildcards).ranks.number
