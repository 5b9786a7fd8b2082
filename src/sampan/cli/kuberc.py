"""kuberc: the user's aliases and default flags, laid over a command line.

Job: from the words and a Preference to other words, a command under an alias, and flags' defaults.
Invariant: a flag that the user gives is never overridden.
Invariant: an alias never hides a built-in command.
"""

from collections.abc import Sequence

from sampan.api.go_quoting import quoted
from sampan.api.objects import Obj
from sampan.cli import catalog, flags, kuberc_file, plugin_policy
from sampan.cli.command import Command
from sampan.cli.errors import CliError, FlagError, Plain
from sampan.cli.flags import Flag
from sampan.cli.session import Session
from sampan.cli.verb_position import flags_of, located
from sampan.core.fast_dataclass import replace
from sampan.core.patterns import lazy_pattern

_NAME = lazy_pattern("[a-zA-Z]+")
_LETTERS = lazy_pattern("-[a-zA-Z]+")
_OF_LOGS = {"v", "vmodule", "log-flush-frequency"}  # which come to kubectl after its kuberc
_COMPLETE = "__complete"


def apply(session: Session, words: Sequence[str]) -> list[str]:
    """The words to go on with; the session is told the alias and the defaults."""
    try:
        preference = _loaded(session, _explicit(words))
        if preference is None:
            return list(words)
        _validate(preference)
        session.plugin_policy = {
            name: preference[name]
            for name in ("credentialPluginPolicy", "credentialPluginAllowlist")
            if name in preference
        }
        changed = _with_alias(session, preference, list(words))
        _override(session, preference, changed)
    except CliError as error:
        raise Plain(f"error occurred while applying preferences {error}") from error
    if session.original_command:
        session.original_command = quoted(f"{session.program} {session.original_command}")
    return changed


def _explicit(words: Sequence[str]) -> str:
    """What --kuberc says; it is asked for before any flag is parsed."""
    for at, word in enumerate(words):
        if word == "--":
            break
        if word == "--kuberc" and at + 1 < len(words):
            return words[at + 1]
        if "--kuberc=" in word and word.split("=")[1]:
            return word.split("=")[1]
        if word == "--kuberc" or "--kuberc=" in word:
            raise CliError("kuberc file is not found")
    return ""


def _loaded(session: Session, given: str) -> Obj | None:
    try:
        path, is_named = kuberc_file.place(given, session.io.environment, session.io.home)
    except CliError as error:
        raise CliError(f"kuberc error {error}") from error
    if not path:
        return None
    try:
        found = kuberc_file.decoded(kuberc_file.content(path), path)
    except (OSError, CliError) as error:
        if not is_named and isinstance(error, FileNotFoundError):
            return None
        why = kuberc_file.why_not(error, path) if isinstance(error, OSError) else str(error)
        if is_named:
            raise CliError(f"kuberc error kuberc: {why}") from error
        session.io.stderr.write(f"kuberc: no preferences loaded from {path}: {why}")
        return None
    if found is not None and found.complaint:
        text = f"kuberc: ignoring strict decoding error in {path}: {found.complaint}"
        session.io.stderr.write(text)
    return found.preference if found is not None else None


def _validate(preference: Obj) -> None:
    seen: set[str] = set()
    for alias in preference.get("aliases") or []:
        name = alias.get("name") or ""
        if not _NAME.fullmatch(name):
            raise CliError("invalid alias name, can only include alphabetical characters")
        _validate_options(alias)
        if name in seen:
            raise CliError(f"duplicate alias name {name}")
        seen.add(name)
    for default in preference.get("defaults") or []:
        _validate_options(default)
    plugin_policy.validate(preference)


def _validate_options(entry: Obj) -> None:
    for name, _ in _options(entry):
        if name.startswith("-"):
            raise CliError(f"flag name {name} should be in long form without dashes")


def _options(entry: Obj) -> list[tuple[str, str]]:
    return [
        (option.get("name") or "", option.get("default") or "")
        for option in entry.get("options") or []
    ]


