"""What no model accepts: an unknown name, and parameters out of range, alone or together."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from fedcore import generators
from fedcore.errors import InputError

# Small parameters that each model accepts.
GOOD = {
    "block_model": {},
    "canary": {},
    "carried_rows": {},
    "gaussian_rows": {},
    "low_rank": {"n_clients": 4, "samples": 15, "n_features": 12, "rank": 3},
    "shared_heads": {
        "n_clients": 30, "samples": 4, "n_features": 9, "rank": 2, "heads": "conditioned",
        "condition": 3.0,
    },
    "spectrum": {"n_features": 8, "n_clients": 4, "n_samples": 40},
    "spiked": {},
    "spiked_rows": {},
    "white": {"n_samples": 4, "n_clients": 2},
}  # fmt: skip
NAN = float("nan")
# Changes of these that each model refuses. The error names a parameter that was changed.
WRONG = {
    "block_model": [{"within": 1.5}, {"nodes": 1}],
    "canary": [{"samples": 1}],
    "carried_rows": [
        {"gap": 1.0}, {"n_features": 1}, {"n_samples": 19}, {"carriers": 1.5},
        {"carriers": 1.5e-4}, {"carriers": 1e-5}, {"top": 0.0},
    ],
    "gaussian_rows": [
        {"minor": 20}, {"gap": 1.0}, {"n_samples": 19, "exact": True}, {"kind": "heavy"},
        {"moments": True}, {"removed": True}, {"canary": True, "exact": True},
    ],
    "low_rank": [
        {"n_clients": 0}, {"samples": -2}, {"n_features": 2.0}, {"rank": True}, {"rank": 13},
        {"samples": 1, "rank": 5}, {"noise": -1e-6}, {"noise": NAN}, {"noise": "1e-6"},
        {"noise": True}, {"singular_values": [1, 2]}, {"singular_values": [[1, 2, 3]]},
        {"singular_values": [1, 2, NAN]}, {"singular_values": [1, -2, 3]},
        {"singular_values": ["a", 1, 2]}, {"sample": 3}, {"rng": 3},
    ],
    "shared_heads": [
        {"condition": 0.5}, {"condition": 0.0}, {"rank": 10}, {"n_clients": 1, "rank": 2},
        {"rank": 1, "condition": 2.0}, {"heads": "scaled"},
    ],
    "spectrum": [
        {"n_features": 0}, {"n_clients": 0}, {"n_samples": 2.5}, {"n_samples": 3},
        {"n_samples": 5}, {"n_samples": None}, {"n_clients": None}, {"sizes": [20, 20]},
        {"n_clients": None, "n_samples": None, "sizes": []},
        {"n_clients": None, "n_samples": None, "sizes": "12"},
        {"n_clients": None, "n_samples": None, "sizes": [9, 0]},
        {"kind": "geometrc"}, {"xi": 0.5}, {"xi": NAN}, {"condition": 0.5}, {"condition": "x"},
        {"kappa": 3},
    ],
    "spiked": [{"rank": 101}, {"noise": -1.0}, {"reduce": "no"}],
    "spiked_rows": [
        {"gap": 1.0}, {"n_features": 1}, {"kind": "sign", "carriers": 0.01}, {"carriers": 0.5},
        {"kind": "heavy"}, {"dtype": "float16"}, {"n_samples": 1, "n_clients": 2},
    ],
    "white": [{"n_samples": 4, "n_clients": 5}],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_parameters_out_of_range_are_refused_by_name(name):
    for change in WRONG[name]:
        with pytest.raises(InputError) as error:
            generators.generate(name, np.random.default_rng(0), GOOD[name] | change)
        said = str(error.value)
        assert any(parameter in said for parameter in change), said
        assert "\n" not in said


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="low_rank"):
        generators.generate("low_rnak", np.random.default_rng(0), {})
    assert "low_rank" in generators.names()


# What a model cannot do without, where its defaults are not enough.
NEEDED = {"spectrum": {"n_clients": 2, "n_samples": 2000}}


@pytest.mark.parametrize("name", generators.names())
def test_every_parameter_is_checked_before_anything_is_drawn(name):
    """Whoever writes a model and forgets a check, or draws before it, fails here."""
    needed = NEEDED.get(name, {})
    generators.check(name, needed)
    for parameter in inspect.signature(generators.REGISTRY.module(name).generate).parameters:
        for value in (NAN, {"x": 1}, "no such word", [NAN], -4):
            with pytest.raises(InputError):
                generators.check(name, {**needed, parameter: value})


def test_a_check_draws_nothing_and_forgives_memory(monkeypatch):
    """Not even where a parameter asks for more memory than any machine has."""
    generators.check("white", {"n_samples": 10**15})
    module = generators.REGISTRY.module("white")
    models = {
        lambda rng, *, size=1: np.empty(10**18): None,
        lambda rng, *, size=1: rng.normal() + 1 / size: None,
        lambda stream, size, **more: stream.normal(size=size): None,
        lambda rng, *, size=1: 1 / size + rng.normal(): {"size": 0},
        lambda stream, size: stream.normal(size=size): {},
    }
    for model, wrong in models.items():
        monkeypatch.setattr(module, "generate", model)
        generators.check("white", {"size": 2})
        if wrong is not None:
            with pytest.raises(InputError):
                generators.check("white", wrong)
