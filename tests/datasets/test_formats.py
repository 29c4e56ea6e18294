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
from functools import partial

import numpy as np
import pytest
from PIL import Image

import archives
from fedcore import datasets
from fedcore.datasets import bounded
from fedcore.datasets.formats import celeba, cifar, idx, libsvm
from fedcore.errors import ConfigError, DataError, InputError
from refused import refused


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
def test_idx_damage(tmp_path, damage):
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(IDX[damage])
    refused(lambda: idx.parse(path), DataError, path)


def test_idx_images_and_labels_must_agree(tmp_path):
    (tmp_path / "i").write_bytes(idx_bytes(8, (3, 2, 2), bytes(range(12))))
    (tmp_path / "l").write_bytes(idx_bytes(8, (3,), bytes([5, 0, 4])))
    read = partial(idx.read, tmp_path, {"images": "i", "labels": "l"}, 4)
    loaded = read()
    np.testing.assert_array_equal(loaded.x, np.arange(12, dtype=np.uint8).reshape(3, 4))
    np.testing.assert_array_equal(loaded.y, [5, 0, 4])
    (tmp_path / "l").write_bytes(idx_bytes(8, (2,), bytes([5, 0])))
    refused(read, DataError, tmp_path / "i")


# ------------------------------------------------------------- LIBSVM


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_libsvm_text(tmp_path, end, last):
    lines = [b"# head 1:2", b"+1 1:0.5 3:-2e1 ", b"", b"-1", b"  -1\t2:1 # why 3:3", b"1 3:7", b""]
    path = tmp_path / "t"
    path.write_bytes(end.join(lines if last else lines[:-1]))
    x, y, *_ = libsvm.read(tmp_path, {"table": "t"}, 3)
    np.testing.assert_array_equal(x, [[0.5, 0, -20], [0, 0, 0], [0, 1, 0], [0, 0, 7]])
    np.testing.assert_array_equal(y, [1, -1, -1, 1])


BAD_LINES = [
    (b"1 2", "2"), (b"1 2:", "2:"), (b"1 :2", ":2"), (b"1 2:x", "2:x"), (b"x 2:1", "x"),
    (b"1 2:3:1", "2:3:1"), (b"1 2:1 3:1:1 5", "3:1:1"), (b"1 0:1", "0:1"),
    (b"1 2:1 2:1", "2:1"), (b"1 3:1 2:1", "2:1"), (b"1 1.5:1", "1.5:1"), (b"1:1 2:1", "1:1"),
    (b"1 2:nan", "2:nan"), (b"1 2:inf", "2:inf"),
    (b"1 2:" + b"x" * 90, f"2:{'x' * 78}…"),
    (b"1 " + b"9" * 5000 + b":1", "9" * 80 + "…"), (b"9" * 5000 + b" 1:1", "9" * 80 + "…"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "found"), BAD_LINES)
def test_libsvm_names_the_line_and_the_beginning_of_a_bad_token(tmp_path, bad, found):
    path = tmp_path / "t"
    path.write_bytes(b"1 1:1\n\n" + bad + b"\n1 2:1\n")
    names = (path, "line 3:", f"'{found}'")
    refused(lambda: libsvm.read(tmp_path, {"table": "t"}, 9), DataError, *names)


@pytest.mark.parametrize("label", [b"0.5", b"1e300"])
def test_libsvm_labels_of_a_data_set_are_classes(tmp_path, label):
    (tmp_path / "t").write_bytes(b"1 1:1\n" + label + b" 1:1\n")
    refused(lambda: libsvm.read(tmp_path, {"table": "t"}, 1), DataError, tmp_path / "t")


@pytest.mark.parametrize("n", [0, 40])
def test_libsvm_agrees_with_a_plain_loop(tmp_path, n):
    rng = np.random.default_rng(1)
    x = np.round(rng.standard_normal((n, 7)), 3) * (rng.random((n, 7)) < 0.3)
    text = "".join(
        f"{i % 3} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v) + "\n"
        for i, row in enumerate(x)
    )
    (tmp_path / "t").write_text(text)
    got, y, *_ = libsvm.read(tmp_path, {"table": "t"}, 7)
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(y, np.arange(n) % 3)


