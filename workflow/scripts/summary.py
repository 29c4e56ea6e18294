"""Combine the verdicts of all papers."""

from pathlib import Path

from fedcore import verdicts
from fedcore.jobs import logged

with logged(snakemake.log[0]):
    table = Path(snakemake.output.tsv)
    verdicts.combine(table.with_suffix(""), table, snakemake.params.papers)
