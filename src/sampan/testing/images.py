"""Images for tests, made from what Debian installs; nothing is downloaded.

Job: an archive with a shell and the usual tools, from the static busybox.
"""

import shutil
import subprocess
from pathlib import Path

from sampan.kubelet.image_archive import build_archive

SHELL_ENVIRONMENT = ("PATH=/bin",)


def busybox_archive(path: Path, name: str) -> Path:
    """An archive with one image: busybox, under all of its names, in /bin."""
    binary = shutil.which("busybox")
    assert binary, "busybox is not installed: make test installs it (busybox-static)"
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    applets = [applet for applet in listed.stdout.split() if applet != "busybox"]
    build_archive(
        path,
        name,
        files={"bin/busybox": Path(binary).read_bytes()},
        links={f"bin/{applet}": "busybox" for applet in applets},
        directories=("tmp", "etc", "root", "www"),
        command=("sh",),
        environment=SHELL_ENVIRONMENT,
    )
    return path