# -------------------------------------------------------------- CIFAR


tar = partial(archives.tar, folder="cifar/")


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
    refused(lambda: cifar.read100(tmp_path, parts, 3072, labels="coarsse"), InputError, "coarsse")


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
    archives.zipped(path, members, zipfile.ZIP_STORED)
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


def drawn(kind: str, *size: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size).save(file, kind)
    return file.getvalue()


ONE_BIT = picture(1, 500)
ONE_BIT[137, 1000] ^= 1
LOSSY = {"lossless": False, "quality": 100}
PICTURES = {  # what becomes of the members of a zip
    "one bit of a pixel": lambda m: m.update({"000.webp": webp(ONE_BIT)}),
    "lossy": lambda m: m.update({"001.webp": webp(picture(1, 703)[500:], **LOSSY)}),
    "another size": lambda m: m.update({"000.webp": drawn("WEBP", 800, 672)}),
    "another format": lambda m: m.update({"000.webp": drawn("PNG", 800, 640)}),
    "cut": lambda m: m.update({"001.webp": m["001.webp"][:-2000]}),
    "a picture missing": lambda m: m.pop("001.webp"),
    "empty labels": lambda m: m.update({"labels.bin": b""}),
    "too many labels": lambda m: m.update({"labels.bin": bytes(1703)}),
    "other labels": lambda m: m.update({"labels.bin": bytes(703)}),
    "a bomb for labels": lambda m: m.update({"labels.bin": bytes(2**19)}),
    "a bomb for a picture": lambda m: m.update({"000.webp": bytes(2**23)}),
}
LIMITS = {"a bomb for labels": bounded.MOST_BYTES // 3072, "a bomb for a picture": 2**22}


@pytest.mark.parametrize("damage", PICTURES)
def test_pictures_that_are_not_the_official_content(tmp_path, damage):
    path = tmp_path / "a.webp.zip"
    parts = pictures(path, np.arange(703) % 10, picture(1, 703), PICTURES[damage])
    limit = LIMITS.get(damage, "")
    refused(lambda: cifar.read10(tmp_path, {"records": parts}, 3072), DataError, path, limit)


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
            assert str(path) in str(error)
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
    members = {f"img_align_celeba/{name}": content for name, content in images.items()}
    archives.zipped(tmp_path / "i.zip", members, zipfile.ZIP_STORED)
    return tmp_path


FACES = {"images": "i.zip", "labels": "id.txt"}


def test_celeba_rows(faces):
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
    for identity, names in ((9, (faces / "i.zip", "000003.jpg")), (3, (faces / "id.txt",))):
        read = partial(celeba.read, faces, FACES, 3072, identities=[identity])
        refused(read, DataError, *names)


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
    refused(lambda: celeba.chosen(bad), ConfigError, "identities")


@pytest.mark.parametrize("line", ["000002.jpg", "000002.jpg x", "000002.jpg " + "9" * 5000])
def test_celeba_bad_identity_line(faces, line):
    (faces / "id.txt").write_text(f"000001.jpg 1\n{line}\n")
    refused(lambda: celeba.read(faces, FACES, 3072), DataError, faces / "id.txt", "line 2:")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_was_read_is_closed(tmp_path, recwarn, pack):
    (tmp_path / "x").write_bytes(pack(b"content"))
    assert bounded.content(tmp_path / "x") == b"content"
    gc.collect()
    assert not [warning for warning in recwarn if warning.category is ResourceWarning]


# ------------------------------------------------------ hostile files


def idx_file(path):
    idx.parse(path)


def python10(path):
    cifar.read10(path.parent, {"archive": path.name, "members": ["train"]}, 3072)


def one_face(path):
    (path.parent / "id.txt").write_text("000001.jpg 1\n")
    celeba.read(path.parent, {"images": path.name, "labels": "id.txt"}, 3072, identities=1)


def raw(content: bytes):
    return lambda path: path.write_bytes(content)


def tarred(**members: bytes):
    return lambda path: tar(path, members)


def member(kind: bytes, link: str, **headers: str):
    """An archive with this member and no content."""

    def write(path):
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("cifar/train")
            info.type, info.linkname, info.pax_headers = kind, link, headers
            archive.addfile(info)

    return write


def sparse_member(path):
    """It may claim any size and bring no bytes."""
    info = tarfile.TarInfo("cifar/train")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:398], head[398:410] = b"00000000000\0", b"00000001000\0"  # one block at 0
    head[483:495] = b"77777777777\0"  # 8 GiB in all
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + sum(head[156:512]) + 8 * 32)
    path.write_bytes(bytes(head) + bytes(512 * 3))
    with tarfile.open(path) as archive:
        assert archive.getmembers()[0].size == 8**11 - 1


