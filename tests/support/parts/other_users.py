"""Other users of a machine: what of a program's files, sockets and words they get at.

Job: look at modes and at what /proc shows, and try as a user that has no rights at all.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

STRANGER = 65534
STRANGERS_PROGRAM = """
import os, socket, sys
os.setgroups([]); os.setgid({who}); os.setuid({who})
for path in sys.argv[1:]:
    try:
        if path.startswith("socket:"):
            name = path[7:]
            name = chr(0) + name[1:] if name.startswith("@") else name
            socket.socket(socket.AF_UNIX).connect(name)
        else:
            open(path).read()
        print(path)
    except OSError:
        pass
"""


def open_to_others(*places: Path) -> list[str]:
    """Files that others could read or write, but for directories that nobody but us can enter."""
    found = []
    for place in places:
        entries = [place] if place.is_file() else [place, *place.rglob("*")]
        for entry in entries:
            mode = entry.lstat().st_mode
            if stat.S_ISLNK(mode) or not mode & 0o077:
                continue
            if not any(above.stat().st_mode & 0o077 == 0 for above in above_of(entry, place)):
                found.append(f"{entry} {stat.filemode(mode)}")
    return found


def above_of(entry: Path, place: Path) -> list[Path]:
    return [each for each in entry.parents if each == place or place in each.parents]


def family(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*"):
            found += map(int, (task / "children").read_text().split())
    return found


def secrets_of(data_dir: Path) -> Iterator[str]:
    """Lines of the private keys that are there: nobody would write them by chance."""
    for path in data_dir.rglob("*"):
        if path.is_file() and path.stat().st_size < 100_000 and "PRIVATE KEY" in text_of(path):
            yield from (line for line in text_of(path).splitlines() if len(line) > 40)


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def told_of(pids: Iterable[int]) -> str:
    """What `ps` shows everybody, and what a process hands to those it starts."""
    return "".join(
        text_of(Path(f"/proc/{pid}/{what}")) for pid in pids for what in ("cmdline", "environ")
    )


def reached_by_stranger(root: Path, *places: Path) -> list[str]:
    """Of files and sockets, those that somebody else on the machine gets at. (The directory above
    is open to everybody.)"""
    for above in [root, *list(root.parents)[:3]]:  # those of this test run
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & stat.S_ISVTX:
            above.chmod(above.stat().st_mode | 0o055)
    asked = []
    for place in places:
        for entry in [place, *place.rglob("*")] if place.is_dir() else [place]:
            mode = entry.lstat().st_mode
            if stat.S_ISSOCK(mode):
                asked.append(f"socket:{entry}")
            elif stat.S_ISREG(mode):
                asked.append(str(entry))
    assert asked
    return asked_by_stranger(asked)


def sockets_open_to_others(pids: Iterable[int]) -> list[str]:
    """Unix sockets that they listen at, wherever those are."""
    inodes = {
        os.readlink(link)
        for pid in pids
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if link.is_symlink()
    }
    paths = []
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        listens = int(fields[3], 16) & 0x10000
        if listens and len(fields) > 7 and f"socket:[{fields[6]}]" in inodes:
            paths.append(f"socket:{fields[7]}")
    return asked_by_stranger(paths) if paths else []


def asked_by_stranger(asked: Sequence[str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", STRANGERS_PROGRAM.format(who=STRANGER), *asked],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()
