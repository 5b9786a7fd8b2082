"""The client's command line: from words to a verb, from failures to kubectl's last words.

Job: find the command, parse its flags, run it, print what went wrong, choose the exit code.
Invariant: nothing that a user or a server can do ends in a traceback.
"""

import contextlib
from collections.abc import Mapping, Sequence

from sampan.api.errors import ApiError
from sampan.cli import catalog, flags
from sampan.cli.command import Command, close_words, help_text
from sampan.cli.errors import CliError, FlagError, UsageError
from sampan.cli.reporting import report
from sampan.cli.session import GLOBAL_FLAGS, Io, Session
from sampan.cli.verb_position import verb_position


def main(
    words: Sequence[str],
    *,
    program: str = "kubectl",
    io: Io | None = None,
    more_verbs: Mapping[str, str] | None = None,
    found_kubeconfig: str = "",
) -> int:
    """Runs one command of the client; returns its exit code. `more_verbs` are the program's other
    ones with a line about each, for who completes or mistypes them; `found_kubeconfig` is for who
    gives none."""
    io = io or Io()
    session = Session(program, program, io, found_kubeconfig=found_kubeconfig)
    session.words, session.more_verbs = list(words), dict(more_verbs or {})
    try:
        if words[:1] == ["__complete"]:
            return _complete(session, list(words[1:]))
        code = _run(session, list(words))
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        return 130
    finally:
        session.close()
    try:
        io.stdout.flush()
    except BrokenPipeError:
        return 141
    return code


def _complete(session: Session, words: list[str]) -> int:
    from sampan.cli.completion import candidates

    candidates.tell(session.io, candidates.complete(session, words))
    return 0


def _run(session: Session, words: list[str]) -> int:
    position = verb_position(words)
    try:
        if position < 0:
            return _no_verb(session, words)
        name = words[position]
        rest = words[:position] + words[position + 1 :]
        if name == "help":
            return _help(session, rest)
        command = catalog.find(name)
        if command is None:
            return _unknown(session, name, words, position)
        session.path = f"{session.program} {name}"
        command, rest = _descend(session, command, rest, position)
        return run_command(session, command, rest)
    except CliError as error:
        return report(session, error)


def run_command(session: Session, command: Command, words: list[str]) -> int:
    try:
        all_flags = (*command.flags, *_shared_flags(command))
        values = flags.parse(all_flags, words, interspersed=command.interspersed)
        session.values = values
        for notice in values.notices:
            session.complain(notice)
        if command.run is None:
            return _group_without_child(session, command, values)
        flags.check_required(values)
        code = command.run(session, values) or 0
        _check_warnings(session, values)
        return code
    except flags.HelpAsked:
        session.write(help_text(command, session.program, session.path))
        return 0
    except BrokenPipeError:
        raise
    except (CliError, OSError, ApiError) as error:
        if command.failure_code != 1 and isinstance(error, FlagError):
            error = UsageError(str(error))
        code = report(session, error)
        return command.failure_code if code == 1 else code


def _shared_flags(command: Command) -> list[flags.Flag]:
    """The global flags, without the names and letters that the command gives its own."""
    known = {flag.name for flag in command.flags}
    shorts = {flag.short for flag in command.flags if flag.short}
    return [
        flag if flag.short not in shorts else flags.Flag(
            flag.name, flag.kind, flag.default, flag.usage, "", flag.bare
        )
        for flag in GLOBAL_FLAGS
        if flag.name not in known
    ]  # fmt: skip


def _check_warnings(session: Session, values: flags.Values) -> None:
    if values["warnings-as-errors"] and session.warnings:
        count = len(session.warnings)
        raise CliError(f"{count} warning{'s' if count > 1 else ''} received")


def _descend(
    session: Session, command: Command, words: list[str], start: int
) -> tuple[Command, list[str]]:
    """Into the group's command that the next word names."""
    while command.children:
        position = verb_position(words)
        if position < 0:
            break
        child = command.child(words[position])
        if child is None:
            break
        session.path += f" {child.name}"
        words = words[:position] + words[position + 1 :]
        command = child
    return command, words


def _group_without_child(session: Session, command: Command, values: flags.Values) -> int:
    if values.arguments:
        raise UsageError(f'unknown command "{" ".join(values.arguments)}"')
    # As kubectl: every group but one complains on standard error.
    stream = session.io.stdout if command.name == "rollout" else session.io.stderr
    stream.write(help_text(command, session.program, session.path))
    return 1


def _no_verb(session: Session, words: list[str]) -> int:
    with contextlib.suppress(flags.HelpAsked):
        flags.parse(GLOBAL_FLAGS, words)
    session.write(overview(session.program))
    return 0


def _help(session: Session, words: list[str]) -> int:
    names = [word for word in words if not word.startswith("-")]
    if not names:
        session.write(overview(session.program))
        return 0
    command = catalog.find(names[0])
    if command is None:
        session.complain(f"Unknown help topic [{' '.join(f'`{name}`' for name in names)}]")
        session.io.stderr.write(overview(session.program))
        return 0
    session.path = f"{session.program} {names[0]}"
    command, _ = _descend(session, command, names[1:], 0)
    session.write(help_text(command, session.program, session.path))
    return 0


def overview(program: str) -> str:
    lines = [f"{program} controls the Kubernetes cluster manager.", ""]
    width = max(len(name) for name in catalog.names())
    for title, rows in catalog.GROUPS:
        lines.append(f"{title}:")
        lines += [f"  {row[0]:<{width}}   {row[3]}" for row in rows]
        lines.append("")
    lines += [f"Usage:\n  {program} [flags] [options]", ""]
    lines += [f'Use "{program} <command> --help" for more information about a given command.']
    lines += [
        f'Use "{program} options" for a list of global command-line options '
        "(applies to all commands)."
    ]
    return "\n".join(lines) + "\n"


def _unknown(session: Session, name: str, words: list[str], position: int) -> int:
    from sampan.cli import plugins

    ran = plugins.run(session, words) if position == 0 else None
    if ran is not None:
        return ran
    text = f'error: unknown command "{name}" for "{session.program}"'
    close = close_words(name, [*catalog.names(), *session.more_verbs])
    if close:
        text += "\n\nDid you mean this?\n" + "\n".join(f"\t{word}" for word in close)
    session.complain(text)
    return 1
