"""The client's command line: from words to a verb, from failures to kubectl's last words.

Job: find the command, parse its flags, run it, print what went wrong, choose the exit code.
Invariant: nothing that a user or a server can do ends in a traceback.
"""

import contextlib
from collections.abc import Sequence

from sampan.api.errors import ApiError
from sampan.cli import catalog, flags
from sampan.cli.command import Command, close_words, help_text
from sampan.cli.errors import CliError, FlagError, Plain, Quiet, Several, UsageError
from sampan.cli.session import GLOBAL_FLAGS, Io, Session

_THIS_MACHINE = ("localhost:", "127.0.0.1:")
_START_ONE = "`sampan list` shows your clusters; `sampan up --detach --use` starts one"
_VALUELESS = {flag.name for flag in GLOBAL_FLAGS if flag.bare is not None}


def main(
    words: Sequence[str],
    *,
    program: str = "kubectl",
    io: Io | None = None,
    more_verbs: Sequence[str] = (),
    found_kubeconfig: str = "",
) -> int:
    """Runs one command of the client; returns its exit code. `more_verbs` are the program's other
    ones, for somebody who mistyped them; `found_kubeconfig` is for who gives none."""
    io = io or Io()
    session = Session(program, program, io, found_kubeconfig=found_kubeconfig)
    session.words, session.more_verbs = list(words), tuple(more_verbs)
    try:
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
    except CliError as error:
        return report(session, error)
    except OSError as error:
        return _report_os(session, error)
    except ApiError as error:
        session.complain(status_text(error))
        return 1


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


def verb_position(words: Sequence[str]) -> int:
    """Where the verb is: the first word that is neither a flag nor a flag's value."""
    shorts = {flag.short: flag for flag in GLOBAL_FLAGS if flag.short}
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return -1
        if not word.startswith("-") or word == "-":
            return at
        if word.startswith("--"):
            if "=" not in word and word[2:] not in _VALUELESS and word != "--help":
                at += 1
        elif len(word) == 2 and word[1] in shorts and shorts[word[1]].bare is None:
            at += 1
        at += 1
    return -1


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


def report(session: Session, error: CliError) -> int:
    """Prints the failure as kubectl would, and gives its exit code."""
    text, where = str(error), session.path
    session.write(getattr(error, "output", ""))
    if isinstance(error, Several):
        is_alone = len(error.failures) == 1
        for failure in error.failures:
            session.write(getattr(failure, "output", ""))
            text = failure_text(session, failure)
            session.complain(text if is_alone else text.removeprefix("error: "))
        return 1
    if isinstance(error, Quiet):
        if text:
            session.complain(text)
        return error.code
    if isinstance(error, Plain):
        session.complain(text)
    elif isinstance(error, FlagError):
        session.complain(f"error: {text}\nSee '{where} --help' for usage.")
    elif isinstance(error, UsageError):
        session.complain(f"error: {text}\nSee '{where} -h' for help and examples")
    else:
        session.complain(f"error: {text}")
    return error.code


def _report_os(session: Session, error: OSError) -> int:
    from sampan.client.blocking import NoAnswer

    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, NoAnswer):
        session.complain(failure_text(session, error))
        return 1
    where = f"{error.filename}: " if error.filename else ""
    session.complain(f"error: {where}{(error.strerror or str(error)).lower()}")
    return 1


def failure_text(session: Session, error: Exception) -> str:
    """One failure as a line (or several causes as several lines) of standard error."""
    from sampan.client.blocking import NoAnswer

    if isinstance(error, ApiError):
        return status_text(error)
    if isinstance(error, NoAnswer):
        host = error.server.split("://", 1)[-1]
        if error.refused:
            hint = "did you specify the right host or port?"
            text = f"The connection to the server {host} was refused - {hint}"
            is_here = session.program == "sampan" and host.startswith(_THIS_MACHINE)
            return f"{text}\n{_START_ONE}" if is_here else text
        return f"Unable to connect to the server: {error.why}"
    if isinstance(error, Plain):
        return str(error)
    return f"error: {error}"


def _invalid_text(error: ApiError) -> str:
    kind, name = error.details.get("kind") or "", error.details.get("name") or ""
    causes = [
        f"{cause.get('field') or ''}: {cause.get('message') or ''}"
        for cause in error.details.get("causes") or []
    ]
    text = "The request is invalid"
    if kind or name:
        text = f'The {kind} "{name}" is invalid'
    elif error.message and not causes:
        text += f": {error.message}"
    unique = list(dict.fromkeys(causes))
    if len(unique) == 1:
        return f"{text}: {unique[0]}"
    if unique:
        return f"{text}: \n" + "\n".join(f"* {cause}" for cause in unique)
    return text


def status_text(error: ApiError) -> str:
    reason = error.reason
    if reason == "Invalid":
        return _invalid_text(error)
    if reason == "Unauthorized":
        return f"error: You must be logged in to the server ({error.message})"
    if reason:
        return f"Error from server ({reason}): {error.message}"
    return f"Error from server: {error.message}"
