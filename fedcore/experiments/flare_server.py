"""The server's part of a job of NVIDIA FLARE, which names this class; it needs nvflare.

FLARE calls `Server.run` once all sites are there. While a site works, it is asked now and then
whether it lives: FLARE itself would wait until a call's time is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from nvflare.collab import collab

from fedcore.experiments.deployed import lead
from fedcore.experiments.deployment import RUN, Task
from fedcore.federation.flare_group import LostError

LONGEST = 7 * 24 * 3600.0  # seconds that a site may work on an order
EVERY, PATIENCE = 5.0, 300.0  # seconds between two questions, and until one is answered
TRIES = 3  # questions without an answer after which a site is lost
FOLDER = "fedcore"  # in the job's folder, which FLARE keeps and gives to who downloads the job


class Server:
    """The server of a run."""

    @collab.main
    def run(self) -> None:
        """Run what the job's file says, see `fedcore.experiments.deployed.lead`."""
        workspace, job = collab.workspace, collab.fl_ctx.get_job_id()
        task = Task.read(Path(workspace.get_app_config_dir(job)) / RUN)
        folder = Path(workspace.get_run_dir(job)) / FOLDER
        folder.mkdir(exist_ok=True)
        pool = ThreadPoolExecutor(len(task.sites))
        try:
            lead(task, Proxies(task.sites, collab.get_clients(task.sites), pool), folder)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # a lost site would be waited for


class Proxies:
    """Link to the sites by FLARE's proxies.

    Parameters
    ----------
    names : sequence of str
    proxies : sequence
        FLARE's, one for each name.
    pool : ThreadPoolExecutor
        With a thread for each site.
    """

    def __init__(
        self, names: Sequence[str], proxies: Sequence[Any], pool: ThreadPoolExecutor
    ) -> None:
        self._names, self._proxies, self._pool = names, list(proxies), pool

    def call(self, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Send messages and wait for the answers; see `fedcore.federation.flare_group.Link`."""
        waiting = {
            self._pool.submit(self._proxies[i](timeout=LONGEST).obey, message=message): i
            for i, message in messages.items()
        }
        answers: dict[int, bytes] = {}
        silent: Counter[int] = Counter()
        while waiting:
            done, _ = wait(waiting, timeout=EVERY, return_when=FIRST_COMPLETED)
            if not done:
                self._require_alive(waiting.values(), silent)
            for future in done:
                i = waiting.pop(future)
                answers[i] = self._answer(future, self._names[i])
        return answers

    def _answer(self, future: Future[bytes], name: str) -> bytes:
        try:
            return future.result()
        except Exception as error:  # FLARE's own, as a site's are answers
            raise _lost(name) from error

    def _require_alive(self, sites: Iterable[int], silent: Counter[int]) -> None:
        """Ask sites whether they live, and count how often each has not answered."""
        for i in sites:
            try:
                self._proxies[i](timeout=PATIENCE).here()
                silent[i] = 0
            except Exception as error:
                silent[i] += 1
                if silent[i] == TRIES:
                    raise _lost(self._names[i]) from error


def _lost(name: str) -> LostError:
    return LostError(
        f"the site {name} was lost in the middle of the run: start its client again, and submit "
        "the job again"
    )
