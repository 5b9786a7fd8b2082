"""Images for tests, made from what Debian installs; nothing is downloaded.

Job: an archive with a shell and the usual tools, from the static busybox.
"""

import platform
import shutil
import subprocess
from pathlib import Path

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive


def busybox_archive(path: Path, reference: str, *, mark: str = "") -> Path:
    """An archive with one image: busybox, under all of its names, in /bin. Images with different
    marks are different images."""
    binary = shutil.which("busybox")
    assert binary, "busybox is not installed: make test installs it (busybox-static)"
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    files = {
        f"bin/{applet}": ArchiveFile(b"", link_to="busybox")
        for applet in listed.stdout.split()
        if applet != "busybox"
    }
    files["bin/busybox"] = ArchiveFile(Path(binary).read_bytes())
    settings = ImageSettings(
        architecture=architecture(platform.machine()),
        command=("sh",),
        env=("PATH=/bin", *((f"MARK={mark}",) if mark else ())),
    )
    path.write_bytes(build_archive(reference, files, settings))
    return path
