"""What the checks found."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

AGAIN = "for the same reason as above"


class CheckFailed(AssertionError):
    """A check has failed; the message is the text of the `Report`."""


class Skipped(Exception):
    """A check does not apply; the message says why."""


class Unsaid(Skipped):
    """A check needs something that the algorithm's case does not say."""


class Finding(NamedTuple):
    """Outcome of one check.

    Attributes
    ----------
    check : str
        The sentence of the check.
    outcome : {"passed", "failed", "skipped"}
    said : str
        Why the check failed or was skipped; else empty.
    """

    check: str
    outcome: str
    said: str


@dataclass(frozen=True)
class Report:
    """Outcomes of all checks.

    Attributes
    ----------
    name : str
        What was checked.
    findings : list of Finding
    """

    name: str
    findings: list[Finding]

    @property
    def failed(self) -> list[Finding]:
        """The checks that have failed."""
        return [finding for finding in self.findings if finding.outcome == "failed"]

    def __str__(self) -> str:
        """One line for each check, and a summary below; a repeated reason is told only once."""
        lines, told = list[str](), set[str]()
        for check, outcome, said in self.findings:
            reason = said.partition("\n")[0]
            if reason in told:
                said = AGAIN
            elif outcome == "failed":
                told.add(reason)
            lines += [f"{outcome:8}{check}", *(f"        {line}" for line in said.splitlines())]
        counts = Counter(finding.outcome for finding in self.findings)
        sums = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        return "\n".join([*lines, f"{self.name}: {sums}"])


def examine(check: Callable[[Any], None], subject: Any, file: str | None) -> Finding:
    """Run a check on a subject.

    `file` holds the code under check: an error says at which of its lines it was raised.
    """
    sentence = (check.__doc__ or "").partition("\n")[0]
    try:
        check(subject)
    except Skipped as reason:
        return Finding(sentence, "skipped", str(reason))
    except Exception as error:  # whatever another package's code raises
        lines = [str(error).strip()]
        if not (isinstance(error, AssertionError) and str(error)):
            passed = [at for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
            lines = [f"{type(error).__name__}: {error}"]
            lines += [f"at {at.filename}, line {at.lineno}: {at.line}" for at in passed[-1:]]
        return Finding(sentence, "failed", "\n".join([*lines, *getattr(error, "__notes__", ())]))
    return Finding(sentence, "passed", "")
