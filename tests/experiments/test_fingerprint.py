from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from fedcore.experiments.cell_code import code_of

import fedcore
from fedcore import metrics
from fedcore.errors import ConfigError
from fedcore.experiments import build, sources
from fedcore.experiments import fingerprint as module
from fedcore.experiments.cell import Cell
from fedcore.experiments.fingerprint import closure, fingerprint
from fedcore.repro.plan.plan import Plan
from refused import refused

METHOD = '''
"""A method."""

from toy.tools import helper

ALGORITHM = Algorithm(look='grey', citation='A')


def run(x):
    """Run it."""
    return helper(x) + 1  # and one
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Return a package on the path: two methods, of which one uses the tools."""
    files = {
        "__init__": "",
        "tools": "def helper(x):\n    return 2 * x\n",
        "method": METHOD,
        "other": "def run(x):\n    return x\n",
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    forget()


def write(root: Path, name: str, text: str) -> None:
    path = root / "toy" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def forget() -> None:
    """Empty the caches, as a new process would start."""
    module._code.cache_clear()
    module._content.cache_clear()
    module._fingerprint.cache_clear()
    sources.find.cache_clear()


def fresh(*names: str) -> str:
    forget()
    return fingerprint(*names)


ALIKE = [  # what stands in METHOD, and what is the same code
    ("# and one", "# something else"), ('    """Run it."""\n', ""),
    ('"""A method."""', '"""Quite another text,\n\non three lines."""'),
    ("helper(x) + 1", "(helper(x)\n            + 1)"), ("def run(x):", "\n\n\ndef run(x):"),
    ("look='grey', citation='A'", "look='blue', citation='Somebody'"),
]  # fmt: skip


@pytest.mark.parametrize("change", ALIKE)
def test_layout_comments_docstrings_and_words_do_not_count(toy, change):
    known = fresh("toy.method")
    write(toy, "method", METHOD.replace(*change))
    assert fresh("toy.method") == known


VALUES = ("0", "False", "0.0", "'0'", "''", "b''", "None", "'None'", "{None: a}", "{**a}", "a[:0]",
          "a[0:]", "f'{a}'", "f'{a!r}'", "'{a}'", "draw('blue')", "draw(look='blue')",
          "draw(look='grey')", "Algorithm(sparse=True)", "Algorithm(sparse=False)",
          '{"a": "fedcore.linalg:orth"}', '{"a": "fedcore.linalg:haar"}')  # fmt: skip
FORMS = ("x", "y", "x: int", "x=0", "x=False", "x=None", "*x", "*, x", "x, /")
BODIES = ("return", "return None", "yield", "return x + 1", "return x + 2", "return x - 1")
OTHERS = [
    *(f"value = {value}\n" for value in VALUES), *(f"def run({x}):\n    pass\n" for x in FORMS),
    *(f"def run(x):\n    {body}\n" for body in BODIES), "def run(x) -> int:\n    pass\n",
    "async def run(x):\n    yield\n",
]  # fmt: skip


def test_all_other_code_counts(toy):
    prints = set()
    for text in OTHERS:
        write(toy, "method", text)
        prints.add(fresh("toy.method"))
    assert len(prints) == len(OTHERS)


@pytest.mark.parametrize(
    "line",
    [
        "from toy import tools",
        "from toy.tools import helper",
        "from toy.tools import *",
        "import toy.tools",
        "import toy.tools as t",
        "from . import tools",
        "from .tools import helper",
        "def run():\n    from toy import tools",
        "if True:\n    import toy.tools",
    ],
)
def test_every_form_of_import_is_followed(toy, line):
    write(toy, "method", line + "\n")
    forget()
    assert "toy.tools" in closure(["toy.method"])


def test_imports_are_followed_through_subpackages_and_circles(toy):
    (toy / "toy" / "sub").mkdir()
    write(toy, "sub/__init__", "from .leaf import value\n")
    write(toy, "sub/leaf", "from .. import tools\nfrom ..other import run\nvalue = 1\n")
    write(toy, "tools", "from toy import method\n")
    write(toy, "method", "from toy.sub import value\n")
    forget()
    assert closure(["toy.method"]) == {
        "toy.method", "toy.sub", "toy.sub.leaf", "toy.tools", "toy.other",
    }  # fmt: skip


TOOLS, OTHER = "from toy.tools import helper", "from toy.other import helper"
PAIRS = [  # of which the second gives the name another meaning
    (TOOLS, OTHER), ("from toy.tools import *", "from toy.other import *"),
    ("from toy.tools import *", OTHER), (TOOLS, "from numpy import array as helper"),
    ("from toy import tools as helper", "from toy import other as helper"),
    (TOOLS, "def helper(x): return 0"), (TOOLS, "helper = abs"),
]  # fmt: skip
USED = "\ndef run({1}):{0}\n    return {2}(x)\n\ndef walk(x):{3}\n    return {2}(x)\n"
PLACES = (
    "{}\n{}\n", "if FAST:\n    {}\nelse:\n    {}\n",
    "try:\n    {}\nexcept ImportError:\n    {}\n",
    "def run(x):\n    {}\n    return helper(x)\n\ndef walk(x):\n    {}\n    return -helper(x)\n",
)  # fmt: skip
HIDING = ("from numpy import array as helper", "def helper(x): return 0", "helper = abs")
MOVED = [
    *((place.format(one, two), place.format(two, one))
      for place in PLACES for one, two in PAIRS if "*" not in one or "def run" not in place),
    *((rest + USED.format(f"\n    {TOOLS}", "x", "helper", ""),
       rest + USED.format("", "x", "helper", f"\n    {TOOLS}")) for rest in HIDING),
    *((USED.format(f"\n    from toy.tools import {name}", x, name, ""),
       USED.format("", x, name, f"\n    from toy.tools import {name}"))
      for name, x in (("sum", "x"), ("helper", "helper"))),  # a builtin, an argument
    (TOOLS, OTHER), (TOOLS, "from toy.tools import other as helper"),
    ("from toy import tools", "from toy import other as tools"),
    ("from toy import helper as h", "from toy.helper import helper as h"),
    ("from numpy import array", "from scipy import array"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), MOVED)
def test_where_a_name_comes_from_counts_and_two_imports_do_not_change_places(toy, before, after):
    for name, text in {"tools": "other = 0", "other": "", "helper": "run = 0"}.items():
        write(toy, name, f"def helper(x):\n    return '{name}'\n\n{text}\n")
    every = "import toy.tools\nimport toy.other\nimport toy.helper\n"  # all in the closure
    prints = set()
    for text in (before, after):
        write(toy, "method", every + text)
        prints.add(fresh("toy.method"))
    assert len(prints) == 2


@pytest.mark.parametrize(
    "line", ["from toy import tools", "import toy.tools as tools", "import toy.tools"]
)
@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ("from toy.other import run as tools", True),
        ("from toy.tools import helper as tools", True),
        ("from toy.other import *", True),
        ("tools = abs", True),
        ("from . import tools", False),
        ("from toy.other import run", False),
    ],
)
def test_a_name_that_a_package_gives_comes_before_its_module(toy, line, given, counts):
    write(toy, "method", f"{line}\nvalue = 1\n")
    write(toy, "__init__", f"{given}\n")
    forget()
    assert ("toy" in closure(["toy.method"])) == counts


def test_other_packages_are_left_out_even_if_their_name_begins_alike(toy):
    (toy / "toys.py").write_text("value = 1\n")
    write(toy, "method", "import toys\nimport numpy\nfrom toys import value\n")
    forget()
    assert closure(["toy.method"]) == {"toy.method"}


PARTS = '''
import os
from toy import other, tools
from toy.sub import *

