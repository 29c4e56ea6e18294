"""Judge what one paper prints."""

from fedcore.experiments.job import logged
from fedcore.reports import verdict_pages, verdicts

with logged(snakemake.log[0]):
    judged = verdicts.judge(
        snakemake.wildcards.paper,
        snakemake.params.claims,
        snakemake.params.tables,
        unavailable=snakemake.params.unavailable,
        surrogate=snakemake.params.surrogate,
        small=snakemake.params.small,
    )
    verdict_pages.write(judged, snakemake.output.tsv)
