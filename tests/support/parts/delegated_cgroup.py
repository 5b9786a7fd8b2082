"""A cgroup of version 2 that belongs to an ordinary user, as systemd gives one with Delegate=yes.

Job: make it, what a command starts with to be in it and to see nothing but version 2, remove it.
Invariant: the machine's own mounts stay as they are; the controllers that it offers are those that
    no tree of version 1 has (hugetlb, on machines with both).
"""

import contextlib
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.delegation import LEAF

_SEES_UNIFIED = "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup"
# Once it is divided, processes are in its leaf.
_ENTER = 'for at in "$0" "$0/LEAF"; do echo $$ 2>/dev/null >$at/cgroup.procs && break; done'
_REMOVE_SECONDS = 30.0
HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")


@dataclass(frozen=True, slots=True)
class DelegatedCgroup:
    name: str
    folder: Path  # as the machine itself sees it

    pages: Path  # how many huge pages programs in it believe that the machine has

    @property
    def where(self) -> list[str]:
        pages = f"mount --bind {self.pages} {HUGE_PAGES}"
        script = f'set -e; {_SEES_UNIFIED}; {pages}; {_ENTER.replace("LEAF", LEAF)}; exec "$@"'
        place = f"/sys/fs/cgroup/{self.name}"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, place]


def unified_mount() -> Path | None:
    return next(
        (
            path
            for path in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
            if (path / "cgroup.controllers").exists()
        ),
        None,
    )


def offered() -> list[str]:
    mount = unified_mount()
    return (mount / "cgroup.controllers").read_text().split() if mount else []


@contextmanager
def delegated_cgroup(uid: int) -> Iterator[DelegatedCgroup]:
    mount = unified_mount()
    assert mount is not None
    enabled = (mount / "cgroup.subtree_control").read_text().split()
    (mount / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in offered()))
    folder = mount / f"sampan-test-{secrets.token_hex(4)}"
    folder.mkdir()
    for path in (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control"):
        os.chown(path, uid, uid)
    with tempfile.NamedTemporaryFile("w") as pages:
        pages.write("4\n")
        pages.flush()
        os.chmod(pages.name, 0o644)
        try:
            yield DelegatedCgroup(folder.name, folder, Path(pages.name))
        finally:
            _remove(folder)
            _disable(mount, [name for name in offered() if name not in enabled])


def _disable(mount: Path, controllers: list[str]) -> None:
    """Where nobody else uses them by now."""
    with contextlib.suppress(OSError):
        (mount / "cgroup.subtree_control").write_text(" ".join(f"-{name}" for name in controllers))


def _remove(folder: Path) -> None:
    """Whatever is still in it ends."""
    (folder / "cgroup.kill").write_text("1")
    deadline = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        command = ["find", str(folder), "-depth", "-type", "d", "-delete"]
        subprocess.run(command, capture_output=True, check=False)
        time.sleep(0.05)
