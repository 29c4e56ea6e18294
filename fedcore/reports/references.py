"""BibTeX entries for each method, from ``references.bib``."""

from __future__ import annotations

import re
from importlib import resources

from fedcore import algorithms
from fedcore.errors import InputError

ENTRY = re.compile(r"^@.*?^\}\n", re.MULTILINE | re.DOTALL)
KEYWORDS = re.compile(r"^  keywords = \{(.*)\},\n", re.MULTILINE)


def bibtex(method: str) -> str:
    """Return the BibTeX entries that users of a method should cite.

    Raises
    ------
    InputError
        If the method does not exist or comes from a package other than fedcore.
    """
    algorithm = algorithms.get(method)
    found = [entry for entry in ENTRY.findall(read()) if method in methods_of(entry)]
    if not found:
        raise InputError(
            f"'{method}' comes from another package, and fedcore has no BibTeX entry for it: "
            f"cite its source ({algorithm.citation or 'none is given'})"
        )
    return "\n".join(KEYWORDS.sub("", entry) for entry in found)


def read() -> str:
    """Return the text of ``references.bib``."""
    return resources.files(__package__).joinpath("references.bib").read_text(encoding="utf-8")


def methods_of(entry: str) -> list[str]:
    """Return the methods that a BibTeX entry lists in its field ``keywords``."""
    return KEYWORDS.findall(entry)[0].split(", ")
