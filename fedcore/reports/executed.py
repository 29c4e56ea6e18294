"""Notebooks executed in the process of their job, which has imported everything.

A kernel of its own would take longer to start and to import than the cells of a notebook. Cells run
in IPython's shell as in a kernel: magics, ``await`` and what a cell shows are the same.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import papermill
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode
from nbformat.v4 import new_output
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
from traitlets import Any as AnyTrait
from traitlets import Type
from traitlets.config import Config

from fedcore.errors import ConfigError
from fedcore.files import atomic
from fedcore.reports import figure_files
from fedcore.reports.results import Results

ENGINE = "fedcore"
# pyplot, where a notebook uses it, shows its figures below the cell.
INLINE = "module://matplotlib_inline.backend_inline"


def execute(
    notebook: str | os.PathLike[str],
    executed: str | os.PathLike[str],
    *,
    plan: str,
    figures: Collection[str],
) -> None:
    """Execute the notebook of one paper; the executed copy appears whole or not at all.

    Parameters
    ----------
    notebook, executed : path-like
        What is run, and where its copy with outputs goes.
    plan : str
        The notebook's parameter, see `fedcore.reports.results.Results`.
    figures : collection of str
        Files that the notebook has to save; only kinds of files that are among them are written.

    Raises
    ------
    PapermillExecutionError
        When a cell fails, with the name and the message of its error.
    ConfigError
        When the notebook saves no such figure.
    """
    matplotlib.use(INLINE)  # no environment variable, as matplotlib is loaded already
    papermill_engines.register(ENGINE, InThisProcess)
    kinds = {Path(figure).suffix[1:] for figure in figures} or figure_files.KINDS
    with atomic.replace(executed, summed=True) as copy, figure_files.kinds_of_files(kinds):
        papermill.execute_notebook(
            os.fspath(notebook), str(copy), parameters={"plan": plan}, engine_name=ENGINE,
            progress_bar=False, request_save_on_cell_execute=False,
        )  # fmt: skip
        require_saved(figures, os.fspath(notebook), plan)


def require_saved(figures: Iterable[str], notebook: str, plan: str) -> None:
    """Refuse figures that a paper's file names and its notebook has not saved."""
    for figure in map(Path, figures):
        if not figure.is_file():
            paper = Results(plan).plan["files"]["paper"]
            raise ConfigError(
                f"{notebook} saved no figure '{figure.stem}', which {paper} names: draw it, or "
                "take its name out"
            )


class InThisProcess(Engine):
    """An engine of papermill whose cells run in a shell of this process."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **options: Any
    ) -> None:
        """Run the cells until one fails; papermill reports the failure by the cell's output."""
        with _shell() as shell:
            for index, cell in enumerate(nb_man.nb.cells):
                if cell.cell_type == "code" and cell.source.strip():
                    nb_man.cell_start(cell, index)
                    try:
                        _run(shell, cell)
                    finally:
                        nb_man.cell_complete(cell, cell_index=index)
                    if any(output.output_type == "error" for output in cell.outputs):
                        nb_man.cell_exception(cell, index)
                        return


def _run(shell: _Shell, cell: NotebookNode) -> None:
    shell.outputs = cell.outputs = []
    with (
        contextlib.redirect_stdout(_Stream(shell, "stdout")),
        contextlib.redirect_stderr(_Stream(shell, "stderr")),
        warnings.catch_warnings(),
    ):
        done = shell.run_cell(cell.source, store_history=True)
    if isinstance(done.error_in_exec, KeyboardInterrupt):  # a signal, see `job.logged`
        raise done.error_in_exec
    cell.execution_count = done.execution_count
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = done.execution_count


@contextlib.contextmanager
def _shell() -> Iterator[_Shell]:
    """Yield a shell that keeps no history and asks nobody; at the end there is none, as before."""
    config = Config()
    config.HistoryManager.enabled = False
    main = sys.modules["__main__"]  # in the shell it is the notebook
    _Shell.clear_instance()
    try:
        yield _Shell.instance(config=config, colors="nocolor")
    finally:
        _Shell.clear_instance()
        sys.modules["__main__"] = main


class _Publisher(DisplayPublisher):
    """Keeps what a cell displays."""

    def publish(self, data: Any, metadata: Any = None, source: Any = None, **options: Any) -> None:
        """Keep it."""
        shown = new_output("display_data", data=_texts(data), metadata=metadata or {})
        _outputs(self).append(shown)


class _Result(DisplayHook):
    """Keeps the value of a cell's last line."""

    def write_output_prompt(self) -> None:
        """Write nothing: an output has its number."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Keep it."""
        value = new_output("execute_result", data=_texts(format_dict), metadata=md_dict or {})
        _outputs(self).append(value)


def _outputs(part: DisplayPublisher | DisplayHook) -> list[NotebookNode]:
    shell: Any = part.shell
    found: list[NotebookNode] = shell.outputs
    return found


class _Shell(InteractiveShell):
    """A shell whose outputs go to a list."""

    displayhook_class = Type(_Result)
    display_pub_class = Type(_Publisher)
    outputs = AnyTrait()

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        error = new_output("error", ename=etype.__name__, evalue=str(evalue), traceback=list(stb))
        self.outputs.append(error)

    def enable_gui(self, gui: Any = None) -> None:
        """Have no windows."""


class _Stream(io.TextIOBase):
    """Adds what is written to the outputs, in one part as long as nothing else comes between."""

    def __init__(self, shell: _Shell, name: str) -> None:
        self._shell, self._name = shell, name

    def write(self, text: str) -> int:
        outputs = self._shell.outputs
        if not text:
            return 0
        if outputs and outputs[-1].get("name") == self._name:
            outputs[-1]["text"] += text
        else:
            outputs.append(new_output("stream", name=self._name, text=text))
        return len(text)


def _texts(data: dict[str, Any]) -> dict[str, Any]:
    """Return what a cell shows, by type; bytes of pictures are in base 64 already or become so."""
    return {
        kind: b64encode(value).decode() if isinstance(value, bytes) else value
        for kind, value in data.items()
    }
