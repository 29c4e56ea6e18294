"""The link over FLARE's proxies: answers of all sites, and a site that does not answer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flare_kits import needs_flare

from fedcore.federation.flare_group import LostError

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
