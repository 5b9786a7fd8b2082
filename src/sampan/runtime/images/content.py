"""The blobs of images, each under its own digest.

Job: take bytes in, check them, keep them; give a file back, or nothing.
Invariant: a file under its digest is whole: it is written elsewhere, counted, hashed, forced to the
    disk and only then renamed.
Invariant: one process at a time writes a blob; the others find it when that has ended.
Invariant: only digests of SHA-256 name files, so that no name leads anywhere else.
Owner: one directory, which several processes of a user may share.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern
from sampan.runtime.images.claims import is_held

CHUNK_BYTES = 1 << 20
_DIGEST = lazy_pattern(r"sha256:[0-9a-f]{64}\Z")


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
        """Raises ImageError where the bytes are not those of the descriptor, and keeps nothing.
        Blocking, while another process writes the same."""
        incoming = self.begin(descriptor, wait=True)
        assert incoming is not None, "it waited"
        try:
            incoming.start_over()
            for chunk in chunks:
                incoming.add(chunk)
            incoming.finish()
        except ImageError:
            incoming.start_over()
            raise
        finally:
            incoming.close()

    def begin(self, descriptor: Descriptor, *, wait: bool = False) -> "Incoming | None":
        """None: somebody else is writing it."""
        target = self.path(descriptor.digest)
        return Incoming.locked(self._incoming / target.name, target, descriptor, wait=wait)

    def digests(self) -> set[str]:
        return {f"sha256:{file.name}" for file in self._blobs.iterdir()}

    def remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """What nobody is writing: left by processes that were killed, or by pulls that were cut."""
        for file in self._incoming.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if not is_held(file):
                    file.unlink()


class Incoming:
    """One blob on its way in. What came of it stays when it is closed, for the next to go on."""

    @classmethod
    def locked(
        cls, path: Path, target: Path, descriptor: Descriptor, *, wait: bool
    ) -> "Incoming | None":
        while True:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if os.fstat(number).st_ino == path.stat().st_ino:
                    return cls(number, path, target, descriptor)
            except BlockingIOError:
                os.close(number)
                return None
            except FileNotFoundError:
                """Its writer has finished, or removed it: this is another's file by now."""
            os.close(number)

    def __init__(self, number: int, path: Path, target: Path, descriptor: Descriptor) -> None:
        self._descriptor, self._path, self._target = descriptor, path, target
        self._file: IO[bytes] = os.fdopen(number, "r+b", buffering=0)
        self._hash = hashlib.sha256()
        self.received = 0
        self._finished = False

    def go_on(self) -> int:
        """How many bytes an earlier try left. Blocking."""
        for chunk in chunks_of(self._file):
            self._hash.update(chunk)
            self.received += len(chunk)
        if self.received > self._descriptor.size:
            self.start_over()
        return self.received

    def start_over(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._hash, self.received = hashlib.sha256(), 0

    def add(self, chunk: bytes) -> None:
        """Raises ImageError, OSError."""
        self.received += len(chunk)
        if self.received > self._descriptor.size:
            raise ImageError(
                f"{self._descriptor.digest} is larger than the {self._descriptor.size} bytes "
                "that its manifest says"
            )
        self._hash.update(chunk)
        view = memoryview(chunk)
        while view:
            view = view[self._file.write(view) :]

    def finish(self) -> None:
        """Blocking. Raises ImageError, OSError."""
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
        os.fsync(self._file.fileno())
        os.rename(self._path, self._target)
        self._finished = True

    def close(self) -> None:
        """Nothing is left of what has not begun."""
        if not self.received and not self._finished:
            self._path.unlink(missing_ok=True)
        self._file.close()


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
