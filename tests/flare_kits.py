"""Organisations on this machine: provisioned kits of FLARE, each a process, with mutual TLS."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mpiexec import below

ROOT = Path(__file__).parents[1]
PATIENCE = 400.0  # seconds, on a machine that is busy
needs_flare = pytest.mark.skipif(
    find_spec("nvflare") is None, reason="needs NVIDIA FLARE in this environment: make flare"
)
ENVIRONMENT = {
    **os.environ,
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}
ADMIN = "lead@trust.org"
PROJECT = """
api_version: 3
name: hospitals
description: hospitals
participants:
  - {{name: localhost, type: server, org: trust, fed_learn_port: {port}}}
{sites}
  - {{name: {admin}, type: admin, org: trust, role: lead}}
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {{config_folder: config}}
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""
# The calls that FLARE's console makes: submit, wait for the end, fetch what is at the server.
CONSOLE = """
import json, sys, time
from nvflare.fuel.flare_api.flare_api import new_secure_session
user, kit, job, names, target, patience = sys.argv[1:]
until = time.monotonic() + float(patience)
while True:
    try:
        session = new_secure_session(user, kit, timeout=10.0)
        here = {client.name for client in session.get_system_info().client_info}
        if set(names.split(",")) <= here:
            break
        session.close()
    except Exception as error:
        print(error, file=sys.stderr)
    if time.monotonic() > until:
        sys.exit("the sites did not come")
    time.sleep(1)
number = session.submit_job(job)
while True:
    meta = session.get_job_meta(number)
    if meta["status"].startswith("FINISHED") or meta["status"].startswith("FAILED"):
        break
    if time.monotonic() > until:
        session.abort_job(number)
        sys.exit(f"the job did not end: {meta}")
    time.sleep(1)
where = session.download_job_result(number, target)
print(json.dumps({"status": meta["status"], "where": where, "job": number}))
session.close()
"""


def fedcore(*words: Any, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of fedcore in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "fedcore", *map(str, words)], cwd=cwd, env=ENVIRONMENT,
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Organisations:
    """A server and sites, with a startup kit each.

    Parameters
    ----------
    folder : Path
    folders : mapping of str to Path
        Each site's own, as `fedcore deploy` makes it.
    wrap : mapping of str to words
        Put before the command of the server ("localhost") or of a site.
    """

    def __init__(
        self, folder: Path, folders: Mapping[str, Path],
        wrap: Mapping[str, Sequence[str]] | None = None,
        environment: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.names = folder, list(folders)
        sites = "\n".join(f"  - {{name: {n}, type: client, org: {n}}}" for n in folders)
        folder.mkdir(parents=True)
        text = PROJECT.format(port=free_port(), sites=sites, admin=ADMIN)
        (folder / "project.yml").write_text(text)
        words = ["-p", "project.yml", "-w", "kits", "--force"]
        code = "import sys; from nvflare.cli import main; sys.exit(main())"
        subprocess.run(
            [sys.executable, "-c", code, "provision", *words], cwd=folder, env=ENVIRONMENT,
            check=True, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.kits = folder / "kits" / "hospitals" / "prod_00"
        fedcore("join", self.kits / "localhost", cwd=folder)
        for name, own in folders.items():
            fedcore("join", self.kits / name, own, cwd=folder)
        self._wrap, self._environment = wrap or {}, environment or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Organisations:
        for name in ("localhost", *self.names):
            with open(self.folder / f"{name}.log", "wb") as log:
                self.processes[name] = subprocess.Popen(
                    [*self._wrap.get(name, ()), str(self.kits / name / "startup/sub_start.sh"),
                     "--once"],
                    cwd=self.folder, env={**ENVIRONMENT, **self._environment.get(name, {})},
                    stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )  # fmt: skip
        return self

    def __exit__(self, *error: Any) -> None:
        """End every process that was started here, and what these have started."""
        for process in self.processes.values():
            for pid in [process.pid, *below(process.pid)]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()

    def start_job(self, job: Path, target: Path) -> subprocess.Popen[str]:
        """Submit a job; the process ends with it, and says where its files are."""
        kit = self.kits / ADMIN
        names = ",".join(self.names)
        words = [ADMIN, kit, job, names, target, PATIENCE]
        return subprocess.Popen(
            [sys.executable, "-c", CONSOLE, *map(str, words)], cwd=self.folder, env=ENVIRONMENT,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def run_job(self, job: Path, target: Path) -> dict[str, Any]:
        return self.ended(self.start_job(job, target))

    def ended(self, console: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a job's end; return its status and the folder of the server's files."""
        out, err = console.communicate(timeout=PATIENCE + 60)
        assert console.returncode == 0, f"{out}{err}\n{self.logs()}"
        found = json.loads(out.splitlines()[-1])
        (at,) = Path(found["where"]).rglob("fedcore")
        return {**found, "files": at}

    def logs(self) -> str:
        return "\n".join(
            f"== {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in self.folder.glob("*.log")
        )


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def process_of(ancestor: int, words: str) -> int | None:
    """Return the process below another one whose command matches an expression."""
    found = [pid for pid in below(ancestor) if re.search(words, command_of(pid))]
    return found[0] if found else None


def wait_for(condition: Any, what: str) -> Any:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.1)
    return pytest.fail(f"waited in vain for {what}")
