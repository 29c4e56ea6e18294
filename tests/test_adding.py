"""The modules that docs/adding.md prints are whole: another package that holds them works."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fedcore.testing import check_algorithm

PAGE = Path(__file__).parents[1] / "docs" / "adding.md"
SCRIPT = """
import numpy as np
import fedcore
from fedcore import algorithms
from fedcore.federation.ledger import Shape

rng = np.random.default_rng(0)
clients = [rng.standard_normal((20, 6)) * [9, 5, 1, 1, 1, 1] for _ in range(3)]
result = fedcore.run("subspace_iteration", clients, 2, measure=["share", "subspace_distance"])
sigma = np.linalg.svd(np.vstack(clients), compute_uv=False)
share = np.sum(sigma[:2] ** 2) / np.sum(sigma**2)
assert abs(result.history["share"][-1] - share) < 1e-9
assert result.history["subspace_distance"][-1] < 1e-9
assert len(result.history["iteration"]) == 31
chosen = algorithms.get("subspace_iteration")
params = chosen.params({"n_components": 2})
assert chosen.communication(params, Shape(3, 60, 6)) == result.ledger.cost()
print("fine")
"""


def printed():
    """Code blocks of the page: an algorithm, its case, a measure, a loader."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def their_method(name, *blocks):
    """Return a module of these blocks."""
    method = ModuleType(name)
    sys.modules[name] = method  # a dataclass looks its module up
    exec("\n".join(blocks), method.__dict__)
    return method


def test_the_printed_algorithm_with_its_case_keeps_the_whole_contract():
    algorithm, case, *_ = printed()
    whole = check_algorithm(their_method("subspace_iteration", algorithm, case))
    bare = check_algorithm(their_method("subspace_iteration", algorithm))
    left = [{f.check for f in made.findings if f.outcome == "skipped"} for made in (bare, whole)]
    assert len(left[0] - left[1]) >= 2  # the plain form, and the optimum
    assert [f.check for f in whole.findings if "CASE" in f.said] == []  # nothing is left unsaid
    with pytest.raises(AssertionError, match="plain form"):
        wrong = case.replace("S.T @ (S @ Z)", "S.T @ (S @ Z) + 1e-3")
        check_algorithm(their_method("subspace_iteration", algorithm, wrong))


def test_the_printed_loader_reads_a_table(tmp_path):
    loader = printed()[3]
    names: dict = {}
    exec(loader, names)
    (tmp_path / "t.csv").write_text("y,a,b\n1,2,3\n0,4,5.5\n", encoding="utf-8")
    got = names["read"](tmp_path, {"table": "t.csv"}, 2)
    assert got.x.tolist() == [[2.0, 3.0], [4.0, 5.5]] and got.y.tolist() == [1, 0]


def test_the_printed_algorithm_and_measure_run_from_another_package(tmp_path, installed):
    algorithm, _, metric, _ = printed()
    (tmp_path / "their_method.py").write_text(algorithm, encoding="utf-8")
    (tmp_path / "their_measures.py").write_text(metric, encoding="utf-8")
    entries = "[fedcore.algorithms]\nsubspace_iteration = their_method\n"
    installed(tmp_path, "theirs", f"{entries}[fedcore.metrics]\ntheirs = their_measures\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "fine\n", done.stderr


def test_the_printed_paper_and_commands_are_those_of_the_example():
    example, text = PAGE.parents[1] / "examples/plugin", PAGE.read_text(encoding="utf-8")
    papers = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert papers == [(example / "hospital.yaml").read_text(encoding="utf-8")]
    assert len(papers[0].splitlines()) == 10
    readme = (example / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (.*)$", readme, re.M)
    assert len(commands) == 3 and all(f"\n$ {command}\n" in text for command in commands)
    listed = set(re.findall(r"`([\w/]+\.\w+)`", readme)) - {"docs/adding.md"}
    assert listed >= {f.relative_to(example).as_posix() for f in example.glob("*/*.py")} - {
        "federated_wards/__init__.py"
    }


def test_every_path_on_the_page_is_there():
    root = PAGE.parents[1]
    paths = re.findall(
        r"`((?:fedcore|tests|config|notebooks|examples)/[\w/.]*\w/?)`", PAGE.read_text("utf-8")
    )
    assert len(paths) > 8
    assert [path for path in paths if not (root / path).exists()] == []


def test_every_public_name_is_where_the_page_says():
    rows = re.findall(r"^\| `(fedcore[\w.]*)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 12
    for module, names in rows:
        found = importlib.import_module(module)
        for name in re.findall(r"`(\w+)`", names):
            assert getattr(found, name).__module__.startswith("fedcore"), (module, name)
