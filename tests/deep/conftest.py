"""These tests look into tensors, and name a device themselves where they want one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def on_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDCORE_DEVICE", raising=False)
