"""Give a verdict on each item as printed, and on each reading that changes what is printed.

``papers/<paper>/claims.yaml`` says what is printed and how each item is tested. An item is a
printed number or statement. A reading is one way to run an item: it may fill in what the paper
leaves open, and may replace what the paper says. Every verdict is computed from the claims file and
from the paper's tables of measured values. ``docs/judging.md`` has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedcore.repro.verdicts.decision_rules import (
    FAILS,
    HEADLINE,
    HOLDS,
    POINTS,
    UNDECIDED,
    USUAL,
    Demand,
    Part,
    judge_jointly,
)
from fedcore.repro.verdicts.measurements import Measurements, Obstacle

NOT_RUN = "not run"
RAN, DID_NOT_RUN = "ran", "did not run"  # of a quick run, which has no words
WORDS = {
    HOLDS: "the runs confirm the item.",
    FAILS: "the runs contradict the item.",
    UNDECIDED: "the runs cannot tell, or the paper leaves open what decides it.",
    NOT_RUN: "nothing was run as printed, for the reason that is given.",
    RAN: "a quick run, which says nothing about a paper.",
    DID_NOT_RUN: "a quick run, which says nothing about a paper.",
}
SOFTWARE = "software"  # `section` of the checks of this software, which are counted apart
# What a verdict says as its item does.
CLAIMED = ("id", "source", "kind", "title", "printed", "headline", "because", "figure")
CONTRADICTION = "contradiction"  # a ground: another passage of the paper says otherwise
STAND_INS = "It ran on stand-ins for the data."


@dataclass(frozen=True)
class Change:
    """Change that fills in or replaces a detail of the paper.

    Attributes
    ----------
    name : str
    what : str
        Clause that completes the sentence "It holds if …".
    ground : str
        Reason for the change, one of the grounds in ``claims.schema.yaml``.
    tried : int
        Number of readings that were tried in the search for this change.
    part : str
        How much of the item the search covered, or an empty text.
    """

    name: str
    what: str
    ground: str
    tried: int = 1
    part: str = ""


def clause(changes: Iterable[Change]) -> str:
    """Return one clause that joins the clauses of several changes."""
    return "; ".join(change.what for change in changes)


@dataclass(frozen=True)
class Reading:
    """One way to run an item, and its outcome.

    Attributes
    ----------
    fills_in, replaces : tuple of Change
        Changes that fill in what the paper leaves open, and changes that replace what it says. A
        reading without `replaces` runs the item as printed.
    obstacle : str
        Why the reading was not run, or an empty text. All later fields of a reading that was not
        run are empty.
    state, measured, runs
        State, measured values as text and number of runs, from the `decision_rules.Outcome`.
    lack : str
        Why the runs cannot tell, from the field `why` of the outcome.
    failed : mapping of str to int
        For each cell (tested value) that fails: 1 if the printed number is larger than the measured
        one, -1 if it is smaller, and otherwise 0.
    parts : mapping of str to Part
        Outcome of each cell, or of all points of a panel, as structured data.
    """

    fills_in: tuple[Change, ...] = ()
    replaces: tuple[Change, ...] = ()
    obstacle: str = ""
    state: str = ""
    measured: str = ""
    lack: str = ""
    runs: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)

    @property
    def how(self) -> str:
        """Clause with all changes of the reading; empty if the reading changes nothing."""
        return clause((*self.replaces, *self.fills_in))


@dataclass(frozen=True)
class Verdict:
    """Verdict on one item.

    Attributes
    ----------
    paper, section, id, source, kind, title, printed, headline, because, cause, figure : str
        Texts from the claims file; `section` is "items" or "software". The text `cause` says why
        the item fails. `cause` is empty unless the item holds or is undecided in the reading that
        takes the cause away; it begins with "perhaps" if that reading is undecided.
    word : str
        Verdict on the printed text, one of the keys of `WORDS`.
    measured, why : str
        Evidence for `word`, and the reason if the item is undecided or was not run.
    remark : str
        Remark on the item's test; see `fedcore.repro.verdicts.records`.
    readings : tuple of Reading
        All readings of the item, in the order of the claims file.
    aside : bool
        True for a headline claim that does not concern the paper's question.
    """

    paper: str
    section: str
    id: str
    source: str
    kind: str
    title: str
    printed: str
    headline: str
    word: str
    measured: str
    why: str
    because: str
    cause: str
    figure: str
    remark: str
    readings: tuple[Reading, ...]
    aside: bool = False

    @property
    def otherwise(self) -> Reading | None:
        """The reading with replacements that is shown beside the verdict as printed, or None.

        If several such readings hold, the result is the one with the fewest replacements. If none
        holds, the result is the first that was run. If another passage of the paper contradicts the
        printed text, only readings that follow this passage are considered.
        """
        if self.word in (RAN, DID_NOT_RUN):
            return None
        others = [reading for reading in self.readings if reading.replaces and not reading.obstacle]
        passages = [one for one in others if {c.ground for c in one.replaces} == {CONTRADICTION}]
        others = passages or others
        holding = [reading for reading in others if reading.state == HOLDS]
        return min(holding or others[:1], key=lambda reading: len(reading.replaces), default=None)


def judge(
    paper: str,
    claims: Mapping[str, Any],
    folder: Path,
    *,
    not_run: Collection[str],
    stand_ins: bool,
    quick: bool = False,
    remarks: Mapping[str, str] = {},
) -> list[Verdict]:
    """Return the verdicts on all items of a paper, from its tables of measured values.

    Parameters
    ----------
    paper : str
    claims : mapping
        Claims file, as `fedcore.repro.config.claims.read` returns it.
    folder : Path
        Folder of the paper's tables.
    not_run : collection of str
        Names of the paper's problems and experiments that were not run.
    stand_ins : bool
        Whether table rows without a ``status`` count as made from stand-in data.
    quick : bool
        Whether this is a quick run, of toy size. A quick run says only which items ran.
    remarks : mapping of str to str
        Remark on the test of each item, keyed by the item's id.
    """
    measurements = Measurements(folder, stand_ins, {*not_run})
    found = []
    for section in ("items", SOFTWARE):
        for item in claims[section]:
            lacks = [group for group in item["needs"] if {*not_run}.issuperset(group)]
            reason = item.get("not_run", "")
            if lacks:
                names = ", ".join(" or ".join(group) for group in lacks)
                reason = _absence(item, f"This run left out what it needs: {names}.")
            readings = tuple(
                _reading(item, given, claims["changes"], measurements, paper)
                for given in (() if lacks else item["readings"])
            )
            word, measured, why = as_printed(readings) if readings else (NOT_RUN, "", reason)
            if quick:
                ran = any(not r.obstacle or r.obstacle == STAND_INS for r in readings)
                word, measured = RAN if ran else DID_NOT_RUN, ""
                why = "" if ran else why
            found.append(
                Verdict(
                    paper=paper, section=section, word=word, measured=measured, why=why,
                    remark=_remark(remarks.get(item["id"], ""), readings), readings=readings,
                    **_claimed(item, claims["causes"], readings, word),
                )
            )  # fmt: skip
    return found


def _absence(item: Mapping[str, Any], otherwise: str) -> str:
    """Return the item's own text about missing results, or `otherwise` if it has no such text."""
    cells = [cell for one in item["readings"][:1] for cell in one["cells"].values()]
    return next((c["select"]["absent"] for c in cells if "absent" in c["select"]), otherwise)


