"""Real containers for who is not root: the whole of `sampan up` inside of a user namespace.

Job: whether that is possible; enter, with a way out to the network; leave.
Invariant: this process is root inside, and nobody but the user outside.
Owner: `sampan up`, and `sampan reset` for what an earlier one left.
"""

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import which

from sampan.cmd.rootless import namespaces
from sampan.cmd.rootless.id_ranges import IdRange, id_map, is_single
from sampan.cmd.rootless.namespaces import Kept, Process
from sampan.cmd.rootless.outside import Outside, OutsideError
from sampan.cmd.rootless.uplink import PROGRAMS, find_uplink
from sampan.kubelet.cgroups import delegation
from sampan.kubelet.cgroups.limits import root_of

_MOST_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# Debian's and Ubuntu's switches; where they are not, nothing is switched off.
_SWITCHES = {
    Path("/proc/sys/kernel/unprivileged_userns_clone"): "1",
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"): "0",
}
Warn = Callable[[str], None]


def what_is_missing() -> list[str]:
    """For containers of an ordinary user, beside the programs that run them."""
    if not _MOST_NAMESPACES.exists() or _MOST_NAMESPACES.read_text().strip() == "0":
        return ["user namespaces (sysctl user.max_user_namespaces is 0)"]
    for switch, on in _SWITCHES.items():
        if switch.exists() and switch.read_text().strip() != on:
            name = ".".join(switch.parts[3:])
            return [f"user namespaces for everybody (sysctl -w {name}={on})"]
    return []


def what_would_help() -> str:
    """What is possible without, but less."""
    helpers = {
        ("newuidmap",): "newuidmap for users of their own (uidmap)",
        PROGRAMS: f"{' or '.join(PROGRAMS)} for a way to the network",
    }
    missing = [what for programs, what in helpers.items() if not any(map(which, programs))]
    return f"install {' and '.join(missing)}" if missing else ""


def take_cgroup(data_dir: Path, before: str, warn: Warn) -> str | None:
    """The one that was given to us, made ready for pods, or that of `before`, with pods in it;
    None, and a word, where there is none. While we are alone: who is started is where we are."""
    uid = os.geteuid()
    seen = delegation.look(uid, os.getpid())
    if before and seen and delegation.is_of_before(before, root_of(data_dir), seen, uid):
        return before
    found = delegation.judge(seen)
    if isinstance(found, delegation.Delegated):
        try:
            delegation.make_ready(found)
            return found.place
        except OSError as error:
            found = delegation.NotDelegated(f"it cannot be divided: {error.strerror}")
    warn(f"limits of pods have no effect: {found.why} (`sampan doctor` says what helps)")
    return None


class Rootless:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.outside = Outside()
        self._kept: Kept | None = None
        self._joined = False  # there may be containers of before

    def enter(self, warn: Warn) -> None:
        """Raises CannotStart."""
        found = namespaces.kept_in(self._data_dir)
        if found is not None:
            namespaces.join(found)
            self._joined = True
        else:
            self._enter_new(warn)
        kept = found if found is not None and found.is_for_that else namespaces.start_keeper()
        self._kept = kept
        namespaces.keep(self._data_dir, kept)
        if not namespaces.is_connected():
            self._kept = self._connect(kept, warn)
            namespaces.keep(self._data_dir, self._kept)

    def _enter_new(self, warn: Warn) -> None:
        users, groups = own_ids()
        namespaces.enter(self.outside, users, groups)
        if is_single(users) or is_single(groups):
            warn(
                "there is one user for all containers: give yourself more with `sudo usermod "
                "--add-subuids 100000-165535 --add-subgids 100000-165535 $USER` (package uidmap)"
            )

    def _connect(self, kept: Kept, warn: Warn) -> Kept:
        from sampan.network.pods.interfaces import raise_loopback

        raise_loopback("/proc/self/ns/net")
        uplink = find_uplink()
        if uplink is None:
            warn(f"pods have no way out of this machine: install {' or '.join(PROGRAMS)}")
            return kept
        try:
            pid = self.outside.connect(uplink.arguments(kept.keeper.pid))
        except OutsideError as error:
            warn(f"pods have no way out of this machine: {error}")
            return kept
        namespaces.use_name_servers(self._data_dir, list(uplink.name_servers))
        return replace(kept, uplink=Process.of(pid))

    def leave(self, *, stopped: bool) -> None:
        """`stopped`: no container runs any more; of a start that failed those of before do."""
        if self._kept is not None and (stopped or not self._joined):
            namespaces.let_go(self._data_dir, self._kept)
        self.outside.close()


def own_ids() -> tuple[list[IdRange], list[IdRange]]:
    """Of users, and of groups."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = ""
    able = which("newuidmap") and which("newgidmap")
    users, groups = (
        id_map(own, name, _text(file) if able else "")
        for own, file in ((os.getuid(), "/etc/subuid"), (os.getgid(), "/etc/subgid"))
    )
    return users, groups


def _text(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def inside_to_remove(data_dir: Path) -> Iterator[None]:
    """What a node without root made belongs to users that only its namespace has. This process is
    of no use for anything else then. Raises CannotStart."""
    if os.geteuid() == 0 or not namespaces.home(data_dir).exists():
        yield
        return
    kept, outside = namespaces.kept_in(data_dir), Outside()
    try:
        if kept is not None:
            namespaces.join(kept)
        else:
            namespaces.enter(outside, *own_ids())
        yield
    finally:
        outside.close()
    if kept is not None:
        namespaces.let_go(data_dir, kept)
