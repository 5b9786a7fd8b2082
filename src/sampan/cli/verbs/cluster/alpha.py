"""`alpha kuberc view|set`: the user's preferences file.

Job: show it, write a default flag or an alias into it, or make a first one.
Invariant: what the file says already is replaced only with --overwrite.
"""

import os

from sampan.api.objects import Obj
from sampan.cli import kuberc_file
from sampan.cli.command import Command, help_text
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.output import YAML_FLAGS, ObjectPrinter
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session

_SECTIONS = ("defaults", "aliases")
_OFF = "KUBERC is disabled via KUBERC=off environment variable"
_RECOMMENDED = {"apply": ("server-side", "true"), "delete": ("interactive", "true")}


def _view(session: Session, values: Values) -> None:
    path, is_named = _place(session, values)
    try:
        data = kuberc_file.content(path)
    except FileNotFoundError:
        _offer(session, path, is_named)
        return
    except OSError as error:
        raise CliError(f"error reading kuberc file: {kuberc_file.why_not(error, path)}") from error
    preference = kuberc_file.read_loosely(data)
    if preference is None:
        raise CliError(f"no preferences found in {path}")
    printer = ObjectPrinter(values, ordered=True)
    if not preference.get("kind") or not preference.get("apiVersion"):
        raise CliError(
            "missing apiVersion or kind; try GetObjectKind().SetGroupVersionKind() if you know "
            "the type"
        )
    lists = {name: preference.get(name) or [] for name in _SECTIONS}
    shown = kuberc_file.as_written({**preference, **lists})
    session.write(printer.text(shown, _label(preference)))


def _label(preference: Obj) -> str:
    group = preference["apiVersion"].rpartition("/")[0]
    kind = preference["kind"].lower()
    return f"{kind}.{group}/<unknown>" if group else f"{kind}/<unknown>"


def _offer(session: Session, path: str, is_named: bool) -> None:
    if is_named:
        raise CliError(f"kuberc file not found at {path}")
    session.print(f"kuberc file not found at {path}")
    question = "Would you like to generate a default kuberc file with recommended options? (y/N): "
    session.write(question)
    session.io.stdout.flush()
    answer = session.io.stdin.readline().decode(errors="replace").strip()
    if answer.lower() != "y":
        return
    defaults = [
        {"command": command, "options": [{"name": name, "default": value}]}
        for command, (name, value) in _RECOMMENDED.items()
    ]
    _save(session, {**kuberc_file.NEW, "defaults": defaults}, path)


def _save(session: Session, preference: Obj, path: str) -> None:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder or ".", exist_ok=True)
    except OSError as error:
        why = f"mkdir {error.filename}: {(error.strerror or '').lower()}"
        raise CliError(f"failed to create directory {folder}: {why}") from error
    text = to_yaml(kuberc_file.as_written(preference))
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise CliError(
            f"failed to write kuberc file: {kuberc_file.why_not(error, path)}"
        ) from error
    session.print(f"Updated {path}")


def _place(session: Session, values: Values) -> tuple[str, bool]:
    given = values.text("kuberc")
    path, is_named = kuberc_file.place(given, session.io.environment, session.io.home)
    if not path:
        raise CliError(_OFF)
    return path, is_named


def _set(session: Session, values: Values) -> None:
    path, _ = _place(session, values)
    section = values.text("section")
    _check(section, values)
    try:
        data = kuberc_file.content(path)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise CliError(f"error reading kuberc file: {kuberc_file.why_not(error, path)}") from error
    preference = (kuberc_file.read_loosely(data) or {}) if data else dict(kuberc_file.NEW)
    command, options = values.text("command"), _options(values)
    if section == "defaults":
        entry: Obj = {"command": command, "options": options}
        what = f'defaults for command "{command}" already exist'
        preference = _with(preference, section, entry, "command", what, values)
    else:
        name = values.text("name")
        entry = {
            "name": name, "command": command, "prependArgs": values["prependarg"],
            "appendArgs": values["appendarg"], "options": options,
        }  # fmt: skip
        what = f'alias "{name}" already exists'
        preference = _with(preference, section, entry, "name", what, values)
    _save(session, preference, path)


def _check(section: str, values: Values) -> None:
    name = values.text("name")
    if section not in _SECTIONS:
        raise CliError(f'--section must be "defaults" or "aliases", got: {section}')
    if section == "aliases" and not name:
        raise CliError("--name is required when --section=aliases")
    if section == "defaults" and name:
        raise CliError("--name should not be specified when --section=defaults")
    if section == "defaults" and (values["prependarg"] or values["appendarg"]):
        raise CliError("--prependarg and --appendarg are only valid for --section=aliases")


def _options(values: Values) -> list[Obj] | None:
    options = []
    for text in values["option"]:
        name, equals, value = text.partition("=")
        if not equals:
            raise CliError(f'invalid option format "{text}", expected flag=value')
        options.append({"name": name.lstrip("-"), "default": value})
    return options or None


def _with(preference: Obj, section: str, entry: Obj, key: str, what: str, values: Values) -> Obj:
    entries = list(preference.get(section) or [])
    places = [at for at, one in enumerate(entries) if (one.get(key) or "") == entry[key]]
    if places and not values["overwrite"]:
        raise CliError(f"{what}, use --overwrite to replace")
    if places:
        entries[places[0]] = entry
    else:
        entries.append(entry)
    return {**preference, section: entries}


def _alpha(session: Session, values: Values) -> None:
    if session.is_kuberc_disabled:
        session.complain("No alpha commands are available in this version of kubectl")
        return
    session.write(help_text(ALPHA, session.program, session.path))


_KUBERC = Flag(
    "kuberc", usage="The kuberc file to take preferences from; KUBERC=off turns them off."
)
_VIEW = Command(
    "view",
    "alpha kuberc view [options]",
    "Display the current kuberc configuration",
    _view,
    flags=(_KUBERC, *YAML_FLAGS),
)
_SET = Command(
    "set",
    "alpha kuberc set --section (defaults|aliases) --command COMMAND [options]",
    "Set values in the kuberc configuration",
    _set,
    flags=(
        _KUBERC,
        Flag("section", usage="Section to modify: 'defaults' or 'aliases'", required=True),
        Flag("command", usage="Command to configure (e.g., 'get', 'create', 'set env')", required=True),
        Flag("name", usage="The alias's name; --section=aliases needs one."),
        Flag("option", "array", [], "A flag and its value, as flag=value; may be repeated."),
        Flag("prependarg", "array", [], "An argument to put before the alias's; may be repeated."),
        Flag("appendarg", "array", [], "An argument to put behind the alias's; may be repeated."),
        switch("overwrite", "Replace an entry that is there."),
    ),
)  # fmt: skip
ALPHA = Command(
    "alpha",
    "",
    "Commands for features in alpha",
    _alpha,
    children=(
        Command(
            "kuberc",
            "alpha kuberc SUBCOMMAND [options]",
            "Manage kuberc configuration files",
            children=(_SET, _VIEW),
        ),
    ),
)
