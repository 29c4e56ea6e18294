"""Combine the verdicts of all papers."""

from pathlib import Path

from fedcore.experiments.job import logged
from fedcore.reports import verdict_pages

with logged(snakemake.log[0]):
    table = Path(snakemake.output.tsv)
    verdict_pages.combine(table.with_suffix(""), table, snakemake.params.papers)
