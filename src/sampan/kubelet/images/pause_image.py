"""The pause image: its only process holds a pod's namespaces open.

Job: pack the program of pause_program.py as an image archive.
"""

import platform

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.pause_program import pause_program
from sampan.kubelet.images.reference import PAUSE_IMAGE

# As upstream's pause: an ordinary user that no image has.
_USER = "65535:65535"


def pause_archive(machine: str = "") -> bytes:
    """The archive of PAUSE_IMAGE for this machine, or for the one that is named."""
    arch = architecture(machine or platform.machine())
    settings = ImageSettings(architecture=arch, entrypoint=("/pause",), user=_USER)
    return build_archive(PAUSE_IMAGE, {"pause": ArchiveFile(pause_program(arch))}, settings)
