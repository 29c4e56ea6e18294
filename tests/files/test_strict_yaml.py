"""YAML that a few bytes make endless, too large or too deep: refused before anything is built."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.errors import ConfigError
from fedcore.files import strict_yaml
from fedcore.files.strict_yaml import parse_yaml
from refused import refused

KINDS = {
    "a list of aliases": ("[{}]", "*{}", ", "),
    "a mapping of aliases": ("{{{}}}", "k{i}: *{}", ", "),
    "merges": ("{{own{i}: 1, <<: [{}]}}", "*{}", ", "),
}


def exploding(kind: str, ways: int, levels: int) -> str:
    """Return levels of which each names the one before several times."""
    whole, part, between = KINDS[kind]
    lines = ["a0: &a0 {x: 1, y: 2}"]
    for level in range(1, levels):
        names = [f"a{level - 1}"] * ways
        parts = between.join(part.format(name, i=i) for i, name in enumerate(names))
        lines.append(f"a{level}: &a{level} {whole.format(parts, i=level)}")
    return "\n".join(lines)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([*KINDS]), st.integers(3, 12), st.integers(16, 60))
def test_what_explodes_is_refused_before_it_is_built(kind, ways, levels):
    text = exploding(kind, ways, levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "load")
        refused(lambda: parse_yaml(text, "text"), ConfigError, "text, line", "aliases")


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.sampled_from([("[", "]"), ("{a: ", "}"), ("[{a: ", "}]")]), min_size=101),
    st.integers(1, 1000),
    st.booleans(),
)
def test_what_is_deep_is_refused(kinds, times, closed):
    opened = "".join(start for start, _ in kinds * times)
    ends = "".join(end for _, end in reversed(kinds * times)) if closed else ""
    refused(lambda: parse_yaml(opened + ends, "text"), ConfigError, "text, line", "deep")


def test_blocks_are_deep_too():
    text = "\n".join(f"{' ' * i}a:" for i in range(200))
    refused(lambda: parse_yaml(text, "text"), ConfigError, "deep")
    refused(lambda: parse_yaml("- " * 100_000 + "a", "text"), ConfigError, "deep")


@pytest.mark.parametrize(
    "text",
    ["&a [*a]", "a: &a {b: [1, {c: *a}]}", "a: &a {<<: *a}", "a: &a\n  b: &b [*b]", "&a {*a : 1}"],
)
def test_what_holds_itself_is_refused(text):
    refused(lambda: parse_yaml(text, "text"), ConfigError, "text, line", "endless")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii"), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner),
    max_leaves=30,
)


@settings(deadline=None, max_examples=50)
@given(VALUES, st.integers(1, 5))
def test_all_else_is_read_as_before(value, times):
    """What is named several times is dumped with anchors and aliases."""
    text = yaml.safe_dump([value] * times)
    assert parse_yaml(text, "text") == yaml.safe_load(text) == [value] * times


class Written(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def read(text: str, largest: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_yaml, "LARGEST", largest)
        try:
            return bool(parse_yaml(text, "text")) or True
        except ConfigError:
            return False


@settings(deadline=None, max_examples=50)
@given(VALUES, st.integers(1, 5), st.integers(10, 500))
def test_an_alias_counts_as_what_it_stands_for(value, times, largest):
    short, long = yaml.safe_dump([value] * times), yaml.dump([value] * times, Dumper=Written)
    assert read(short, largest) == read(long, largest)
    assert read(long, 10**6) and not read(short, 5)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from("int float bool timestamp binary null set omap pairs str seq map".split()),
    st.sampled_from(["x", "_", "", "-", "0x", "::", "1e", "0b", "%%%", "2020-13-41"]),
    st.sampled_from(["{}", '"{}"', "['{}']", "{{a: '{}'}}", "[{{a: '{}'}}]", "{{? ['{}'] : 1}}"]),
)
def test_what_does_not_fit_its_tag_is_taken_or_refused_in_a_sentence(tag, value, form):
    try:
        parse_yaml(f"a: !!{tag} {form.format(value)}", "text")
    except ConfigError as error:
        assert str(error).startswith("text")
