"""No output destroys: an input and what fedcore has not written stay, byte for byte."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from matplotlib.figure import Figure

from commands import call, ran
from fedcore import History
from fedcore.errors import InputError
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.reports import comparison
from refused import refused

COMMANDS = ["run", "compare", "compare --plot", "plot", "plot, beside"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    storage.save(Problem("p", [rng.standard_normal((8, 4)) for _ in range(2)]), "problem.h5")
    table = "a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rng.standard_normal((9, 3)))
    Path("table.csv").write_text(table)
    Path("other.csv").write_text(table)
    assert call("run", "one_shot", "problem.h5", "-r", 1, "--out", "read.h5").exit_code == 0
    return tmp_path


def command(name, data="problem.h5"):
    """Return the words of a command, its outputs, and what it reads."""
    run = [data, "-r", 1]
    return {
        "run": (["run", "one_shot", *run, "--out", "made.h5"], ["made.h5"], data),
        "compare": (
            ["compare", "one_shot", "ssi", *run, "--set", "ssi.rounds=2", "--out", "made"],
            ["made/ssi.h5", "made/one_shot.h5"], data,
        ),
        "compare --plot": (
            ["compare", "one_shot", *run, "--plot", "made"], ["made.png", "made.pdf"], data
        ),
        "plot": (["plot", "read.h5", "--out", "made"], ["made.png", "made.pdf"], "read.h5"),
        "plot, beside": (["plot", "read.h5"], ["read.png", "read.pdf"], "read.h5"),
    }[name]  # fmt: skip


def hdf5_with_our_names(path, read):
    with h5py.File(path, "w") as file:
        file.attrs["about"], file["history/objective"] = "{}", np.arange(9.0)


def picture(path, read):
    figure = Figure()
    figure.subplots().plot([1, 2])
    figure.savefig(path, format="png")


def edited(path, read):
    """A picture that fedcore has written, and that somebody has changed since."""
    comparison.figure({"run": History.load("read.h5")}, path=path.with_suffix(""))
    for file in (path.with_suffix(".png"), path.with_suffix(".pdf")):
        if file.exists():
            file.write_bytes(file.read_bytes() + b"a note of mine")
    if path.suffix == ".h5":
        path.write_text("a note of mine")


FOREIGN = {
    "hdf5 with our names": hdf5_with_our_names,
    "nothing": lambda path, read: path.touch(),
    "picture": picture,
    "edited": edited,
    "checksum of another file": lambda path, read: (
        path.write_text("mine"),
        path.with_name(f".{path.name}.sha256").write_text(f"{'0' * 64}  {path.name}\n"),
    ),
    "problem": lambda path, read: shutil.copy("problem.h5", path),
    "protected": lambda path, read: (path.write_text("mine"), path.chmod(0o444)),
    "link to a file": lambda path, read: path.symlink_to(Path("other.csv").absolute()),
}
INPUT = {
    "hard link": lambda path, read: os.link(read, path),
    "link": lambda path, read: path.symlink_to(Path(read).absolute()),
    "relative link": lambda path, read: path.symlink_to(os.path.relpath(read, path.parent)),
    "link to a link": lambda path, read: (
        Path("between").symlink_to(Path(read).absolute()),
        path.symlink_to(Path("between").absolute()),
    ),
}
NO_FILE = {
    "folder": lambda path, read: path.mkdir(),
    "fifo": lambda path, read: os.mkfifo(path),
}


def contents(folder):
    """Every file's content and every link's target."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def untouched(folder, monkeypatch):
    """Call a command that must be refused before anything is computed, and change nothing."""

    def refuse(words):
        before = contents(folder)
        with monkeypatch.context() as patch:
            for owner, name in (
                ("fedcore.cli.run_options.RunOptions", "history"),
                ("fedcore.cli.run_options.RunOptions", "data"),
                ("fedcore.reports.plotting", "style"),
            ):  # fmt: skip
                patch.setattr(f"{owner}.{name}", lambda *args, **kwargs: pytest.fail("computed"))
            result = call(*words)
        assert result.exit_code in (1, 2), result.output
        assert isinstance(result.exception, SystemExit)
        assert result.exit_code == 2 or result.stderr.count("\n") == 1
        assert contents(folder) == before

    return refuse