LIMIT = 3
TABLE = [(1, 2)]


def leaf(x):
    """Text."""
    return other.run(x) + LIMIT


def wanted(x):
    return leaf(x)


def unwanted(x):
    return tools.helper(x) + len(TABLE) + os.name
'''


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("def wanted(x)", "def wanted(y)", True),
        ("+ LIMIT", "- LIMIT", True),
        ("LIMIT = 3", "LIMIT = 4", True),
        ("TABLE = [(1, 2)]", "TABLE = []", False),
        ("len(TABLE)", "2", False),
        ("import os", "import sys as os", False),
        ('"""Text."""', '"""Another text."""', False),
        ("LIMIT = 3", "LIMIT = 3\nprint(LIMIT)", True),  # it may do anything
        ("def unwanted", "def wanted(x):\n    return 0\n\n\ndef unwanted", True),
    ],
)
def test_of_one_function_what_it_uses_counts(toy, old, new, counts):
    (toy / "toy" / "sub").mkdir()
    write(toy, "sub/__init__", "")
    write(toy, "method", PARTS)
    before = fresh("toy.method:wanted")
    assert closure(["toy.method:wanted"]) == {"toy.method:wanted", "toy.other", "toy.sub"}
    write(toy, "method", PARTS.replace(old, new))
    assert (fresh("toy.method:wanted") != before) == counts
    write(toy, "method", PARTS)
    write(toy, "tools", "value = 0\n")
    assert fresh("toy.method:wanted") == before
    write(toy, "other", "value = 0\n")
    assert fresh("toy.method:wanted") != before


def test_a_notebook_depends_on_what_its_code_cells_import(toy):
    cells = [
        ("markdown", "import fedcore.cli"),
        ("code", "%matplotlib inline\nfrom fedcore.reports import tables\nimport numpy as np\n"),
        ("code", "from toy import tools as report\n!ls"),
    ]
    content = {"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}
    (toy / "a.ipynb").write_text(json.dumps(content))
    assert module.imported_by(toy / "a.ipynb", "toy") == [
        "fedcore.reports.tables",
        "toy.tools",
    ]


def test_data_files_of_a_package(toy):
    assert module.data_files("toy.method:run") == []
    (toy / "toy" / "rows.txt").write_text("1")
    assert module.data_files("toy.method") == [f"rows.txt {hashlib.sha256(b'1').hexdigest()}"]
    (toy / "alone.py").write_text("")
    assert module.data_files("alone") == []
    (toy / "alone.py").write_text("ROWS = open(Path(__file__).with_name('own.txt'))")
    for name in ("own.txt", "of_others.txt"):
        (toy / name).write_text("1")
    assert module.data_files("alone") == [f"own.txt {hashlib.sha256(b'1').hexdigest()}"]


# --- on the real package ------------------------------------------------------------------------


PROBLEMS = {
    "drawn": {"generator": "low_rank", "params": {}},
    "real": {"dataset": "w8a", "partition": {"by": "shuffled", "clients": 2}},
}


def test_a_cell_depends_on_which_function_a_metric_is_and_on_what_ends_its_runs(monkeypatch):
    a, b = metrics.get("subspace_distance"), metrics.get("objective")
    choices = [
        (a, b),
        (replace(a, function=b.function), replace(b, function=a.function)),
        (replace(a, finite=not a.finite), b),
    ]
    prints = set()
    for choice in choices:
        monkeypatch.setattr(metrics, "get", {metric.name: metric for metric in choice}.get)
        prints.add(code_of(Cell("p", "e", "ssi", "n", "q", {}, 1, [a.name, b.name], "last", 0)))
    assert len(prints) == 3


def test_a_problem_depends_on_its_own_kind_of_source_and_a_cell_on_none():
    drawn, real = (closure(build.modules(problem)) for problem in PROBLEMS.values())
    cell = closure(["fedcore.experiments.repeats"])
    made = closure(build.modules(PROBLEMS["real"], surrogate=True))
    for found, own, foreign in (
        (drawn, "fedcore.generators.low_rank", "fedcore.datasets"),
        (real, "fedcore.datasets.formats.libsvm:read", "fedcore.generators"),
        (cell, "fedcore.problems.storage", "fedcore.datasets"),
        (cell, "fedcore.history", "fedcore.generators"),
        (made, "fedcore.datasets.surrogates:sparse_binary", "fedcore.datasets.formats"),
    ):
        assert own in found and not any(name.startswith(foreign) for name in found)
    plan = Plan({"surrogates": False}, {"paper": {"problems": PROBLEMS}})
    for name, spec in PROBLEMS.items():
        entry = json.dumps(build.described(spec), sort_keys=True)
        expected = fingerprint(*build.modules(spec), words=[entry])
        assert plan.problem_code(f"paper/{name}") == expected


CELL = """
import sys; sys.path.insert(0, {root!r})
from fedcore.experiments import fingerprint
from fedcore.experiments.cell import Cell
from fedcore.experiments.cell_code import code_of
from fedcore.repro.plan.plan import Plan
assert fingerprint.__file__.startswith({root!r})
for algorithm in ("power_gd", "wk2023"):
    cell = Cell("p", "e", algorithm, "n", "q", {{}}, 1, ["objective"], "last", 0)
    print(code_of(cell))
"""


@pytest.fixture
def copied(tmp_path):
    """Return the folder of a copy of fedcore that may be edited."""
    source = Path(fedcore.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "fedcore", ignore=ignore)
    return tmp_path / "fedcore"


def codes(folder: Path) -> list[str]:
    """Fingerprints of a cell of `power_gd` and of one of `wk2023`, as a new process sees them."""
    script = textwrap.dedent(CELL).format(root=str(folder.parent))
    command = [sys.executable, "-B", "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_an_edit_of_one_algorithm_reruns_its_cells_and_no_others(copied):
    gd, wk = codes(copied)
    assert codes(copied) == [gd, wk] and gd != wk
    append(copied / "algorithms" / "wk2023.py", "\n# a remark\n")
    append(copied / "algorithms" / "yd2021.py", "\nEDITED = True\n")
    append(copied / "metrics" / "subspace.py", "\nEDITED = True\n")
    for made in ("datasets/reading", "generators/low_rank", "experiments/build"):
        append(copied / f"{made}.py", "\nEDITED = True\n")
    assert codes(copied) == [gd, wk]
    append(copied / "algorithms" / "wk2023.py", "\nEDITED = True\n")
    gd_now, wk_now = codes(copied)
    assert gd_now == gd and wk_now != wk
    append(copied / "algorithms" / "power_iteration.py", "\nEDITED = True\n")
    assert codes(copied)[0] != gd and codes(copied)[1] == wk_now
    append(copied / "federation" / "federation.py", "\nEDITED = True\n")
    assert codes(copied)[1] != wk_now


@pytest.mark.parametrize(
    "content", [b"x = 1\ndef f(:\n", b"x = '\xe9'\n", b"x = 1\0\n"], ids=["syntax", "code", "null"]
)
def test_what_is_not_there_and_what_is_no_python_is_named(toy, content):
    for name in ("toy.nothing", "toy.method:nothing"):
        with pytest.raises(ModuleNotFoundError, match="nothing"):
            fresh(name)
    (toy / "toy" / "tools.py").write_bytes(content)
    with pytest.raises(ConfigError, match=r"tools\.py"):
        fresh("toy.method")
    path = toy / "paper.ipynb"
    cell = {"cell_type": "code", "source": ["%matplotlib inline\n", "def f(:"]}
    for wrong in (b"no JSON", b"\xff", b"[]", b"{}", json.dumps({"cells": [cell]}).encode()):
        path.write_bytes(wrong)
        refused(lambda: module.imported_by(path, "paper"), ConfigError, "paper.ipynb")
