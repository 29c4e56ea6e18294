"""The registry file, third-party data sets, options, surrogates."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedcore import datasets
from fedcore.datasets import registry as registry_module
from fedcore.datasets import surrogates
from fedcore.errors import ConfigError, FedcoreError, InputError

ROOT = Path(__file__).parents[2]
IMAGES = {"images": "a", "labels": "a"}
NAMES = ["mnist", "fashion_mnist", "cifar10", "cifar100", "w8a", "celeba"]


def test_names_and_descriptions():
    assert set(NAMES) <= set(datasets.names())
    entry = datasets.describe("celeba")
    entry["files"].clear()
    assert datasets.describe("celeba")["files"], "describe() must hand out a copy"


# md5 sums that torchvision or the publishers' own pages print
PUBLISHED = {
    ("mnist", "train-images-idx3-ubyte.gz"): "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ("mnist", "t10k-images-idx3-ubyte.gz"): "9fb629c4189551a2d022fa330f9573f3",
    ("fashion_mnist", "train-images-idx3-ubyte.gz"): "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    ("fashion_mnist", "t10k-images-idx3-ubyte.gz"): "bef4ecab320f06d8554ea6380940ec79",
    ("cifar10", "cifar-10-python.tar.gz"): "c58f30108f718f92721af3b95e74349a",
    ("cifar100", "cifar-100-python.tar.gz"): "eb9058c3a382ffc7106e4002c42a8d85",
    ("celeba", "img_align_celeba.zip"): "00d2c5bc6d35e252742224ab0c1e8fcb",
    ("celeba", "identity_CelebA.txt"): "32bd1bd63d3c78cd57e08160ec5ed1e2",
}


@pytest.mark.parametrize(("name", "file"), PUBLISHED)
def test_published_md5(name, file):
    listed = {f["name"]: f["md5"] for f in datasets.describe(name)["files"]}
    assert listed[file] == PUBLISHED[name, file]


@pytest.mark.usefixtures("no_mirror")
def test_only_celeba_is_missing(tmp_path):
    said = {name: datasets.missing(name, tmp_path) for name in NAMES}
    assert [name for name, text in said.items() if text] == ["celeba"]
    for part in ("img_align_celeba.zip", "identity_CelebA.txt", "mmlab", str(tmp_path / "celeba")):
        assert part in said["celeba"]
    assert "\n" not in said["celeba"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d.update(extra=1), "top level"),
        (lambda d: d["datasets"]["toy"].update(colour="red"), "colour"),
        (lambda d: d["datasets"]["toy"].pop("terms"), "terms"),
        (lambda d: d["datasets"]["toy"].update(status="good"), "status"),
        (lambda d: d["datasets"]["toy"]["files"][0].pop("sha256"), "files.0"),
        (lambda d: d["datasets"]["toy"]["files"][0].update(name="../x"), "name"),
        (lambda d: d["datasets"].update(BAD={}), "datasets"),
    ],
)
def test_schema(source, registry, change, where):
    path = registry(source("idx", {"train": IMAGES}, {"a": b""}), n_features=1)
    assert datasets.names(path)[0] == "toy"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content) + "# changed\n")
    with pytest.raises(ConfigError) as error:
        datasets.names(path)
    assert where in str(error.value) and str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["a: [1", "", "- 1", "\tx: 1"])
def test_not_a_registry(tmp_path, content):
    (tmp_path / "r.yaml").write_text(content)
    with pytest.raises(ConfigError) as error:
        datasets.names(tmp_path / "r.yaml")
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="no data set registry"):
        datasets.names(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("loader", "surrogate", "file", "word"),
    [
        ("idxx", "digits", "a", "unknown loader 'idxx'.*did you mean 'idx'"),
        ("idx", "digit", "a", "unknown surrogate 'digit'.*did you mean 'digits'"),
        ("idx", "digits", "b", "split 'train'.*has no file 'b'.*known: a"),
    ],
)
def test_unknown_loader_surrogate_and_file(source, registry, loader, surrogate, file, word):
    """Refused when the registry is read, and not when a problem is made."""
    split = {"train": {"images": "a", "labels": file}}
    path = registry(source(loader, split, {"a": b""}), n_features=1, surrogate=surrogate)
    with pytest.raises(ConfigError, match=f"registry.yaml, toy: .*{word}"):
        datasets.names(path)


@pytest.mark.parametrize(
    ("loader", "split", "lacking"),
    [
        ("idx", {"images": "a"}, "labels"),
        ("celeba", {"labels": "a"}, "images"),
        ("libsvm", {"labels": "a"}, "table"),
        ("cifar10", {"archive": "a"}, "members"),
    ],
)
def test_what_a_loader_needs_of_a_split(source, registry, loader, split, lacking):
    path = registry(source(loader, {"train": split}, {"a": b""}), n_features=1)
    with pytest.raises(ConfigError, match=f"splits.train: '{lacking}' is a required property"):
        datasets.names(path)


def test_a_key_said_twice_in_the_registry(source, registry):
    path = registry(source("idx", {"train": IMAGES}, {"a": b""}), n_features=1)
    number = len(path.read_text().splitlines()) + 1
    path.write_text(path.read_text() + "datasets: {}\n")
    with pytest.raises(ConfigError, match=f"registry.yaml, line {number}: the key 'datasets'"):
        datasets.names(path)


# -------------------------------------------------------- entry points


def third_party(raw_dir, *, split, surrogate, options):
    x = np.full((2, 3), float(options["value"]))
    return datasets.Dataset("ours", x, None, "official", f"{raw_dir} {split} {surrogate}", "0")


def test_a_stand_in_is_missing_where_the_registry_names_none(tmp_path):
    path = tmp_path / "registry.yaml"
    assert datasets.missing("w8a", tmp_path, surrogate=True) is None
    text = (ROOT / "config/datasets.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("    surrogate: sparse_binary\n", ""), encoding="utf-8")
    said = datasets.missing("w8a", tmp_path, registry=path, surrogate=True)
    assert said.startswith("data set 'w8a' has no 'surrogate'")


def test_third_party_data_set(monkeypatch, tmp_path):
    own = datasets.names()
    points = [
        EntryPoint("ours", f"{__name__}:third_party", registry_module.GROUP),
        EntryPoint("wrong", "builtins:dict", registry_module.GROUP),
        EntryPoint("gone", "no_such_module_here:x", registry_module.GROUP),
        EntryPoint("module", "json", registry_module.GROUP),
    ]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: points)
    assert datasets.names() == [*own, "gone", "module", "ours", "wrong"]
    assert datasets.missing("ours", tmp_path) is None
    assert datasets.fetch("ours", tmp_path) == []
    assert "third_party" in datasets.describe("ours")["description"]
    got = datasets.load("ours", "here", options={"value": 4})
    assert got.x.tolist() == [[4.0] * 3] * 2 and got.note == "here train False"
    with pytest.raises(ConfigError, match="cannot be imported"):
        datasets.load("gone", tmp_path)
    with pytest.raises(ConfigError, match="json is no function; write the entry point as module:"):
        datasets.load("module", tmp_path)


ROWS = np.ones((4, 3))
LABELS = np.arange(4)
WRONG = {
    "x": [ROWS[0], ROWS[None], ROWS.tolist(), ROWS + 1j, ROWS.astype(str), ROWS.astype(object)],
    "y": [LABELS[:3], LABELS[:, None], LABELS.tolist(), LABELS / 2, LABELS.astype(str)],
    "status": ["mine", "Official", "", None, 1],
    "name": ["", None, 1],
}
WRONG |= {"owners": WRONG["y"], "note": WRONG["name"], "checksum": WRONG["name"]}


@pytest.mark.parametrize(("part", "value"), [(p, v) for p, values in WRONG.items() for v in values])
def test_a_third_party_data_set_with_a_wrong_part_is_refused(monkeypatch, part, value):
    whole = datasets.Dataset("ours", ROWS, LABELS, "official", "Made up.", "0" * 64, LABELS)
    made = whole
    monkeypatch.setitem(globals(), "wrong_part", lambda raw_dir, **_: made)
    point = EntryPoint("ours", f"{__name__}:wrong_part", registry_module.GROUP)
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [point])
    assert datasets.load("ours", "data/raw") is whole
    made = replace(whole, **{part: value})
    with pytest.raises(ConfigError, match=f"'ours'.*{part}") as refused:
        datasets.load("ours", "data/raw")
    assert "\n" not in str(refused.value)


# ------------------------------------------------------------- options


@pytest.fixture
def toy(source, registry, place):
    five = b"\0\0\0\x05"
    files = {
        "i": b"\0\0\x08\x02" + five + b"\0\0\0\x01" + bytes(range(5)),
        "l": b"\0\0\x08\x01" + five + bytes(range(5)),
    }
    path = registry(source("idx", {"train": {"images": "i", "labels": "l"}}, files), n_features=1)
    return place("raw", files), path


def test_samples_and_shuffle(toy):
    raw, path = toy
    first = datasets.load("toy", raw, registry=path, options={"samples": 3})
    assert first.x.ravel().tolist() == [0, 1, 2] and "3 rows" in first.note
    mixed = datasets.load("toy", raw, registry=path, options={"shuffle": 1})
    assert mixed.x.ravel().tolist() == mixed.y.tolist() != [0, 1, 2, 3, 4]
    assert sorted(mixed.y) == [0, 1, 2, 3, 4] and mixed.x.flags.c_contiguous
    both = datasets.load("toy", raw, registry=path, options={"shuffle": 1, "samples": 2})
    assert both.y.tolist() == mixed.y[:2].tolist()
    with pytest.raises(InputError, match="5 rows"):
        datasets.load("toy", raw, registry=path, options={"samples": 6})


@pytest.mark.parametrize(
    ("keywords", "word"),
    [
        ({"options": {"sample": 3}}, "did you mean 'samples'"),
        ({"options": {"identities": 3}}, "no option 'identities'"),
        ({"options": {"samples": 0}}, "at least 1"),
        ({"options": {"samples": "3"}}, "at least 1"),
        ({"options": {"shuffle": True}}, "at least 0"),
        ({"split": "trian"}, "did you mean 'train'"),
        ({"split": "test"}, "has no split 'test'"),
        ({"surrogate": True}, "has no surrogate"),
    ],
)
def test_bad_options(toy, keywords, word):
    with pytest.raises(ConfigError, match=word):
        datasets.load("toy", toy[0], registry=toy[1], **keywords)


# ---------------------------------------------------------- surrogates

SHAPES = {
    "mnist": (1797, 64), "fashion_mnist": (1797, 64), "w8a": (5000, 300),
    "cifar10": (2000, 3072), "cifar100": (2000, 3072), "celeba": (557, 3072),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_surrogate(name):
    a = datasets.load(name, "/nowhere", surrogate=True)
    b = datasets.load(name, "/nowhere", surrogate=True)
    assert a.status == "surrogate" and "stand-in" in a.note
    assert a.x.shape == SHAPES[name] and a.x.flags.c_contiguous and a.y.shape == a.x.shape[:1]
    assert a.x.dtype == (np.float64 if name in ("w8a", "celeba") else np.uint8)
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.y, b.y)
    assert a.checksum == b.checksum and len(a.checksum) == 64
    small = datasets.load(name, "/nowhere", surrogate=True, options={"samples": 120})
    assert small.x.shape == (120, a.x.shape[1]) and small.checksum != a.checksum
    assert np.linalg.matrix_rank(small.x.astype(float)) > 20


def test_surrogate_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    got = datasets.load("mnist", "", surrogate=True)
    np.testing.assert_allclose(got.x.astype(float) * 16 / 255, load_digits().data, atol=0.04)
    np.testing.assert_array_equal(got.y, load_digits().target)
    asked = datasets.load("mnist", "", surrogate=True, options={"samples": 6000})
    assert len(asked.x) == 1797 and "6000" in asked.note


def test_surrogate_w8a_has_the_statistics_of_w8a():
    """The manifest's numbers: 579586 nonzeros in 49749 rows, 1479 positive."""
    got = datasets.load("w8a", "", surrogate=True, options={"samples": 20000})
    assert set(np.unique(got.x)) == {0.0, 1.0} and set(got.y) == {-1, 1}
    assert got.x.sum(axis=1).mean() == pytest.approx(579586 / 49749, rel=0.03)
    assert (got.y == 1).mean() == pytest.approx(1479 / 49749, abs=1e-4)
    share = np.sort(got.x.mean(axis=0))
    assert share[-1] > 0.25 and np.median(share) < 0.05


