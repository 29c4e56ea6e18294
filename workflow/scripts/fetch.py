"""Bring the files of one data set into the folder of raw data."""

from pathlib import Path

from fedcore import datasets
from fedcore.experiments.job import logged

with logged(snakemake.log[0]):
    folder = Path(snakemake.output[0]).parent
    datasets.fetch(snakemake.wildcards.dataset, folder.parent)