def _with_alias(session: Session, preference: Obj, words: list[str]) -> list[str]:
    path, command, _ = located(words)
    if command is not None or not path:
        return words
    at = next(
        (at for at, word in enumerate(words) if not word.startswith(("-", _COMPLETE))), len(words)
    )
    name = "".join(words[at : at + 1])
    [alias] = [one for one in preference.get("aliases") or [] if one["name"] == name] or [None]
    if alias is None:
        return words
    if located([name])[1] is not None:
        session.io.stderr.write(
            f'Warning: Setting alias "{name}" to a built-in command is not supported\n'
        )
        return words
    meant = alias.get("command") or ""
    path, command, _ = located(meant.split())
    if command is None:
        text = f"[{' '.join(meant.split())}]"
        raise CliError(f'command "{meant}" not found to set alias "{name}": {text}')
    original = meant + _preset_all(
        session,
        command,
        _options(alias),
        words,
        unknown=("invalid alias flag", f"in alias {session.program}"),
        wrong=("could not apply value", f"in alias {session.program}"),
    )
    words[at + 1 : at + 1] = alias.get("prependArgs") or []
    words += alias.get("appendArgs") or []
    session.alias = replace(command, name=name, use=f"{name} [options]", aliases=())
    session.more_verbs[name] = catalog.line_of(path[0]) if len(path) == 1 else command.short
    rest = " ".join(words).replace(name, "")
    session.original_command = f"{original} {rest}" if rest else original
    if words[:1] == [_COMPLETE] and at + 1 < len(words):
        words[at : at + 1] = path
    return words


def _override(session: Session, preference: Obj, words: list[str]) -> None:
    path, command, _ = located(words)
    if session.alias is not None and path[:1] == [session.alias.name]:
        command = session.alias
    if command is None and path:
        return
    for default in preference.get("defaults") or []:
        meant = default.get("command") or ""
        names, found, _ = located(meant.split())
        is_alias = session.alias is not None and names[:1] == [session.alias.name]
        if found is None and names and not is_alias:
            session.io.stderr.write(
                f'Warning: command "{meant}" not found to set kuberc override\n'
            )
            continue
        if command is None or not names or names[-1] != path[-1]:
            continue
        if is_alias:
            raise CliError(f"alias {path[-1]} can not be overridden")
        session.original_command = " ".join(words) + _preset_all(
            session,
            command,
            _options(default),
            words,
            unknown=("invalid flag", f"for command {meant}"),
            wrong=("could not apply override value", f"in command {meant}"),
        )


def _preset_all(
    session: Session,
    command: Command,
    options: list[tuple[str, str]],
    words: Sequence[str],
    *,
    unknown: tuple[str, str],
    wrong: tuple[str, str],
) -> str:
    """Tells the session the values of flags that nobody gives; how they would be typed. `unknown`
    and `wrong` are what stands before and behind the flag that cannot be set."""
    known = {flag.name: flag for flag in flags_of(command) if flag.name not in _OF_LOGS}
    typed = ""
    for option, value in options:
        flag = known.get(option.replace("_", "-"))
        if flag is None:
            raise CliError(f"{unknown[0]} {option} {unknown[1]}")
        if _is_given(flag, words):
            continue
        preset = (flag.name, value)
        try:
            flags.parse(list(known.values()), (), presets=[preset])
        except FlagError as error:
            what = f"{wrong[0]} {value} to flag {option} {wrong[1]} err"
            raise CliError(f"{what}: {error}") from error
        session.presets.append(preset)
        typed += f" --{option}={value}"
    return typed


def _is_given(flag: Flag, words: Sequence[str]) -> bool:
    """As kubectl looks for it: by its name, its letter, or its letter among others."""
    for word in words:
        if word == f"--{flag.name}" or word.startswith(f"--{flag.name}="):
            return True
        if flag.short and (
            word.startswith(f"-{flag.short}") or (_LETTERS.fullmatch(word) and flag.short in word)
        ):
            return True
    return False