@pytest.mark.parametrize("data", ["problem.h5", "table.csv"])
@pytest.mark.parametrize("made", [*FOREIGN, *INPUT, *NO_FILE])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_there_stays(name, made, data, folder, untouched):
    if data == "table.csv" and ("plot" in name or made not in INPUT):
        pytest.skip("its contents do not matter")
    words, outputs, read = command(name, data)
    output = Path(outputs[-1])
    output.parent.mkdir(exist_ok=True)
    {**FOREIGN, **INPUT, **NO_FILE}[made](output, read)
    if made == "edited" and output.suffix == ".pdf":
        Path(outputs[0]).unlink()
    untouched(words)
    if made in FOREIGN:
        ran(*words, "--force")
        assert not output.is_symlink() and output.stat().st_size > 500
        assert Path("other.csv").read_text().startswith("a,b,c\n")
    else:
        untouched([*words, "--force"])


@pytest.mark.parametrize(
    "spelling",
    ["problem.h5", "./problem.h5", "../{}/problem.h5", "{}/../problem.h5", "//{}", "sub/../{}"],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_input_under_another_spelling_of_its_path_stays(spelling, force, folder, untouched):
    Path(folder.name).mkdir()
    Path("sub").mkdir()
    path = {
        "//{}": f"/{folder}/problem.h5", "sub/../{}": "sub/../problem.h5",
    }.get(spelling, spelling.format(folder.name))  # fmt: skip
    untouched(["run", "one_shot", "problem.h5", "-r", 1, "--out", path, *force])
    os.rename("problem.h5", "one_shot.h5")
    words = ["compare", "one_shot", "one_shot.h5", "-r", 1, "--out", os.path.dirname(path) or "."]
    untouched([*words, *force])


@pytest.mark.parametrize("name", COMMANDS)
def test_an_own_output_is_made_again_without_a_word(name, folder):
    words, outputs, _ = command(name)
    assert [call(*words).exit_code for _ in range(2)] == [0, 0]
    assert all(Path(output).is_file() for output in outputs)


@pytest.mark.parametrize("change", ["data set", "attribute", "bytes behind it"])
def test_an_own_output_that_somebody_has_changed_stays(change, folder):
    words, (output, *_), _ = command("run")
    assert call(*words).exit_code == 0
    if change == "bytes behind it":
        with open(output, "ab") as file:
            file.write(b"a note")
    else:
        with h5py.File(output, "r+") as file:
            part = file if change == "data set" else file.attrs
            part["mine"] = [1, 2, 3]
    before = Path(output).read_bytes()
    refused = call(*words)
    assert refused.exit_code == 1 and str(output) in refused.output
    assert Path(output).read_bytes() == before
    assert call(*words, "--force").exit_code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "plot, beside"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(
    name, folder, untouched
):
    Path("kept").mkdir(mode=0o555)
    words, _, _ = command(name)
    untouched([f"kept/{word}" if str(word).startswith("made") else word for word in words])


@pytest.mark.parametrize("made", [*FOREIGN, *NO_FILE])
def test_the_library_replaces_no_file_of_others(made, folder):
    history, problem = History.load("read.h5"), storage.load("problem.h5")
    writers = {
        "mine.h5": history.save,
        "own.h5": lambda path: storage.save(problem, path),
        "drawn.png": lambda path: history.plot(path.removesuffix(".png")),
    }
    for name, write in writers.items():
        if made == "problem" and name == "own.h5":
            continue
        {**FOREIGN, **NO_FILE}[made](Path(name), "read.h5")
        before = contents(folder)
        with pytest.raises(InputError):
            write(name)
        assert contents(folder) == before
    if not Path("own.h5").exists():
        shutil.copy("read.h5", "own.h5")  # a history is no problem
        refused(lambda: writers["own.h5"]("own.h5"), InputError)
