"""A notebook runs in the process of its job, and shows what it would show in a kernel."""

from __future__ import annotations

import json
import sys

import matplotlib
import nbformat
import pytest
from IPython import get_ipython
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from papermill.exceptions import PapermillExecutionError

from fedcore.errors import ConfigError
from fedcore.reports import executed

SHOWS = """\
import sys
from IPython.display import Markdown, display
print(plan)
print("warned", file=sys.stderr)
display(Markdown("*between*"))
print("after", end="")
print(" it")
[2]"""
DRAWS = """\
import matplotlib.pyplot as plt
plt.plot([1, 2]);"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*sources, figures=()):
        first = new_code_cell("plan = 'a default'", metadata={"tags": ["parameters"]})
        cells = [new_markdown_cell("# Title"), first, *map(new_code_cell, sources)]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(notebook, tmp_path / "in.ipynb")
        executed.execute("in.ipynb", "out.ipynb", plan="p/P", figures=figures)
        made = json.loads((tmp_path / "out.ipynb").read_text())
        nbformat.validate(made)
        return made["cells"][3:]  # after title, parameters, and the parameters given

    yield run
    matplotlib.use("agg")


def test_it_shows_what_cells_print_display_and_return_in_their_order(run):
    main = sys.modules["__main__"]
    (cell,) = run(SHOWS)
    kinds = [(o["output_type"], o.get("name")) for o in cell["outputs"]]
    assert kinds == [
        ("stream", "stdout"), ("stream", "stderr"), ("display_data", None), ("stream", "stdout"),
        ("execute_result", None),
    ]  # fmt: skip
    printed, warned, shown, after, value = cell["outputs"]
    assert "".join(printed["text"]) == "p/P\n" and "".join(warned["text"]) == "warned\n"
    assert "".join(shown["data"]["text/markdown"]) == "*between*"
    assert "".join(after["text"]) == "after it\n"
    assert value["data"]["text/plain"] == ["[2]"]
    assert value["execution_count"] == cell["execution_count"] == 3
    assert sys.modules["__main__"] is main and get_ipython() is None


def test_it_knows_magics_await_and_pyplot(run, monkeypatch):
    for name in (
        "matplotlib.pyplot",
        *(n for n in sys.modules if n.startswith("matplotlib_inline")),
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)  # a job has not imported them
    magic, waits, draws = run("%time x = 3", "import asyncio\nawait asyncio.sleep(0, x)", DRAWS)
    assert "CPU times" in "".join(magic["outputs"][0]["text"])
    assert waits["outputs"][0]["data"]["text/plain"] == ["3"]
    assert "image/png" in draws["outputs"][-1]["data"]


def test_it_stops_at_an_error_with_its_name_and_writes_nothing(run, tmp_path):
    with pytest.raises(PapermillExecutionError) as caught:
        run(
            "from fedcore.errors import DataError\nraise DataError('no such file')",
            "open('x', 'w')",
        )
    assert (caught.value.ename, caught.value.evalue) == ("DataError", "no such file")
    assert not (tmp_path / "out.ipynb").exists() and not (tmp_path / "x").exists()
    with pytest.raises(PapermillExecutionError, match="SyntaxError"):
        run("1 +")


def test_a_signal_ends_the_job_and_not_the_cell_alone(run):
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        run("raise KeyboardInterrupt('SIGTERM')")


@pytest.mark.parametrize("kinds", [("png",), ("png", "pdf")])
def test_only_the_kinds_of_files_that_are_asked_for_are_written(run, tmp_path, kinds):
    code = (
        "from fedcore.reports import plotting\nfor ax, _ in plotting.panels('a', [1]): ax.plot([1])"
    )
    run(code, figures=[f"a.{kind}" for kind in kinds])
    assert {path.suffix[1:] for path in tmp_path.glob("a.*")} == set(kinds)


def test_figures_that_are_not_saved_are_named(run, tmp_path):
    plan = {"files": {"paper": "elsewhere/t.yaml"}, "cells": {}}
    (tmp_path / "p").mkdir()
    (tmp_path / "p/P").write_text(json.dumps(plan), encoding="utf-8")
    run("open('there.png', 'w').close()", figures=["there.png"])
    with pytest.raises(ConfigError, match=r"in\.ipynb saved no figure 'lost', which elsewhere/t"):
        run("1", figures=["there.png", "lost.png"])
