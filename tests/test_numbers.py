"""Every number with a unit in the prose of README and of the pages is that of its source.

docs/numbers.yaml says for each where it comes from: text of a file, what a function here computes,
or why it is no measurement. What a command writes between two comments, whole pages that a command
writes, and blocks of code have tests of their own.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from printed import BLOCK, ROOT, pages

from fedcore.audits import epsilon_bound
from fedcore.datasets import download, reading
from fedcore.files import hdf5
from fedcore.reports import claim_tests

ENTRIES = yaml.safe_load((ROOT / "docs/numbers.yaml").read_text(encoding="utf-8"))
WORDS = {
    word: i for i, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}
NUMBER = rf"(?<![\w.,/])(?:\d[\d   ,.]*\d|\d|{'|'.join(WORDS)})"
UNIT = r"(?:µs|ms|s|min|h|hours?|minutes?|seconds?|[kMGT]i?B|bytes)\b|%|times\b"
MEASURED = re.compile(rf"{NUMBER}(?:[\s  ]+(?:CPU )?(?:{UNIT})|%)")
WRITTEN = re.compile(r"<!-- `make [^>]*-->.*?<!-- end of what `make [^>]*-->", re.S)
WHOLE = re.compile(r"writes this page|written by `make|\{include\}")
LOG = "CHANGELOG.md"  # what was true when each line was written


def full_run() -> list[float]:
    """Hours of the last full runs on two cores, parts of earlier runs included, less networks.

    An experiment that several runs made, some of them in part, counts with its longest.
    """
    kept = json.loads((ROOT / "docs/verdicts/run.json").read_text(encoding="utf-8"))
    longest: dict[tuple[str, str], float] = {}
    for paper in kept.keys() - {"fedrep"}:
        for run in (kept[paper], *kept[paper].get("earlier", [])):
            for name, time in run["times"].items():
                key = paper, name
                longest[key] = max(time["seconds"], longest.get(key, 0.0))
    return [sum(longest.values()) / 2 / 3600]


def against_randomized_svd() -> list[float]:
    """The least and the largest ratio of times in the kept output of bench_users."""
    text = (ROOT / "benchmarks/kept/bench_users.txt").read_text(encoding="utf-8")
    lines = text[text.index("| n × d, clients, r |") :].split("\n\n")[0].splitlines()
    place = [cell.strip() for cell in lines[0].split("|")].index("/ randomized_svd")
    ratios = [float(line.split("|")[place]) for line in lines[2:]]
    return [min(ratios), max(ratios)]


def over_mpi(kind: str, ranks: str, what: str) -> float:
    """A number of the kept output of bench_mpi: a line of a round, for a number of ranks."""
    kept = (ROOT / "benchmarks/kept/bench_mpi.txt").read_text(encoding="utf-8")
    part = kept.split(f"a round that is {kind}")[1]
    return float(re.search(rf"^ +{ranks} rank\(s\): .*?{what}", part, re.M)[1])


def message_of_bench_mpi() -> list[float]:
    text = (ROOT / "benchmarks/bench_mpi.py").read_text(encoding="utf-8")
    rows, features = map(int, re.search(r'"messages": Kind\((\d+), (\d+),', text).groups())
    return [rows * features * 8 / 1e3]


def raw_sets() -> list[float]:
    """Sizes in memory: the shapes of data/README.md, and the types that its stand-ins have, too."""
    text, found = (ROOT / "data/README.md").read_text(encoding="utf-8"), []
    for name in ("mnist", "w8a", "cifar10"):
        shape = re.search(rf"^\| `{name}`.*? \| ([\d,]+) × ([\d,]+)", text, re.M).groups()
        rows, columns = (int(number.replace(",", "")) for number in shape)
        few = reading.load(name, "", surrogate=True, options={"samples": 10}).x
        found.append(rows * columns * few.itemsize / 1e6)
    return found


def confidence_of_audits() -> list[float]:
    signature = inspect.signature(epsilon_bound.lower_bound)
    return [100 * signature.parameters["confidence"].default]


LEVEL = 100 * claim_tests.LEVEL
CPU = r"cpu .*, ([\d.]+) times as fast"
COMPUTED: dict[str, Callable[[], list[float]]] = {
    "hours of the full run": full_run,
    "ratios to randomized_svd": against_randomized_svd,
    "share of two ranks": lambda: [over_mpi("work", "2", CPU)],
    "messages over MPI, in ms": lambda: [
        over_mpi("messages", ranks, r"cpu +([\d.]+)") for ranks in ("2", "no MPI")
    ],
    "message of bench_mpi, in kB": message_of_bench_mpi,
    "raw sets, in MB": raw_sets,
    "levels of the tests, in %": lambda: [LEVEL],
    "levels of outliers, in %": lambda: [LEVEL * claim_tests.OUTLIER, LEVEL],
    "two one-sided tests, in %": lambda: [100 - 2 * LEVEL],
    "size of large files, in MiB": lambda: [hdf5.LARGE / 2**20],
    "slowest download, in kB a second": lambda: [download.SLOWEST / 1e3],
    "confidence of audits, in %": confidence_of_audits,
}


def prose(text: str) -> str:
    """Return a page with spaces in the place of what is no prose, and of the ends of lines.

    Comments behind the commands of a console are prose.
    """

    def comments(block: re.Match[str]) -> str:
        if block["language"] != "console":
            return " " * len(block[0])
        return re.sub(r"^(?:(?! #).)*", lambda code: " " * len(code[0]), block[0], flags=re.M)

    text = BLOCK.sub(comments, WRITTEN.sub(lambda found: " " * len(found[0]), text))
    text = re.sub(r"`[^`\n]*`", lambda found: " " * len(found[0]), text)
    return text.replace("\n", " ")


def read() -> dict[str, str]:
    texts = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in pages()}
    return {name: text for name, text in texts.items() if name != LOG and not WHOLE.search(text)}


def untold(text: str, entries: list[dict]) -> list[str]:
    """Numbers with a unit that no entry says."""
    shown = prose(text)
    told = [m.span() for e in entries for m in re.finditer(e["says"], shown)]
    return [
        " ".join(shown[max(0, found.start() - 50) : found.end() + 20].split())
        for found in MEASURED.finditer(shown)
        if not any(a <= found.start() and found.end() <= b for a, b in told)
    ]


def value(number: str) -> float:
    return float(WORDS.get(number, re.sub(r"[\s  ,]", "", number)))


def agrees(said: str, known: float) -> bool:
    """Whether a number is another one, rounded as it is printed."""
    digits = len(said.partition(".")[2]) if "." in said else 0
    return abs(value(said) - known) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def known(entry: dict, root: Path = ROOT) -> list[float]:
    """Return the numbers of an entry's source."""
    if "computed" in entry:
        return COMPUTED[entry["computed"]]()
    found = []
    for place in entry["from"]:
        file, _, pattern = place.partition(" ~ ")
        (match,) = re.findall(pattern, (root / file).read_text(encoding="utf-8"), re.M) or [None]
        assert match is not None, f"{file} has no '{pattern}'"
        found.append(value(match))
    return found


