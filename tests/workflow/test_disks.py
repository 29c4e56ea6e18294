"""A disk that is full or read-only: nothing half is left, and the next run makes the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

import pytest

ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mount"), reason="only root can mount a small disk"
)
TABLES = [f"results/tiny/tables/tiny/ends.{kind}" for kind in ("tsv", "md")]


def mount(*args):
    done = subprocess.run(["mount", *map(str, args)], capture_output=True, text=True)
    if done.returncode:  # a container may keep this from root
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")


@contextlib.contextmanager
def disk(folder, size):
    """A disk of this size in the place of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={size}", "none", folder)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def made(checkout):
    return checkout.files("data/clients/tiny/**/*", "results/tiny/histories/**/*", *TABLES)


FULL = {
    "problems": ("data/clients", "24k"),
    "histories": ("results", "100k"),
    "Snakemake's notes": (".snakemake", "40k"),
}


@ROOT_ONLY
@pytest.mark.slow
@pytest.mark.parametrize("place", FULL)
def test_a_full_disk(first_run, fresh, place):
    name, size = FULL[place]
    with disk(fresh.root / name, size):
        full = fresh.snakemake(TABLES[0])
        assert full.status == 1
        if name != ".snakemake":  # the shell says it if not even a log can be made
            assert "no space" in full.text.lower(), full.text
        assert not list(fresh.root.glob("*/**/.*.tmp.*"))
        mount("-o", "remount,size=20m", fresh.root / name)
        if name == ".snakemake":  # it cannot unlock either
            fresh.snakemake("--unlock")
        fresh.run(TABLES[0])
        whole, found = first_run[0].payload(), made(fresh)
        assert set(TABLES) <= set(found) and len(found) > 8
        assert found == {name: whole[name] for name in found}


@ROOT_ONLY
def test_read_only_results(first_run, done):
    (done.root / TABLES[0]).unlink()
    shutil.move(done.root / "results", done.root / "aside")
    with disk(done.root / "results", "20m"):
        shutil.copytree(done.root / "aside", done.root / "results", dirs_exist_ok=True)
        before = made(done)
        mount("-o", "remount,ro", done.root / "results")
        refused = done.snakemake(TABLES[0])
        assert refused.status == 1 and "Write-protected output files" in refused.text
        assert made(done) == before
        mount("-o", "remount,rw", done.root / "results")
        done.run(TABLES[0])
        whole = first_run[0].payload()
        assert made(done) == {name: whole[name] for name in made(done)}


@ROOT_ONLY
def test_a_folder_of_plans_that_is_read_only(done):
    plans = done.root / ".snakemake/fedcore-plans"
    mount("--bind", plans, plans)
    try:
        mount("-o", "remount,ro,bind", plans)
        run = done.snakemake(TABLES[0], "--forceall")
    finally:
        subprocess.run(["umount", "--lazy", str(plans)], check=True)
    assert run.status == 1 and "Traceback" not in run.text
    assert f"{plans} cannot be written (" in run.text
