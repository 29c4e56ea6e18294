"""A job depends on the text of the modules that it imports, and on that of no other."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from cells import cell
from contract.cases import case_of
from fedcore import algorithms, metrics
from fedcore.errors import ConfigError
from fedcore.experiments import build, fingerprint
from fedcore.experiments.cell import AUDITS, Cell
from fedcore.experiments.fingerprint import NOT_COUNTED, digests
from fedcore.problems import storage
from fedcore.testing.subject import Subject
from processes import python
from refused import refused

METHOD = '''
"""A method."""

from fedcore.errors import warn
from toy.tools import helper

ALGORITHM = Algorithm(look='grey', citation='A')
TABLE = {"a": "fedcore.linalg:orth"}


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
    for kept in (fingerprint.digests, fingerprint.read_source, fingerprint.find_source):
        kept.cache_clear()


def fresh(*names: str) -> dict[str, str]:
    """Return the digests of modules, by name."""
    forget()
    return dict(digests(*names))


ALIKE = [  # what stands in METHOD, and what is the same code
    ("# and one", "# something else"), ('    """Run it."""\n', ""),
    ('"""A method."""', '"""Quite another text,\n\non three lines."""'),
    ("helper(x) + 1", "(helper(x)\n            + 1)"), ("def run(x):", "\n\n\ndef run(x):"),
    ("look='grey', citation='A'", "look='blue', citation='Somebody'"),
    ('TABLE = {"a": "fedcore.linalg:orth"}', 'TABLE = {"b": "fedcore.linalg:haar"}'),
]  # fmt: skip


@pytest.mark.parametrize("change", ALIKE)
def test_layout_comments_docstrings_and_words_do_not_count(toy, change):
    known = fresh("toy.method")
    write(toy, "method", METHOD.replace(*change))
    assert fresh("toy.method") == known


VALUES = ("0", "False", "0.0", "'0'", "''", "b''", "None", "'None'", "{None: a}", "{**a}", "a[:0]",
          "a[0:]", "f'{a}'", "f'{a!r}'", "'{a}'", "draw('blue')", "draw(look='blue')",
          "draw(look='grey')", "Algorithm(sparse=True)", "Algorithm(sparse=False)")  # fmt: skip
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
        prints.add(fresh("toy.method")["toy.method"])
    assert len(prints) == len(OTHERS)


def test_an_edit_changes_the_digest_of_its_module_for_all_that_import_it(toy):
    method, other = fresh("toy.method"), fresh("toy.other")
    write(toy, "tools", "def helper(x):\n    return 3 * x\n")
    now = fresh("toy.method")
    assert {name for name in now if now[name] != method[name]} == {"toy.tools"}
    assert fresh("toy.other") == other
    assert not NOT_COUNTED & now.keys() and "fedcore.errors" in fresh("fedcore.errors")


@pytest.mark.parametrize(
    ("line", "followed"),
    [
        ("from toy import tools", True),
        ("from toy.tools import helper", True),
        ("from toy.tools import *", True),
        ("import toy.tools", True),
        ("import toy.tools as t", True),
        ("from . import tools", True),
        ("from .tools import helper", True),
        ("def run():\n    from toy import tools", True),
        ("if True:\n    import toy.tools", True),
        ("try:\n    import toy.tools\nexcept ImportError:\n    pass", True),
        ("if not TYPE_CHECKING:\n    import toy.tools", True),
        ("if TYPE_CHECKING:\n    import toy.tools", False),
        ("if TYPE_CHECKING:\n    import numpy\nelse:\n    import toy.tools", True),
    ],
)
def test_every_form_of_import_is_followed_but_that_for_type_checkers(toy, line, followed):
    write(toy, "method", line + "\n")
    assert ("toy.tools" in fresh("toy.method")) == followed


def test_imports_are_followed_through_subpackages_and_circles(toy):
    (toy / "toy" / "sub").mkdir()
    write(toy, "sub/__init__", "")
    write(toy, "sub/leaf", "from .. import tools\nfrom ..other import run\nvalue = 1\n")
    write(toy, "tools", "from toy import method\n")
    write(toy, "method", "from toy.sub.leaf import value\n")
    assert set(fresh("toy.method")) == {
        "toy", "toy.method", "toy.sub", "toy.sub.leaf", "toy.tools", "toy.other",
    }  # fmt: skip


def test_other_packages_are_left_out_even_if_their_name_begins_alike(toy):
    (toy / "toys.py").write_text("value = 1\n")
    write(toy, "method", "import toys\nimport numpy\nfrom toys import value\n")
    assert set(fresh("toy.method")) == {"toy", "toy.method"}


def test_a_notebook_depends_on_what_its_code_cells_import(toy):
    cells = [
        ("markdown", "import fedcore.cli"),
        ("code", "%matplotlib inline\nfrom fedcore.reports import tables\nimport numpy as np\n"),
        ("code", "from toy import tools as report\n!ls"),
    ]
    content = {"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}
    (toy / "a.ipynb").write_text(json.dumps(content))
    imported = fingerprint.imported_by(toy / "a.ipynb", "toy")
    assert imported == ["fedcore.reports.tables", "toy.tools"]


def test_data_files_of_a_package(toy):
    assert fingerprint.data_files("toy.method") == []
    (toy / "toy" / "rows.txt").write_text("1")
    assert fingerprint.data_files("toy.method") == [f"rows.txt {hashlib.sha256(b'1').hexdigest()}"]
    (toy / "alone.py").write_text("")
    assert fingerprint.data_files("alone") == []
    (toy / "alone.py").write_text("ROWS = open(Path(__file__).with_name('own.txt'))")
    for name in ("own.txt", "of_others.txt"):
        (toy / name).write_text("1")
    assert fingerprint.data_files("alone") == [f"own.txt {hashlib.sha256(b'1').hexdigest()}"]


# --- on the real package ------------------------------------------------------------------------


INSTALLED = [n for n in algorithms.names() if all(map(find_spec, algorithms.get(n).task.packages))]


def test_a_problem_depends_on_its_own_kind_of_source():
    drawn = {"generator": "low_rank", "params": {}}
    real = {"dataset": "w8a", "partition": {"by": "shuffled", "clients": 2}}
    for spec, surrogate, own, foreign in (
        (drawn, False, "fedcore.generators.low_rank", "fedcore.datasets"),
        (real, False, "fedcore.datasets.formats.libsvm", "fedcore.generators"),
        (real, True, "fedcore.datasets.surrogates", "fedcore.datasets.formats.libsvm"),
    ):
        found = dict(build.digests(spec, surrogate=surrogate))
        assert {own, "fedcore.experiments.build", "fedcore.problems.storage"} <= found.keys()
        assert not any(name.startswith(foreign) for name in found)


def test_no_cell_imports_what_reads_the_tables_of_users():
    every = Cell.read(dataclasses.asdict(cell("ssi", {}))).modules
    families = [metrics.REGISTRY.module_name(name) for name in metrics.REGISTRY.names()]
    methods = [algorithms.REGISTRY.module_name(name) for name in algorithms.names()]
    found = dict(digests(*every, *families, *methods, *AUDITS.values(), "fedcore.deep.newcomers"))
    rooms = ("user_tables", "user_runs", "datasets", "reports", "estimators", "cli")
    assert [name for name in found if name.startswith(tuple(f"fedcore.{r}" for r in rooms))] == []


# Runs cells, each with modules of fedcore that are imported anew; with "mute", every function of
# modules that do not count does nothing, or returns what it is given.
RUN = """
import contextlib, hashlib, importlib, inspect, json, sys

