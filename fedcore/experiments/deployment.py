"""What a deployed run consists of: the job, and a file for each site, which its owner edits.

`write` makes them as `fedcore deploy` is asked. The job has no code: it names classes of the
installed fedcore and FLARE, and a file ``fedcore.json`` at the server with what is to be run.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from fedcore.config import schemas
from fedcore.config.strict_yaml import read_yaml
from fedcore.errors import ConfigError, DataError, InputError
from fedcore.experiments import from_files
from fedcore.federation.flare_member import Data, Reader, Rules
from fedcore.federation.site import Policy
from fedcore.files import HDF5_ENDINGS
from fedcore.problems import storage
from fedcore.problems.clients import Clients

RUN, SITE, JOB, SITES = "fedcore.json", "site.yaml", "job", "sites"
SERVER = "fedcore.experiments.flare_server.Server"
CLIENT = "fedcore.experiments.flare_client.Client"
CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
START = 600  # seconds in which all sites must have begun


@dataclass(frozen=True)
class Task:
    """What the server runs.

    Attributes
    ----------
    algorithm : str
    params : dict
    sites : list of str
        In the order of the clients.
    seed, repeats : int
    metrics : list of str
    center, evaluation : bool
        Whether the mean is subtracted first; whether clients are asked for what is for evaluation.
    """

    algorithm: str
    params: dict[str, Any]
    sites: list[str]
    seed: int = 0
    repeats: int = 1
    metrics: tuple[str, ...] | list[str] = ()
    center: bool = False
    evaluation: bool = False

    @classmethod
    def read(cls, path: Path) -> Task:
        """Read the file of a job.

        Raises
        ------
        ConfigError
        """
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, TypeError, ValueError) as error:
            raise ConfigError(f"{path} is not what fedcore deploy writes ({error})") from error


@dataclass(frozen=True)
class SiteFile:
    """A site's file; its keys are in ``workflow/schemas/site.schema.yaml``."""

    folder: Path
    settings: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> SiteFile:
        """Read the file in a site's folder.

        Raises
        ------
        ConfigError
            When it is missing, is no YAML, or has wrong or unknown keys.
        """
        path = folder / SITE
        settings = schemas.check(read_yaml(path), "site", str(path))
        if settings["tell_samples"] is False and settings["max_epsilon"] is None:
            raise ConfigError(
                f"{path}: tell_samples can be false only beside max_epsilon: methods without noise "
                "read the number of samples"
            )
        return cls(folder, settings)

    @property
    def rules(self) -> Rules:
        """What the site allows."""
        known = self.settings
        policy = Policy(known["max_epsilon"], tuple(known["modules"]), known["evaluation"])
        told = known["tell_samples"]
        says = policy.max_epsilon is None if told is None else told
        return Rules(policy, known["max_delta"], says)

    @property
    def reader(self) -> Reader:
        """What reads the site's data."""
        path, client = split(self.settings["data"])
        whole = str(self.folder / path)
        if client is not None or Path(path).suffix in HDF5_ENDINGS:
            return partial(_of_problem, whole, client)
        return partial(_of_table, whole, self.settings["labels"], self.settings["without"])


def split(data: str) -> tuple[str, int | None]:
    """Return path and number of a client in a problem file, ``problem.h5:2``."""
    path, _, number = data.rpartition(":")
    return (path, int(number)) if path and number.isdecimal() else (data, None)


def _of_table(
    path: str, labels: str | None, without: Sequence[str], columns: list[str] | None
) -> Data:
    own = from_files.make([path], labels=labels, without=without, columns=columns)
    numbered = own.columns == [str(i) for i in range(len(own.columns))]  # a file without names
    return Data(own.problem.clients, "", [] if numbered else own.columns, own.open_ended)


def _of_problem(path: str, number: int | None, columns: list[str] | None) -> Data:
    draws = storage.load_draws(path)
    clients = draws[0].clients
    if len(draws) > 1:
        raise InputError(f"{path} has {len(draws)} draws: give a problem file with one")
    if number is None and len(clients) > 1:
        raise InputError(f"{path} has {len(clients)} clients: say whose it is, as in {path}:0")
    if not 0 <= (number or 0) < len(clients):
        raise DataError(f"{path} has the clients 0 to {len(clients) - 1}, and no client {number}")
    i = number or 0
    labels = None if clients.labels is None else [clients.labels[i]]
    mine = Clients([clients[i]], labels=labels)
    return Data(mine, draws[0].name, require_unwritten=draws[0].require_unwritten)


def write(
    out: Path, task: Task, data: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Path]:
    """Write a job and a folder for each site.

    Parameters
    ----------
    out : Path
        New or empty.
    task : Task
    data : mapping of str to str
        Where the data of each site are, at the site.
    settings : mapping
        Other keys of every site's file.

    Returns
    -------
    dict of str to Path
        Each site's folder.

    Raises
    ------
    InputError, ConfigError
        When `out` has files already, or a key is wrong; then nothing is written.
    """
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} is not empty: name a new folder, or remove what is in it")
    files = {site: {"site": site, "data": where, **settings} for site, where in data.items()}
    for site, content in files.items():
        schemas.check(content, "site", f"--site {site}")  # before anything is written
    server, client = _configured()
    _put(out / JOB / "meta.json", _meta(task))
    _put(out / JOB / "app_server" / "config" / "config_fed_server.json", server)
    _put(out / JOB / "app_server" / "config" / RUN, asdict(task))
    _put(out / JOB / "app_site" / "config" / "config_fed_client.json", client)
    folders = {}
    for site, content in files.items():
        folders[site] = out / SITES / site
        folders[site].mkdir(parents=True)
        (folders[site] / SITE).write_text(site_text(content), encoding="utf-8")
    return folders


def site_text(settings: Mapping[str, Any]) -> str:
    """Return a site's file: each key with its description from the schema."""
    rules = schemas.rules_of("site")["properties"]
    lines = ["# What this site shows to others. The owner of the data decides on every line.\n"]
    for key, rule in rules.items():
        said = textwrap.fill(rule["description"], 100, initial_indent="# ", subsequent_indent="# ")
        value = {key: settings.get(key, rule.get("default"))}
        flow = None if isinstance(value[key], list) else False  # [fedcore], on one line
        written = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow, width=1000)
        lines.append(f"{said}\n{written}")
    return "\n".join(lines)


def _meta(task: Task) -> dict[str, Any]:
    return {
        "name": f"fedcore-{task.algorithm}",
        "resource_spec": {},
        "min_clients": len(task.sites),
        "mandatory_clients": task.sites,
        "deploy_map": {"app_server": ["server"], "app_site": task.sites},
    }


def _configured() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return FLARE's configurations of server and sites."""
    filters: dict[str, Any] = {"task_data_filters": [], "task_result_filters": []}
    controller = {"server_obj_id": "fedcore_server", "sync_task_timeout": START}
    server = {
        "format_version": 2,
        "workflows": [{"id": "controller", "path": CONTROLLER, "args": controller}],
        "components": [{"id": "fedcore_server", "path": SERVER, "args": {}}],
        **filters,
    }
    executor = {"path": EXECUTOR, "args": {"client_obj_id": "fedcore_client"}}
    client = {
        "format_version": 2,
        "executors": [{"tasks": ["*"], "executor": executor}],
        "components": [{"id": "fedcore_client", "path": CLIENT, "args": {}}],
        **filters,
    }
    return server, client


def _put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
