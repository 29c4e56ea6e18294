"""What commands say of files that are something else, where they write, and what prints JSON."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from commands import call, ran, refused_command
from fedcore.__main__ import main
from fedcore.problems import storage
from fedcore.problems.problem import Problem

RUN = ("run", "ssi", "w8a", "--surrogate", "-r", "1", "--set", "rounds=2", "--set", "tol=0")
COMPARE = ("compare", "ssi", "one_shot", "w8a", "--surrogate", "-r", "1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file of every kind that somebody may take for a history."""
    folder = tmp_path_factory.mktemp("kinds")
    assert call(*RUN, "--out", folder / "history.h5").exit_code == 0
    storage.save(Problem("own", [np.eye(3)]), folder / "problem.h5")
    with h5py.File(folder / "own.h5", "w") as file:
        file["history/iteration"] = [[0, 1]]
    (folder / "folder.h5").mkdir()
    (folder / "w8a").write_text("1 1:1\n" * 100)
    (folder / "raw.csv").write_text("a,b\n1,2\n")
    (folder / "empty.h5").write_bytes(b"")
    whole = (folder / "history.h5").read_bytes()
    (folder / "short.h5").write_bytes(whole[:20])  # nothing says whose it was
    (folder / "cut.h5").write_bytes(whole[:3000])
    return folder


FOREIGN = ["own.h5", "folder.h5", "w8a", "raw.csv", "short.h5"]
LOST = ["cut.h5", "empty.h5"]  # to be made again


@pytest.mark.parametrize("command", ["show", "plot"])
@pytest.mark.parametrize("name", [*FOREIGN, *LOST, "problem.h5", "missing.h5", "history.h5"])
def test_what_is_no_history_is_named_and_only_fedcores_own_is_to_be_deleted(
    files, tmp_path, command, name
):
    path = files / name
    extra = ("--out", tmp_path / "p") if command == "plot" else ()
    if name == "history.h5":
        assert call(command, path, *extra).exit_code == 0
        return
    says = refused_command(command, path, *extra)
    assert str(path) in says and ("delete" in says) == (name in LOST)
    assert not any(word in says for word in ("KeyError", "Errno", "Traceback"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*sorted({*FOREIGN} - {"raw.csv"}), *LOST, "history.h5", "."])
def test_what_is_no_problem_is_named(files, name):
    says = refused_command("run", "ssi", files / name, "-r", 1)
    assert str(files / name) in says and ("delete" in says) == (name in LOST)


def test_the_last_folder_of_compare_is_made(tmp_path):
    ran(*COMPARE, "--out", tmp_path / "kept")
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["one_shot.h5", "ssi.h5"]


# A line for each file or folder that they write, BibTeX, or nothing; or they run the workflow.
PRINTS_PATHS = {"cite", "fetch", "plot", "join", "job", "certify", "decide"}


def test_every_command_that_lists_or_tells_prints_json_if_asked():
    for name, command in main.commands.items():
        flags = {flag for option in command.params for flag in option.opts}
        assert ("--json" in flags) == (name not in PRINTS_PATHS), name
