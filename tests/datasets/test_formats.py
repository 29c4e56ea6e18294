"""The file readers, on bytes made by hand."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from fedcore import datasets
from fedcore.datasets import bounded
from fedcore.datasets.formats import celeba, cifar, idx, libsvm
from fedcore.errors import ConfigError, DataError, InputError


def idx_bytes(code: int, shape: tuple[int, ...], payload: bytes) -> bytes:
    """An IDX file written out by hand from the format's description."""
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + payload


# ---------------------------------------------------------------- IDX


@pytest.mark.parametrize(
    ("code", "payload", "wanted"),
    [
        (0x08, bytes([0, 1, 254, 255]), np.array([0, 1, 254, 255], np.uint8)),
        (0x09, bytes([0, 1, 0x80, 0xFF]), np.array([0, 1, -128, -1], np.int8)),
        (0x0B, struct.pack(">4h", 1, -2, 300, -32768), np.array([1, -2, 300, -32768], np.int16)),
        (
            0x0C,
            struct.pack(">4i", 1, -2, 70000, -(2**31)),
            np.array([1, -2, 70000, -(2**31)], "i4"),
        ),
        (0x0D, struct.pack(">4f", 1.5, -2, 0, 0.25), np.array([1.5, -2, 0, 0.25], np.float32)),
        (0x0E, struct.pack(">4d", 1.5, -2, 0, 1e300), np.array([1.5, -2, 0, 1e300])),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_types(tmp_path, code, payload, wanted, zipped):
    content = idx_bytes(code, (2, 2), payload)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(content) if zipped else content)
    got = idx.parse(path)
    assert got.dtype == wanted.dtype and got.dtype.isnative
    np.testing.assert_array_equal(got, wanted.reshape(2, 2))
    got[0, 0] = 7  # writable


IDX = {
    "cut in its data": gzip.compress(idx_bytes(8, (3, 4), bytes(12)), mtime=0)[:-9],
    "cut in its head": gzip.compress(idx_bytes(8, (3, 4), bytes(12)), mtime=0)[:12],
    "too short": idx_bytes(8, (3, 4), bytes(11)),
    "too long": idx_bytes(8, (3, 4), bytes(13)),
    "half a header": b"\0\0\x08\x03\0\0",
    "an unknown type": b"\0\0\x07\x01\0\0\0\0",
    "a picture": b"\x89PNG\r\n",
    "empty": b"",
    "255 dimensions": idx_bytes(8, (1,) * 255, b"a"),
}


@pytest.mark.parametrize("damage", IDX)
def test_idx_damage(tmp_path, refused, damage):
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(IDX[damage])
    with refused(path):
        idx.parse(path)


def test_idx_images_and_labels_must_agree(tmp_path, refused):
    (tmp_path / "i").write_bytes(idx_bytes(8, (3, 2, 2), bytes(range(12))))
    (tmp_path / "l").write_bytes(idx_bytes(8, (3,), bytes([5, 0, 4])))
    loaded = idx.read(tmp_path, {"images": "i", "labels": "l"}, 4)
    np.testing.assert_array_equal(loaded.x, np.arange(12, dtype=np.uint8).reshape(3, 4))
    np.testing.assert_array_equal(loaded.y, [5, 0, 4])
    (tmp_path / "l").write_bytes(idx_bytes(8, (2,), bytes([5, 0])))
    with refused(tmp_path / "i"):
        idx.read(tmp_path, {"images": "i", "labels": "l"}, 4)


# ------------------------------------------------------------- LIBSVM


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_libsvm_text(tmp_path, end, last):
    lines = [b"# head 1:2", b"+1 1:0.5 3:-2e1 ", b"", b"-1", b"  -1\t2:1 # why 3:3", b"1 3:7", b""]
    path = tmp_path / "t"
    path.write_bytes(end.join(lines if last else lines[:-1]))
    x, y = libsvm.parse(path, 3)
    np.testing.assert_array_equal(x, [[0.5, 0, -20], [0, 0, 0], [0, 1, 0], [0, 0, 7]])
    np.testing.assert_array_equal(y, [1, -1, -1, 1])


def test_libsvm_empty(tmp_path):
    (tmp_path / "t").write_bytes(b"\n")
    x, y = libsvm.parse(tmp_path / "t", 3)
    assert x.shape == (0, 3) and y.shape == (0,)


BAD_LINES = [
    (b"1 2", "2"), (b"1 2:", "2:"), (b"1 :2", ":2"), (b"1 2:x", "2:x"), (b"x 2:1", "x"),
    (b"1 2:3:1", "2:3:1"), (b"1 2:1 3:1:1 5", "3:1:1"), (b"1 0:1", "0:1"), (b"1 10:1", "10:1"),
    (b"1 2:1 2:1", "2:1"), (b"1 3:1 2:1", "2:1"), (b"1 1.5:1", "1.5:1"), (b"1:1 2:1", "1:1"),
    (b"0.5 1:1", "0.5"), (b"1 2:nan", "2:nan"), (b"1 2:inf", "2:inf"), (b"1 qid:1", "qid:1"),
    (b"1e300 1:1", "1e300"), (b"1 2:" + b"x" * 90, f"2:{'x' * 78}…"),
    (b"1 " + b"9" * 5000 + b":1", "9" * 80 + "…"), (b"9" * 5000 + b" 1:1", "9" * 80 + "…"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "found"), BAD_LINES)
def test_libsvm_names_the_line_and_the_beginning_of_a_bad_token(tmp_path, refused, bad, found):
    path = tmp_path / "t"
    path.write_bytes(b"1 1:1\n\n" + bad + b"\n1 2:1\n")
    with refused(path, 2) as error:
        libsvm.parse(path, 9)
    assert f"'{found}'" in str(error.value)


def test_libsvm_agrees_with_a_plain_loop(tmp_path):
    rng = np.random.default_rng(1)
    x = np.round(rng.standard_normal((40, 7)), 3) * (rng.random((40, 7)) < 0.3)
    text = "".join(
        f"{i % 3} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v) + "\n"
        for i, row in enumerate(x)
    )
    (tmp_path / "t").write_text(text)
    got, y = libsvm.parse(tmp_path / "t", 7)
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(y, np.arange(40) % 3)


# -------------------------------------------------------------- CIFAR


def tar(path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def picture(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, 3072), np.uint8)


def test_cifar10_python_archive_keeps_the_order_of_its_members(tmp_path):
    a, b = picture(0, 2), picture(1, 3)
    batches = {
        "b2": pickle.dumps({b"data": b, b"labels": [1, 2, 3]}, 4),
        "b1": pickle.dumps({b"data": a, b"labels": [9, 0]}, 3),
        "readme.html": b"x",
    }
    tar(tmp_path / "c.tar.gz", batches)
    loaded = cifar.read10(tmp_path, {"archive": "c.tar.gz", "members": ["b1", "b2"]}, 3072)
    np.testing.assert_array_equal(loaded.x, np.concatenate([a, b]))
    np.testing.assert_array_equal(loaded.y, [9, 0, 1, 2, 3])


def test_cifar100_labels(tmp_path):
    a = picture(0, 2)
    batch = {b"data": a, b"fine_labels": [99, 4], b"coarse_labels": [19, 0]}
    tar(tmp_path / "p", {"train": pickle.dumps(batch, 4)})
    parts = {"archive": "p", "members": ["train"]}
    loaded = cifar.read100(tmp_path, parts, 3072)
    np.testing.assert_array_equal(loaded.x, a)
    np.testing.assert_array_equal(loaded.y, [99, 4])
    coarse = cifar.read100(tmp_path, parts, 3072, labels="coarse")
    np.testing.assert_array_equal(coarse.y, [19, 0])
    with pytest.raises(InputError, match="coarsse"):
        cifar.read100(tmp_path, parts, 3072, labels="coarsse")


@pytest.mark.parametrize("damage", ["cut", "no member", "not a tar", "bad shape"])
def test_cifar_damaged_archive(tmp_path, refused, damage):
    good = pickle.dumps({b"data": picture(0, 20), b"labels": [1] * 20}, 4)
    small = pickle.dumps({b"data": np.zeros((2, 3), np.uint8), b"labels": [1, 2]}, 4)
    tar(tmp_path / "p", {"train": small if damage == "bad shape" else good})
    content = (tmp_path / "p").read_bytes()
    if damage == "cut":
        (tmp_path / "p").write_bytes(content[: len(content) // 2])
    if damage == "not a tar":
        (tmp_path / "p").write_bytes(b"hello" * 300)
    member = "other" if damage == "no member" else "train"
    with refused(tmp_path / "p"):
        cifar.read10(tmp_path, {"archive": "p", "members": [member]}, 3072)


def webp(rows, **how) -> bytes:
    """A picture of 500 images, 25 in a row, pixel by pixel; what is over stays black."""
    canvas = np.zeros((640, 800, 3), np.uint8)
    for i, row in enumerate(rows):
        down, right = divmod(i, 25)
        image = np.moveaxis(row.reshape(3, 32, 32), 0, 2)
        canvas[32 * down : 32 * down + 32, 32 * right : 32 * right + 32] = image
    file = io.BytesIO()
    Image.fromarray(canvas).save(file, "WEBP", **({"lossless": True} | how))
    return file.getvalue()


def pictures(path, labels: np.ndarray, x: np.ndarray, change=lambda members: None) -> dict:
    """Write a zip of labels and pictures; return its name and the sha256 of its true records."""
    members = {"labels.bin": labels.astype(np.uint8).tobytes()}
    for i, start in enumerate(range(0, len(x), 500)):
        members[f"{i:03}.webp"] = webp(x[start : start + 500])
    change(members)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    records = b"".join(
        bytes(label.ravel()) + row.tobytes()
        for label, row in zip(labels.astype(np.uint8), x, strict=True)
    )
    return {path.name: hashlib.sha256(records).hexdigest()}


def test_cifar_from_pictures(tmp_path):
    x, more = picture(1, 703), picture(2, 500)
    y, fine = np.arange(703) % 10, np.stack([np.arange(500) % 20, np.arange(500) % 100], 1)
    two = pictures(tmp_path / "b.zip", y, x) | pictures(tmp_path / "a.zip", y[:500], more)
    loaded = cifar.read10(tmp_path, {"records": two}, 3072)
    np.testing.assert_array_equal(loaded.x, np.concatenate([x, more]))
    np.testing.assert_array_equal(loaded.y, np.concatenate([y, y[:500]]))
    assert loaded.x.flags.c_contiguous and loaded.x.dtype == np.uint8
    parts = {"records": pictures(tmp_path / "c.zip", fine, more)}
    for labels, column in (("coarse", 0), ("fine", 1)):
        found = cifar.read100(tmp_path, parts, 3072, labels=labels)
        np.testing.assert_array_equal(found.y, fine[:, column])
        np.testing.assert_array_equal(found.x, more)


def test_cifar_is_taken_in_the_form_that_is_there(source, registry, place, tmp_path, no_mirror):
    """Archive before pictures, raw before the mirror, and both before an address."""
    x, y = picture(1, 30), np.arange(30) % 10
    records = pictures(tmp_path / "p.zip", y, x)
    tar(tmp_path / "a", {"b": pickle.dumps({b"data": x, b"labels": y.tolist()}, 4)})
    files = {name: (tmp_path / name).read_bytes() for name in ("a", "p.zip")}
    split, images = {"archive": "a", "members": ["b"]}, {"records": records}
    dead = {"a": ["http://127.0.0.1:9/a"]}
    head = source("cifar10", {"train": split, "test": split}, {"a": files["a"]}, urls=dead)
    other = source("", {"train": images, "test": images}, {"p.zip": files["p.zip"]})
    head["pictures"] = other | {"status": "official content"}
    del head["pictures"]["loader"]
    known = registry(head, n_features=3072)
    mirror = place("mirror", {"p.zip": files["p.zip"]})
    raw = tmp_path / "raw"
    taken = [path.name for path in datasets.fetch("toy", raw, mirror=mirror, registry=known)]
    assert taken == ["p.zip"] and not (raw / "toy/a").exists()
    place("mirror", {"a": files["a"]})
    taken = [path.name for path in datasets.fetch("toy", raw, mirror=mirror, registry=known)]
    assert taken == ["p.zip"] and not (raw / "toy/a").exists()
    for status, added in (("official content", {}), ("official", {"a": files["a"]})):
        place("raw", added)
        loaded = datasets.load("toy", raw, registry=known)
        assert loaded.status == status
        np.testing.assert_array_equal(loaded.x, x)
        np.testing.assert_array_equal(loaded.y, y)


def _one_pixel(members):
    x = picture(1, 500)
    x[137, 1000] ^= 1
    members["000.webp"] = webp(x)


def _lossy(members):
    members["001.webp"] = webp(picture(1, 703)[500:], lossless=False, quality=100)


def _small(members):
    file = io.BytesIO()
    Image.new("RGB", (800, 672)).save(file, "WEBP")
    members["000.webp"] = file.getvalue()


def _another_format(members):
    file = io.BytesIO()
    Image.new("RGB", (800, 640)).save(file, "PNG")
    members["000.webp"] = file.getvalue()


def _swapped(members):
    members["000.webp"], members["001.webp"] = members["001.webp"], members["000.webp"]


def _cut(members):
    members["001.webp"] = members["001.webp"][:-2000]


PICTURES = {
    "one bit of a pixel": _one_pixel,
    "lossy": _lossy,
    "two pictures swapped": _swapped,
    "another size": _small,
    "another format": _another_format,
    "cut": _cut,
    "a picture missing": lambda m: m.pop("001.webp"),
    "no labels": lambda m: m.pop("labels.bin"),
    "empty labels": lambda m: m.update({"labels.bin": b""}),
    "too few labels": lambda m: m.update({"labels.bin": bytes(500)}),
    "too many labels": lambda m: m.update({"labels.bin": bytes(1703)}),
    "other labels": lambda m: m.update({"labels.bin": bytes(703)}),
    "a bomb for labels": lambda m: m.update({"labels.bin": bytes(2**19)}),
    "a bomb for a picture": lambda m: m.update({"000.webp": bytes(2**23)}),
}
LIMITS = {"a bomb for labels": bounded.MOST // 3072, "a bomb for a picture": 2**22}


@pytest.mark.parametrize("damage", PICTURES)
def test_pictures_that_are_not_the_official_content(tmp_path, refused, damage):
    path = tmp_path / "a.webp.zip"
    parts = pictures(path, np.arange(703) % 10, picture(1, 703), PICTURES[damage])
    with refused(path) as error:
        cifar.read10(tmp_path, {"records": parts}, 3072)
    assert str(LIMITS.get(damage, "")) in str(error.value)


def test_a_bit_that_flips_anywhere_in_a_file_of_pictures(tmp_path):
    """What is read is the official content, or the file is refused."""
    x, path = picture(1, 30), tmp_path / "a.webp.zip"
    parts = pictures(path, np.arange(30) % 10, x)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, 8 * len(whole), 100):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = cifar.read10(tmp_path, {"records": parts}, 3072)
        except DataError as error:
            assert error.file == path
        else:
            np.testing.assert_array_equal(found.x, x)


# ------------------------------------------------------------- CelebA


def jpeg(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=100, subsampling=0)
    return out.getvalue()


def flat(colour) -> np.ndarray:
    return np.broadcast_to(np.array(colour, np.uint8), (218, 178, 3)).copy()


@pytest.fixture
def faces(tmp_path):
    """Images 1..4 of identities 2, 1, 9, 2; image 3 (identity 9) is not an image at all."""
    images = {
        "000001.jpg": jpeg(flat((255, 0, 0))),
        "000002.jpg": jpeg(flat((0, 0, 255))),
        "000003.jpg": b"broken",
        "000004.jpg": jpeg(flat((255, 255, 255))),
    }
    rows = zip(images, (2, 1, 9, 2), strict=True)
    (tmp_path / "id.txt").write_bytes(b"".join(f"{n} {i}\r\n".encode() for n, i in rows))
    with zipfile.ZipFile(tmp_path / "i.zip", "w") as archive:
        for name, content in images.items():
            archive.writestr(f"img_align_celeba/{name}", content)
    return tmp_path


FACES = {"images": "i.zip", "labels": "id.txt"}


def test_celeba_rows(faces, refused):
    loaded = celeba.read(faces, FACES, 3072, identities=2)
    np.testing.assert_array_equal(loaded.y, [2, 1, 2])
    assert loaded.x.shape == (3, 3072) and loaded.x.dtype == np.float64
    wide = loaded.x.reshape(3, 32, 96)  # red | green | blue side by side
    np.testing.assert_allclose(wide[0, :, :32], 1.0, atol=0.02)
    np.testing.assert_allclose(wide[0, :, 32:], 0.0, atol=0.02)
    np.testing.assert_allclose(wide[1, :, :64], 0.0, atol=0.02)
    np.testing.assert_allclose(wide[1, :, 64:], 1.0, atol=0.02)
    np.testing.assert_allclose(wide[2], 1.0, atol=0.02)
    assert celeba.read(faces, FACES, 3072, identities=[1]).x.shape == (1, 3072)
    with refused(faces / "i.zip") as error:
        celeba.read(faces, FACES, 3072, identities=[9])
    assert "000003.jpg" in str(error.value)
    with refused(faces / "id.txt"):
        celeba.read(faces, FACES, 3072, identities=[3])


def test_celeba_crop_is_the_central_148():
    pixels = flat((0, 0, 0))
    pixels[35:183, 15:163] = 255  # rows 35..182 and columns 15..162 of 218 x 178
    got = celeba.shrink(jpeg(pixels))
    assert got.shape == (32, 32, 3) and got.min() > 0.9


def test_celeba_resize_is_antialiased():
    pixels = flat((0, 0, 0))
    pixels[::2] = 255  # without antialiasing, stripes of one row would survive
    got = celeba.shrink(jpeg(pixels))
    assert np.abs(got[2:-2] - 0.5).max() < 0.1


@pytest.mark.parametrize("bad", [0, -1, [], [0], ["a"], True, "25", 2.5])
def test_celeba_bad_identities(bad):
    with pytest.raises(ConfigError, match="identities"):
        celeba.chosen(bad)


@pytest.mark.parametrize("line", ["000002.jpg", "000002.jpg x", "000002.jpg " + "9" * 5000])
def test_celeba_bad_identity_line(faces, refused, line):
    (faces / "id.txt").write_text(f"000001.jpg 1\n{line}\n")
    with refused(faces / "id.txt", 1):
        celeba.read(faces, FACES, 3072)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_was_read_is_closed(tmp_path, recwarn, pack):
    (tmp_path / "x").write_bytes(pack(b"content"))
    assert bounded.content(tmp_path / "x") == b"content"
    gc.collect()
    assert not [warning for warning in recwarn if warning.category is ResourceWarning]


# ------------------------------------------------------ hostile files


@pytest.fixture
def little(monkeypatch):
    """Allow a mebibyte, where otherwise a gibibyte is."""
    monkeypatch.setattr(bounded, "MOST", 2**20)


def python10(folder, members=("train",)):
    return cifar.read10(folder, {"archive": "a", "members": list(members)}, 3072)


LINKS = {
    "dangling": (tarfile.SYMTYPE, "nowhere"),
    "to itself": (tarfile.SYMTYPE, "train"),
    "out of the archive": (tarfile.SYMTYPE, "/etc/passwd"),
    "hard, to itself": (tarfile.LNKTYPE, "cifar/train"),
    "pipe": (tarfile.FIFOTYPE, ""),
    "folder": (tarfile.DIRTYPE, ""),
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_tar_member_that_is_no_file(tmp_path, refused, kind):
    info = tarfile.TarInfo("cifar/train")
    info.type, info.linkname = LINKS[kind]
    with tarfile.open(tmp_path / "a", "w:gz") as archive:
        archive.addfile(info)
    with refused(tmp_path / "a"):
        python10(tmp_path)


def test_a_sparse_tar_member(tmp_path, refused):
    """It may claim any size and bring no bytes."""
    info = tarfile.TarInfo("cifar/train")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:398], head[398:410] = b"00000000000\0", b"00000001000\0"  # one block at 0
    head[483:495] = b"77777777777\0"  # 8 GiB in all
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + sum(head[156:512]) + 8 * 32)
    (tmp_path / "a").write_bytes(bytes(head) + bytes(512 * 3))
    with tarfile.open(tmp_path / "a") as archive:
        assert archive.getmembers()[0].size == 8**11 - 1
    with refused(tmp_path / "a"):
        python10(tmp_path)


def test_a_tar_of_thousands_of_nested_headers(tmp_path, refused):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 0
    (tmp_path / "a").write_bytes(info.tobuf(tarfile.GNU_FORMAT) * 5000)
    with refused(tmp_path / "a"):
        python10(tmp_path)


def bomb_gzip(path):
    path.write_bytes(gzip.compress(bytes(2**22)))
    idx.parse(path)


def bomb_tar(path):
    tar(path, {"train": bytes(2**22)})
    python10(path.parent)


def bomb_tar_before(path):
    tar(path, {"first": bytes(2**22), "train": b"x"})
    python10(path.parent)


def bomb_tar_header(path):
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("cifar/train")
        info.pax_headers = {"comment": "x" * 2**22}
        archive.addfile(info)
    python10(path.parent)


def endless_plain(path):
    path.write_bytes(bytes(2**22))
    idx.parse(path)


@pytest.mark.parametrize(
    "bomb", [bomb_gzip, bomb_tar, bomb_tar_before, bomb_tar_header, endless_plain]
)
def test_what_grows_beyond_the_limit_is_refused(tmp_path, refused, little, bomb):
    with refused(tmp_path / "a") as error:
        bomb(tmp_path / "a")
    assert str(bounded.MOST) in str(error.value)


def zip_of(path, content: bytes, change=lambda head: None):
    """A zip with one image whose two headers are changed after it was written."""
    with zipfile.ZipFile(path / "i.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000001.jpg", content)
    raw = bytearray((path / "i.zip").read_bytes())
    central = raw.index(b"PK\1\2")
    for start in (4, central + 6):  # where the two heads begin to be alike
        head = raw[start : start + 22]
        change(head)
        raw[start : start + 22] = head
    (path / "i.zip").write_bytes(raw)
    (path / "id.txt").write_text("000001.jpg 1\n")


def encrypted(head):
    head[2] |= 1


def unknown_method(head):
    head[4] = 99


@pytest.mark.parametrize("change", [encrypted, unknown_method])
def test_a_zip_that_cannot_be_opened(tmp_path, refused, change):
    zip_of(tmp_path, jpeg(flat((1, 2, 3))), change)
    with refused(tmp_path / "i.zip"):
        celeba.read(tmp_path, FACES, 3072, identities=1)


def test_an_image_file_that_is_too_large(tmp_path, refused):
    zip_of(tmp_path, bytes(2**26 + 1))
    with refused(tmp_path / "i.zip") as error:
        celeba.read(tmp_path, FACES, 3072, identities=1)
    assert str(2**26) in str(error.value)


def png_head(side: int) -> bytes:
    """A few hundred bytes that say that a picture is as large as that."""
    picture = io.BytesIO()
    Image.new("1", (16, 16)).save(picture, "PNG")
    raw = bytearray(picture.getvalue())
    raw[16:24] = struct.pack(">2I", side, side)
    raw[29:33] = struct.pack(">I", zlib.crc32(raw[12:29]))
    return bytes(raw)


@pytest.mark.parametrize("side", [5000, 60000])  # pillow itself refuses the second
def test_an_image_of_too_many_pixels(tmp_path, refused, side):
    zip_of(tmp_path, png_head(side))
    with refused(tmp_path / "i.zip") as error:
        celeba.read(tmp_path, FACES, 3072, identities=1)
    assert "pixels" in str(error.value)
