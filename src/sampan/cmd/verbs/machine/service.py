"""`sampan service`: a cluster that systemd starts with the machine.

Job: the text of the unit; write it and have it started, or take it away again.
Invariant: a directory or a flag is a word of its own line, or refused: what root starts with the
    machine is what was asked for.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan.cmd.cluster.cluster_names import name_of_directory
from sampan.cmd.cluster.data_dir import write_private
from sampan.cmd.errors import CannotStart

UNITS = Path("/etc/systemd/system")
RUNNING = Path("/run/systemd/system")
SYSTEMCTL_SECONDS = 180.0
Systemctl = Callable[[Sequence[str]], None]


def run(action: str, data_dir: str, flags: Sequence[str], *, only_print: bool) -> int:
    root = Path(data_dir).absolute()
    name = unit_name(root)
    if only_print:
        print(unit_text(root, flags), end="")
        return 0
    if not RUNNING.exists():
        raise CannotStart(
            "systemd does not run on this machine: `sampan service install --print` shows the "
            "unit, `sampan up --detach` starts a cluster in the background"
        )
    if os.geteuid() != 0:
        raise CannotStart(f"only root may change {UNITS}: sudo sampan service {action}")
    if action == "install":
        install(UNITS / name, unit_text(root, flags), systemctl)
        print(f"{name} is started, now and with the machine; `journalctl -u {name}` shows its log")
    elif uninstall(UNITS / name, systemctl):
        print(f"{name} is stopped and removed; the data in {root} stays (`sampan reset`)")
    else:
        print(f"there is no {name}")
    return 0


def unit_name(root: Path) -> str:
    name = name_of_directory(root, os.environ) or root.name
    return "sampan.service" if name in ("default", "sampan-data") else f"sampan-{name}.service"


def unit_text(root: Path, flags: Sequence[str]) -> str:
    """As a node needs it: containers outlive a crash of sampan, which finds them again. Raises
    CannotStart."""
    arguments = [sys.executable, "-m", "sampan", "up", "--data-dir", str(root), *flags]
    for word in arguments:
        if not word.isprintable():
            raise CannotStart(f"{word!r} cannot be said in a unit of systemd")
    return f"""\
[Unit]
Description=sampan: a Kubernetes cluster ({_escape(str(root))})
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={" ".join(_quote(word) for word in arguments)}
Restart=on-failure
RestartSec=2
TimeoutStopSec=120
KillMode=process
Delegate=yes
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _quote(word: str) -> str:
    """As systemd reads ExecStart: quotation marks, and $ and % doubled."""
    text = _escape(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return text if text and not any(letter in text for letter in " \t'\"\\;") else f'"{text}"'


def install(path: Path, text: str, control: Systemctl) -> None:
    write_private(path, text.encode())
    control(["daemon-reload"])
    control(["enable", "--now", path.name])


def uninstall(path: Path, control: Systemctl) -> bool:
    """False where there is none."""
    if not path.exists():
        return False
    control(["disable", "--now", path.name])
    path.unlink()
    control(["daemon-reload"])
    return True


def systemctl(arguments: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            ["systemctl", *arguments], capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotStart(f"systemctl {' '.join(arguments)}: {error}") from error
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split())
        raise CannotStart(f"systemctl {' '.join(arguments)}: {output}")
