"""Verdicts: what was shown for each item that a paper prints.

``papers/<paper>/claims.yaml`` says what is printed, how it is tested and what was run differently;
the tables of the paper hold what was measured. A verdict follows from the two, and nobody can write
one down. `fedcore.repro.verdicts.claim_tests` holds the values against the print, and
`fedcore.repro.verdicts.verdict_pages` writes the verdicts.

If a table has columns of twins for a column ``x`` (see `fedcore.repro.tables.summaries`), the
test is also made with repeats exchanged for their twins. If that changes its outcome, or if a
twin differs from its repeat by more than half of the range of the repeats, rounding decides, and
the item is undecided.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, UNDECIDED
from fedcore.repro.verdicts.measurements import Measurements, Reading
from fedcore.words import counted

# Meaning of each verdict, as README says it; what could be compared stands first.
VERDICTS = {
    "reproduced": "done as printed, and the printed item agrees with what was measured.",
    "holds with a departure": "agrees in a reading that departs from the paper's text where that "
    "text fails, leaves something open or was not run as it stands; the departure is named.",
    "deviates": "does not agree, in any reading that was tried; all are listed.",
    "contradicts itself": "agrees with one of two printed passages that exclude each other.",
    "undecided": "the repeats cannot decide, one rounding of the starts would change the outcome, "
    "or another number would agree as well.",
    "not comparable": "what was run is too far from what is printed to be held against it.",
    "not run": "the data cannot be had, something is not built, or the run left it out; the reason "
    "is given.",
    "surrogate data": "measured on stand-ins for the data, so not compared.",
    "passes": "a check of this software.",
    "fails": "a check of this software.",
}
# Verdicts of checks of this software, which are counted apart.
CHECKS = {HOLDS: "passes", FAILS: "fails", UNDECIDED: "undecided"}
SOFTWARE = "software"  # `section` of these checks
AS_PRINTED = "as printed"  # `protocol` without departures
BETWEEN = "; "  # between the departures of a `protocol`, and in none


@dataclass(frozen=True)
class Verdict:
    """Verdict on one item.

    Attributes
    ----------
    paper, section, id, source, kind, quantity, printed : str
        As in the claims file; `section` is "claims" or "software".
    protocol : str
        "as printed", or the departures of the reading that the verdict rests on.
    accepted : str
        What would have agreed, and from where.
    measured, place : str
        The statistic and where the print lies among the repeats; empty if nothing was measured.
    low, high : float or None
        Smallest and largest value over the repeats that have one, in the units of the column.
    count, missing : int
        Number of repeats, and of those without a result.
    verdict : str
        A key of `VERDICTS`.
    reason : str
        Why the test is what it is, and every other reading that was tried with its result.
    counterfactual : str
        What turns the outcome, and the outcome then; empty if there is none to turn.
    turned : bool or None
        Whether it turned.
    where : str, default=""
        Table, column and rows that hold what was measured.
    """

    paper: str
    section: str
    id: str
    source: str
    kind: str
    quantity: str
    printed: str
    protocol: str
    accepted: str
    measured: str
    place: str
    low: float | None
    high: float | None
    count: int
    missing: int
    verdict: str
    reason: str
    counterfactual: str
    turned: bool | None
    where: str = ""


def judge(
    paper: str,
    claims: Mapping[str, Any],
    tables_dir: str | os.PathLike[str],
    *,
    not_run: Mapping[str, str],
    surrogate: bool,
) -> list[Verdict]:
    """Hold what a paper prints against what was measured.

    Parameters
    ----------
    paper : str
    claims : mapping
        A claims file as `fedcore.repro.config.claims.read` returns it.
    tables_dir : path-like
        The table ``t`` is the file ``<tables_dir>/<paper>/t.tsv``.
    not_run : mapping of str to str
        Why something of the plan is not run, by ``<paper>/<name>``, as in `Plan.not_run`.
    surrogate : bool
        Whether the run may have used stand-ins for data. Rows then count as made with stand-ins
        unless their column ``status`` says where the data come from.
    """
    measurements = Measurements(Path(tables_dir) / paper, surrogate)
    found = []
    for section in ("claims", SOFTWARE):
        for item in claims[section]:
            what = f"{paper}, {item['id']}"
            reasons = [
                not_run[f"{paper}/{group[0]}"]
                for group in item["needs"]
                if all(f"{paper}/{name}" in not_run for name in group)
            ]
            readings = [] if reasons else list(_readings(item, measurements, what))
            known = {key: item[key] for key in ("id", "source", "kind", "quantity", "printed")}
            start = Verdict(
                paper=paper, section=section, **known, protocol="", accepted="", measured="",
                place="", low=None, high=None, count=0, missing=0, verdict="not run",
                reason=reasons[0] if reasons else "", counterfactual="", turned=None,
            )  # fmt: skip
            found.append(_verdict(start, item, readings, claims["departures"]))
    return found


def _readings(item: Mapping[str, Any], measurements: Measurements, what: str) -> Iterator[Reading]:
    """Yield the readings of an item, that of its own `select` and `test` first."""
    if "unchecked" in item:
        return
    for reading in ({}, *item["readings"]):
        merged = {**item, **{k: v for k, v in reading.items() if k != "departures"}}
        names = tuple(reading.get("departures", item["departures"]))
        yield measurements.measure(merged, names, what)


def _verdict(
    start: Verdict,
    item: Mapping[str, Any],
    readings: Sequence[Reading],
    departures: Mapping[str, Mapping[str, Any]],
) -> Verdict:
    """Return the verdict that follows from the readings of an item."""
    if "unchecked" in item:
        unchecked = item["unchecked"]
        return replace(start, verdict=unchecked["verdict"], reason=unchecked["because"])
    if not readings:
        return start
    first, others = readings[0], readings[1:]
    made = [reading for reading in readings if not reading.obstacle]
    if not made:
        reason = "; ".join(filter(None, (item.get("because"), first.obstacle)))
        protocol = _protocol(first.departures, departures)
        return replace(start, reason=reason, protocol=protocol, where=first.where)
    if start.section != SOFTWARE and any(reading.surrogate for reading in made):
        on = next(reading for reading in made if reading.surrogate)
        return _filled(start, on, departures, "surrogate data", "measured on stand-ins")
    if start.section == SOFTWARE:
        verdict = "not run" if first.obstacle else CHECKS[first.outcome.state]
        return _filled(start, first, departures, verdict, _because(item, first))
    decided, verdict = _decided(first, made, departures)
    reasons = [_because(item, decided), decided.obstacle]
    reasons += [_tried(r, decided, departures) for r in (first, *others) if r is not decided]
    return _filled(start, decided, departures, verdict, "; ".join(filter(None, reasons)))


def _decided(
    first: Reading, made: Sequence[Reading], departures: Mapping[str, Mapping[str, Any]]
) -> tuple[Reading, str]:
    """Return the reading that the verdict rests on, and the verdict; `first` is nearest the print.

    Other readings count only where the first fails, says nothing or could not be run. The first of
    them that agrees decides, also where it has no power: one is not passed over for another that
    happens to have. Where none agrees, a failure of the others says nothing of a first one that was
    not run.
    """
    heard = [reading for reading in made if not reading.silent]
    if not (first.obstacle or first.silent) and first.outcome.state == UNDECIDED:
        return first, "undecided"
    agreeing = (r for r in heard if r.outcome.state == HOLDS or r.powerless)
    if holding := next(agreeing, None):
        if holding.powerless:
            return holding, "undecided"
        if not holding.departures:
            return holding, "reproduced"
        names = (*first.departures, *holding.departures)
        blamed = all(departures[name]["ground"] == "contradiction" for name in names)
        if blamed and holding is not first and not (first.obstacle or first.silent):
            return holding, "contradicts itself"
        return holding, "holds with a departure"
    if first.obstacle:
        return first, "not run"
    if undecided := next((r for r in heard if r.outcome.state == UNDECIDED), None):
        return undecided, "undecided"
    return first, "undecided" if first.silent else "deviates"


def _because(item: Mapping[str, Any], reading: Reading) -> str:
    return "; ".join(filter(None, (reading.outcome.lack, item.get("because", ""))))


def _tried(reading: Reading, decided: Reading, departures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return another reading and its result, in words.

    Of one that departs in all that `decided` does, and in more, only the latter is said.
    """
    obstacle = f"not run, {reading.obstacle}" if reading.obstacle else ""
    result = obstacle or f"{reading.outcome.measured}, {reading.outcome.state}"
    lack = f" ({reading.outcome.lack})" if reading.outcome.lack else ""
    how = _protocol(reading.departures, departures)
    if decided.departures and {*decided.departures} < {*reading.departures}:
        more = [name for name in reading.departures if name not in decided.departures]
        how = f"and also {_protocol(more, departures)}"
    return f"{how}: {result}{lack}"


def _protocol(names: Sequence[str], departures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return departures in words, each with its ground."""
    words = []
    for name in names:
        departure = departures[name]
        ground = departure["ground"]
        if ground == "fitted":
            tried = counted(departure["tried"], "reading")
            ground = f"fitted: one of {tried} tried on {departure['searched']}"
        words.append(f"{departure['what']} ({ground})")
    return BETWEEN.join(words) or AS_PRINTED


def _filled(
    start: Verdict,
    reading: Reading,
    departures: Mapping[str, Mapping[str, Any]],
    verdict: str,
    reason: str,
) -> Verdict:
    known = [x for x in reading.values if x is not None and not math.isnan(x)]
    outcome = reading.outcome
    return replace(
        start,
        protocol=_protocol(reading.departures, departures),
        where=reading.where,
        accepted=outcome.accepted,
        measured=outcome.measured,
        place=outcome.place,
        low=None if reading.flags else min(known, default=None),
        high=None if reading.flags else max(known, default=None),
        count=len(reading.values),
        missing=len(reading.values) - len(known),
        verdict=verdict,
        reason=reason,
        counterfactual=reading.counterfactual,
        turned=reading.turned,
    )
