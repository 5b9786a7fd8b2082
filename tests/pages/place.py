"""Where a page is followed: a machine, a home, and what its reader has installed.

Job: a clone of this repository whose packages are installed, `sampan` and `pip` in PATH; all of it
    taken away afterwards, and nothing left.
Invariant: the machine is cut off from the real network; nothing of this user's home is touched.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.pages.shell import Terminal
from tests.support.parts.leftovers import leftovers
from tests.support.parts.machines import Machine

ROOT = Path(__file__).parents[2]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
LAUNCHER = """\
#!{python}
import sys
from {module} import main
sys.exit(main())
"""
PROGRAMS = {
    "sampan": "sampan.cmd.entry", "kubectl-sampan": "sampan.cmd.entry",
    "pip": "pip._internal.cli.main",
}  # fmt: skip


class Place:
    """One machine's home directory, and a terminal in it."""

    def __init__(self, machine: Machine, home: Path, *, in_clone: bool) -> None:
        self.home, clone = home, home / "sampan"
        _link_clone(clone)
        self._programs = clone / ".venv" / "bin"
        self._environment = {
            "HOME": str(home),
            "PATH": f"{self._programs}:{SYSTEM_PATH}",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            # All is installed already: pip says so, and looks no further.
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }
        if not importlib.metadata.entry_points(group="pytest11", name="sampan"):
            # A work tree beside an older installation.
            self._environment["PYTEST_PLUGINS"] = "sampan.testing.pytest_plugin"
        self._where = machine.where
        self.directory = clone if in_clone else home / "work"
        self.directory.mkdir(exist_ok=True)
        self.terminal = Terminal(machine.where, self.directory, self._environment)
        # In CI, root is root of a container, which makes no networks.
        self.ci_terminal = Terminal(
            (*machine.where, "setpriv", "--bounding-set=-net_admin,-sys_admin", "--inh-caps=-all"),
            self.directory, self._environment,
        )  # fmt: skip

    def knows(self, other: "Place") -> None:
        """Files get there by scp, as far as the page can tell: these machines have no sshd."""
        script = f'#!/bin/sh\ncp "$1" {other.directory}/\n'
        write_program(self._programs / "scp", script)

    def clean_up(self) -> None:
        """As `sampan reset` of everything that the page made."""
        self.terminal.close()
        self.ci_terminal.close()
        for data in self._data_directories():
            subprocess.run(
                [*self._where, str(self._programs / "sampan"), "reset", "--yes",
                 "--data-dir", str(data)],
                env=self._environment, check=True, capture_output=True, timeout=120,
            )  # fmt: skip
            assert leftovers(data) == {}
        shutil.rmtree(self.home)

    def _data_directories(self) -> list[Path]:
        return [Path(folder) for folder, _, files in os.walk(self.home) if "format" in files]


@contextmanager
def place(machine: Machine, *, in_clone: bool = False) -> Iterator[Place]:
    # Short on purpose: unix sockets allow about 100 characters of path.
    found = Place(machine, Path(tempfile.mkdtemp(prefix="sp-")), in_clone=in_clone)
    try:
        yield found
    finally:
        found.clean_up()


def _link_clone(clone: Path) -> None:
    """Where `make run` has nothing left to install."""
    clone.mkdir()
    for name in ("src", "Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (clone / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tools", clone / "tools")  # its scripts look for the clone around them
    environment = clone / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "lib").symlink_to(Path(sysconfig.get_path("purelib")).parents[1])
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", environment / "pyvenv.cfg")
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / ".sampan-run").touch()
    for name, module in PROGRAMS.items():
        write_program(environment / "bin" / name, LAUNCHER.format(
            python=environment / "bin" / "python", module=module))  # fmt: skip


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