def _remark(said: str, readings: Sequence[Reading]) -> str:
    return said if any(reading.state for reading in readings) else ""


def _claimed(
    item: Mapping[str, Any], causes: Mapping[str, Any], readings: Sequence[Reading], word: str
) -> dict[str, Any]:
    """Return the fields of a verdict that come from the claims file."""
    shown = ""
    if "cause" in item and word == FAILS:
        cause = causes[item["cause"]]
        taken_away = {*cause["taken_away"]}
        without = {
            reading.state
            for reading in readings
            if {change.name for change in reading.replaces} == taken_away
        }
        if HOLDS in without:
            shown = cause["what"]
        elif UNDECIDED in without:
            shown = f"perhaps {cause['what']}"
    words = {key: item.get(key, "") for key in CLAIMED}
    return words | {"cause": shown, "aside": item.get("aside", False)}


def retold(verdict: Verdict, item: Mapping[str, Any], claims: Mapping[str, Any]) -> Verdict:
    """Return a kept verdict with its item's present texts in the claims file; nothing is measured.

    Parameters
    ----------
    verdict : Verdict
        Verdict of an earlier run.
    item : mapping
        The verdict's item, whose test must be the same as when the verdict was given.
    claims : mapping
        The item's claims file.
    """
    known = claims["changes"]

    def today(changes: Sequence[Change]) -> tuple[Change, ...]:
        return tuple(_change(change.name, known[change.name], verdict.id) for change in changes)

    readings = tuple(
        replace(reading, fills_in=today(reading.fills_in), replaces=today(reading.replaces))
        for reading in verdict.readings
    )
    if readings:
        word, measured, why = as_printed(readings)
    else:
        word, measured = verdict.word, verdict.measured
        why = _absence(item, item.get("not_run", verdict.why))
    remark = _remark(verdict.remark, readings)
    words = _claimed(item, claims["causes"], readings, word)
    return replace(
        verdict, word=word, measured=measured, why=why, remark=remark, readings=readings, **words
    )


