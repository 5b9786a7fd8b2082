"""A user of this machine who is not root, for as long as a test needs one.

Job: what a command starts with to run as that user, with subordinate ids or without; a home; Python
    and sampan at places that everybody may read.
Invariant: nothing of the machine is changed: accounts and devices are seen inside of a mount
    namespace of each command's own.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

import sampan
from sampan.core.fast_dataclass import dataclass

FIRST_UID, MOST_USERS = 61_000, 1000
FIRST_GRANTED, GRANTED = 2_000_000_000, 65_536  # the ids of the first of them, and how many
_TUN = Path("/dev/net/tun")


@dataclass(frozen=True, slots=True)
class OrdinaryUser:
    """Several may be there at once, of one test run or of several: each has a number."""

    number: int
    place: Path
    where: Sequence[str]  # before the command: a network namespace, if any

    @property
    def uid(self) -> int:
        return FIRST_UID + self.number

    @property
    def name(self) -> str:
        return f"sampan-tester-{self.number}"

    @property
    def first_granted(self) -> int:
        return FIRST_GRANTED + self.number * GRANTED

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def data_dir(self) -> Path:
        return self.home / "data"

    def command(self, *words: str) -> list[str]:
        return [*self.where, "unshare", "--mount", "--propagation", "slave", "sh",
                str(self.place / "become"), *words]  # fmt: skip

    def run(self, *words: str, seconds: float = 90.0) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def sampan(self, verb: str, *words: str) -> str:
        python = str(self.place / "venv" / "bin" / "python")
        done = self.run(python, "-m", "sampan", verb, *words, "--data-dir", str(self.data_dir))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def processes(self) -> dict[int, str]:
        """By pid: the command lines of those that live, his own ids and those granted to him."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and self._is_his(entry.stat().st_uid):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.update({int(entry.name): words} if words else {})
            except OSError:
                continue
        return found

    def _is_his(self, uid: int) -> bool:
        return uid == self.uid or 0 <= uid - self.first_granted < GRANTED


@contextmanager
def ordinary_user(
    where: Sequence[str] = (), *, granted: bool = True, hidden: Sequence[str] = ()
) -> Iterator[OrdinaryUser]:
    """`granted`: with ids for containers. `hidden`: programs that he does not have."""
    place = Path(tempfile.mkdtemp(prefix="sampan-user-"))
    place.chmod(0o755)
    try:
        user = OrdinaryUser(secrets.randbelow(MOST_USERS), place, where)
        user.home.mkdir()
        os.chown(user.home, user.uid, user.uid)
        _write_accounts(user, granted=granted)
        binds = _write_python(place) | {place / name: Path("/etc") / name for name in _ACCOUNTS}
        for program in filter(None, map(shutil.which, hidden)):
            (place / "absent").touch()
            binds[place / "absent"] = Path(program)
        if _TUN.exists():
            os.mknod(place / "tun", 0o020666, os.makedev(10, 200))
            (place / "tun").chmod(0o666)
            binds[place / "tun"] = _TUN
        _write_launcher(user, binds)
        yield user
    finally:
        shutil.rmtree(place)


_ACCOUNTS = ("passwd", "group", "subuid", "subgid")


def _write_accounts(user: OrdinaryUser, *, granted: bool) -> None:
    ids = f"{user.name}:{user.first_granted}:{GRANTED}\n" if granted else ""
    own = {
        "passwd": f"{user.name}:x:{user.uid}:{user.uid}::{user.home}:/bin/sh\n",
        "group": f"{user.name}:x:{user.uid}:\n",
        "subuid": ids,
        "subgid": ids,
    }
    for name in _ACCOUNTS:
        there = Path("/etc") / name
        others = there.read_text() if there.exists() and name in ("passwd", "group") else ""
        (user.place / name).write_text(others + own[name])


def _write_python(place: Path) -> dict[Path, Path]:
    """A virtual environment; what is bound where for it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = place / "venv" / "lib" / version / "site-packages"
    for directory in (packages, place / "venv" / "bin", place / "src", place / "packages"):
        directory.mkdir(parents=True)
    (place / "python").mkdir()
    (place / "venv" / "bin" / "python").symlink_to(place / "python" / "bin" / version)
    (place / "venv" / "pyvenv.cfg").write_text(f"home = {place / 'python' / 'bin'}\n")
    (packages / "paths.pth").write_text(f"{place / 'src'}\n{place / 'packages'}\n")
    return {
        Path(sys.base_prefix): place / "python",
        Path(sampan.__file__).parents[1]: place / "src",
        Path(orjson.__file__).parents[1]: place / "packages",
    }


def _write_launcher(user: OrdinaryUser, binds: dict[Path, Path]) -> None:
    lines = [f"mount --rbind {source} {target}" for source, target in binds.items()]
    settings = f"HOME={user.home} USER={user.name} PATH=/usr/local/bin:/usr/bin:/bin"
    # A Python that was built where only root may look finds its own library here.
    settings += f" LD_LIBRARY_PATH={user.place / 'python' / 'lib'}"
    become = f"setpriv --reuid {user.uid} --regid {user.uid} --clear-groups --inh-caps -all"
    lines += ["cd /", f'exec {become} env -i {settings} "$@"']
    (user.place / "become").write_text("set -e\n" + "\n".join(lines) + "\n")
