"""The programs that run containers for us: an OCI runtime and conmon, from the system's packages.

Job: find them, and say what is missing; the command line of each call.
"""

import shutil
import subprocess
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

_UNIFIED = Path("/sys/fs/cgroup/unified")
_VERSION_SECONDS = 10.0
# crun refuses machines with both kinds of cgroups: it gets a view of the file system without one.
_HIDE_UNIFIED = (
    "unshare", "--mount", "--propagation", "slave", "sh", "-c",
    f'umount -l {_UNIFIED} && exec "$@"', "sampan",
)  # fmt: skip


class ProgramsMissing(Exception):
    """The message says what is needed."""


@dataclass(frozen=True, slots=True)
class Programs:
    runtime: str  # a path: crun, else runc
    conmon: str
    state: str  # the OCI runtime's own directory
    prefix: tuple[str, ...] = ()
    name: str = ""
    version: str = ""

    def runtime_options(self) -> list[str]:
        own = ["--cgroup-manager=cgroupfs"] if self.name == "crun" else []
        return [f"--root={self.state}", *own]

    def call(self, *arguments: str) -> list[str]:
        """A call of the OCI runtime."""
        return [*self.prefix, self.runtime, *self.runtime_options(), *arguments]


def find_programs(state: Path, search_path: str) -> Programs:
    """Raises ProgramsMissing."""
    conmon = shutil.which("conmon", path=search_path)
    name = next((name for name in ("crun", "runc") if shutil.which(name, path=search_path)), "")
    missing = [what for what, there in (("conmon", conmon), ("crun", name)) if not there]
    if conmon is None or not name:
        raise ProgramsMissing(f"{' and '.join(missing)} (apt-get install {' '.join(missing)})")
    runtime = shutil.which(name, path=search_path)
    assert runtime is not None
    hide = name == "crun" and _UNIFIED.is_dir()
    prefix = _HIDE_UNIFIED if hide else ()
    return Programs(runtime, conmon, str(state), prefix, name, _version(runtime))


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