def nested_headers(path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 0
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) * 5000)


def image(content: bytes, at: int = 0, bits: int = 0):
    """A zip with one image, and with bits that are set in a byte of its two headers."""

    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("000001.jpg", content)
        whole = bytearray(path.read_bytes())
        for start in (4, whole.index(b"PK\1\2") + 6):  # where the two heads begin to be alike
            whole[start + at] |= bits
        path.write_bytes(whole)

    return write


def png_head(side: int) -> bytes:
    """A few hundred bytes that say that a picture is as large as that."""
    picture = io.BytesIO()
    Image.new("1", (16, 16)).save(picture, "PNG")
    raw = bytearray(picture.getvalue())
    raw[16:24] = struct.pack(">2I", side, side)
    raw[29:33] = struct.pack(">I", zlib.crc32(raw[12:29]))
    return bytes(raw)


def cut_in_half(path):
    tar(path, {"train": pickle.dumps({b"data": picture(0, 20), b"labels": [1] * 20}, 4)})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


SMALL = pickle.dumps({b"data": np.zeros((2, 3), np.uint8), b"labels": [1, 2]}, 4)
ZEROS, FACE, LIMIT = bytes(2**22), jpeg(flat((1, 2, 3))), str(2**20)
HOSTILE = {  # what writes a file, what reads it, and what the error says
    "cut": (cut_in_half, python10, ""), "not a tar": (raw(b"hello" * 300), python10, ""),
    "no member": (tarred(other=SMALL), python10, "train"),
    "bad shape": (tarred(train=SMALL), python10, "(2, 3)"),
    **{f"a member that is {kind!r} to {link!r}": (member(kind, link), python10, "train")
       for kind, link in (
        (tarfile.SYMTYPE, "nowhere"), (tarfile.SYMTYPE, "train"), (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "cifar/train"), (tarfile.FIFOTYPE, ""), (tarfile.DIRTYPE, ""))},
    "a sparse member": (sparse_member, python10, "train"),
    "nested headers": (nested_headers, python10, ""),
    "a bomb": (raw(gzip.compress(ZEROS)), idx_file, LIMIT),
    "endless": (raw(ZEROS), idx_file, LIMIT),
    "a bomb in a tar": (tarred(train=ZEROS), python10, LIMIT),
    "a bomb before": (tarred(first=ZEROS, train=b"x"), python10, LIMIT),
    "a bomb in a header": (member(tarfile.REGTYPE, "", comment="x" * 2**22), python10, LIMIT),
    "encrypted": (image(FACE, 2, 1), one_face, ""),
    "unknown method": (image(FACE, 4, 99), one_face, ""),
    "an image too large": (image(bytes(2**26 + 1)), one_face, str(2**26)),
    **{f"{side} pixels": (image(png_head(side)), one_face, "pixels")
       for side in (5000, 60000)},  # pillow itself refuses the second
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(bounded, "MOST_BYTES", int(LIMIT))  # where otherwise a gibibyte is allowed
    write, read, said = HOSTILE[kind]
    write(tmp_path / "a")
    refused(lambda: read(tmp_path / "a"), DataError, tmp_path / "a", said)