def test_surrogate_pictures():
    ten = datasets.load("cifar10", "", surrogate=True)
    assert sorted(set(ten.y)) == list(range(10))
    hundred = datasets.load("cifar100", "", surrogate=True)
    assert sorted(set(hundred.y)) == list(range(100))
    test = datasets.load("cifar10", "", surrogate=True, split="test")
    assert test.checksum != ten.checksum
    faces = datasets.load("celeba", "", surrogate=True)
    assert sorted(set(faces.y)) == list(range(1, 26))
    assert 0 <= faces.x.min() and faces.x.max() <= 1
    three = datasets.load("celeba", "", surrogate=True, options={"identities": [4, 8, 9]})
    assert sorted(set(three.y)) == [4, 8, 9]


def test_surrogate_pictures_are_laid_out_like_the_real_ones(monkeypatch):
    coloured = np.zeros((427, 640, 3), np.uint8)
    coloured[..., 0], coloured[..., 2] = 255, 51  # red 255, green 0, blue 51
    monkeypatch.setattr(surrogates, "_photographs", lambda: [coloured, coloured])
    planes = datasets.load("cifar10", "", surrogate=True, options={"samples": 1}).x[0]
    assert [set(planes[i : i + 1024]) for i in (0, 1024, 2048)] == [{255}, {0}, {51}]
    wide = datasets.load("celeba", "", surrogate=True, options={"samples": 1}).x.reshape(32, 96)
    np.testing.assert_allclose(wide, np.repeat([[1.0, 0.0, 0.2]], 32, axis=1) * np.ones((32, 1)))


