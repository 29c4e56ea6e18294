"""Verdicts: of every value that a paper prints, whether it came out, and if not, why not.

What is printed and what is accepted stands under ``published`` of ``config/papers/<paper>.yaml``;
what was measured stands in the tables that the notebooks write. This module compares the two.

Where the table has columns of twins beside a column ``x`` (see `fedcore.reports.summaries`), the
statistic over the repeats has a range: what it can become when repeats are exchanged for their
twins. No value is reproduced by chance of rounding. It is when all of that range is accepted and no
repeat differs from its twin by more than the tolerance, half of the width of what is accepted; it
is not
when none of it is accepted; in between rounding decides. So it is with a ratio of medians, where a
repeat alone stands for its method's median; an ordering is decided by rounding when an exchange
turns it round.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

from fedcore.config.published import checked
from fedcore.errors import ConfigError, DataError, nearest
from fedcore.reports import summaries, tables

# Each verdict, with the words that count it: for one and for several.
VERDICTS = {
    "reproduced": ("reproduced", "reproduced"),
    "deviates": ("deviates", "deviate"),
    "not as printed": ("not as printed", "not as printed"),
    "rounding decides": ("decided by rounding", "decided by rounding"),
    "surrogate data": ("on surrogate data", "on surrogate data"),
    "not run": ("not run", "not run"),
}
# What each means, for who reads a verdict; README says the same.
MEANINGS = {
    "reproduced": "the measured value is within the tolerance set for it, whatever rounding does.",
    "deviates": "the value is outside its tolerance, and no other reading of the paper that was "
    "tried brings it within.",
    "not as printed": "done as the paper prints it, the value is outside its tolerance; in another "
    "reading, which is named, such as that of the authors' code, it is within.",
    "rounding decides": "whether the value is within its tolerance hangs on the last bit of the "
    "starting values, so that it counts for neither side.",
    "surrogate data": "measured on stand-ins for the data, so not compared.",
    "not run": "the data cannot be had, or something that the comparison needs is missing.",
}
STATUSES = ("official", "rebuilt", "surrogate", "synthetic")


@dataclass(frozen=True)
class Verdict:
    """What became of one published value.

    Attributes
    ----------
    paper, id, quantity, source, kind, printed : str
        As in the paper's configuration file.
    measured : str
        The statistic over the repeats, as people read it; empty when nothing was measured.
    low, high : float or None
        Smallest and largest value over the repeats that have one, in the units of the column.
    count : int
        Number of repeats.
    verdict : str
        A key of `VERDICTS`.
    reason : str
        What was wanted and why; for "not run", what is missing.
    rounding : str
        What the statistic becomes with twins in the place of repeats, as people read it; empty
        without twins and where they change nothing.
    """

    paper: str
    id: str
    quantity: str
    source: str
    kind: str
    printed: str
    measured: str
    low: float | None
    high: float | None
    count: int
    verdict: str
    reason: str
    rounding: str = ""


@dataclass(frozen=True)
class _Finding:
    """A measured value beside what is accepted; `obstacle` says why nothing was measured.

    `holds` means that it is accepted whatever rounding does, `undecided` that rounding decides;
    `change` is what one rounding does to a single repeat, or to how many of the flags.
    """

    obstacle: str = ""
    measured: str = ""
    low: float | None = None
    high: float | None = None
    count: int = 0
    holds: bool = False
    undecided: bool = False
    rounding: str = ""
    change: str = ""
    wanted: str = ""
    missing: str = ""
    surrogate: bool = False


def judge(
    paper: str,
    published: Sequence[Mapping[str, Any]],
    tables_dir: str | os.PathLike[str],
    *,
    unavailable: Mapping[str, str],
    surrogate: bool,
) -> list[Verdict]:
    """Compare what a paper prints with what was measured.

    Parameters
    ----------
    paper : str
    published : sequence of mapping
        Items as described by ``published.schema.yaml``.
    tables_dir : path-like
        The table ``t`` is the file ``<tables_dir>/<paper>/t.tsv``.
    unavailable : mapping of str to str
        Why data cannot be had, by ``<paper>/<problem>``, as in `Plan.unavailable`.
    surrogate : bool
        Whether the run may have used stand-ins for data. Rows then count as made with them unless
        their column ``status`` says ``official``, ``rebuilt`` or ``synthetic``.

    Returns
    -------
    list of Verdict
        In the order of `published`.

    Raises
    ------
    ConfigError
        As `published.checked`, and on an unknown column or a tolerance that does not fit its type.
    DataError
        When a table is there but damaged.
    """
    lines = checked(published, f"{paper}, published value")
    measurements = _Measurements(Path(tables_dir) / paper, surrogate)
    verdicts = []
    for line in lines:
        what = f"{paper}, published value {line['id']}"
        needs = (f"{paper}/{problem}" for problem in line["needs"])
        reasons = [unavailable[name] for name in needs if name in unavailable]
        if reasons:
            found = _Finding(obstacle=reasons[0])
        else:
            found = measurements.measure(line["select"], line["statistic"], line["accept"], what)
        verdict, reason = _decide(line, found, measurements, what)
        verdicts.append(
            Verdict(
                paper, line["id"], line["quantity"], line["source"], line["kind"], line["printed"],
                found.measured, found.low, found.high, found.count, verdict, reason, found.rounding,
            )
        )  # fmt: skip
    return verdicts


def write(verdicts: Sequence[Verdict], path: str | os.PathLike[str]) -> None:
    """Write verdicts as a TSV of all fields, and beside it as Markdown for reading.

    The Markdown begins with how many there are of each verdict and what each means. It gives the
    reason of every verdict but "reproduced" below the table, equal reasons once; the tolerances and
    why they are what they are stand in the TSV.
    """
    several = len({verdict.paper for verdict in verdicts}) > 1
    shown = [
        ({"paper": v.paper} if several else {})
        | {
            "source": v.source,
            "quantity": v.quantity,
            "printed": v.printed,
            "measured [min, max]": v.measured + _range(v) + _rounding(v.rounding),
            "verdict": v.verdict if v.verdict == "reproduced" else f"**{v.verdict}**",
        }
        for v in verdicts
    ]
    rows = [asdict(verdict) for verdict in verdicts]
    tables.write(rows, path, head=_head(verdicts), shown=shown, below=_reasons(verdicts))


def _head(verdicts: Sequence[Verdict]) -> str:
    """Return, in Markdown, a table that counts the verdicts, and what those in it mean."""
    there = [name for name in VERDICTS if any(v.verdict == name for v in verdicts)]
    counts: list[tables.Row] = [
        {"paper": paper, "published values": len(names), **{n: names.count(n) for n in there}}
        for paper, names in _by_paper(verdicts).items()
    ]
    meanings = "".join(f"- **{name}**: {MEANINGS[name]}\n" for name in there)
    return f"{tables.markdown(counts)}\n{meanings}\n" if there else ""


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line per reason for what was not reproduced, with the quantities it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        if v.verdict not in ("reproduced", "surrogate data"):
            about.setdefault((v.verdict, v.reason), []).append(v.quantity)
    return [f"**{key[0]}**, {'; '.join(names)}: {key[1]}" for key, names in about.items()]


def read(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read what `write` wrote.

    Raises
    ------
    DataError
        When the file is missing or damaged or is a table of something else.
    """
    rows: list[dict[str, Any]] = tables.read(path)
    names = {field.name for field in fields(Verdict)}
    for row in rows:
        if set(row) != names or row["verdict"] not in VERDICTS:
            raise DataError(f"{path} is not a table of verdicts: run again what writes it")
    return [Verdict(**row) for row in rows]


