"""Execute the notebook of one paper; the executed copy appears whole or not at all."""

from pathlib import Path

import papermill

from fedcore.errors import ConfigError
from fedcore.experiments.job import logged
from fedcore.files import atomic

with (
    logged(snakemake.log[0]),
    atomic.replace(snakemake.output.notebook, summed=True) as executed,
):
    papermill.execute_notebook(
        snakemake.input.notebook,
        str(executed),
        parameters={"plan": snakemake.input.plan},
        progress_bar=False,
    )
    for figure in map(Path, [*snakemake.output.figures, *snakemake.output.vector]):
        if not figure.is_file():
            raise ConfigError(
                f"{snakemake.input.notebook} saved no figure '{figure.stem}', which config/papers/"
                f"{snakemake.wildcards.paper}.yaml names: draw it, or take its name out"
            )
