"""Checks of a machine or of data: ok, or a problem with its remedy.

Job: the value that a check gives, and how several are printed.
"""

from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    is_ok: bool
    text: str
    remedy: str = ""
    repair: tuple[str, ...] = ()  # the command that does it, where one does
    is_in_the_way: bool = True  # where it is not ok: nothing works before that is done


def check_lines(checks: Sequence[Check]) -> list[str]:
    width = max((len(check.what) for check in checks), default=0)
    lines = []
    for check in checks:
        mark = "ok     " if check.is_ok else "PROBLEM" if check.is_in_the_way else "left   "
        lines.append(f"{mark}  {check.what:<{width}}  {check.text}")
        if not check.is_ok and check.remedy:
            lines.append(f"         {'':<{width}}  → {check.remedy}")
    return lines
