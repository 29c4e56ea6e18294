"""Read YAML like `yaml.safe_load`, but refuse repeated keys, large texts and deep nesting.

If a key is repeated, `yaml.safe_load` silently keeps the last value. A few aliases in a text can
expand to any number of nodes, and the parser recurses once for each level of nesting. Size and
depth are therefore checked before any object is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from fedcore.errors import ConfigError

DEEPEST = 100  # levels of lists and mappings
LARGEST = 2_000_000  # characters with each alias written out, and NODE for each node
NODE = 10
_Fastest: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Fastest):
    """Fastest available safe loader, which raises an error if a mapping has a key twice."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._seen: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse repeated keys in a mapping; then insert the mappings that its key ``<<`` names."""
        if id(node) not in self._seen:
            self._seen.add(id(node))
            self._refuse_twice(node)
        super().flatten_mapping(node)

    def _refuse_twice(self, node: yaml.MappingNode) -> None:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue  # a list or mapping as a key is refused by the schema check
            key = "<<" if key_node.value == "<<" else self.construct_object(key_node)
            if key in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key}' was already given in line {lines[key]}",
                    problem_mark=key_node.start_mark,
                )
            lines[key] = key_node.start_mark.line + 1


def _require_bounded(text: str) -> None:
    """Raise an error if a text is nested too deeply, or too long with its aliases expanded."""
    sizes: dict[str | None, float] = {}  # of what has an anchor; endless until it is closed
    around: list[tuple[str | None, float]] = []  # each open list or mapping, and the total before
    events: Iterable[Any] = yaml.parse(text, Loader=_Fastest)
    total = 0.0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            total += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = NODE + len(event.value)
            total += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, total))
            sizes[event.anchor] = math.inf
            total += NODE
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            sizes[anchor] = total - before
        if len(around) > DEEPEST or total > LARGEST:
            problem = (
                f"the text is more than {DEEPEST} levels deep or, with its aliases written out, "
                f"endless or larger than {LARGEST:,}: shorten the text"
            )
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def parse_yaml(text: str | bytes, what: str) -> Any:
    """Return the Python value of a YAML text."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        _require_bounded(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark else ""
        reason = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        raise ConfigError(f"{what}{place}: {reason}") from error
    # Not UTF-8, a thirteenth month, what its tag does not fit, …
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise ConfigError(f"{what} is not valid YAML: {' '.join(str(error).split())}") from error


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that contains a mapping."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    content = parse_yaml(text, str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds a {type(content).__name__}, not a mapping of keys")
    return content
