"""One layer of an image, written into a directory that an overlay can be mounted from.

Job: a stream of tar → files, with owners, modes, times, extended attributes, hard links and holes;
    whiteouts become what the kernel's overlay takes for them.
Invariant: the process has made the directory its root (`chroot`) before: no name, link or order of
    entries leads out of it. Names with `..` and device files are refused besides.
Invariant: the limits hold before anything is written beyond them.
"""

import contextlib
import errno
import os
import stat
import tarfile
from collections.abc import Sequence
from typing import IO

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.remove_tree import remove_tree
from sampan.runtime.images.content import CHUNK_BYTES, ImageError
from sampan.runtime.user_namespace import OF_ROOT, Rights

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
_XATTR, _CAPABILITY = "SCHILY.xattr.", "security.capability"
# As containerd: all but the administrator's. Those would speak to the overlay itself, and these to
# one that is mounted without root.
_XATTRS_LEFT_OUT = ("trusted.", "user.overlay.")
_LONGEST_NAME = 4096
_NOBODY = (1 << 32) - 1  # for chown: leave it as it is
# Not in the types that mypy knows.
_DAMAGED_HEADERS = (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError)  # type: ignore[attr-defined]  # not in typeshed
_ReadError = tarfile.ReadError  # where the parameter hides the module
# What a hostile archive makes of the parser, besides its own errors.
TAR_ERRORS = (
    tarfile.TarError, EOFError, ValueError, ArithmeticError, LookupError, MemoryError,
    RecursionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    entries: int = 2_000_000
    bytes: int = 64 << 30


class StrictEntry(tarfile.TarInfo):
    """An entry whose header is damaged ends the reading; else it would pass for the archive's end,
    and the rest would be missing in silence. One of a negative size would be read for ever."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> "StrictEntry":
        try:
            found = super().fromtarfile(tarfile)
        except _DAMAGED_HEADERS as error:
            raise _ReadError(str(error)) from None
        if found.size < 0:
            raise _ReadError("an entry of a negative size")
        return found


class LayerWriter:
    def __init__(
        self, limits: Limits, lowers: Sequence[int] = (), rights: Rights = OF_ROOT
    ) -> None:
        """`lowers`: open directories of the layers below, the nearest first."""
        self._limits, self._lowers, self._rights = limits, lowers, rights
        self._entries = self.bytes_written = 0
        self._times: dict[str, float] = {}  # of directories: writing into them changes it

    def write(self, stream: IO[bytes]) -> None:
        """Raises ImageError, OSError."""
        try:
            with tarfile.open(
                fileobj=stream, mode="r|", tarinfo=StrictEntry, errorlevel=2
            ) as archive:
                for member in archive:
                    self._count()
                    self._add(archive, member)
                    archive.members = []  # type: ignore[attr-defined]  # else all are remembered
        except TAR_ERRORS as error:
            raise ImageError(f"the layer is no proper archive: {_said(error)}") from error
        for name, moment in self._times.items():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.utime(name, (moment, moment), follow_symlinks=False)

    def _count(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise ImageError(f"the layer has more than {self._limits.entries} entries")

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = clean_name(member.name)
        if not name:
            self._dress(".", member)
            return
        directory, base = os.path.split(name)
        self._make_parents(directory)
        if base == OPAQUE:
            self._make_opaque(directory or ".")
        elif base.startswith(WHITEOUT):
            self._hide(os.path.join(directory, _hidden_name(base)))
        else:
            self._add_file(archive, member, name)

    def _add_file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if member.isdir():
            self._make_directory(name)
        elif member.isreg() or member.issparse():
            _clear(name)
            self._write_file(archive, member, name)
        elif member.issym():
            _clear(name)
            os.symlink(member.linkname, name)
        elif member.islnk():
            self._link(member, name)
            return  # it is dressed already
        elif member.isfifo():
            _clear(name)
            os.mkfifo(name)
        elif member.isdev():
            raise ImageError(f"the layer has a device file, {name!r}: device files are refused")
        else:
            raise ImageError(f"the layer has an entry of an unknown kind: {name!r}")
        self._dress(name, member)

    def _make_parents(self, directory: str) -> None:
        missing = []
        while directory and not os.path.isdir(directory):
            missing.append(directory)
            directory = os.path.dirname(directory)
        for name in reversed(missing):
            self._make_directory(name)
            below = self._lower(name)
            if below is not None:
                if not self._rights.has_one_user:
                    os.chown(name, below.st_uid, below.st_gid)
                os.chmod(name, stat.S_IMODE(below.st_mode))

    def _lower(self, directory: str) -> os.stat_result | None:
        """The directory as the layers below have it: an entry may name a file alone."""
        for lower in self._lowers:
            found = _stat_below(lower, directory.split("/"))
            if found is not None:
                return found
        return None

    def _make_directory(self, name: str) -> None:
        try:
            found = os.lstat(name)
        except FileNotFoundError:
            os.mkdir(name, 0o755)
            return
        if stat.S_ISDIR(found.st_mode):
            return
        os.unlink(name)
        os.mkdir(name, 0o755)
        if _is_whiteout(found):
            # What the whiteout hid must not show through the new directory.
            self._make_opaque(name)

    def _write_file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        opened = archive.extractfile(member)
        assert opened is not None
        source: IO[bytes] = opened.raw  # type: ignore[attr-defined]  # else a stream cannot seek
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        target = os.open(name, flags, 0o600)
        if member.size > Limits().bytes:
            raise ImageError(f"{name!r} of the layer has {member.size} bytes: that is too large")
        parts: list[tuple[int, int]] = list(member.sparse or [(0, member.size)])  # type: ignore[arg-type]  # typeshed has bytes there
        _check_parts(parts, member.size, name)
        with os.fdopen(target, "wb") as file:
            # Of a sparse file only what is not a hole is there to read.
            for begin, size in parts:
                source.seek(begin)
                file.seek(begin)
                while size > 0 and (chunk := source.read(min(size, CHUNK_BYTES))):
                    self._account(len(chunk))
                    file.write(chunk)
                    size -= len(chunk)
            file.truncate(member.size)

    def _account(self, more: int) -> None:
        self.bytes_written += more
        if self.bytes_written > self._limits.bytes:
            raise ImageError(f"the layer holds more than {self._limits.bytes} bytes")

    def _link(self, member: tarfile.TarInfo, name: str) -> None:
        target = clean_name(member.linkname)
        if not target or target == name:
            raise ImageError(f"the layer has a hard link to itself: {name!r}")
        _clear(name)
        try:
            os.link(target, name, follow_symlinks=False)
        except FileNotFoundError:
            raise ImageError(
                f"the layer has a hard link {name!r} to {target!r}, which it does not have"
            ) from None

    def _make_opaque(self, directory: str) -> None:
        os.setxattr(directory, f"{self._rights.overlay_notes}opaque", b"y")

    def _hide(self, name: str) -> None:
        """A whiteout is about the layers below only: what this layer has under that name stays."""
        if os.path.basename(name).startswith(WHITEOUT):
            return  # notes of a file system that is no more
        try:
            found = os.lstat(name)
        except FileNotFoundError:
            os.mknod(name, stat.S_IFCHR, os.makedev(0, 0))
            return
        if stat.S_ISDIR(found.st_mode):
            self._make_opaque(name)

    def _dress(self, name: str, member: tarfile.TarInfo) -> None:
        if _NOBODY in (member.uid, member.gid):
            raise ImageError(f"{name!r} of the layer has an owner that nobody can be")
        if not self._rights.has_one_user:
            os.chown(name, member.uid, member.gid, follow_symlinks=False)
        if not member.issym():
            os.chmod(name, stat.S_IMODE(member.mode))
        for key, value in member.pax_headers.items():
            attribute = key.removeprefix(_XATTR)
            if attribute != key and not attribute.startswith(_XATTRS_LEFT_OUT):
                _set_xattr(name, attribute, value.encode("utf-8", "surrogateescape"))
        moment = min(max(float(member.mtime), 0.0), float(1 << 40))
        if member.isdir():
            self._times[name] = moment
        else:
            os.utime(name, (moment, moment), follow_symlinks=False)


def clean_name(name: str) -> str:
    """Relative, without dots. Raises ImageError for what leads upwards."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ImageError(f"the layer has a name that leads out of it: {name[:200]!r}")
    cleaned = "/".join(parts)
    if len(cleaned.encode("utf-8", "surrogateescape")) >= _LONGEST_NAME or "\0" in cleaned:
        raise ImageError(f"the layer has a name that no file can have: {name[:200]!r}…")
    return cleaned


def _hidden_name(base: str) -> str:
    hidden = base.removeprefix(WHITEOUT)
    if hidden in ("", ".", ".."):
        raise ImageError(f"the layer has a whiteout of nothing: {base!r}")
    return hidden


def _is_whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(0, 0)


def _clear(name: str) -> None:
    """A later entry of the same name takes the place of the earlier one."""
    try:
        found = os.lstat(name)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        remove_tree(name)
    else:
        os.unlink(name)


def _check_parts(parts: Sequence[tuple[int, int]], whole: int, name: str) -> None:
    end = 0
    for begin, size in parts:
        if begin < end or size < 0:
            raise ImageError(f"the map of the sparse file {name!r} is no map")
        end = begin + size
    if end > whole:
        raise ImageError(f"the map of the sparse file {name!r} leads beyond its end")


def _set_xattr(name: str, attribute: str, value: bytes) -> None:
    try:
        os.setxattr(name, attribute, value, follow_symlinks=False)
    except OSError as error:
        # The file system has none, or none on links.
        if error.errno not in (errno.ENOTSUP, errno.EPERM) or attribute == _CAPABILITY:
            raise


def _stat_below(root: int, parts: Sequence[str]) -> os.stat_result | None:
    """Component by component, through directories only."""
    opened = os.dup(root)
    try:
        for part in parts:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(part, flags, dir_fd=opened)
            os.close(opened)
            opened = inner
        return os.fstat(opened)
    except OSError:
        return None
    finally:
        os.close(opened)


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