def test_surrogate_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(FedcoreError, match="scikit-learn"):
        datasets.load("mnist", "", surrogate=True)


def test_import_is_light():
    code = (
        "import sys, fedcore.datasets; print([m for m in ('sklearn', 'PIL') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# ----------------------------------------------- the real files, from a mirror


def test_real_mnist(real):
    raw = real("mnist")
    got = datasets.load("mnist", raw)
    assert got.x.shape == (60000, 784) and got.x.dtype == np.uint8 and got.status == "official"
    first = np.bincount(got.y[:6000]).tolist()
    assert first == [592, 671, 581, 608, 623, 514, 608, 651, 551, 601]
    assert datasets.load("mnist", raw, split="test").x.shape == (10000, 784)


def test_real_w8a(real):
    got = datasets.load("w8a", real("w8a"))
    assert got.x.shape == (49749, 300) and got.x.dtype == np.float64
    assert np.count_nonzero(got.x) == 579586 == got.x.sum()
    assert (got.y == 1).sum() == 1479 and (got.y == -1).sum() == 48270


def test_real_cifar10(real):
    raw = real("cifar10")
    got = datasets.load("cifar10", raw)
    assert got.x.shape == (50000, 3072) and np.bincount(got.y).tolist() == [5000] * 10
    means = got.x.reshape(50000, 3, 1024).mean(axis=(0, 2)) / 255
    np.testing.assert_allclose(means, [0.49139968, 0.48215841, 0.44653091], atol=1e-8)
    test = datasets.load("cifar10", raw, split="test")
    assert np.bincount(test.y).tolist() == [1000] * 10


def test_real_cifar100(real):
    raw = real("cifar100")
    got = datasets.load("cifar100", raw)
    assert got.x.shape == (50000, 3072) and np.bincount(got.y).tolist() == [500] * 100
    means = got.x.reshape(50000, 3, 1024).mean(axis=(0, 2)) / 255
    np.testing.assert_allclose(means, [0.50707516, 0.48654887, 0.44091784], atol=1e-8)
    test = datasets.load("cifar100", raw, split="test", options={"labels": "coarse"})
    assert np.bincount(test.y).tolist() == [500] * 20


def test_real_fashion_mnist(real):
    raw = real("fashion_mnist")
    got = datasets.load("fashion_mnist", raw)
    assert got.x.shape == (60000, 784) and np.bincount(got.y).tolist() == [6000] * 10
    test = datasets.load("fashion_mnist", raw, split="test")
    assert test.x.shape == (10000, 784) and np.bincount(test.y).tolist() == [1000] * 10
