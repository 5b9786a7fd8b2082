"""The programs that run containers for us: an OCI runtime and conmon, from the system's packages.

Job: find them, and say what is missing; the command line of each call.
"""

import fcntl
import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.runtime.spawn import UNIFIED, Launch

_VERSION_SECONDS = 10.0
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MFD_EXEC = 0x10


class ProgramsMissing(Exception):
    """The message says what is needed."""


@dataclass(frozen=True, slots=True)
class Programs:
    runtime: str  # a path: crun, else runc
    conmon: str
    state: str  # the OCI runtime's own directory
    name: str = ""
    version: str = ""
    hides_unified: bool = False
    limits: bool = True  # False: no cgroups, nobody may make them

    def runtime_options(self) -> list[str]:
        manager = "cgroupfs" if self.limits else "disabled"
        own = [f"--cgroup-manager={manager}"] if self.name == "crun" else []
        return [f"--root={self.state}", *own]

    def call(self, *arguments: str) -> Launch:
        """A call of the OCI runtime."""
        command = (self.runtime, *self.runtime_options(), *arguments)
        return Launch(command, hides_unified=self.hides_unified)


def sealed(programs: Programs) -> tuple[Programs, int]:
    """crun from a copy in memory that nobody can change, and its descriptor; -1 where that cannot
    be. From a file, which a container might overwrite, crun starts itself a second time, safely
    mounted, at each call."""
    if programs.name != "crun":
        return programs, -1
    try:
        copy = _copy_in_memory(Path(programs.runtime).read_bytes())
    except OSError:
        return programs, -1
    path = f"/proc/{os.getpid()}/fd/{copy}"
    if not os.access(path, os.X_OK):
        os.close(copy)
        return programs, -1
    return replace(programs, runtime=path), copy


def _copy_in_memory(program: bytes) -> int:
    try:
        copy = os.memfd_create("crun", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _MFD_EXEC)
    except OSError:  # an older kernel, where all may be executed
        copy = os.memfd_create("crun", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    whole = False
    try:
        with open(copy, "wb", closefd=False) as file:
            file.write(program)
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _all_seals())
        whole = True
    finally:
        if not whole:
            os.close(copy)
    return copy


def _all_seals() -> int:
    """Linux' own: what looks for programs on another system does not name them."""
    shape = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    return fcntl.F_SEAL_SEAL | shape | fcntl.F_SEAL_WRITE


def system_path(environment: Mapping[str, str]) -> str:
    """PATH with the system's directories: `su` leaves out those of nft, ip and mount."""
    own = environment.get("PATH", "")
    return f"{own}:{_SYSTEM_PATH}" if own else _SYSTEM_PATH


def find_programs(state: Path, search_path: str, *, limits: bool = True) -> Programs:
    """Asked for their version, that is, they were seen to work. Raises ProgramsMissing."""
    name, runtime, conmon = look_for_programs(search_path)
    hides_unified = name == "crun" and os.path.exists(f"{UNIFIED}/cgroup.procs")
    return Programs(runtime, conmon, str(state), name, _version(runtime), hides_unified, limits)


def look_for_programs(search_path: str) -> tuple[str, str, str]:
    """The OCI runtime's name, where it is, and where conmon is. Raises ProgramsMissing."""
    conmon = shutil.which("conmon", path=search_path)
    for name in ("crun", "runc"):
        if (runtime := shutil.which(name, path=search_path)) is not None:
            break
    missing = [what for what, there in (("conmon", conmon), ("crun", runtime)) if not there]
    if conmon is None or runtime is None:
        raise ProgramsMissing(f"{' and '.join(missing)} (apt-get install {' '.join(missing)})")
    return name, runtime, conmon


@functools.cache
def _version(program: str) -> str:
    try:
        output = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS,
            check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise ProgramsMissing(f"a {program} that works (it says: {error})") from error
    words = output.split()
    return words[words.index("version") + 1] if "version" in words[:-1] else "unknown"
