"""The distribution: what is built, what installs, and what its texts call it."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import fedcore
from clone import tracked
from refused import is_a_line

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def command(*words: object, cwd: Path, **more: str) -> str:
    """Run a command without this checkout on Python's path; return what it prints."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "FEDCORE_MIRROR")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=kept | more, text=True, capture_output=True
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """The source distribution of a clone, and the wheel made of nothing but that."""
    folder = tmp_path_factory.mktemp("dist")
    clone = folder / "clone"
    for name in tracked():
        target = clone / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    command(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=clone)
    (sdist,) = folder.glob("*.tar.gz")
    (folder / "unpacked").mkdir()
    command("tar", "-xf", sdist, cwd=folder / "unpacked")  # tarfile's filter needs Python 3.11.4
    (unpacked,) = (folder / "unpacked").iterdir()
    command(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
    (wheel,) = folder.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel, "unpacked": unpacked, "clone": clone}


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory) -> Path:
    """The programs of a new environment with the wheel; its dependencies are those of the tests.

    They are links to what is installed here, but for fedcore itself under any name.
    """
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    place = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.strip("_").startswith("fedcore") and installed.suffix != ".pth":
            Path(place, installed.name).symlink_to(installed)
    programs = Path(sysconfig.get_path("scripts", "venv", {"base": str(folder)}))
    command(
        sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet",
        "--no-index", "--no-deps", "--disable-pip-version-check", built["wheel"], cwd=folder,
    )  # fmt: skip
    return programs


def test_the_wheel_is_small_and_holds_the_package_alone(built):
    assert built["wheel"].name == f"fedcore_repro-{fedcore.__version__}-py3-none-any.whl"
    assert built["wheel"].stat().st_size < 2**20
    names = zipfile.ZipFile(built["wheel"]).namelist()
    assert {name.split("/")[0] for name in names} == {
        "fedcore", f"fedcore_repro-{fedcore.__version__}.dist-info",
    }  # fmt: skip
    package = {f"fedcore/{file.relative_to(ROOT / 'fedcore').as_posix()}" for file in code()}
    shipped = {"fedcore/datasets/datasets.yaml"} | {
        f"fedcore/schemas/{file.name}" for file in (ROOT / "workflow/schemas").iterdir()
    }
    assert {name for name in names if "dist-info" not in name} == package | shipped


def code() -> list[Path]:
    return [ROOT / name for name in tracked() if name.startswith("fedcore/")]


def test_the_source_distribution_has_what_a_reader_needs(built):
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "requirements.lock",
                 "requirements-deep.lock", "requirements-mpi.lock", "requirements-slurm.lock",
                 "Snakefile", "config/config.yaml", "tests/test_packaging.py"):  # fmt: skip
        assert (built["unpacked"] / name).is_file(), name
    assert not (built["unpacked"] / ".ci").exists()


