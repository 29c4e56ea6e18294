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
from fedcore.repro.verdicts.measurements import Departure, Measurement, Measurements

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
DEPARTURE = ("what", "ground", "tried", "searched")  # what a verdict says of one


@dataclass(frozen=True)
class Reading:
    """One way in which an item was run, and what came out.

    Attributes
    ----------
    departures : tuple of Departure
        Empty for the item as it is printed.
    obstacle : str
        Why it was not run; the others say nothing then.
    state, measured, lack, ends, no_rival
        As in `fedcore.repro.verdicts.claim_tests.Outcome`.
    """

    departures: tuple[Departure, ...] = ()
    obstacle: str = ""
    state: str = ""
    measured: str = ""
    lack: str = ""
    ends: bool = False
    no_rival: bool = False


@dataclass(frozen=True)
class Verdict:
    """Verdict on one item.

    Attributes
    ----------
    paper, section, id, source, kind, quantity, printed : str
        As in the claims file; `section` is "claims" or "software".
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
    because : str
        Why the test is what it is, or why there is none.
    readings : tuple of Reading
        What was tried. The verdict rests on the first; there is none where nothing could be tried.
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
    accepted: str
    measured: str
    place: str
    low: float | None
    high: float | None
    count: int
    missing: int
    verdict: str
    because: str
    readings: tuple[Reading, ...]
    counterfactual: str
    turned: bool | None
    where: str = ""

    @property
    def departures(self) -> tuple[Departure, ...]:
        """Departures of the reading that the verdict rests on."""
        return self.readings[0].departures if self.readings else ()


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
    departures = {
        name: Departure(name, **{key: given[key] for key in DEPARTURE if key in given})
        for name, given in claims["departures"].items()
    }
    found = []
    for section in ("claims", SOFTWARE):
        for item in claims[section]:
            what = f"{paper}, {item['id']}"
            reasons = [
                not_run[f"{paper}/{group[0]}"]
                for group in item["needs"]
                if all(f"{paper}/{name}" in not_run for name in group)
            ]
            made = [] if reasons else list(_measured(item, measurements, departures, what))
            known = {key: item[key] for key in ("id", "source", "kind", "quantity", "printed")}
            start = Verdict(
                paper=paper, section=section, **known, accepted="", measured="", place="",
                low=None, high=None, count=0, missing=0, verdict="not run",
                because=reasons[0] if reasons else "", readings=(), counterfactual="", turned=None,
            )  # fmt: skip
            found.append(_verdict(start, item, made))
    return found


def _measured(
    item: Mapping[str, Any],
    measurements: Measurements,
    departures: Mapping[str, Departure],
    what: str,
) -> Iterator[Measurement]:
    """Yield what came out of each reading, that of the item's own `select` and `test` first."""
    if "unchecked" in item:
        return
    for reading in ({}, *item["readings"]):
        merged = {**item, **{k: v for k, v in reading.items() if k != "departures"}}
        names = reading.get("departures", item["departures"])
        yield measurements.measure(merged, tuple(departures[name] for name in names), what)


def _verdict(start: Verdict, item: Mapping[str, Any], readings: Sequence[Measurement]) -> Verdict:
    """Return the verdict that follows from the readings of an item."""
    if "unchecked" in item:
        return replace(start, **item["unchecked"])
    if not readings:
        return start
    first = readings[0]
    made = [reading for reading in readings if not reading.obstacle]
    on = next((reading for reading in made if reading.surrogate), None)
    start = replace(start, because=item.get("because", ""))
    if start.section == SOFTWARE:
        return _filled(start, "not run" if first.obstacle else CHECKS[first.outcome.state], [first])
    if on is not None:
        return _filled(replace(start, because=""), "surrogate data", [on])
    decided, verdict = _decided(first, made)
    others = [reading for reading in readings if reading is not decided] if made else []
    return _filled(start, verdict, [decided, *others])


def _decided(first: Measurement, made: Sequence[Measurement]) -> tuple[Measurement, str]:
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
        departures = (*first.departures, *holding.departures)
        blamed = all(departure.ground == "contradiction" for departure in departures)
        if blamed and holding is not first and not (first.obstacle or first.silent):
            return holding, "contradicts itself"
        return holding, "holds with a departure"
    if first.obstacle:
        return first, "not run"
    if undecided := next((r for r in heard if r.outcome.state == UNDECIDED), None):
        return undecided, "undecided"
    return first, "undecided" if first.silent else "deviates"


def _filled(start: Verdict, verdict: str, readings: Sequence[Measurement]) -> Verdict:
    """Return a verdict that rests on the first of some readings."""
    decided = readings[0]
    known = [x for x in decided.values if x is not None and not math.isnan(x)]
    outcome = decided.outcome
    return replace(
        start,
        where=decided.where,
        accepted=outcome.accepted,
        measured=outcome.measured,
        place=outcome.place,
        low=None if decided.flags else min(known, default=None),
        high=None if decided.flags else max(known, default=None),
        count=len(decided.values),
        missing=len(decided.values) - len(known),
        verdict=verdict,
        readings=tuple(
            Reading(one.departures, one.obstacle, o.state, o.measured, o.lack, o.ends, o.no_rival)
            for one in readings
            for o in [one.outcome]
        ),
        counterfactual=decided.counterfactual,
        turned=decided.turned,
    )
