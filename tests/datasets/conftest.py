"""Tiny files in the formats of the real data sets, and a registry that describes them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
import yaml


def _source(loader: str, splits: dict, files: dict[str, bytes], **more) -> dict:
    """Files of a registry entry, with their checksums; `more` may hold urls by file name."""
    urls = more.pop("urls", {})
    described = [
        {"name": name, "sha256": hashlib.sha256(content).hexdigest()}
        | ({"bytes": len(content), "urls": urls[name]} if name in urls else {})
        for name, content in files.items()
    ]
    head = {"status": "official", "note": "A test file.", "loader": loader}
    return head | {"splits": splits, "files": described} | more


@pytest.fixture
def source():
    """The function that describes files; see `_source`."""
    return _source


@pytest.fixture
def registry(tmp_path):
    """Write a registry with one data set 'toy' of the given files; return its path."""

    def write(source: dict, *, n_features: int, **more) -> Path:
        entry = {
            "title": "Toy",
            "description": "A toy.",
            "terms": "None.",
            "citation": "None.",
            "homepage": "https://example.org/",
            "n_features": n_features,
        }
        path = tmp_path / "registry.yaml"
        path.write_text(yaml.safe_dump({"datasets": {"toy": entry | source | more}}))
        return path

    return write


@pytest.fixture
def place(tmp_path):
    """Put files into tmp_path/<root>/toy; return the root."""

    def put(root: str, files: dict[str, bytes]) -> Path:
        folder = tmp_path / root / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return tmp_path / root

    return put


@pytest.fixture
def no_mirror(monkeypatch):
    monkeypatch.delenv("FEDCORE_MIRROR", raising=False)


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """Fetch a real data set from the mirror; skip when there is none."""
    mirror = os.environ.get("FEDCORE_MIRROR")

    def raw(name: str) -> Path:
        if not mirror or not (Path(mirror) / name).is_dir():
            pytest.skip(f"FEDCORE_MIRROR holds no folder '{name}' with the real files")
        from fedcore import datasets

        folder = tmp_path_factory.getbasetemp() / "raw"
        datasets.fetch(name, folder, progress=False)
        return folder

    return raw
