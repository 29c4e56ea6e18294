"""Imports what jobs use, in the process of which they are forked (see `forking`).

A module that cannot be imported is passed over: it fails in the job that needs it, whose log says
why. The objects of the modules are left out of garbage collection, which would else make every job
copy their pages.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os

from fedcore.experiments.forking import MODULES

for _name in os.environ.get(MODULES, "").split():
    with contextlib.suppress(Exception):
        importlib.import_module(_name)
gc.collect()
gc.freeze()
