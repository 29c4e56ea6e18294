"""Make one problem: client matrices and the answer that methods are compared with."""

from fedcore.experiments import build
from fedcore.experiments.job import logged
from fedcore.problems import storage

with logged(snakemake.log[0]):
    problem = build.build_draws(
        snakemake.wildcards.problem,
        snakemake.params.spec,
        raw=snakemake.params.raw,
        seed=snakemake.params.seed,
        surrogate=snakemake.params.surrogate,
    )
    storage.save(problem, snakemake.output[0])
