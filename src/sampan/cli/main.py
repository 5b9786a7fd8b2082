"""The client's command line: from words to a verb, from failures to kubectl's last words.

Job: find the command, parse its flags, run it, print what went wrong, choose the exit code.
Invariant: nothing that a user or a server can do ends in a traceback.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence

from sampan.api.errors import ApiError
from sampan.cli import catalog, flags
from sampan.cli.command import NAME_WIDTH, Command, close_words, help_text
from sampan.cli.errors import CliError, FlagError, UsageError
from sampan.cli.reporting import report
from sampan.cli.session import GLOBAL_FLAGS, Io, Session
from sampan.cli.verb_position import descended, flags_of, verb_position
from sampan.core.fast_dataclass import replace


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
    try:
        if words and _has_kuberc(session, words):
            from sampan.cli import kuberc

            words = kuberc.apply(session, words)
        if words[:1] == ["__complete"]:
            return _complete(session, words[1:])
        position = verb_position(words)
        if position < 0:
            return _no_verb(session, words)
        name = words[position]
        rest = words[:position] + words[position + 1 :]
        command = session.alias or catalog.find(name)
        if name == "help" and command is None:
            return _help(session, rest)
        if command is None:
            return _unknown(session, name, words, position)
        if name == "alpha" and session.is_kuberc_disabled:
            command = replace(command, children=())
        names, command, rest = descended(command, rest)
        session.path = " ".join((session.program, name, *names))
        return run_command(session, command, rest)
    except CliError as error:
        return report(session, error)


def run_command(session: Session, command: Command, words: list[str]) -> int:
    try:
        values = flags.parse(
            _flags(session, command), words,
            interspersed=command.interspersed, presets=session.presets,
        )  # fmt: skip
        session.values = values
        if session.original_command and values["v"] > 0:
            session.klog("I", "cmd.go:367", f"original command: {session.original_command}")
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


def _has_kuberc(session: Session, words: list[str]) -> bool:
    """Whether there may be preferences to apply; most users have none."""
    environment = session.io.environment
    if session.is_kuberc_disabled:
        return False
    is_named = bool(environment.get("KUBERC")) or any("--kuberc" in word for word in words)
    return is_named or os.path.exists(os.path.join(session.io.home, ".kube", "kuberc"))


def _flags(session: Session, command: Command) -> list[flags.Flag]:
    known = flags_of(command)
    if session.is_kuberc_disabled:
        return [flag for flag in known if flag.name != "kuberc"]
    return known


def _check_warnings(session: Session, values: flags.Values) -> None:
    if values["warnings-as-errors"] and session.warnings:
        count = len(session.warnings)
        raise CliError(f"{count} warning{'s' if count > 1 else ''} received")


def _group_without_child(session: Session, command: Command, values: flags.Values) -> int:
    if values.arguments:
        raise UsageError(f'unknown command "{" ".join(values.arguments)}"')
    stream = session.io.stdout if command.is_helpful else session.io.stderr
    stream.write(help_text(command, session.program, session.path))
    return 1


def _no_verb(session: Session, words: list[str]) -> int:
    with contextlib.suppress(flags.HelpAsked):
        flags.parse(GLOBAL_FLAGS, words)
    session.write(overview(session.program, session.io.environment))
    return 0


def _help(session: Session, words: list[str]) -> int:
    names = [word for word in words if not word.startswith("-")]
    if not names:
        session.write(overview(session.program, session.io.environment))
        return 0
    command = catalog.find(names[0])
    if command is None:
        session.complain(f"Unknown help topic [{' '.join(f'`{name}`' for name in names)}]")
        session.io.stderr.write(overview(session.program, session.io.environment))
        return 0
    below, command, _ = descended(command, names[1:])
    session.path = " ".join((session.program, names[0], *below))
    session.write(help_text(command, session.program, session.path))
    return 0


def _plugin_lines(program: str, environment: Mapping[str, str]) -> list[str]:
    from sampan.cli import plugins

    about = "is a plugin installed by the user"
    names = plugins.verbs(program, environment.get("PATH", ""))
    return [f"  {name:<{NAME_WIDTH}}   The command {name} {about}" for name in names]


def overview(program: str, environment: Mapping[str, str]) -> str:
    lines = [f"{program} controls the Kubernetes cluster manager.", ""]
    width = max(len(name) for name in catalog.names())
    for title, rows in catalog.GROUPS:
        if title == "Other Commands":
            lines += ["Subcommands provided by plugins:", *_plugin_lines(program, environment), ""]
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

    if position > 0:
        session.complain(f"Error: flags cannot be placed before plugin name: {words[0]}")
        return 1
    ran = plugins.run(session, words)
    if ran is not None:
        return ran
    text = f'error: unknown command "{name}" for "{session.program}"'
    close = close_words(name, [*catalog.names(), *session.more_verbs])
    if close:
        text += "\n\nDid you mean this?\n" + "\n".join(f"\t{word}" for word in close)
    session.complain(text)
    return 1
