"""Where PyTorch is missing, the doctests of the modules that import it are left out.

Any other module that cannot be imported is an error: an option of pytest passes over tests, too.
"""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["fedcore/deep/*.py"]
