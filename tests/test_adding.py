"""The example that docs/adding.md shows keeps the contract and runs; what it names is there."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fedcore.testing import check_algorithm
from processes import python

PAGE = Path(__file__).parents[1] / "docs" / "adding.md"
EXAMPLE = PAGE.parents[1] / "examples" / "plugin"
SCRIPT = """
import numpy as np
import fedcore
from fedcore import algorithms, datasets
from fedcore.federation.ledger import Shape

wards = datasets.load("wards", "")
clients = [wards.x[wards.y == ward] for ward in range(3)]
wanted = ["worst_share", "subspace_distance"]
result = fedcore.run("stacked_svd", clients, 2, extra=4, measure=wanted)
basis = np.linalg.svd(np.vstack(clients))[2][:2].T
worst = min(np.linalg.norm(x @ basis) ** 2 / np.linalg.norm(x) ** 2 for x in clients)
assert abs(result.history["worst_share"][-1] - worst) < 1e-12
assert result.history["subspace_distance"][-1] < 1e-12
chosen = algorithms.get("stacked_svd")
params = chosen.params({"n_components": 2, "extra": 4})
assert chosen.communication(params, Shape(3, 90, 6)) == result.ledger.cost()
print("fine")
"""


@pytest.fixture
def method(monkeypatch):
    """The example's algorithm as a module."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield importlib.import_module("federated_wards.stacked_svd")
    for name in [name for name in sys.modules if name.startswith("federated_wards")]:
        del sys.modules[name]


def test_the_algorithm_with_its_case_keeps_the_whole_contract(method, monkeypatch):
    whole = check_algorithm(method)
    declared = method.ALGORITHM
    wrong = {**declared.case, "oracle": lambda *given: (2 * method.plain(*given)[0], None)}
    monkeypatch.setattr(method, "ALGORITHM", replace(declared, case=wrong))
    with pytest.raises(AssertionError, match=r"failed .*oracle"):
        check_algorithm(method)
    monkeypatch.setattr(method, "ALGORITHM", replace(declared, case={}))
    bare = check_algorithm(method)
    left = [{f.check for f in made.findings if f.outcome == "skipped"} for made in (bare, whole)]
    assert len(left[0] - left[1]) >= 3  # the plain form, the optimum, and the draws


def test_algorithm_measure_and_data_set_run_from_another_package(tmp_path, installed):
    settings = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in settings["project"]["entry-points"].items()
    )
    installed(tmp_path, "federated_wards", entries)
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(EXAMPLE)!r}]\n{SCRIPT}"
    assert python("-c", script).stdout == "fine\n"


def test_every_public_name_is_where_the_page_says():
    rows = re.findall(r"^\| `(fedcore[\w.]*)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 12
    for module, names in rows:
        found = importlib.import_module(module)
        for name in re.findall(r"`(\w+)`", names):
            assert getattr(found, name).__module__.startswith("fedcore"), (module, name)
