"""Whether we are root of the machine, or of a user namespace only.

Job: what the kernel lets us do with files there, and how an overlay notes things on them.
"""

from pathlib import Path

from sampan.core.fast_dataclass import dataclass

_ALL_IDS = ["0 0 4294967295"]


@dataclass(frozen=True, slots=True)
class Rights:
    """Of root of the machine, where nothing else is said."""

    overlay_notes: str = "trusted.overlay."  # the names of a directory's attributes begin so
    has_one_user: bool = False  # files that belong to others cannot be made

    @property
    def is_inside(self) -> bool:
        """Of a user namespace that is not the machine's own."""
        return self.overlay_notes != "trusted.overlay."


OF_ROOT = Rights()


def rights() -> Rights:
    """Ours, now."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return OF_ROOT
    ranges = [" ".join(line.split()) for line in lines]
    if ranges == _ALL_IDS:
        return OF_ROOT
    return Rights("user.overlay.", has_one_user=[each.split()[2] for each in ranges] == ["1"])
