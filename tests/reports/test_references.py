"""Every method of fedcore has BibTeX, and every entry is of some method."""

import pytest

from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.reports import references
from refused import refused

ENTRIES = references.ENTRY.findall(references.read())


@pytest.mark.parametrize("name", algorithms.names())
def test_a_method_has_entries_that_its_citation_names(name):
    """By the surname of a first author, and a year if the citation has one."""
    citation, found = algorithms.get(name).citation, references.bibtex(name)
    first = [author.split(",")[0].split()[-1] for author in fields("author", found)]
    assert any(surname in citation for surname in first)
    assert any(year in citation for year in fields("year", found)) or "arXiv" in citation


def fields(name: str, text: str) -> list[str]:
    lines = [line.strip().removesuffix("},") for line in text.splitlines()]
    return [line.removeprefix(f"{name} = {{") for line in lines if line.startswith(f"{name} = ")]


def test_entries_are_whole_and_of_methods():
    keys = [entry.split("{")[1].split(",")[0] for entry in ENTRIES]
    assert len(set(keys)) == len(keys)
    for entry in ENTRIES:
        assert set(references.methods_of(entry)) <= set(algorithms.names())
        assert all(len(fields(name, entry)) == 1 for name in ("author", "title", "year"))
        assert entry.count("{") == entry.count("}")


def test_a_method_of_another_package_has_none(monkeypatch):
    monkeypatch.setattr(references, "read", lambda: "")
    refused(lambda: references.bibtex("faps"), InputError, "another package")
