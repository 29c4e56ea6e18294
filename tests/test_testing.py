"""`fedcore.testing`: fedcore's own algorithms pass it, and one with a fault does not."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from fedcore import algorithms
from fedcore.algorithms import one_shot, ssi
from fedcore.errors import InputError, ReplyError
from fedcore.testing import CheckFailed, check_algorithm
from fedcore.testing.algorithm import CHECKS
from fedcore.testing.cases import case_of
from fedcore.testing.subject import Subject
from refused import refused

SUM = "U = federation.sum(gram_product)"
END = 'return {"basis": Z[:, :p], **'
FAULTS = {
    "not orthonormal": (END, END.replace("Z", "2 * Z"), "orthonormal"),
    "forgets half the ledger": (
        "scalars = params.rounds", "scalars = 2 * params.rounds", "communication() says",
    ),
    "holds an array": (
        SUM, "U = federation.sum(lambda data, state, message: data.T @ (data @ Z))",
        "holds an array",
    ),
    "leaves its data for the server": (
        SUM, "U = federation.sum(lambda data, state, message, kept=[]: (kept.append(data), "
        "data.T @ (data @ message))[1])",
        "holds an array",
    ),
    "reads the clients' data": (
        SUM, f"{SUM}\n        U = sum(data.T @ (data @ Z) for data in federation.clients)",
        "own_method reads federation.clients",
    ),
    "learns by looks that are not charged": (
        SUM, f"{SUM}\n        U = sum(federation.observe(gram_product, Z))",
        "the result follows from federation.observe",
    ),
    "draws anew": (
        "Z = starting_basis(federation, params, rng)",
        "Z = starting_basis(federation, params, np.random.default_rng())",
        "two runs with one seed differ",
    ),
    "returns another name": (
        END, END.replace("basis", "W"), "own_method returns neither V nor basis",
    ),
    "counts a column of the ledger": (
        "record(0, basis=Z[:, :p])", "record(0, basis=Z[:, :p], counts={'bytes_up': 1})",
        "'bytes_up' is a column",
    ),
    "counts what it does not declare": (
        "record(0, basis=Z[:, :p])", "record(0, basis=Z[:, :p], counts={'steps': 1})",
        "'steps' has counts",
    ),
    "declares what it does not count": (
        'paper="', 'columns={"steps": ("1", "steps")}, paper="', "no counts for the column 'steps'",
    ),
    "records half an iteration": (
        "record(k, ", "record(k + 0.5, ", "not whole numbers",
    ),
    "has a look that is not known": ('look=("blue"', 'look=("puce"', "'puce'"),
    "works after the end": (
        END, f"federation.broadcast(Z)\n    {END}", "messages were sent after the last record",
    ),
}  # fmt: skip


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_method", raising=False)

    def module_of(source):
        (tmp_path / "own_method.py").write_text(source, encoding="utf-8")
        return importlib.import_module("own_method")

    yield module_of
    sys.modules.pop("own_method", None)


def test_a_method_of_ones_own_passes(written):
    check_algorithm(written(inspect.getsource(ssi)))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_named(fault, written):
    old, new, said = FAULTS[fault]
    source = inspect.getsource(ssi)
    assert source.count(old) == 1
    with pytest.raises(CheckFailed) as failed:
        check_algorithm(written(source.replace(old, new)))
    assert said in str(failed.value)
    assert "KeyError" not in str(failed.value)


PAD = "return np.pad(V, ((0, 0), (0, params.n_components - V.shape[1])))"
GATHER = "np.hstack(federation.gather(top_subspace))"


@pytest.mark.parametrize(
    ("asked", "fault"), [(GATHER, AssertionError), ("federation.sum(top_subspace)", ReplyError)]
)
def test_clients_with_fewer_rows_than_components_are_tried(asked, fault, written):
    """Without padding the clients of the other checks, which have enough rows, show nothing."""
    source = inspect.getsource(one_shot).replace(PAD, "return V").replace(GATHER, asked)
    algorithm = algorithms.from_module("own_method", written(source))
    subject = Subject(algorithm, case_of(algorithm))
    CHECKS["charges_what_it_says"](subject)
    with pytest.raises(fault):
        CHECKS["charges_short_clients"](subject)
    CHECKS["charges_short_clients"](Subject(algorithms.get("one_shot"), subject.case))


# A fault that ends every run, and the sentence that says so.
FATAL = {
    "U = federation.summ(gram_product)": "AttributeError: 'Federation' object has no attribute",
    "U = federation.sum(lambda data, message: data.T @ (data @ message))": "TypeError: ",
}


@pytest.mark.parametrize("line", FATAL)
def test_an_error_is_told_once_and_with_the_line_of_the_method(line, written):
    source = inspect.getsource(ssi).replace(SUM, line)
    report = check_algorithm(written(source), raising=False)
    number = 1 + next(i for i, text in enumerate(source.splitlines()) if line in text)
    assert len(report.failed) > 5 and str(report).count(FATAL[line]) == 1, str(report)
    assert f"own_method.py, line {number}: {line}" in str(report)
    assert all(FATAL[line] in finding.said for finding in report.failed), "JSON has it for each"


UNHEARD = {
    "federation.broadcast(Z)\n        U = federation.sum(gram_product)":
        "U = sum(federation.observe(gram_product, Z))",
    "scalars = params.rounds * shape.n_clients * d * params.columns(d)\n"
    "    return Cost(params.rounds, scalars, scalars)": "return Cost(0, 0, 0)",
}  # fmt: skip


def test_a_method_that_sends_nothing_and_learns_by_looks_is_found(written):
    source = inspect.getsource(ssi)
    for old, new in UNHEARD.items():
        assert source.count(old) == 1
        source = source.replace(old, new)
    report = check_algorithm(written(source), raising=False)
    (found,) = report.failed
    assert "federation.observe" in found.said


OTHER = "from dataclasses import replace\n\nALGORITHM = replace(ALGORITHM, case=%s)\n"


def test_an_unknown_key_of_case_is_refused(written):
    module = written(inspect.getsource(ssi) + OTHER % '{"ranodm": True}')
    refused(lambda: check_algorithm(module), InputError, "ranodm", "random")


def test_the_module_is_told_where_its_file_is_named(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("")
    file = tmp_path / "own" / "pca.py"
    refused(lambda: check_algorithm(str(file)), InputError, "own.pca", f"folder {tmp_path} ")
    loose, folder = str(tmp_path / "pca.py"), f"folder {tmp_path.parent} "
    refused(lambda: check_algorithm(loose), InputError, f"{tmp_path.name}.pca", folder)


WEIGHTED = (
    "U = federation.sum(lambda data, state, message: len(data) * (data.T @ (data @ message)))"
)
WRONG_CASES = {
    "random": ({"random": False}, SUM, "another seed gives another result"),
    "split": ({"depends_on_split": False}, WEIGHTED, "the result with the rows split into"),
    "oracle": ({"oracle": "plain"}, WEIGHTED, "V Vᵀ: differs by"),
    "floor": ({"floor": "few"}, SUM, "½‖S − U Vᵀ‖² with 1 client, and the floor: differs by"),
}
PLAIN = """
from dataclasses import replace


