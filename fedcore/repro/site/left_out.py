"""Group by reason the problems and experiments that were not run."""

from __future__ import annotations

from collections.abc import Mapping

from fedcore.repro.tables.rows import gathered


def by_reason(missing: Mapping[str, str]) -> dict[str, list[str]]:
    """Return, for each reason in `missing`, the list of names that were not run for this reason."""
    return gathered((reason, name) for name, reason in missing.items())


def sentences(missing: Mapping[str, str]) -> list[str]:
    """Return a line for every reason, with all names that were not run for this reason.

    Examples
    --------
    >>> sentences({"a": "No data.", "b": "It is left out.", "c": "No data."})
    ['Not run: a, c. No data.', 'Not run: b. It is left out.']
    """
    return [f"Not run: {', '.join(names)}. {why}" for why, names in by_reason(missing).items()]
