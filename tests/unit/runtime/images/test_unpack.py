"""Layers of images, ordinary and hostile, unpacked by the program that does it. [R9]"""

import gzip
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")


def entry(name, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def symlink(name, target):
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def hard_link(name, target):
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture
def unpack(tmp_path):
    """(what it said, where) for a layer; the directory has one above it that must stay empty."""
    target = tmp_path / "outer" / "layer"
    target.mkdir(parents=True)

    def run(data, *, packing="", blob=None, diff_id="", lowers=(), target=target):
        packed = blob if blob is not None else gzip.compress(data) if packing else data
        file = tmp_path / "blob"
        file.write_bytes(packed)
        around = sorted(item.name for item in tmp_path.iterdir() if item.name != "disk")
        done = subprocess.run(
            [sys.executable, "-I", "-m", "sampan.runtime.images.unpack"],
            input=json.dumps([str(os.getpid()), str(file), packing, sha(packed),
                              diff_id or sha(data), str(target), *lowers]),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert sorted(item.name for item in tmp_path.iterdir() if item.name != "disk") == around
        assert [item.name for item in (tmp_path / "outer").iterdir()] == ["layer"]
        said = json.loads(done.stdout)["error"] if done.stdout else done.stderr
        assert (done.returncode == 0) == (not said), said
        return said, target

    return run


@needs_root
@pytest.mark.slow
def test_files_keep_what_they_are(unpack):
    said, root = unpack(
        tar(
            entry("bin", type=tarfile.DIRTYPE, mode=0o755, mtime=1000),
            entry("bin/tool", b"program", mode=0o4755, uid=5, gid=6, mtime=2000),
            symlink("bin/alias", "tool"),
            hard_link("bin/same", "bin/tool"),
            entry("pipe", type=tarfile.FIFOTYPE, mode=0o600),
            entry("etc/marked", b"x", pax_headers={"SCHILY.xattr.user.note": "yes"}),
        ),
        packing="gzip",
    )
    assert not said
    tool = (root / "bin/tool").stat()
    assert (stat.S_IMODE(tool.st_mode), tool.st_uid, tool.st_gid) == (0o4755, 5, 6)
    assert (tool.st_mtime, tool.st_nlink) == (2000, 2)
    assert (root / "bin").stat().st_mtime == 1000
    assert os.readlink(root / "bin/alias") == "tool"
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)
    assert (root / "etc/marked").read_bytes() == b"x"


@needs_root
@pytest.mark.slow
def test_whiteouts_become_the_overlays_own(unpack):
    said, root = unpack(
        tar(
            entry("a/.wh.gone"),
            entry("b/.wh..wh..opq"),
            entry("b/new", b"1"),
            entry(".wh.again"),
            entry("again", type=tarfile.DIRTYPE),
            entry(".wh..wh.plnk"),
        )
    )
    assert not said
    gone = (root / "a/gone").lstat()
    assert stat.S_ISCHR(gone.st_mode)
    assert gone.st_rdev == 0
    for opaque in ("b", "again"):
        assert os.getxattr(root / opaque, "trusted.overlay.opaque") == b"y"
    assert sorted(item.name for item in root.iterdir()) == ["a", "again", "b"]


@needs_root
@pytest.mark.slow
def test_parents_that_only_lower_layers_have_keep_their_modes(unpack, tmp_path):
    lower = tmp_path / "lower"
    (lower / "tmp").mkdir(parents=True)
    (lower / "tmp").chmod(0o1777)
    said, root = unpack(tar(entry("tmp/file", b"1")), lowers=[str(lower)])
    assert not said
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777


def raw(name, kind=b"0", size=0, data=b"", **fields):
    """One entry byte by byte: what no writer writes."""
    info = tarfile.TarInfo("x")
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[0:100] = name.encode("utf-8", "surrogateescape").ljust(100, b"\0")
    header[124:136] = b"%011o\0" % size if size >= 0 else b"\xff" * 12
    header[156:157] = kind
    for begin, value in fields.get("at", {}).items():
        header[begin : begin + len(value)] = value
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data.ljust(-(-len(data) // 512) * 512, b"\0")


def pax(*records):
    body = b""
    for key, value in records:
        content = b" " + key + b"=" + value + b"\n"
        length = len(content) + 1
        while len(str(length)) + len(content) != length:
            length = len(str(length)) + len(content)
        body += str(length).encode() + content
    return raw("pax", b"x", len(body), body)


END = bytes(1024)
FILE = raw("file", size=3, data=b"abc")
SPARSE = ((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"holes"))


def sparse(size, parts, data=b""):
    """A sparse file in the form of GNU tar's version 1.0."""
    listed = "".join(f"{begin}\n{length}\n" for begin, length in parts)
    body = f"{len(parts)}\n{listed}".encode().ljust(512, b"\0") + data
    said = (*SPARSE, (b"GNU.sparse.realsize", str(size).encode()))
    return pax(*said) + raw("x", b"0", len(body), body) + END


# What is refused, and in which words.
HOSTILE = {
    "upwards": (tar(entry("../evil", b"x")), "leads out of it"),
    "upwards inside": (tar(entry("a/../../evil", b"x")), "leads out of it"),
    "link upwards": (tar(hard_link("a", "../../etc/passwd")), "leads out of it"),
    "link to nothing": (tar(hard_link("a", "b")), "which it does not have"),
    "link to an absolute name": (tar(hard_link("a", "/etc/passwd")), "which it does not have"),
    "link through a link": (tar(symlink("out", "/.."), hard_link("a", "out/etc/passwd")),
                            "which it does not have"),
    "link to itself": (tar(hard_link("a", "a")), "to itself"),
    "link to a directory": (tar(entry("d", type=tarfile.DIRTYPE), hard_link("a", "d")), "Errno"),
    "device": (tar(entry("null", type=tarfile.CHRTYPE)), "device files are refused"),
    "block device": (tar(entry("disk", type=tarfile.BLKTYPE)), "device files are refused"),
    "whiteout of nothing": (tar(entry(".wh.")), "whiteout of nothing"),
    "whiteout upwards": (tar(entry("a/.wh...")), "whiteout of nothing"),
    "name too long": (tar(entry("x/" * 3000 + "y")), "no file can have"),
    "part of a name too long": (tar(entry("x" * 300)), "File name too long"),
    "unknown kind": (raw("x", b"Z") + END, "unknown kind"),
    "owner that nobody can be": (tar(entry("x", uid=(1 << 32) - 1)), "an owner that nobody can"),
    "owner too large": (tar(entry("x", uid=1 << 40)), "no proper archive"),
    "negative size": (raw("x", size=-1) + END, "no proper archive"),
    "size beyond the end": (raw("x", size=1 << 30, data=b"abc") + END, "end of data"),
    "larger than any file": (pax((b"size", b"9" * 15)) + raw("x", size=3, data=b"abc"),
                             "too large"),
    "damaged header": (FILE + b"\x55" * 512 + FILE + END, "invalid header"),
    "cut header": (FILE + raw("x")[:300], "truncated header"),
    "headers of headers": (pax((b"path", b"a")) * 5000 + FILE + END, "recursion"),
    "long names of long names": (raw("x", b"L", 2, b"y\0") * 5000 + FILE + END, "recursion"),
    "header larger than memory": (raw("pax", b"x", (1 << 33) - 1), "no proper archive"),
    "capability that is none": (
        pax((b"SCHILY.xattr.security.capability", b"x")) + FILE + END, "Invalid argument"),
    "sparse file of 8 EiB": (sparse((1 << 63) - 1, [(0, 4)], b"abcd"), "too large"),
    "sparse file backwards": (sparse(100, [(50, 4), (0, 4)], b"abcdefgh"), "no map"),
    "sparse file beyond its end": (sparse(10, [(8, 4)], b"abcd"), "beyond its end"),
    "sparse file of negative parts": (sparse(10, [(0, -4)], b"abcd"), "no map"),
    "sparse file with a cut map": (
        pax(*SPARSE, (b"GNU.sparse.realsize", b"9")) + raw("x", size=4, data=b"9\n1\n") + END,
        "no proper archive"),
}  # fmt: skip


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_layers_are_refused_by_name(unpack, name):
    layer, sentence = HOSTILE[name]
    said, _ = unpack(layer)
    assert sentence in said
    assert "Traceback" not in said


def lines(root):
    """What is in it: kind, name, and where it leads or what it holds."""
    found = []
    for path in sorted(root.rglob("*")):
        name, status = os.fsencode(path.relative_to(root)), path.lstat()
        if path.is_symlink():
            found.append((name, "->", os.readlink(path)))
        elif path.is_dir():
            found.append((name, "/"))
        elif stat.S_ISREG(status.st_mode):
            found.append((name, path.read_bytes()[:9]))
    return found


# What is odd, does no harm, and is there afterwards.
ODD = {
    "loop of links": (
        tar(symlink("a", "b"), symlink("b", "a"), entry("a/x", b"1")),
        [(b"a", "/"), (b"a/x", b"1"), (b"b", "->", "a")],
    ),
    "absolute name": (tar(entry("/etc/x", b"1")), [(b"etc", "/"), (b"etc/x", b"1")]),
    "absolute link, then written through": (
        tar(symlink("out", "/etc"), entry("etc/x", b"1"), entry("out/y", b"2")),
        [(b"etc", "/"), (b"etc/x", b"1"), (b"etc/y", b"2"), (b"out", "->", "/etc")],
    ),
    "link upwards, then written through": (
        tar(symlink("out", "../../.."), entry("out/y", b"2")),
        [(b"out", "->", "../../.."), (b"y", b"2")],
    ),
    "link that is replaced by what is below it": (
        tar(symlink("out", "/nowhere"), entry("out/y", b"2")),
        [(b"out", "/"), (b"out/y", b"2")],
    ),
    "file that becomes a directory": (
        tar(entry("a", b"1"), entry("a/b", b"2")), [(b"a", "/"), (b"a/b", b"2")]),
    "directory that becomes a file": (
        tar(entry("a/b/c", b"1"), entry("a", b"2")), [(b"a", b"2")]),
    "same file twice": (tar(entry("a", b"1"), entry("a", b"2")), [(b"a", b"2")]),
    "long names of GNU": (
        raw("x", b"L", 201, b"n" * 200 + b"\0") + raw("x", b"K", 301, b"l" * 300 + b"\0")
        + raw("x", b"2") + END,
        [(b"n" * 200, "->", "l" * 300)],
    ),
    "names that are no text": (
        raw("caf\udce9", size=1, data=b"1") + END, [(b"caf\xe9", b"1")]),
    "names that are no text, by pax": (
        pax((b"hdrcharset", b"BINARY"), (b"path", b"caf\xe9")) + raw("x") + END,
        [(b"caf\xe9", b"")],
    ),
    "times before and after all time": (
        pax((b"mtime", b"-99999999999")) + FILE + pax((b"mtime", b"9" * 30))
        + raw("later") + END,
        [(b"file", b"abc"), (b"later", b"")],
    ),
    "no end": (FILE, [(b"file", b"abc")]),
    "nothing": (END, []),
    "deeper than a stack": (
        tar(entry("d/" * 1500 + "x", b"1"), entry("d", b"now a file")), [(b"d", b"now a fil")]),
    "whiteouts of what is not there": (tar(entry("a/.wh.b"), entry(".wh..wh..opq")), [(b"a", "/")]),
    "attributes that speak to the overlay": (
        pax((b"SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
            (b"SCHILY.xattr.trusted.overlay.opaque", b"y")) + raw("d", b"5") + END,
        [(b"d", "/")],
    ),
}  # fmt: skip


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ODD))
def test_odd_layers_do_no_harm(unpack, name):
    layer, there = ODD[name]
    said, root = unpack(layer)
    assert not said
    assert lines(root) == there
    trusted = {key for path in root.rglob("*") for key in os.listxattr(path, follow_symlinks=False)}
    assert not [key for key in trusted if "redirect" in key or key == "trusted.overlay.opaque"]


@needs_root
@pytest.mark.slow
def test_capabilities_holes_and_large_owners_are_kept(unpack):
    # cap_net_raw=ep, as setcap writes it: these bytes are no text.
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    said, root = unpack(
        pax((b"SCHILY.xattr.security.capability", capability),
            (b"SCHILY.xattr.user.note", b"\xff\xfe"), (b"uid", b"4000000000"))
        + raw("ping", size=1, data=b"x")
        + sparse(50_000_000, [(4096, 4), (49_999_998, 2)], b"midst!")
    )  # fmt: skip
    assert not said
    assert os.getxattr(root / "ping", "security.capability") == capability
    assert (root / "ping").stat().st_uid == 4_000_000_000
    holes = root / "holes"
    assert holes.stat().st_size == 50_000_000
    assert holes.stat().st_blocks * 512 < 1_000_000
    with holes.open("rb") as file:
        assert file.read(4100)[4096:] == b"mids"
        file.seek(-3, os.SEEK_END)
        assert file.read() == b"\0t!"


@needs_root
@pytest.mark.slow
def test_a_layer_packed_with_zstd(unpack):
    whole = tar(entry("a", b"x" * 100_000))
    packed = subprocess.run(["zstd", "-q"], input=whole, capture_output=True, check=True).stdout
    said, root = unpack(whole, packing="zstd", blob=packed)
    assert not said
    assert (root / "a").stat().st_size == 100_000
    for damaged in (packed[:-10], b"no zstd at all", packed + b"garbage"):
        said, _ = unpack(whole, packing="zstd", blob=damaged)
        assert said
        assert "Traceback" not in said


@pytest.fixture
def small_disk(tmp_path):
    """Of 8 MiB and 100 files."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=100", "tmpfs", str(place)]
    subprocess.run(command, check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_bomb_stops_before_the_disk_is_full(unpack, small_disk, packing):
    def pack(data):
        if packing == "gzip":
            return gzip.compress(data)
        return subprocess.run(["zstd", "-q"], input=data, capture_output=True, check=True).stdout

    bomb = pack(tar(entry("big", bytes(50 << 20))))
    said, _ = unpack(b"", packing=packing, blob=bomb, target=small_disk)
    assert "holds more than" in said
    assert os.statvfs(small_disk).f_bavail > 0
    # Behind the end of the archive there is nothing that would be written.
    bomb = pack(tar(entry("small", b"1")) + bytes(100 << 20))
    said, _ = unpack(b"", packing=packing, blob=bomb, target=small_disk)
    assert "bomb" in said
    many = pack(tar(*(entry(f"f{number}") for number in range(200))))
    said, _ = unpack(b"", packing=packing, blob=many, target=small_disk)
    assert "No space left" in said


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("damaged", [b"", b"no archive at all" * 100, b"\x1f\x8b\x08garbage"])
def test_what_is_no_archive_is_said_so(unpack, damaged):
    said, _ = unpack(b"", packing="gzip", blob=damaged)
    assert said
    assert "Traceback" not in said


@needs_root
@pytest.mark.slow
def test_a_layer_that_is_cut_off_or_another_is_refused(unpack):
    whole = tar(entry("a", b"x" * 100_000))
    said, _ = unpack(whole, packing="gzip", blob=gzip.compress(whole)[:-20])
    assert said
    said, _ = unpack(whole, diff_id=sha(b"another"))
    assert "not sha256:" in said
