"""A site's part of a job of NVIDIA FLARE, which names this class; it needs nvflare.

FLARE makes one `Client` in the job's process at each site. Where the site's folder is says the
file ``local/fedcore.json`` of its startup kit, which `fedcore join` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from nvflare.collab import collab

from fedcore.errors import ConfigError, RefusedError
from fedcore.experiments.deployment import RUN, SiteFile
from fedcore.experiments.provenance import own_version
from fedcore.federation.failures import Failure
from fedcore.federation.flare_member import Member
from fedcore.federation.flare_messages import Answer
from fedcore.steps.values import encode


class Client:
    """One site."""

    def __init__(self) -> None:
        self._member: Member | None = None

    @collab.publish
    def obey(self, message: bytes) -> bytes:
        """Do what the server's message says, see `Member.answer`; others are refused."""
        try:
            if collab.caller != "server":
                raise RefusedError(f"{collab.site_name} obeys the server, and not {collab.caller}")
            if self._member is None:
                self._member = _member()
        except Exception as error:
            return encode(Answer(failure=Failure.of(error)._replace(trace="")))
        return self._member.answer(message)

    @collab.publish
    def here(self) -> bool:
        """Say that this process lives."""
        return True

    @collab.final
    def close(self) -> None:
        """Write what has left the site in a run that was not ended."""
        if self._member is not None:
            self._member.close()


def _member() -> Member:
    """Return the member of this process, by the site's own file."""
    name, pointer = collab.site_name, Path(collab.workspace.get_site_config_dir()) / RUN
    try:
        folder = Path(json.loads(pointer.read_text(encoding="utf-8"))[name])
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"the site {name} has no folder of fedcore: run fedcore join KIT FOLDER there"
        ) from error
    site = SiteFile.read(folder)
    job = str(collab.fl_ctx.get_job_id())
    return Member(name, job, site.rules, site.reader, folder, own_version())
