"""Real data sets, their offline stand-ins, and partitions of samples among clients.

Only `fetch` and `answers` use the network. `load` reads the files below ``data/raw``, which `fetch`
or a person put there. Third-party data sets plug in through the entry-point group
``fedcore.datasets``: a callable ``(raw_dir, *, split, surrogate, options) -> Dataset``.
"""

from fedcore.datasets.download import answers
from fedcore.datasets.fetching import fetch
from fedcore.datasets.presence import missing
from fedcore.datasets.reading import Dataset, check, load
from fedcore.datasets.registry import describe, names

__all__ = ["Dataset", "answers", "check", "describe", "fetch", "load", "missing", "names"]
