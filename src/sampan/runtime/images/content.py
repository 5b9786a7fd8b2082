"""The blobs of images, each under its own digest.

Job: take bytes in, check them, keep them; give a file back, or nothing.
Invariant: a file under its digest is whole: it is written elsewhere, counted, hashed, forced to the
    disk and only then renamed.
Invariant: only digests of SHA-256 name files, so that no name leads anywhere else.
Owner: one directory, which several processes of a user may share.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from sampan.core.fast_dataclass import dataclass

CHUNK_BYTES = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


class ImageError(Exception):
    """An image that is not what it says, or cannot be used; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a manifest says of one of its parts."""

    media_type: str
    digest: str
    size: int


def checked_digest(digest: str) -> str:
    if not _DIGEST.match(digest):
        raise ImageError(f"unsupported digest {digest[:80]!r}: only sha256 is")
    return digest


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class ContentStore:
    def __init__(self, root: Path) -> None:
        self._blobs = root / "blobs" / "sha256"
        self._blobs.mkdir(parents=True, exist_ok=True)
        self._incoming = root / "incoming"
        self._incoming.mkdir(exist_ok=True)

    def path(self, digest: str) -> Path:
        return self._blobs / checked_digest(digest).removeprefix("sha256:")

    def has(self, descriptor: Descriptor) -> bool:
        """Of another size than it is said to have it is damaged, and as good as not there."""
        try:
            return self.path(descriptor.digest).stat().st_size == descriptor.size
        except FileNotFoundError:
            return False

    def read(self, digest: str, most_bytes: int) -> bytes:
        """A small blob, checked. Raises ImageError."""
        try:
            with self.path(digest).open("rb") as file:
                data = file.read(most_bytes + 1)
        except FileNotFoundError as error:
            raise ImageError(f"{digest} is not in the store") from error
        if len(data) > most_bytes:
            raise ImageError(f"{digest} is larger than {most_bytes} bytes")
        if digest_of(data) != digest:
            self.path(digest).unlink(missing_ok=True)
            raise ImageError(f"{digest} was damaged on the disk and is removed: pull it again")
        return data

    def is_whole(self, descriptor: Descriptor) -> bool:
        """Every byte of it is read; blocking."""
        try:
            with self.path(descriptor.digest).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return False
        return f"sha256:{found}" == descriptor.digest

    def write(self, descriptor: Descriptor, chunks: Iterable[bytes]) -> None:
        """Raises ImageError where the bytes are not those of the descriptor, and keeps nothing."""
        writing = self.begin(descriptor)
        try:
            for chunk in chunks:
                writing.add(chunk)
            writing.finish()
        finally:
            writing.close()

    def begin(self, descriptor: Descriptor) -> "Incoming":
        checked_digest(descriptor.digest)
        return Incoming(self._incoming, self.path(descriptor.digest), descriptor)

    def digests(self) -> set[str]:
        return {f"sha256:{file.name}" for file in self._blobs.iterdir()}

    def remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """What a process that was killed left; nobody else may be writing."""
        for file in self._incoming.iterdir():
            file.unlink(missing_ok=True)


class Incoming:
    """One blob on its way in."""

    def __init__(self, directory: Path, target: Path, descriptor: Descriptor) -> None:
        self._descriptor, self._target = descriptor, target
        number, self._path = tempfile.mkstemp(dir=directory)
        self._file: IO[bytes] = os.fdopen(number, "wb")
        self._hash = hashlib.sha256()
        self.received = 0
        self._kept = False

    def add(self, chunk: bytes) -> None:
        self.received += len(chunk)
        if self.received > self._descriptor.size:
            raise ImageError(
                f"{self._descriptor.digest} is larger than the {self._descriptor.size} bytes "
                "that its manifest says"
            )
        self._hash.update(chunk)
        self._file.write(chunk)

    def finish(self) -> None:
        if self.received != self._descriptor.size:
            raise ImageError(
                f"{self._descriptor.digest} has {self.received} bytes, its manifest says "
                f"{self._descriptor.size}"
            )
        found = "sha256:" + self._hash.hexdigest()
        if found != self._descriptor.digest:
            raise ImageError(
                f"failed digest verification: {found} came, not {self._descriptor.digest}"
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        os.rename(self._path, self._target)
        self._kept = True

    def close(self) -> None:
        self._file.close()
        if not self._kept:
            Path(self._path).unlink(missing_ok=True)


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
