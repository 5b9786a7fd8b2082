"""`options`: the flags that every verb has.

Job: list them.
"""

from sampan.cli.command import Command, flag_lines
from sampan.cli.flags import Values
from sampan.cli.session import GLOBAL_FLAGS, Session


def run(session: Session, values: Values) -> None:
    session.print("The following options can be passed to any command:\n")
    session.print("\n".join(flag_lines(flag for flag in GLOBAL_FLAGS if not flag.hidden)))


OPTIONS = Command("options", "options [flags] [options]", "Print the global flags.", run)