def plain(clients, draws, params):
    S, Z = np.vstack(clients), params.start
    if Z is None:
        Z = draws.server.uniform(-1, 1, (S.shape[1], params.n_components))
    for _ in range(params.rounds):
        Z = np.linalg.qr(S.T @ (S @ Z))[0]
    return np.linalg.qr(Z)[0], None


def few(S, r):
    return {"rounds": 1}


ALGORITHM = replace(ALGORITHM, case={"needs": lambda S, r: {"rounds": 8}, %s})
"""


@pytest.mark.parametrize("what", WRONG_CASES)
def test_what_a_case_says_wrongly_is_found(what, written):
    case, line, said = WRONG_CASES[what]
    ((key, value),) = case.items()
    told = PLAIN % f'"{key}": {value}'
    with pytest.raises(CheckFailed) as failed:
        check_algorithm(written(inspect.getsource(ssi).replace(SUM, line) + told))
    assert said in str(failed.value)
    assert "KeyError" not in str(failed.value)


def test_a_case_that_says_the_truth_passes(written):
    told = PLAIN % '"oracle": plain, "floor": lambda S, r: {"rounds": 60}, "random": True'
    told = told.replace("case={", 'case={"depends_on_split": False, ')
    report = check_algorithm(written(inspect.getsource(ssi) + told))
    assert [finding for finding in report.findings if finding.outcome != "passed"] == []
