"""Every key that a file lacks, in one sentence, so that it is completed in one go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from fedcore.config.schemas import Validator, rules_of
from fedcore.errors import ConfigError


def require_keys(config: Mapping[str, Any], schema: str, what: str) -> None:
    """Refuse a file that lacks several keys; `schemas.check` says what else is wrong with it.

    Parameters
    ----------
    config : mapping
    schema : str
        Name of a file ``<schema>.schema.yaml``.
    what : str
        What the error message calls the file.

    Raises
    ------
    ConfigError
        When two keys or more are missing, and no key is unknown, which might be one of them.
    """
    missing: dict[str, list[str]] = defaultdict(list)
    for error in Validator(rules_of(schema)).iter_errors(config):
        if error.validator == "additionalProperties":
            return
        if error.validator == "required":
            place = ".".join(map(str, error.absolute_path)) or "top level"
            lacking = [key for key in error.validator_value if key not in error.instance]
            missing[place] = lacking
    if sum(map(len, missing.values())) > 1:
        listed = "; ".join(f"{place} needs {', '.join(keys)}" for place, keys in missing.items())
        raise ConfigError(f"{what}: keys are missing: {listed}")