@pytest.mark.parametrize("page", read())
def test_every_number_has_a_source(page):
    assert untold(read()[page], ENTRIES.get(page, [])) == [], "say in docs/numbers.yaml where from"


@pytest.mark.parametrize(
    ("page", "entry"), [(page, e) for page, entries in ENTRIES.items() for e in entries]
)
def test_a_number_is_that_of_its_source(page, entry):
    shown = prose(read()[page])
    (said, *more) = re.finditer(entry["says"], shown)
    assert not more, f"{page} says '{entry['says']}' more than once"
    if "because" in entry:
        assert len(entry["because"]) > 15 and entry.keys() == {"says", "because"}
        return
    found = known(entry)
    if entry.get("between"):
        low, high = map(value, said.groups())
        assert all(low <= number <= high for number in found), (said[0], found)
        return
    numbers = said.groups()
    assert numbers and len(numbers) == len(found)
    for number, source in zip(numbers, found, strict=True):
        assert agrees(number, source), f"{page}: '{said[0]}', but the source says {source:g}"


def test_pages_without_entries_have_none():
    assert ENTRIES.keys() <= read().keys()


def test_a_number_without_a_source_is_noticed():
    text = "It takes 3.5 s, or two hours.\n\n```text\n9 s\n```\n\n`4 MB` of 12 %\n"
    assert len(untold(text, [])) == 3
    assert len(untold(text, [{"says": r"takes (\S+) s, or two hours"}])) == 1
    assert untold("<!-- `make x` writes -->\n7 s\n<!-- end of what `make x` writes -->", []) == []
    assert len(untold("```console\n$ make x --limit 3 s  # takes 9 s\n4 s\n```\n", [])) == 1
    assert untold("r = 10, n = 2000 and figure 3, 300 × 5, v0.9 s", []) == []


@pytest.mark.parametrize(
    ("said", "source", "same"),
    [("0.04", 0.0373, True), ("0.04", 0.051, False), ("25", 24.6, True), ("two", 2.4, True),
     ("1.88", 1.871, False), ("20 000", 20000, True)],
)  # fmt: skip
def test_numbers_agree_as_they_are_rounded(said, source, same):
    assert agrees(said, source) == same


def test_a_stale_number_and_a_lost_source_are_noticed(tmp_path):
    (tmp_path / "out.txt").write_text("ours   0.37\nother 1\nother 2\n")
    assert known({"from": [r"out.txt ~ ours +([\d.]+)"]}, tmp_path) == [0.37]
    with pytest.raises(AssertionError, match="has no"):
        known({"from": [r"out.txt ~ theirs +([\d.]+)"]}, tmp_path)
    with pytest.raises(ValueError, match="too many"):
        known({"from": [r"out.txt ~ other +([\d.]+)"]}, tmp_path)
