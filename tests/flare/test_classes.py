"""The classes that FLARE makes: the server's link to the sites, and whom a site obeys."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from flare_kits import needs_flare

from fedcore.federation.flare_group import LostError
from fedcore.federation.flare_messages import Join
from fedcore.steps.values import decode, encode

pytestmark = needs_flare


class Proxy:
    """A site as FLARE's proxy shows it."""

    def __init__(self, seconds=0.0, silent=0, fails=False):
        self.seconds, self.silent, self.fails = seconds, silent, fails

    def __call__(self, timeout):
        assert timeout >= 300
        return self

    def obey(self, message):
        time.sleep(self.seconds)
        if self.fails:
            raise TimeoutError
        return message[::-1]

    def here(self):
        self.silent -= 1
        if self.silent >= 0:
            raise ConnectionError("target_unreachable")
        return True


@pytest.fixture
def call(monkeypatch):
    from fedcore.experiments import flare_server

    monkeypatch.setattr(flare_server, "EVERY", 0.05)
    pool = ThreadPoolExecutor(3)

    def over(*proxies):
        names = ["a", "b", "c"][: len(proxies)]
        link = flare_server.Proxies(names, proxies, pool)
        return link.call({i: b"%d!" % i for i in range(len(proxies))})

    yield over
    pool.shutdown(wait=False)


def test_every_site_gets_its_own_and_is_waited_for(call):
    assert call(Proxy(0.3), Proxy(), Proxy(0.1)) == {0: b"!0", 1: b"!1", 2: b"!2"}


def test_a_site_may_miss_two_questions(call):
    assert call(Proxy(0.6, silent=2), Proxy()) == {0: b"!0", 1: b"!1"}


def test_a_site_that_misses_three_is_lost(call):
    with pytest.raises(LostError, match="the site b was lost"):
        call(Proxy(), Proxy(1.5, silent=9))


def test_a_call_that_fails_is_a_lost_site(call):
    with pytest.raises(LostError, match="the site a was lost"):
        call(Proxy(fails=True), Proxy())


@pytest.fixture
def client(monkeypatch, tmp_path):
    """Return a site's object, and what FLARE says of the call."""
    from fedcore.experiments import flare_client

    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    (tmp_path / "site.yaml").write_text("site: north\ndata: x.npy\n")
    (tmp_path / "fedcore.json").write_text(json.dumps({"north": str(tmp_path)}))
    around = SimpleNamespace(
        caller="server", site_name="north", fl_ctx=SimpleNamespace(get_job_id=lambda: "job"),
        workspace=SimpleNamespace(get_site_config_dir=lambda: str(tmp_path)),
    )  # fmt: skip
    monkeypatch.setattr(flare_client, "collab", around)
    return flare_client.Client(), around


def test_a_site_obeys_the_server_and_no_other_site(client):
    site, around = client
    assert decode(site.obey(encode(Join())), ("fedcore",)).value.n_features == 3
    around.caller = "south"
    answer = decode(site.obey(encode(Join())), ("fedcore",))
    assert answer.value is None and answer.failure.kind[1] == "RefusedError"
    assert "north obeys the server, and not south" in answer.failure.said


def test_a_site_that_has_not_joined_says_so(client, tmp_path):
    (tmp_path / "fedcore.json").unlink()
    answer = decode(client[0].obey(encode(Join())), ("fedcore",))
    assert "run fedcore join KIT FOLDER there" in answer.failure.said
