"""README as a package index shows it, where no link can lead to a file of the repository.

With an address under ``Repository`` in pyproject.toml's ``urls``, links to files lead there, to the
tag of the version. Without one they are their text alone. Links in a page and to other sites stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>(?!#|[a-z]+:)[^()\s]+)\)")


def readme(text: str, root: Path, repository: str | None, version: str) -> str:
    """Return the text of README with its relative links made absolute, or made text."""

    def link(found: re.Match[str]) -> str:
        if repository is None:
            return "" if found["image"] else found["text"]
        path = root / found["target"].partition("#")[0]
        kind = "raw" if found["image"] else "tree" if path.is_dir() else "blob"
        target = f"{repository.rstrip('/')}/{kind}/v{version}/{found['target']}"
        return f"{found['image']}[{found['text']}]({target})"

    return LINK.sub(link, text)


class ReadmeHook(MetadataHookInterface):
    """Sets the long description of the distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put README, with links that lead somewhere, into the metadata."""
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        shown = readme(text, root, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
