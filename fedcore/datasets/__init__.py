"""Load data sets or surrogates (stand-ins without download); divide samples among clients.

Only the functions `fetch` (which downloads files) and `answers` (which tests whether a server
responds) use the network. `load` reads files in ``data/raw``, where `fetch` or the user puts them.
Another package adds a data set as a function ``(raw_dir, *, split, surrogate, options) ->
Dataset``, and lists this function in the entry-point group ``fedcore.datasets``.
"""

from fedcore.datasets.download import answers
from fedcore.datasets.fetching import fetch
from fedcore.datasets.presence import missing
from fedcore.datasets.reading import Dataset, check, load
from fedcore.datasets.registry import describe, names

__all__ = ["Dataset", "answers", "check", "describe", "fetch", "load", "missing", "names"]
