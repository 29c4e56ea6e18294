"""Several processes write the site's pages, and an error in one is an error of the site."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from fedcore.errors import DataError
from fedcore.reports.site import build

PAPERS = [SimpleNamespace(name=f"p{i}", jobs=[None] * i) for i in range(5)]


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Return the function that writes all papers; of one it does `what`."""

    def pages(processes, which="", what=None):
        def one(folder, common, paper):
            if paper.name == which:
                what()
            (folder / paper.name).write_text(str(os.getpid()))

        monkeypatch.setattr(build, "_page", lambda *args, **values: None)
        monkeypatch.setattr(build, "_pages_of", one)
        build._pages(tmp_path, PAPERS, {}, processes)
        return [(tmp_path / paper.name).read_text() for paper in PAPERS]

    return pages


@pytest.mark.parametrize("processes", [1, 3, 9])
def test_every_paper_is_written_by_as_many_processes_as_asked(pages, processes):
    writers = pages(processes)
    assert len(set(writers)) == min(processes, 5) and str(os.getpid()) in writers


@pytest.mark.parametrize("paper", ["p4", "p3"])  # written by the process itself and by another
def test_an_error_arrives_as_it_was_raised(pages, paper):
    def damaged():
        raise DataError("the history is damaged")

    with pytest.raises(DataError, match=r"^the history is damaged$"):
        pages(2, paper, damaged)


def test_a_process_that_dies_is_an_error(pages):
    with pytest.raises(RuntimeError, match=r"^a process that writes pages ended with 3$"):
        pages(2, "p3", lambda: os._exit(3))