def _reading(
    item: Mapping[str, Any],
    given: Mapping[str, Any],
    changes: Mapping[str, Any],
    measurements: Measurements,
    paper: str,
) -> Reading:
    fills_in, replaces = (
        tuple(_change(name, changes[name], item["id"]) for name in given[key])
        for key in ("fills_in", "replaces")
    )
    reading = Reading(fills_in, replaces)
    demand = demand_of(item, given, changes)
    try:
        cells, stand_in = measurements.measure(given["cells"], demand, f"{paper}, {item['id']}")
    except Obstacle as obstacle:
        return replace(reading, obstacle=str(obstacle))
    if stand_in and item["kind"] != "check":
        return replace(reading, obstacle=STAND_INS)
    panel = "panel" in item
    out = judge_jointly(cells, panel)
    parts = {POINTS: out.part} if panel else {name: cell.part for name, cell in cells.items()}
    failed = {name: cell.side for name, cell in cells.items() if cell.state == FAILS}
    return replace(
        reading, state=out.state, measured=out.measured, lack=out.why, runs=out.runs,
        failed=failed, parts=parts,
    )  # fmt: skip


def _change(name: str, given: Mapping[str, Any], item: str) -> Change:
    searched = given.get("searched", {}).get(item, "")
    return Change(name, given["what"], given["ground"], given.get("tried", 1), searched)


def demand_of(
    item: Mapping[str, Any], reading: Mapping[str, Any], changes: Mapping[str, Any]
) -> Demand:
    """Return how strong the evidence must be for a verdict that rests on `reading`."""
    tried = (changes[name].get("tried", 1) for name in reading["replaces"])
    demand = HEADLINE if "headline" in item else USUAL
    return demand._replace(searched=math.prod(tried))


def as_printed(readings: Sequence[Reading]) -> tuple[str, str, str]:
    """Return the verdict on the printed item, the evidence, and why it is undecided or not run.

    The result depends only on the readings (ways to run the item) that replace nothing.
    """
    printed = [reading for reading in readings if not reading.replaces]
    ran = [reading for reading in printed if not reading.obstacle]
    if not printed:
        changed = clause(readings[0].replaces)
        return NOT_RUN, "", f"Nothing was run as printed: in the runs, {changed}."
    if not ran:
        return NOT_RUN, "", printed[0].obstacle
    if len(ran) == 1:
        return ran[0].state, ran[0].measured, ran[0].lack
    named = dict(zip(_names(ran), ran, strict=True))
    if len({reading.state for reading in ran}) > 1:
        return UNDECIDED, "", _disagreement(named)
    measured = "; ".join(f"{reading.measured} {name}" for name, reading in named.items())
    if _bracket(ran):
        between = "what is printed lies between what the readings give"
        return UNDECIDED, measured, f"depends on what is filled in: {between}"
    if ran[0].state == UNDECIDED:  # measured and lack at once, so that no filling is named twice
        told = (f"{name}: {reading.measured}, {reading.lack}" for name, reading in named.items())
        return UNDECIDED, "", "; ".join(told)
    return ran[0].state, measured, ""


def _names(ran: Sequence[Reading]) -> list[str]:
    """Return a clause for each reading, with those of its choices that not all readings share."""
    common = set.intersection(*(set(reading.fills_in) for reading in ran))
    alone = "with nothing else filled in" if common else "to the letter"
    own = [[c.what for c in reading.fills_in if c not in common] for reading in ran]
    return [f"if {' and '.join(clauses)}" if clauses else alone for clauses in own]


def _disagreement(named: Mapping[str, Reading]) -> str:
    """Return why an item is undecided if its readings without replacements disagree."""
    told: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
    for name, reading in named.items():
        found = "; ".join(filter(None, [reading.measured, reading.lack]))
        told[reading.state].append(f"{name} ({found})")
    verbs = {HOLDS: "it holds", FAILS: "it fails", UNDECIDED: "the runs cannot tell"}
    parts = [f"{verb} {' and '.join(told[state])}" for state, verb in verbs.items() if told[state]]
    if told[HOLDS] and told[FAILS]:
        found = "depends on what is filled in"
    elif told[FAILS]:
        found = "no filling bears it out, and not all refute it"
    else:
        found = "no filling refutes it, and not all bear it out"
    return f"{found}: {'; '.join(parts)}"


def _bracket(ran: Sequence[Reading]) -> bool:
    """Return whether the readings' measured numbers lie on both sides of each printed number.

    Only printed numbers that fail in all readings count. The result is False if there is no such
    number.
    """
    common = set.intersection(*(set(reading.failed) for reading in ran))
    return bool(common) and all(
        {-1, 1} <= {reading.failed[name] for reading in ran} for name in common
    )
