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

from sampan.runtime.images.content import ImageError
from sampan.runtime.images.layer import LayerWriter, Limits, clean_name

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

    def run(data, *, packing="", blob=None, diff_id="", lowers=()):
        packed = blob if blob is not None else gzip.compress(data) if packing else data
        file = tmp_path / "blob"
        file.write_bytes(packed)
        done = subprocess.run(
            [sys.executable, "-I", "-m", "sampan.runtime.images.unpack"],
            input=json.dumps([str(file), packing, sha(packed), diff_id or sha(data), str(target),
                              *lowers]),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert [item.name for item in target.parent.iterdir()] == ["layer"]
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


HOSTILE = {
    "upwards": ([entry("../evil", b"x")], "leads out of it"),
    "upwards inside": ([entry("a/../../evil", b"x")], "leads out of it"),
    "link upwards": ([hard_link("a", "../../etc/passwd")], "leads out of it"),
    "link to nothing": ([hard_link("a", "b")], "which it does not have"),
    "link to itself": ([hard_link("a", "a")], "to itself"),
    "loop": ([symlink("a", "b"), symlink("b", "a"), entry("a/x", b"1")], ""),
    "device": ([entry("null", type=tarfile.CHRTYPE)], "device files are refused"),
    "block device": ([entry("disk", type=tarfile.BLKTYPE)], "device files are refused"),
    "whiteout of nothing": ([entry(".wh.")], "whiteout of nothing"),
    "whiteout upwards": ([entry("a/.wh...")], "whiteout of nothing"),
    "name too long": ([entry("x/" * 3000 + "y")], "no file can have"),
    "unknown kind": ([entry("x", type=b"Z")], ""),
}


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_layers_are_refused_or_do_no_harm(unpack, name):
    entries, sentence = HOSTILE[name]
    said, _ = unpack(tar(*entries))
    assert sentence in said
    assert "Traceback" not in said


@needs_root
@pytest.mark.slow
def test_a_link_out_of_the_layer_leads_to_its_own_root(unpack, tmp_path):
    """Whatever a link says, `/` is the layer's."""
    victim = tmp_path / "victim"
    victim.mkdir()
    said, root = unpack(
        tar(symlink("out", str(victim)), entry("out/file", b"evil"), symlink("etc", "../../.."))
    )
    assert "Traceback" not in said
    assert list(victim.iterdir()) == []
    assert (root / "out").exists() or said


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


def test_limits_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImageError, match="more than 2 entries"):
        LayerWriter(Limits(entries=2)).write(io.BytesIO(tar(*(entry(f"f{n}") for n in range(9)))))
    with pytest.raises(ImageError, match="more than 1000 bytes"):
        LayerWriter(Limits(bytes=1000)).write(io.BytesIO(tar(entry("big", b"x" * 5000))))


@pytest.mark.parametrize(
    ("name", "cleaned"), [("./a//b/", "a/b"), ("/etc/passwd", "etc/passwd"), (".", ""), ("", "")]
)
def test_names_are_relative_and_plain(name, cleaned):
    assert clean_name(name) == cleaned
