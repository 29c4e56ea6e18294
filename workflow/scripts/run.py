"""Run one cell: an algorithm on a problem, all repeats."""

from tqdm import tqdm

from fedcore.experiments.cell import run_cell
from fedcore.experiments.job import logged

with logged(snakemake.log[0]):
    run_cell(
        snakemake.params.cell,
        snakemake.input[0],
        snakemake.output[0],
        code=snakemake.params.code,
        progress=tqdm,
    )
