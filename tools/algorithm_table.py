"""Writes README's table of algorithms from their modules."""

from __future__ import annotations

import argparse
from pathlib import Path

from readme_verdicts import between_comments

from fedcore import algorithms
from fedcore.reports.tables import escaped

README = Path(__file__).parents[1] / "README.md"
START = "<!-- `python tools/algorithm_table.py` writes what follows, to the next comment -->"
END = "<!-- end of what `python tools/algorithm_table.py` writes -->"


def table() -> str:
    """Return every algorithm of fedcore with the first line of its docstring, by its paper."""
    own = [name for name in algorithms.names() if algorithms.REGISTRY.module_name(name) == of(name)]
    found = sorted((algorithms.get(name) for name in own), key=lambda a: (a.paper, a.name))
    rows = ["| algorithm | what it is | paper |", "| --- | --- | --- |"]
    rows += [f"| `{a.name}` | {escaped(a.title.rstrip('.'))} | `{a.paper}` |" for a in found]
    return "\n".join(rows) + "\n"


def of(name: str) -> str:
    """Return the import path of an algorithm of fedcore's own."""
    return f"fedcore.algorithms.{name}"


def page(text: str) -> str:
    """Return README with the table in its place."""
    return between_comments(text, table(), README.name, START, END)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
