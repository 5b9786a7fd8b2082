"""Arguments of `config …`: how many there must be, and what is said otherwise.

Job: the help on standard output, then the complaint, as kubectl's config verbs do it.
"""

from sampan.cli.command import Command, help_text
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.session import Session


def exactly(
    session: Session, values: Values, count: int, command: Command, word: str = "Unexpected"
) -> None:
    if len(values.arguments) != count:
        refuse(session, f"{word} args: [{' '.join(values.arguments)}]", command)


def refuse(session: Session, why: str, command: Command) -> None:
    session.write(help_of(session, command))
    raise CliError(why)


def help_of(session: Session, command: Command) -> str:
    return help_text(command, session.program, session.path)
