"""Whatever the user's machine is set to, a run gives the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"]


def run(checkout, **changes):
    environment = {k: v for k, v in (checkout.environment | changes).items() if v is not None}
    return subprocess.run(
        COMMAND, cwd=checkout.root, env=environment, text=True, timeout=1200, umask=0o077,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_braces_in_the_path_are_told(pristine, tmp_path):
    """Snakemake takes them for wildcards in the path of an environment's file."""
    refused = run(pristine.copy(tmp_path / "a{b}"))
    assert refused.returncode == 1
    assert "a{b}: move it, as Snakemake takes no braces in a path\n" in refused.stdout
    assert "rule " not in refused.stdout


def test_a_path_of_odd_characters_and_settings_of_the_user(first_run, pristine, tmp_path):
    odd = pristine.copy(tmp_path / "-sp ace'\"$HOME`;&\\%#ü*[?]\nend")
    for name in ("results", "data/clients"):
        (tmp_path / "else where" / name).mkdir(parents=True)
        (odd.root / name).symlink_to(tmp_path / "else where" / name)
    kernel = tmp_path / "share/jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    spec = {"argv": ["/bin/false"], "display_name": "mine", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    startup = tmp_path / "ipython/profile_default/startup"
    startup.mkdir(parents=True)
    (startup / "mine.py").write_text("raise SystemExit('from the start-up file')")
    (tmp_path / "mine.py").write_text("raise SystemExit('from another start-up file')")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 20\nsavefig.dpi: 7\n")
    done = run(
        odd, HOME="/nowhere", TMPDIR="/nowhere", LC_ALL="C", PYTHONOPTIMIZE="2",
        JUPYTER_DATA_DIR=str(tmp_path / "share/jupyter"), IPYTHONDIR=str(tmp_path / "ipython"),
        JUPYTER_PATH=str(tmp_path / "share/jupyter"), PYTHONSTARTUP=str(tmp_path / "mine.py"),
        MPLBACKEND="no backend", JPY_PARENT_PID="1",
        MATPLOTLIBRC=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert odd.payload() == first_run[0].payload()


@pytest.mark.skipif(not os.path.isdir("/proc/1"), reason="there is no /proc, where none can write")
def test_no_folder_for_caches(done):
    """Snakemake needs one, and says so before it touches anything."""
    (done.root / "results/tiny/tables/tiny/ends.tsv").unlink()
    before = done.payload()
    refused = run(done, HOME="/proc/x", XDG_CACHE_HOME="/proc/x/cache")
    assert refused.returncode != 0 and "/proc/x" in refused.stdout
    assert done.payload() == before
