"""Imports what jobs use, in the process of which they are forked (see `forking`).

The methods and metrics are looked up once, too, as other packages' are found by reading what is
installed. What cannot be imported is passed over: it fails in the job that needs it, whose log says
why. The objects of the modules are left out of garbage collection, which would else make every job
copy their pages.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os

from fedcore import algorithms, metrics
from fedcore.experiments.forking import MODULES

for _name in os.environ.get(MODULES, "").split():
    with contextlib.suppress(Exception):
        importlib.import_module(_name)
with contextlib.suppress(Exception):
    metrics.families()
for _name in algorithms.names():
    with contextlib.suppress(Exception):
        algorithms.get(_name)
gc.collect()
gc.freeze()
