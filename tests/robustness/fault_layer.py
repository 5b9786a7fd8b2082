"""A disk, a clock and a machine that misbehave for one program and its children.

Job: compile fault_layer.c, start programs beneath it, change what it does while they run.
Invariant: other programs on the machine, and other files of these programs, notice nothing.
"""

import errno
import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("fault_layer.c")
FORMAT = struct.Struct("qiiii")


def can_be_built():
    return shutil.which("cc") is not None


class FaultLayer:
    def __init__(self, root, below):
        """`below`: the directory whose files have the disk's faults."""
        library, told, self._boot_id = root / "fault_layer.so", root / "faults", root / "boot_id"
        told.write_bytes(bytes(FORMAT.size))
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self.where = (
            "env", f"LD_PRELOAD={library}", f"SAMPAN_TEST_FAULTS={told}",
            f"SAMPAN_TEST_FAULTS_BELOW={below}", f"SAMPAN_TEST_BOOT_ID={self._boot_id}",
        )  # fmt: skip
        self.boot(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        with told.open("r+b") as file:
            self._told = mmap.mmap(file.fileno(), FORMAT.size)
        self._offset, self._sync, self._write, self._delay = 0, 0, 0, 0

    def jump(self, seconds):
        """The wall clock, to so much ahead of the machine's."""
        self._offset = seconds
        self._tell()

    def fail_syncs(self, fails):
        self._sync = errno.EIO if fails else 0
        self._tell()

    def fill(self, is_full):
        self._write = errno.ENOSPC if is_full else 0
        self._tell()

    def delay_syncs(self, milliseconds):
        self._delay = milliseconds
        self._tell()

    def boot(self, boot_id):
        """Programs that look from now on see that the machine was booted again."""
        self._boot_id.write_text(f"{boot_id}\n")

    def _tell(self):
        self._told[:] = FORMAT.pack(self._offset, self._sync, self._write, self._delay, 0)
