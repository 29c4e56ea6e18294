"""No call of the library changes what the threads of a process share, also not for a moment."""

from __future__ import annotations

import contextlib
import locale
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import fedcore
from contract.networks import PARAMS
from fedcore import algorithms, datasets
from fedcore.errors import ArbitraryWarning, ConvergenceWarning, FedcoreError, unwanted, warn
from fedcore.files import libsvm
from fedcore.testing.samples import images
from processes import python

threadpoolctl = pytest.importorskip("threadpoolctl")
pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
CLIENTS = [RNG.standard_normal((20, 5)) for _ in range(3)]
LABELS = [X[:, 0] + 0.1 * RNG.standard_normal(20) for X in CLIENTS]
FEW = RNG.standard_normal((4, 9))  # fewer samples than features: the last component is arbitrary
FRAMES = [pandas.DataFrame(X, columns=list("abcde")) for X in CLIENTS]
PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-4.0, 4.0)}
FITS = {
    "all components": lambda: fedcore.FederatedPCA().fit(FEW),
    "a share": lambda: fedcore.FederatedPCA(0.8).fit(CLIENTS),
    "scores": lambda: fedcore.FederatedPCA(2, scale=True).fit(CLIENTS).score(CLIENTS[0]),
    "sparse": lambda: fedcore.FederatedPCA(2).fit([scipy.sparse.csr_array(X) for X in CLIENTS]),
    "data frames": lambda: fedcore.FederatedPCA(2).fit(FRAMES).transform(FRAMES[0]),
    "a warning": lambda: fedcore.FederatedPCA(3, params={"rounds": 1}).fit(CLIENTS),
    "private": lambda: fedcore.FederatedPCA(2, scale=True, **PRIVATE).fit(CLIENTS),
    "no table": lambda: libsvm.table(Path(__file__), 9),
    "an unknown server": lambda: datasets.answers("http://127.0.0.1:1/"),
}  # fmt: skip


def runs():
    """One run of each algorithm that takes these data as they are."""
    for name in algorithms.names():
        algorithm = algorithms.get(name)
        given = {"labels": LABELS} if algorithm.labelled else {}
        given |= {"n_components": 2} if algorithm.takes("n_components") else {}
        given |= {"clip": True} if algorithm.takes("clip") else {}
        given |= {"rounds": 2} if algorithm.takes("rounds") else {}
        clients = CLIENTS
        if algorithm.takes("model"):
            if find_spec("torch") is None:
                continue
            clients, given = images(), PARAMS
        yield name, lambda run=(name, clients), given=given: fedcore.run(*run, **given)


CALLS = FITS | dict(runs())


def called(call) -> None:
    """Call; methods that need more parameters are refused."""
    with contextlib.suppress(FedcoreError):
        call()


def libraries():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}


def state():
    return {
        "warnings": (list(warnings.filters), warnings.showwarning, warnings.formatwarning),
        "environment": dict(os.environ),
        "error state": np.geterr(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "random numbers": (random.getstate(), np.random.get_state()[1].tolist()),  # noqa: NPY002
        "folder": os.getcwd(),
        "streams": (sys.stdout, sys.stderr),
        "switches": sys.getswitchinterval(),
        "PyTorch": sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None,
    }


@pytest.fixture
def often():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def shown(monkeypatch):
    """Messages of all warnings that reach the user, from whatever thread."""
    messages = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings, "showwarning", lambda message, *where, **more: messages.append(str(message))
        )
        yield messages


@pytest.mark.parametrize("name", CALLS)
def test_no_call_asks_for_a_change(name, monkeypatch):
    """Nor is anything another afterwards."""
    called(CALLS[name])  # what is imported on first use is there
    asked, before, threads = [], state(), libraries()

    def noted(owner, word):
        plain = getattr(owner, word)

        def call(*given, **more):
            asked.append(word)
            return plain(*given, **more)

        return call

    changing = [(os, "putenv"), (os, "unsetenv"), (os, "chdir"), (signal, "signal")]
    changing += [(locale, "setlocale"), (np, "seterr"), (random, "seed"), (np.random, "seed")]
    changing += [(warnings, word) for word in ("simplefilter", "filterwarnings", "resetwarnings")]
    changing += [(warnings.catch_warnings, "__enter__"), (threadpoolctl, "threadpool_limits")]
    changing += [(type(os.environ), "__setitem__"), (type(os.environ), "__delitem__")]
    with monkeypatch.context() as patched:
        for owner, word in changing:
            patched.setattr(owner, word, noted(owner, word))
        called(CALLS[name])
    assert not asked and state() == before and threads.items() <= libraries().items()


FIRST_CALLS = """
import contextlib, warnings, fedcore
before = list(warnings.filters)
import numpy as np
X = np.random.default_rng(0).standard_normal((30, 4))
with contextlib.suppress(ImportError):  # the private calls need an extra
    fedcore.FederatedPCA(1, epsilon=1.0, delta=1e-5, bounds=3.0).fit(X)
fedcore.FederatedPCA(2, scale=True).fit(X).score(X)
import scipy.sparse
fedcore.FederatedPCA(1).fit([scipy.sparse.csr_array(X)] * 2)
from fedcore import algorithms
for name in algorithms.names():
    for more in ({}, {"labels": [X[:, 0]]}):
        with contextlib.suppress(fedcore.FedcoreError, ImportError):
            fedcore.run(name, [X], n_components=1, **more)
assert warnings.filters == before, [one for one in warnings.filters if one not in before]
"""


def test_the_first_calls_of_a_process_set_no_filter():
    """What they import does, if it is imported only then."""
    python("-W", "ignore", "-c", FIRST_CALLS)


def test_functions_of_the_caller_see_the_error_state_of_the_caller():
    seen = []

    def look(*_):
        seen.append(np.geterr())
        return False

    with np.errstate(over="raise", invalid="print", divide="call"):
        mine = np.geterr()
        fedcore.run("block_krylov", CLIENTS, n_components=1, rounds=2, stop=look)
    assert len(seen) > 1 and all(state == mine for state in seen)


def test_each_of_a_hundred_warnings_from_four_threads_arrives(often, shown):
    fit = fedcore.FederatedPCA(3, params={"rounds": 1}).fit
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit, [CLIENTS] * 100))
    fits = [message for message in shown if "has not converged" in message]
    assert len(fits) == 100, [message for message in shown if message not in fits]


def test_a_warning_names_the_line_of_the_user():
    line = sys._getframe().f_lineno + 2
    with warnings.catch_warnings(record=True) as told:
        fedcore.FederatedPCA(3, params={"rounds": 1}).fit(CLIENTS)
        fedcore.run("block_krylov", CLIENTS, n_components=3, rounds=1)
    assert [(w.filename, w.lineno) for w in told] == [(__file__, line), (__file__, line + 1)]
    assert {w.category for w in told} == {ConvergenceWarning}


def test_what_one_thread_does_not_want_others_still_get(shown):
    inside, ready = threading.Event(), threading.Event()

    def without():
        with unwanted(ArbitraryWarning):
            inside.set()
            ready.wait(60)
            warn("never", ArbitraryWarning)
            warn("another kind", ConvergenceWarning)
        warn("after it", ArbitraryWarning)

    thread = threading.Thread(target=without)
    thread.start()
    inside.wait(60)
    warn("from another thread", ArbitraryWarning)
    ready.set()
    thread.join()
    assert shown == ["from another thread", "another kind", "after it"]
