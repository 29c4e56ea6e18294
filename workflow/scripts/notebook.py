"""Execute the notebook of one paper; the executed copy appears whole or not at all."""

import papermill

from fedcore.experiments.job import logged, require_saved
from fedcore.files import atomic

with logged(snakemake.log[0]), atomic.replace(snakemake.output.notebook, summed=True) as executed:
    notebook, out = snakemake.input.notebook, snakemake.output
    parameters = {"plan": snakemake.input.plan}
    quiet = ["--log-level=ERROR"]  # the kernel warns of its own transport, on the terminal
    papermill.execute_notebook(
        notebook, str(executed), parameters=parameters, progress_bar=False, extra_arguments=quiet
    )
    require_saved([*out.figures, *out.vector], notebook, snakemake.wildcards.paper)
