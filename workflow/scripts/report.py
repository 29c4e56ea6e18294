"""Write the site of a run."""

from pathlib import Path

from fedcore.experiments.job import logged
from fedcore.reports.site import build

with logged(snakemake.log[0]):
    build.write(
        Path(snakemake.output[0]).parents[1],
        Path(snakemake.output[0]).parent,
        claims=Path(snakemake.params.claims),
        command=snakemake.params.command,
        surrogates=snakemake.params.surrogates,
    )
