"""Execute the notebook of one paper; the executed copy appears whole or not at all."""

import papermill

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
