"""The programs that run containers for us: an OCI runtime and conmon, from the system's packages.

Job: find them, and say what is missing; the command line of each call.
"""

import os
import shutil
import subprocess
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.runtime.spawn import UNIFIED, Launch

_VERSION_SECONDS = 10.0


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


def find_programs(state: Path, search_path: str, *, limits: bool = True) -> Programs:
    """Raises ProgramsMissing."""
    conmon = shutil.which("conmon", path=search_path)
    name = next((name for name in ("crun", "runc") if shutil.which(name, path=search_path)), "")
    missing = [what for what, there in (("conmon", conmon), ("crun", name)) if not there]
    if conmon is None or not name:
        raise ProgramsMissing(f"{' and '.join(missing)} (apt-get install {' '.join(missing)})")
    runtime = shutil.which(name, path=search_path)
    assert runtime is not None
    hides_unified = name == "crun" and os.path.exists(f"{UNIFIED}/cgroup.procs")
    return Programs(runtime, conmon, str(state), name, _version(runtime), hides_unified, limits)


def _version(program: str) -> str:
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS,
            check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise ProgramsMissing(f"a {program} that works (it says: {error})") from error
    words = said.split()
    return words[words.index("version") + 1] if "version" in words[:-1] else "unknown"