def test_a_package_index_shows_readme_without_a_dead_link(built):
    names = zipfile.ZipFile(built["wheel"]).namelist()
    (where,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    of_wheel = zipfile.ZipFile(built["wheel"]).read(where).decode()
    of_sdist = (built["unpacked"] / "PKG-INFO").read_text(encoding="utf-8")
    for metadata in (of_wheel, of_sdist):
        assert "Description-Content-Type: text/markdown" in metadata
        shown = metadata.partition("\n\n")[2]
        assert "# fedcore" in shown and "make quickstart" in shown
        targets = re.findall(r"\]\(([^)\s]+)\)", shown)
        assert [t for t in targets if not t.startswith(("https://", "#"))] == []


def test_what_is_installed_is_the_wheel_and_works(environment, tmp_path):
    script = (
        "import fedcore, importlib.metadata as m;"
        "print(fedcore.__file__); print(m.version('fedcore-repro'));"
        "print([r for r in m.requires('fedcore-repro') if 'snakemake-exec' in r])"
    )
    python, fedcore_ = environment / "python", environment / "fedcore"
    where, version, extras = command(python, "-c", script, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(environment.parent) and version == fedcore.__version__
    assert "extra == 'slurm'" in extras and version in command(fedcore_, "--version", cwd=tmp_path)
    script = (
        "import fedcore; h = fedcore.History.load('h.h5'); h.plot('figure');"
        "print(h.about['versions']['fedcore'])"
    )
    given = "w8a", "--components", "2", "--surrogate", "--out", "h.h5"
    assert "objective" in command(fedcore_, "run", "block_krylov", *given, cwd=tmp_path)
    assert command(python, "-c", script, cwd=tmp_path) == f"{version}\n"
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "one_shot: " in command(fedcore_, "check", "one_shot", cwd=tmp_path)
    said = command(fedcore_, "doctor", cwd=tmp_path)
    assert "is not installed" not in said and "broken" not in said


@pytest.mark.parametrize("words", ["job forecast faps", "verdicts"])
def test_what_needs_a_checkout_says_so(environment, tmp_path, words):
    call = [environment / "fedcore", *words.split()]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(call, cwd=tmp_path, env=kept, capture_output=True, text=True)
    is_a_line(done.stderr.removesuffix("\n"))
    assert done.returncode == 1 and "clone the repository" in done.stderr


def test_versions_agree_and_the_changelog_is_ready_for_the_tag():
    version = PROJECT["version"]
    assert PROJECT["name"] == "fedcore-repro" and version == fedcore.__version__
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    headings = re.findall(r"^## \[(.+?)\](.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert [name for name, _ in headings[:2]] == ["Unreleased", version]
    assert re.fullmatch(r" - (\d{4}-\d\d-\d\d|day of the tag)", headings[1][1])


def pinned(lock: str) -> dict[str, str]:
    found = re.findall(
        r"^([\w.-]+)==(\S+)([^\n]*\n(?: +--hash=sha256:[0-9a-f]{64}.*\n)+)", lock, re.M
    )
    assert len(found) == len(re.findall(r"^\w", lock, re.M)) and "://" not in lock
    return {name: version for name, version, _ in found}


def test_what_is_wanted_is_locked_with_hashes_and_names_no_address():
    base = pinned(text("requirements.lock"))
    assert {Requirement(line).name.lower() for line in PROJECT["dependencies"]} <= base.keys()
    for extra in ("deep", "mpi", "slurm"):
        added = pinned(text(f"requirements-{extra}.lock"))
        assert not base.keys() & added.keys()
        wanted = map(Requirement, PROJECT["optional-dependencies"][extra])
        wanted = [one for one in wanted if one.name != PROJECT["name"]]
        for package in added:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                if importlib.metadata.version(package) == added[package]:
                    wanted += map(Requirement, importlib.metadata.requires(package) or [])
        for one in wanted:
            if one.marker is None or one.marker.evaluate():
                assert (base | added)[one.name.lower()] in one.specifier, one


STEP = "make env VENV=/opt/fedcore"


def test_both_images_and_every_extra_install_by_the_locks():
    for recipe in ("Dockerfile", "fedcore.def"):
        assert STEP in text(recipe) and "pip install" not in text(recipe)
    plain = {k: v for k, v in os.environ.items() if not k.endswith("_FIND_LINKS") and k != "TORCH"}

    def installs(extras: str, **more: str) -> list[str]:
        made = ["make", "-n", "env", f"EXTRAS={extras}", "VENV=x"]
        done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, env=plain | more)
        return [line for line in done.stdout.splitlines() if " install " in line]

    for extras in ("", "deep", "mpi", "slurm"):
        steps = [line for line in installs(extras) if "--editable" not in line]
        assert all("--require-hashes" in line for line in steps if "apt install" not in line)
        assert not extras or f"requirements-{extras}.lock" in steps[-1]
    torch = pinned(text("requirements-deep.lock"))["torch"]  # of wheels that no lock can know
    assert (
        installs("deep", PIP_FIND_LINKS="wheels")[-1].count(f" torch=={torch}") == 2
    )  # by uv, or pip


@pytest.mark.parametrize("recipe", ["Dockerfile", "fedcore.def"])
def test_an_image_has_all_that_this_step_reads(recipe, tmp_path):
    """With the files that the recipe copies and no others, the package builds."""
    if recipe == "Dockerfile":
        assert "\nCOPY . .\n" in text(recipe)
        left_out = text(".dockerignore").split()
        copied = [
            name for name in tracked()
            if not any(fnmatch.fnmatch(part, rule) for rule in left_out
                       for part in (name, name.split("/")[0]))
        ]  # fmt: skip
    else:
        named = re.findall(r"^    (\S+) /fedcore/\1$", text(recipe), re.MULTILINE)
        assert len(named) == 9
        copied = [name for name in tracked() if name.split("/")[0] in named]
    for name in copied:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    assert {"Makefile", "requirements.lock"} <= set(copied)
    command(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out", cwd=tmp_path)
    assert list((tmp_path / "out").glob("fedcore_repro-*.whl"))


TYPED = """
import fedcore

fedcore.FederatedPCA(n_componnts=3)
fedcore.run("ssi", [], n_components=2).componentz
fedcore.run("ssi", [], 2, progress="yes")
fedcore.FederatedPCA(2, verbose="yes")
fedcore.FederatedPCA(2, params=3)
fedcore.FederatedPCA(3, roundz=4)
fine: fedcore.Result = fedcore.run("ssi", [], 2, progress=True, rounds=3)
reveal_type(fine.ledger.rounds)
reveal_type(fine.history.plot())
reveal_type(fedcore.FederatedPCA(0.9, verbose=1).fit([]).components_)

import numpy
import numpy.typing

Array = numpy.typing.NDArray[numpy.float64]


def scores(x: Array) -> Array:
    return fedcore.FederatedPCA(2).fit([x]).transform(x)


def of_each(x: Array, y: Array) -> list[Array]:
    pca = fedcore.FederatedPCA(2)
    return [*pca.fit_transform([x, y]), pca.fit_transform(x)]
"""
# What --strict adds for it to the project's own settings, by which `make lint` fills the cache.
STRICT = """
[[tool.mypy.overrides]]
module = "typed_code"
disallow_any_generics = true
disallow_untyped_calls = true
extra_checks = true
strict_equality = true
warn_return_any = true
"""


def test_a_type_checker_reads_the_types(tmp_path):
    """As it does those of the wheel, which has all files of the package, `py.typed` too."""
    pytest.importorskip("mypy")
    (tmp_path / "typed_code.py").write_text(TYPED)
    settings = tmp_path / "settings.toml"
    settings.write_text(text("pyproject.toml") + STRICT)
    assert (ROOT / "fedcore/py.typed").is_file()
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "-m", "typed_code"],
        cwd=ROOT, env=os.environ | {"MYPYPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    found = run.stdout.splitlines()
    errors = [line.split(":")[1] for line in found if ": error:" in line]
    assert errors == ["4", "5", "6", "7", "8", "9"], run.stdout + run.stderr
    revealed = [line.partition("Revealed type is ")[2] for line in found if "Revealed" in line]
    assert ["int" in revealed[0], "Figure" in revealed[1], "ndarray" in revealed[2]] == [True] * 3
