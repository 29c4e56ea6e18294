"""Write what a paper's tables and notebook need: labels, cells, and problems that cannot be run."""

import json

from fedcore.experiments.job import logged
from fedcore.files import atomic

with logged(snakemake.log[0]), atomic.replace(snakemake.output[0], summed=True) as path:
    path.write_text(json.dumps(snakemake.params.plan, indent=1))
