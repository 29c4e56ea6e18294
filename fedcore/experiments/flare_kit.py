"""FLARE on this machine: what fedcore writes into a startup kit, and a job in FLARE's simulator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, FedcoreError, InputError
from fedcore.experiments.deployed import FAILED, INCOMPLETE
from fedcore.experiments.deployment import (
    CLIENT,
    CONTROLLER,
    EXECUTOR,
    JOB,
    RUN,
    SERVER,
    SITES,
    SiteFile,
)
from fedcore.files import atomic

CLASSES = {"server": [CONTROLLER, SERVER], "site": [EXECUTOR, CLIENT]}
NO_CODE = ("byoc", "shell_commands", "server-predeployed-flwr")  # rights that nobody has
RIGHTS = ("submit_job", "clone_job", "manage_job", "download_job", "view", "operate")
STORE = "/tmp/nvflare/"  # where FLARE's server keeps jobs and their results
SIMULATOR = "nvflare.private.fed.app.simulator.simulator"
AT_SERVER = "server/simulate_job/fedcore"  # in the simulator's workspace


def require() -> None:
    """Refuse to go on without FLARE.

    Raises
    ------
    InputError
    """
    if find_spec("nvflare") is None:
        raise InputError(
            "this needs NVIDIA FLARE: pip install nvflare, or make flare in fedcore's checkout"
        )


def join(kit: Path, folders: Iterable[Path] = ()) -> None:
    """Let a startup kit of FLARE run fedcore's jobs, and no code that comes with a job.

    Parameters
    ----------
    kit : Path
        Of a site or of the server.
    folders : iterable of Path
        Of the sites that the kit is for; none for the server's.

    Raises
    ------
    ConfigError
        When this is no kit, or a site's file is wrong.
    """
    local = kit / "local"
    if not local.is_dir():
        raise ConfigError(f"{kit} is no startup kit of FLARE: it has no folder local")
    sites = {SiteFile.read(folder).settings["site"]: str(folder.resolve()) for folder in folders}
    resources = _of_kit(local, "resources.json")
    resources["class_allow_list"] = CLASSES["site" if sites else "server"]
    resources["class_list_enforcement_mode"] = "enforce"
    resources["allow_log_streaming"] = False
    if not sites:  # FLARE's default is shared by all servers of a machine, and gone after a restart
        text = json.dumps(resources).replace(STORE, f"{kit.resolve()}/")
        resources = json.loads(text)
    _put(local / "resources.json", resources)
    rights = _of_kit(local, "authorization.json")
    rights["permissions"] = {
        role: {**(dict.fromkeys(RIGHTS, given) if isinstance(given, str) else given),
               **dict.fromkeys(NO_CODE, "none")}
        for role, given in rights.get("permissions", {}).items()
    }  # fmt: skip
    _put(local / "authorization.json", rights)
    if sites:
        _put(local / RUN, sites)


def _of_kit(local: Path, name: str) -> dict[str, Any]:
    """Return a file of a kit, or the default that FLARE has put beside it."""
    for path in (local / name, local / f"{name}.default"):
        if path.is_file():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigError(f"{path} is no JSON ({error})") from error
            if isinstance(found, dict):
                return found
            raise ConfigError(f"{path} is not what FLARE writes")
    return {"format_version": 2} if name == "resources.json" else {"format_version": "1.0"}


def _put(path: Path, value: Mapping[str, Any]) -> None:
    with atomic.replace(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def command(deployed: Path, workspace: Path) -> list[str]:
    """Return the command that runs a deployed job in FLARE's simulator, a process for each site.

    It makes the simulator's workspace ready for it.
    """
    folders = sorted((deployed / SITES).iterdir())
    names = ",".join(SiteFile.read(folder).settings["site"] for folder in folders)
    (workspace / "local").mkdir(parents=True, exist_ok=True)
    join(workspace, folders)
    resources = _of_kit(workspace / "local", "resources.json")
    resources["class_allow_list"] = [*CLASSES["server"], *CLASSES["site"]]
    _put(workspace / "local" / "resources.json", resources)
    where = ["-w", str(workspace), "-c", names, "-t", str(len(folders))]
    return [sys.executable, "-m", SIMULATOR, str(deployed / JOB), *where]


def simulate(deployed: Path, workspace: Path) -> Path:
    """Run a deployed job in FLARE's simulator, and return the folder with the server's files.

    Raises
    ------
    InputError
        Without FLARE.
    FedcoreError
        With the sentence that has ended the run.
    """
    require()
    words, log = command(deployed, workspace), deployed / "simulator.log"
    with open(log, "wb") as file:
        subprocess.run(
            words, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
            env={**os.environ, "PYTHONPATH": _path()},
        )  # fmt: skip
    found = workspace / AT_SERVER
    if (found / FAILED).is_file():
        said = (found / FAILED).read_text(encoding="utf-8").strip()
        for name in (FAILED, INCOMPLETE):
            if (found / name).is_file():
                shutil.copyfile(found / name, deployed / name)
        raise FedcoreError(said)
    if not found.is_dir():
        raise FedcoreError(f"FLARE's simulator has not begun the run: {log} says more")
    return found


def _path() -> str:
    """Return Python's path of this process, so that all others find the same fedcore."""
    own = str(Path(__file__).parents[2])
    return os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
