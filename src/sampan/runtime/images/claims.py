"""Claims on blobs and layers in a directory that several clusters of a user share.

Job: which clusters there are, and what a pull or a start that is under way counts on.
Invariant: claims are made, and garbage is removed, under one lock: never at the same time.
Invariant: a claim is held by a lock of its process: one that was killed claims nothing.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path


class Claims:
    def __init__(self, root: Path) -> None:
        self._lock, self._held, self._clusters = root / "lock", root / "claims", root / "clusters"
        for directory in (self._held, self._clusters):
            directory.mkdir(exist_ok=True)

    # ---- clusters

    def register(self, home: Path) -> None:
        """Its names count from now on."""
        file = self._file(home)
        if not file.exists():
            with self.not_removing():
                file.write_bytes(os.fsencode(home.absolute()))

    def unregister(self, home: Path) -> None:
        self._file(home).unlink(missing_ok=True)

    def homes(self) -> list[Path]:
        """Of the clusters that there still are; the others are forgotten."""
        found = []
        for file in self._clusters.iterdir():
            try:
                home = Path(os.fsdecode(file.read_bytes()))
                there = home.is_absolute() and home.is_dir()
            except (OSError, ValueError):  # no path at all
                there = False
            if there:
                found.append(home)
            elif not file.is_dir():
                file.unlink(missing_ok=True)
        return found

    def _file(self, home: Path) -> Path:
        return self._clusters / hashlib.sha256(os.fsencode(home.absolute())).hexdigest()

    # ---- what is under way

    @contextlib.contextmanager
    def claiming(self) -> Iterator["Claim"]:
        """What is added to it is not removed meanwhile."""
        file = self._held / secrets.token_hex(8)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Claim(self, descriptor)
        finally:
            file.unlink(missing_ok=True)
            os.close(descriptor)

    @contextlib.contextmanager
    def removing(self) -> Iterator[set[str]]:
        """The digests that are claimed; nobody claims more until the end. Blocking."""
        with self._locked(fcntl.LOCK_EX):
            found: set[str] = set()
            for file in self._held.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if is_held(file):
                        found |= set(file.read_text().split())
                    else:
                        file.unlink()
            yield found

    @contextlib.contextmanager
    def not_removing(self) -> Iterator[None]:
        with self._locked(fcntl.LOCK_SH):
            yield

    def add(self, descriptor: int, digests: Iterable[str]) -> None:
        with self.not_removing():
            os.write(descriptor, "".join(f"{digest}\n" for digest in digests).encode())

    @contextlib.contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


class Claim:
    """Of one pull or start."""

    def __init__(self, claims: Claims, descriptor: int) -> None:
        self._claims, self._descriptor = claims, descriptor

    def add(self, *digests: str) -> None:
        """What is there by now stays; look for it after this, not before."""
        self._claims.add(self._descriptor, digests)


def is_held(path: Path) -> bool:
    """Does a living process hold a lock on it? Raises FileNotFoundError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
