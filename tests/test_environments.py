"""`make env` changes no environment but that of its own checkout, whatever form another one has.

Nothing is installed: a stand-in for uv writes down what it is asked for.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from processes import program, python

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")
MAKEFILE = Path(__file__).parents[1] / "Makefile"
UV = """#!/bin/sh
[ "$1" = --version ] && exit
echo "$@" >> "$(dirname "$0")/asked"
[ "$1" != venv ] || { for folder; do :; done; "%s" -m venv --without-pip "$folder"; }
"""


@pytest.fixture
def places(tmp_path):
    """Two checkouts, and what runs `make env` in the first."""
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
        shutil.copy(MAKEFILE, tmp_path / name)
        for file in ("pyproject.toml", "requirements.lock", "requirements-mpi.lock"):
            (tmp_path / name / file).touch()
    uv, asked = tmp_path / "uv", tmp_path / "asked"
    uv.write_text(UV % sys.executable)
    uv.chmod(0o755)

    def make(venv, *words, of="own", status=0):
        asked.unlink(missing_ok=True)
        told = (f"VENV={venv}", f"UV={uv}", f"PYTHON={sys.executable}", *words)
        done = program("make", "-s", "env", *told, status=status, cwd=tmp_path / of)
        done.asked = asked.read_text() if asked.exists() else ""
        return done

    return SimpleNamespace(root=tmp_path, make=make)


def environment(places, name: str = "other/.venv", editable: str = "other") -> Path:
    """Make an environment as `make` of that checkout leaves it."""
    venv = places.root / name
    python("-m", "venv", "--without-pip", venv)
    if editable:
        (packages,) = venv.glob("lib/python*/site-packages")
        (packages / "_fedcore_repro.pth").write_text(str(places.root / editable))
    return venv


def tree(places) -> dict[Path, int]:
    every = [path for path in places.root.rglob("*") if path.name != "asked"]
    return {path: path.lstat().st_mtime_ns for path in every}


def linked(places, target: Path, link: str = "own/.venv") -> Path:
    (places.root / link).symlink_to(target)
    return places.root / link


def up_to_date(places) -> Path:
    venv = environment(places)
    (venv / ".fedcore-ready").touch()
    return venv


def begun(places) -> Path:
    places.make(places.root / "begun", of="other")
    return places.root / "begun"


def taken_over(places) -> Path:
    venv = places.root / "own/.venv"
    places.make(venv)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "_fedcore_repro.pth").write_text(str(places.root / "other"))
    (venv / ".fedcore-ready").unlink()
    return venv


def broken(places) -> Path:
    venv = environment(places)
    for link in venv.glob("bin/python*"):
        link.unlink()
    return venv


def a_folder(places) -> Path:
    (places.root / "mine").mkdir()
    (places.root / "mine/kept").touch()
    return places.root / "mine"


FOREIGN: dict[str, Callable] = {
    "another checkout's": environment,
    "another checkout's that is up to date": up_to_date,
    "another checkout's that make has begun": begun,
    "another checkout's whose interpreter is gone": broken,
    "a link to another checkout's": lambda places: linked(places, environment(places)),
    "another checkout's below a link": lambda places: linked(
        places, environment(places).parent, "own/link") / ".venv",
    "its own that another checkout has taken over": taken_over,
    "one made by hand": lambda places: environment(places, "hand", ""),
    "a folder": a_folder,
    "a file": lambda places: places.root / "own/Makefile",
    "a link to nothing": lambda places: linked(places, places.root / "nothing"),
    "an empty name": lambda places: "",
    "a blank": lambda places: " ",
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_not_this_checkout_s_own_is_left_alone(places, kind):
    venv = FOREIGN[kind](places)
    before = tree(places)
    for extras in ("", "mpi"):
        done = places.make(venv, f"EXTRAS={extras}", status=2)
        assert not done.asked
        assert done.stderr.count("VENV=...") == 1 and str(venv) in done.stderr
        assert tree(places) == before
    places.make(".venv-own")  # the advice
    assert (places.root / "own/.venv-own/.fedcore-ready").exists()


@pytest.mark.parametrize("kind", ["new", "begun", "made before there was a mark", "a link to it"])
def test_its_own_is_made_and_kept_up_to_date(places, kind):
    venv = places.root / "own/.venv"
    if kind == "begun":
        places.make(venv)
        (venv / ".fedcore-ready").unlink()
    elif kind != "new":
        environment(places, "own/.venv", "own")
    if kind == "a link to it":
        venv = linked(places, venv, "own/link")
    for extras in ("", "mpi"):
        done = places.make(venv, f"EXTRAS={extras}")
        assert ("requirements-mpi.lock" in done.asked) == bool(extras)
    assert "requirements.lock" in places.make(venv, "-W", "requirements.lock").asked