def combine(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    papers: Iterable[str] | None = None,
) -> list[Verdict]:
    """Merge the verdicts of `papers`, ``<folder>/<paper>.tsv``, into one file, and return them.

    Parameters
    ----------
    folder : path-like
    path : path-like
        Where the merged table goes, a file that ends in ``.tsv``.
    papers : iterable of str, optional
        By default all that have verdicts in `folder`. Verdicts of others are left out, such as
        those of a paper that is no longer run.

    Raises
    ------
    DataError
        When there are none, a file is damaged, or two files hold a verdict on the same value.
    """
    out = Path(path).resolve()
    # A name that begins with a dot is what a killed process left.
    files = sorted(Path(folder).resolve().glob("[!.]*.tsv"))
    files = [file for file in files if file != out]
    if papers is not None:
        wanted = set(papers)
        files = [file for file in files if file.stem in wanted]
    if not files:
        raise DataError(f"there are no verdicts in {folder}; run the workflow first")
    verdicts = [verdict for file in files for verdict in read(file)]
    counts = Counter(f"{verdict.paper}/{verdict.id}" for verdict in verdicts)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise DataError(f"{folder}: two files hold a verdict on {twice[0]}; move one away")
    write(verdicts, path)
    return verdicts


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return one line that counts the verdicts; for several papers, a line each and a total."""
    papers = _by_paper(verdicts)
    if not papers:
        return "no published values"
    return "\n".join(f"{paper}: {_counts(names)}" for paper, names in papers.items())


def _by_paper(verdicts: Iterable[Verdict]) -> dict[str, list[str]]:
    """Return what became of every value of each paper, and of several together as "total"."""
    papers: dict[str, list[str]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.paper, []).append(verdict.verdict)
    if len(papers) > 1:
        papers["total"] = [name for names in papers.values() for name in names]
    return papers


class _Measurements:
    """Where the tables of one paper are read, each once, and values are held against them."""

    def __init__(self, folder: Path, surrogate: bool) -> None:
        self._folder, self._surrogate = folder, surrogate
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(
        self, select: Mapping[str, Any], statistic: str, accept: Mapping[str, Any], what: str
    ) -> _Finding:
        """Take `statistic` over the rows that `select` names and hold it against `accept`."""
        path = self._folder / f"{select['table']}.tsv"
        if select["table"] not in self._tables:
            if not path.is_file():
                known = [file.stem for file in self._folder.glob("*.tsv")]
                return _Finding(obstacle=f"no table {path}: {nearest(select['table'], known)}")
            self._tables[select["table"]] = tables.read(path)
        table = self._tables[select["table"]]
        for name in (select["column"], *select["where"]):
            if table and name not in table[0]:
                raise ConfigError(
                    f"{what}: {path} has no column '{name}': {nearest(name, table[0])}"
                )
        rows = [r for r in table if all(_same(r[k], v) for k, v in select["where"].items())]
        if not rows:
            where = ", ".join(f"{k} = {tables.show(v)}" for k, v in select["where"].items())
            return _Finding(obstacle=f"no row in {path}" + (f" with {where}" if where else ""))
        compare = _compare_flags if "is" in accept else _compare_numbers
        return compare(
            rows, select["column"], statistic, accept,
            f"{what}: column '{select['column']}' of {path}",
            surrogate=any(self._is_surrogate(row, path) for row in rows),
        )  # fmt: skip

    def _is_surrogate(self, row: tables.Row, path: Path) -> bool:
        status = row.get("status")
        if status is None:
            return self._surrogate
        if status not in STATUSES:
            raise DataError(f"{path}: unknown status '{status}': {nearest(str(status), STATUSES)}")
        return status == "surrogate"


def _decide(
    line: Mapping[str, Any], found: _Finding, measurements: _Measurements, what: str
) -> tuple[str, str]:
    """Return the verdict on one line and its reason."""
    if found.obstacle:
        return "not run", found.obstacle
    wanted = f"wanted {found.wanted}{found.missing}"
    if found.surrogate:
        return "surrogate data", f"measured on stand-ins, so no comparison; {wanted}"
    if found.holds and "provided" in line:
        condition = line["provided"]
        select = {**line["select"], "column": condition["column"]}
        also = measurements.measure(
            select, line["statistic"], condition["accept"], f"{what}, provided"
        )
        if not also.holds:
            measured = f"{also.measured}, wanted {also.wanted}"
            return "not run", f"{condition['lest']} ({condition['column']} {measured})"
    if found.holds:
        return "reproduced", f"{wanted}; {line['because']}"
    if found.undecided:
        return "rounding decides", f"{wanted}; {_undecided(found)}"
    if "otherwise" not in line:
        return "deviates", f"{wanted}; {line['because']}"
    reading = line["otherwise"]
    other = measurements.measure(
        reading.get("select", line["select"]),
        line["statistic"],
        reading.get("accept", line["accept"]),
        f"{what}, otherwise",
    )
    if other.obstacle:
        return (
            "deviates",
            f"{wanted}; not run in the reading that {reading['reading']}: {other.obstacle}",
        )
    detail = f"{reading['reading']} ({other.measured}, wanted {other.wanted}{other.missing})"
    if other.surrogate:
        return "surrogate data", f"{wanted}; measured on stand-ins in another reading: {detail}"
    if other.holds:
        return "not as printed", f"{wanted}; another reading holds: {detail}"
    if other.undecided:
        return (
            "deviates",
            f"{wanted}; {line['because']}; another reading is no agreement, for rounding decides "
            f"it: {detail}; {_undecided(other)}",
        )
    return "deviates", f"{wanted}; {line['because']}; another reading fails, too: {detail}"


def _undecided(found: _Finding) -> str:
    whole = f", and this to {found.rounding}" if found.rounding else ""
    return f"one rounding of the starts changes {found.change}{whole}"


def _exchanges(rows: Sequence[tables.Row], column: str) -> list[list[Any]]:
    """Return for each row what twins make of its value; nothing where there are none."""
    names = [f"{prefix}{column}" for prefix in (summaries.TWIN, summaries.LEAST, summaries.MOST)]
    return [[row[name] for name in names if row.get(name) is not None] for row in rows]


def _compare_numbers(
    rows: Sequence[tables.Row],
    column: str,
    statistic: str,
    accept: Mapping[str, Any],
    where: str,
    *,
    surrogate: bool,
) -> _Finding:
    """Hold a statistic over numbers against a tolerance; a missing value counts as failed."""
    values: list[Any] = [row[column] for row in rows]
    exchanges = _exchanges(rows, column)
    for value in (*values, *chain(*exchanges)):
        if isinstance(value, str | bool):
            hint = "accept it with 'is'" if isinstance(value, bool) else "it must hold numbers"
            raise ConfigError(f"{where} holds {tables.show(value)!r}: {hint}")
    low, high, wanted = _interval(accept)
    # A missing value stands at the end where the tolerance refuses it.
    missing = "first" if math.isinf(high) else "last"
    measured = summaries.statistic(values, statistic, missing=missing)
    known = [float(v) for v in values if v is not None and not math.isnan(v)]
    gaps = len(values) - len(known)
    ends = summaries.exchanged(values, exchanges, statistic, missing=missing)
    twins = [row.get(f"{summaries.TWIN}{column}") for row in rows]
    changes: list[Any] = [row.get(f"{summaries.CHANGE}{column}") for row in rows]
    change = max(summaries.rounding(values, twins) or 0.0, *(c or 0.0 for c in changes))
    shown = [tables.show(end if math.isfinite(end) else math.nan) for end in ends]
    safe = all(low <= end <= high for end in ends) and change <= (high - low) / 2
    return _Finding(
        measured=f"{gaps} of {len(values)} did not arrive"
        if math.isnan(measured)
        else tables.show(measured) + ("" if statistic == "median" else f" ({statistic})"),
        low=min(known, default=None),
        high=max(known, default=None),
        count=len(values),
        holds=safe,
        undecided=not safe and ends[0] <= high and low <= ends[1],
        rounding="" if shown[0] == shown[1] else " to ".join(shown),
        change=f"a repeat by up to {tables.show(change)}",
        wanted=wanted,
        missing=f"; {gaps} of {len(values)} repeats never reached it" if gaps else "",
        surrogate=surrogate,
    )


def _compare_flags(
    rows: Sequence[tables.Row],
    column: str,
    statistic: str,
    accept: Mapping[str, Any],
    where: str,
    *,
    surrogate: bool,
) -> _Finding:
    """Hold a column of booleans against the one value that all must have."""
    values: list[Any] = [row[column] for row in rows]
    exchanges = _exchanges(rows, column)
    for value in (*values, *chain(*exchanges)):
        if not (value is None or isinstance(value, bool)):
            raise ConfigError(
                f"{where} holds {tables.show(value)!r}: 'is' accepts only true and false"
            )
    word, right = tables.show(accept["is"]), [value is accept["is"] for value in values]
    turned = [[twin is accept["is"] for twin in twins] for twins in exchanges]
    safe = [a and all(b) for a, b in zip(right, turned, strict=True)]
    possible = [a or any(b) for a, b in zip(right, turned, strict=True)]
    least, most = sum(safe), sum(possible)
    return _Finding(
        measured=f"{sum(right)} of {len(values)} {word}",
        count=len(values),
        holds=all(safe),
        undecided=all(possible) and not all(safe),
        rounding="" if least == most else f"{least} to {most} of {len(values)} {word}",
        change=f"{most - least} of {len(values)} values",
        wanted=f"all {word}",
        surrogate=surrogate,
    )


def _interval(accept: Mapping[str, Any]) -> tuple[float, float, str]:
    """Return the ends of the accepted interval, and what it is called."""
    ((kind, value),) = accept.items()
    if kind == "equals":
        return value, value, f"exactly {tables.show(value)}"
    if kind == "at_most":
        return -math.inf, value, f"at most {tables.show(value)}"
    if kind == "at_least":
        return value, math.inf, f"at least {tables.show(value)}"
    if kind == "between":
        low, high = value
        return low, high, f"between {tables.show(low)} and {tables.show(high)}"
    middle = value["of"]
    if "absolute" in value:
        radius, text = value["absolute"], tables.show(value["absolute"])
    else:
        radius, text = (
            value["relative"] * abs(middle),
            f"{tables.show(100.0 * value['relative'])} %",
        )
    return middle - radius, middle + radius, f"within {text} of {tables.show(middle)}"


def _same(value: tables.Value, wanted: Any) -> bool:
    """Whether a cell holds what a selection asks for; YAML reads ``1e-6`` as text, so parse it."""
    if isinstance(wanted, str) and not isinstance(value, str) and not wanted.startswith('"'):
        wanted = tables.parse(wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _range(verdict: Verdict) -> str:
    low, high = tables.show(verdict.low), tables.show(verdict.high)
    return "" if low == high else f" [{low}, {high}]"


def _rounding(text: str) -> str:
    return f", by rounding {text}" if text else ""


def _counts(names: Sequence[str]) -> str:
    counts = Counter(names)
    parts = [
        f"{counts[name]} {words[counts[name] > 1]}"
        for name, words in VERDICTS.items()
        if counts[name]
    ]
    return f"{', '.join(parts)} (of {len(names)} published value{'s' * (len(names) > 1)})"
