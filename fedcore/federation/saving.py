"""The state of a client's side as bytes, for clients that do not live from message to message."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fedcore.federation.site import Site
from fedcore.federation.state import State
from fedcore.privacy.mechanisms import Account, Mechanisms
from fedcore.privacy.noise import stream
from fedcore.steps.values import decode, encode

APART = ("_root", "_id", "kept", "rng", "privacy")  # made anew, or saved by what they are made of


def saved(site: Site) -> bytes:
    """Return what `site` knows beside its data: message, state, streams and account."""
    held, account = vars(site.state), site.account
    about = {
        "message": site.message,
        "state": {name: value for name, value in held.items() if name not in APART},
        "rng": _state_of(held.get("rng")),
        "noise": None if account is None else _state_of(held["privacy"].hidden),
        "events": None if account is None else dict(account.events),
        "exposed": account is not None and account.exposed,
        "told": site.told,
        "unprotected": site.unprotected,
        "delta": site.delta,
    }
    return encode(about)


def restore(site: Site, data: bytes) -> None:
    """Give `site` what `saved` returned, in a new state."""
    about, old = decode(data), site.state
    site.message, site.delta = about["message"], about["delta"]
    site.told, site.unprotected = about["told"], about["unprotected"]
    state = State(_root=old._root, _id=old._id, kept=old.kept, **about["state"])
    if about["rng"] is not None:
        state.rng.bit_generator.state = about["rng"]
    if about["events"] is not None:
        site.account = Account(Counter(about["events"]), about["exposed"])
        noise = stream(site.noise, old._id)
        noise.bit_generator.state = about["noise"]
        state.privacy = Mechanisms(noise, site.account)
    site.state = state


def _state_of(rng: Any) -> Any:
    return None if rng is None else rng.bit_generator.state
