"""A program of its own that unpacks one layer: `python -m sampan.runtime.images.unpack`.

Job: what standard input asks for (a list: the asking process, blob, packing, two
    digests, target, the layers below) →
    a directory; says in one line of JSON what went wrong. A process apart, because it
    makes the directory its root, because a large layer is seconds of work, and because a hostile
    one may take this process with it, and nothing else.
Invariant: ends with 0 only if the blob and what was in it have the digests that were asked for, and
    everything is on the disk.
"""

import contextlib
import ctypes
import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import IO

from sampan.runtime import user_namespace
from sampan.runtime.images.content import CHUNK_BYTES, ImageError
from sampan.runtime.images.layer import LayerWriter, Limits

MOST_MEMORY = 1 << 30
_PR_SET_PDEATHSIG = 1  # it ends with the process that started it
# Of the free space, what one layer may take: the rest is for everybody else.
MOST_OF_DISK = 0.9
# Of an archive, what is not in any file: headers, padding.
MOST_BESIDE = 64 << 20


class Hashed(io.RawIOBase):
    """What is read through it is counted and hashed."""

    def __init__(self, source: IO[bytes], most_bytes: int) -> None:
        self._source, self._hash = source, hashlib.sha256()
        self._left = most_bytes

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ImageError("the layer is much larger than what is in it: it is a bomb")
        self._hash.update(data)
        return data

    def rest(self) -> None:
        while self.read(CHUNK_BYTES):
            pass

    @property
    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()


def unpack(work: Sequence[str]) -> None:
    """Raises ImageError, OSError."""
    parent, blob, packing, digest, diff_id, target, *lowers = work
    if os.getppid() != int(parent):
        raise ImageError("whoever wanted it is gone")
    opened = [os.open(lower, os.O_PATH | os.O_DIRECTORY) for lower in lowers]
    disk = os.statvfs(target)
    free = int(disk.f_bavail * disk.f_frsize * MOST_OF_DISK)
    limits = Limits(bytes=min(Limits().bytes, free))
    rights = user_namespace.rights()
    try:
        # zstd is started before its program is out of sight.
        with _content(blob, packing, digest) as content:
            os.chdir(target)
            root = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
            os.chroot(".")
            os.umask(0)
            plain = Hashed(content, 2 * limits.bytes + MOST_BESIDE)
            # tarfile only reads, which a Hashed can.
            LayerWriter(limits, opened, rights).write(plain)  # type: ignore[arg-type]  # all that is asked of it is read
            plain.rest()
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ImageError(f"the layer cannot be unpacked: {error}") from error
    _compare("the unpacked layer", plain.digest, diff_id)
    if ctypes.CDLL(None, use_errno=True).syncfs(root) != 0:
        raise OSError(ctypes.get_errno(), "the layer cannot be written to the disk")


def _compare(what: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise ImageError(f"{what} is {found}, not {wanted} as the image says")


@contextlib.contextmanager
def _content(blob: str, packing: str, digest: str) -> Iterator[IO[bytes]]:
    """The archive. Left without an error, the blob was read to its end and is the right one."""
    if packing == "zstd":
        with _unpacked_by_zstd(blob) as content:
            yield content
        return
    with open(blob, "rb") as file:
        packed = Hashed(file, os.fstat(file.fileno()).st_size)
        # GzipFile and tarfile only read, which a Hashed can.
        yield gzip.GzipFile(fileobj=packed) if packing == "gzip" else packed  # type: ignore[misc]  # either can be read
        packed.rest()
        _compare("the layer", packed.digest, digest)


@contextlib.contextmanager
def _unpacked_by_zstd(blob: str) -> Iterator[IO[bytes]]:
    """The digest of what comes out is checked, and the blob's own was when it came in."""
    program = shutil.which("zstd")
    if program is None:
        raise ImageError("the layer is packed with zstd: install the package zstd")
    with subprocess.Popen(
        [program, "-dcq", blob], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process.stdout
            complaint = process.stderr.read().decode(errors="replace").strip()
            if process.wait() != 0:
                raise ImageError(f"the layer cannot be unpacked: {complaint.rpartition(' : ')[2]}")
        finally:
            process.kill()  # where the reader gave up


def main() -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        unpack(json.load(sys.stdin))
    except (ImageError, OSError) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
