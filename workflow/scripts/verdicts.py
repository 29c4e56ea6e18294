"""Judge the published values of one paper."""

from fedcore import verdicts
from fedcore.jobs import logged

with logged(snakemake.log[0]):
    judged = verdicts.judge(
        snakemake.wildcards.paper,
        snakemake.params.published,
        snakemake.params.tables,
        unavailable=snakemake.params.unavailable,
        surrogate=snakemake.params.surrogate,
    )
    verdicts.write(judged, snakemake.output.tsv)
