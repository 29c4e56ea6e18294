"""Write the tables of one paper."""

from fedcore.experiments.job import logged
from fedcore.reports.report import write_tables

with logged(snakemake.log[0]):
    write_tables(snakemake.input.plan)