def mute(function):
    def nothing(*given, **named):
        return given[0] if given else None
    makes = inspect.isgeneratorfunction(getattr(function, "__wrapped__", function))
    return (lambda *given, **named: contextlib.nullcontext()) if makes else nothing

muted = json.loads(sys.argv[3])
for name in muted:
    module = importlib.import_module(name)
    for key, value in list(vars(module).items()):
        if getattr(value, "__module__", "") == name and hasattr(value, "__name__"):
            if not isinstance(value, type):
                setattr(module, key, mute(value))
for cell in json.loads(sys.argv[2]):
    for name in [name for name in sys.modules if name.partition(".")[0] == "fedcore"]:
        if not muted:  # so that each cell imports what it needs
            del sys.modules[name]
    from fedcore.experiments.cell import Cell
    from fedcore.experiments.repeats import run_cell
    folder = sys.argv[1]
    history = run_cell(Cell.read(cell), f"{folder}/{cell['problem']}.h5", f"{folder}/h.h5")
    arrays = [
        [group, name, str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
        for group, name, array, _ in history.arrays()
    ]
    loaded = [name for name in sys.modules if name.partition(".")[0] == "fedcore"]
    print(json.dumps([cell["algorithm"], loaded, arrays]))
"""


@pytest.fixture(scope="module")
def run_cells(tmp_path_factory):
    """Return what runs a cell of each method, and gives the modules loaded and the arrays."""
    folder, cells = tmp_path_factory.mktemp("cells"), []
    for name in INSTALLED:
        subject = Subject(algorithms.get(name), case_of(name))
        clients = subject.clients
        storage.save(subject.problem(clients), folder / f"{name}.h5")
        options = dict(case_of(name).settings[0]) if subject.subspace else {}
        params = dataclasses.asdict(subject.settings(clients, options))
        measure = [*subject.algorithm.task.printed]
        made = cell(name, params, problem=name, metrics=measure, iterates="all", repeats=2)
        cells.append(dataclasses.asdict(made))

    def run(*muted):
        done = python("-c", RUN, folder, json.dumps(cells), json.dumps(muted))
        return {name: (set(loaded), arrays)
                for name, loaded, arrays in map(json.loads, done.stdout.splitlines())}  # fmt: skip

    return run, {made["algorithm"]: Cell.read(made) for made in cells}


@pytest.fixture(scope="module")
def plain(run_cells):
    """Return the modules loaded and the arrays of a cell of each method."""
    return run_cells[0]()


def test_a_cell_depends_on_the_modules_that_python_imports_for_it(run_cells, plain):
    # All families of metrics are imported to find those asked for by name.
    beside = NOT_COUNTED | {metrics.REGISTRY.module_name(name) for name in metrics.REGISTRY.names()}
    for name, made in run_cells[1].items():
        assert {*dict(digests(*made.modules))} - beside == plain[name][0] - beside, name


def test_no_number_depends_on_modules_that_do_not_count(run_cells, plain):
    muted = run_cells[0](*sorted(NOT_COUNTED - {"fedcore"}))
    for name, (_, arrays) in plain.items():
        assert muted[name][1] == arrays and len(arrays) > 5, name


@pytest.mark.parametrize(
    "content", [b"x = 1\ndef f(:\n", b"x = '\xe9'\n", b"x = 1\0\n"], ids=["syntax", "code", "null"]
)
def test_what_is_not_there_and_what_is_no_python_is_named(toy, content):
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        fresh("toy.nothing")
    (toy / "toy" / "tools.py").write_bytes(content)
    refused(lambda: fresh("toy.method"), ConfigError, "tools.py")
    path = toy / "paper.ipynb"
    cell = {"cell_type": "code", "source": ["%matplotlib inline\n", "def f(:"]}
    for wrong in (b"no JSON", b"\xff", b"[]", b"{}", json.dumps({"cells": [cell]}).encode()):
        path.write_bytes(wrong)
        refused(lambda: fingerprint.imported_by(path, "paper"), ConfigError, "paper.ipynb")
