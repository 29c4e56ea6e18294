"""The registry file, third-party data sets, options, surrogates."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from fedcore import datasets
from fedcore.datasets import presence
from fedcore.datasets import registry as registry_module
from fedcore.errors import ConfigError, FedcoreError, InputError
from refused import refused

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


WRONG_ENTRIES = [
    ({"colour": "red"}, "colour"),
    ({"terms": None}, "terms"),
    ({"status": "good"}, "status"),
    ({"files": [{"name": "a"}]}, "files.0"),
    ({"files": [{"name": "../x", "sha256": "0" * 64}]}, "files.0.name"),
    ({"loader": "idxx"}, "idxx"),
    ({"surrogate": "digit"}, "digit"),
    ({"splits": {"train": {"images": "a", "labels": "b"}}}, "train"),
    ({"splits": {"train": {"images": "a"}}}, "labels"),
    ({"loader": "celeba", "splits": {"train": {"labels": "a"}}}, "images"),
    ({"loader": "libsvm", "splits": {"train": {"labels": "a"}}}, "table"),
    ({"loader": "cifar10", "splits": {"train": {"archive": "a"}}}, "members"),
    ({"pictures": {}}, "pictures"),
    *(
        ({"files": [{"name": "a", "bytes": 1, "sha256": "0" * 64, "urls": [url]}]}, url)
        for url in (
            "http://[bad/", "ftp://example.org/a", "http:///a", "http://a:b/", "a",
            "http://a b/", "http://a/é",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "where"), WRONG_ENTRIES)
def test_an_entry_that_is_wrong_is_refused_when_the_registry_is_read(
    source, registry, change, where
):
    entry = source("idx", {"train": IMAGES}, {"a": b""})
    assert "toy" in datasets.names(registry(entry, n_features=1))
    path = registry(entry, n_features=1, **change)
    if None in change.values():
        path.write_text(path.read_text().replace("terms: null", ""))
    refused(lambda: datasets.names(path), ConfigError, where, "toy", path)


NO_REGISTRY = [
    "a: [1",
    "",
    "- 1",
    "\tx: 1",
    "extra: 1",
    "datasets: {BAD: {}}",
    2 * "datasets: {}\n",
]


@pytest.mark.parametrize("content", [*NO_REGISTRY, None])
def test_not_a_registry(tmp_path, content):
    path = tmp_path / "r.yaml"
    if content is not None:
        path.write_text(content)
    refused(lambda: datasets.names(path), ConfigError, path)


# -------------------------------------------------------- entry points


def third_party(raw_dir, *, split, surrogate, options):
    x = np.full((2, 3), float(options["value"]))
    return datasets.Dataset("ours", x, None, "official", f"{raw_dir} {split} {surrogate}", "0")


def no_data_set(raw_dir, **_):
    return np.eye(2)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_files_that_would_do_instead_are_named(name, tmp_path):
    entry, _ = registry_module.find(name)
    said = presence.to_provide(name, entry, tmp_path, None)
    names = [file["name"] for form in registry_module.forms(entry) for file in form["files"]]
    assert len(names) > 2 and all(f"'{file}'" in said for file in names)


def test_a_stand_in_is_missing_where_the_registry_names_none(tmp_path):
    path = tmp_path / "registry.yaml"
    assert datasets.missing("w8a", tmp_path, surrogate=True) is None
    text = (ROOT / "config/datasets.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("    surrogate: sparse_binary\n", ""), encoding="utf-8")
    said = datasets.missing("w8a", tmp_path, registry=path, surrogate=True)
    assert "w8a" in said


def test_third_party_data_set(monkeypatch, tmp_path):
    own = datasets.names()
    points = [
        EntryPoint("ours", f"{__name__}:third_party", registry_module.GROUP),
        EntryPoint("wrong", f"{__name__}:no_data_set", registry_module.GROUP),
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
    for name in ("gone", "module", "wrong"):
        with pytest.raises(ConfigError, match=name):
            datasets.load(name, tmp_path)


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
    refused(lambda: datasets.load("toy", raw, registry=path, options={"samples": 6}), InputError)


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"options": {"sample": 3}}, "sample"),
        ({"options": {"identities": 3}}, "identities"),
        ({"options": {"samples": 0}}, "samples"),
        ({"options": {"samples": "3"}}, "samples"),
        ({"options": {"shuffle": True}}, "shuffle"),
        ({"split": "trian"}, "trian"),
        ({"split": "test"}, "test"),
        ({"surrogate": True}, "surrogate"),
    ],
)
def test_bad_options(toy, keywords, named):
    refused(lambda: datasets.load("toy", toy[0], registry=toy[1], **keywords), ConfigError, named)


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


def test_surrogate_pictures_are_laid_out_like_the_real_ones():
    """Put together again as the real ones are shown, each is a part of a photograph."""
    from sklearn.datasets import load_sample_images

    def is_part(picture):
        for photograph in load_sample_images().images:
            for i, j in np.argwhere((photograph == picture[0, 0]).all(axis=2)):
                if np.array_equal(photograph[i : i + 32, j : j + 32], picture):
                    return True
        return False

    options = {"samples": 3}
    for row in datasets.load("cifar10", "", surrogate=True, options=options).x:
        assert is_part(np.moveaxis(row.reshape(3, 32, 32), 0, 2))
    for row in datasets.load("celeba", "", surrogate=True, options=options).x:
        wide = np.rint(255 * row).reshape(32, 96)
        assert is_part(np.stack(np.split(wide, 3, axis=1), axis=2))


def test_surrogate_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    refused(lambda: datasets.load("mnist", "", surrogate=True), FedcoreError, "scikit-learn")


# ----------------------------------------------- the real files, from a mirror


MEANS = {  # of each colour, as they are published
    "cifar10": [0.49139968, 0.48215841, 0.44653091],
    "cifar100": [0.50707516, 0.48654887, 0.44091784],
}
FIRST = [592, 671, 581, 608, 623, 514, 608, 651, 551, 601]  # of the digits, of 6000


@pytest.mark.parametrize(
    ("name", "shape", "each"),
    [("mnist", (60000, 784), None), ("fashion_mnist", (60000, 784), 6000),
     ("cifar10", (50000, 3072), 5000), ("cifar100", (50000, 3072), 500)],
)  # fmt: skip
def test_real_pictures(real, name, shape, each):
    raw, options = real(name), {"labels": "coarse"} if name == "cifar100" else {}
    got, test = datasets.load(name, raw), datasets.load(name, raw, split="test", options=options)
    assert (got.x.shape, got.x.dtype) == (shape, np.uint8) and got.status.startswith("official")
    assert test.x.shape == (10000, shape[1])
    if each is None:
        assert np.bincount(got.y[:6000]).tolist() == FIRST
    else:
        assert set(np.bincount(got.y)) == {each} and len(set(np.bincount(test.y))) == 1
    if name in MEANS:
        means = got.x.reshape(len(got.x), 3, 1024).mean(axis=(0, 2)) / 255
        np.testing.assert_allclose(means, MEANS[name], atol=1e-8)


def test_real_w8a(real):
    got = datasets.load("w8a", real("w8a"))
    assert got.x.shape == (49749, 300) and got.x.dtype == np.float64
    assert np.count_nonzero(got.x) == 579586 == got.x.sum()
    assert (got.y == 1).sum() == 1479 and (got.y == -1).sum() == 48270
