"""Writers of one output do not get into each other's way."""

from __future__ import annotations

import os

import pytest

from fedcore.files import atomic


def test_two_writers_with_one_process_id(tmp_path, monkeypatch):
    """As two containers that share a folder have it: both finish, and the later one stays."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    final = tmp_path / "table.tsv"
    with atomic.replace(final) as first:
        first.write_text("first")
        with atomic.replace(final) as second:
            assert second != first
            second.write_text("second")
        assert final.read_text() == "second"
        assert first.read_text() == "first"
    assert final.read_text() == "first"
    assert os.listdir(tmp_path) == ["table.tsv"]


def test_the_temporary_name(tmp_path):
    """It is hidden, keeps the ending, and is found by the pattern of what is left over."""
    with atomic.replace(tmp_path / "a" / "table.tsv") as temporary:
        temporary.touch()
        assert temporary.parent == tmp_path / "a" and temporary.suffix == ".tsv"
        assert atomic.LEFT_OVER.fullmatch(temporary.name)
    assert not atomic.LEFT_OVER.fullmatch("table.tsv")


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic.replace(tmp_path / "x") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
