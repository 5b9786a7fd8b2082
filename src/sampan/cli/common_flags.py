"""Flags that many verbs share, and what they mean.

Job: one definition of -f, -l, --dry-run, --field-manager and the like, and their checks.
"""

from typing import Literal

from sampan.cli.errors import CliError
from sampan.cli.flags import FALSE, TRUE, Flag, Values
from sampan.cli.session import Session

DryRun = Literal["none", "client", "server"]


def switch(name: str, usage: str, *, default: bool = False, short: str = "") -> Flag:
    return Flag(name, "bool", default, usage, short=short, bare="true")


DRY_RUN = Flag(
    "dry-run",
    default="none",
    bare="unchanged",
    usage='Must be "none", "server", or "client". client: only print the object that would be '
    "sent; server: send the request without persisting the resource.",
)
SAVE_CONFIG = switch(
    "save-config", "Save the configuration in the object's annotation, for a later apply."
)
VALIDATE = Flag(
    "validate",
    default="strict",
    bare="strict",
    usage="strict (or true), warn or ignore (or false): what happens to unknown or duplicate fields.",
)
RECORD = Flag(
    "record",
    "bool",
    False,
    "Record the command in the object's annotation.",
    bare="true",
    deprecated="--record will be removed in the future",
)
SELECTOR = Flag(
    "selector", short="l", usage="Selector (label query) to filter on, e.g. -l key1=value1,key2!=x."
)
FIELD_SELECTOR = Flag("field-selector", usage="Selector (field query) to filter on.")
ALL_NAMESPACES = switch(
    "all-namespaces", "List the requested objects across all namespaces.", short="A"
)
FILES = (
    Flag("filename", "slice", [], "Files, directories or URLs to use.", short="f"),
    Flag("kustomize", usage="Process a kustomization directory.", short="k"),
    switch("recursive", "Process the directory used in -f, --filename recursively.", short="R"),
)


def field_manager(default: str) -> Flag:
    return Flag(
        "field-manager", default=default, usage="Name of the manager used to track field ownership."
    )


def dry_run(session: Session, values: Values) -> DryRun:
    text = values.text("dry-run")
    if text in ("none", "client", "server"):
        return text  # type: ignore[return-value]  # the three literals
    if text == "unchanged":
        session.klog("W", "helpers.go:703", "--dry-run is deprecated and can be replaced with "
                     "--dry-run=client.")  # fmt: skip
        return "client"
    if text in TRUE:
        session.klog("W", "helpers.go:721", f"--dry-run={text} is deprecated (boolean value) and "
                     "can be replaced with --dry-run=client.")  # fmt: skip
        return "client"
    if text in FALSE:
        session.klog("W", "helpers.go:728", f"--dry-run={text} is deprecated (boolean value) and "
                     "can be replaced with --dry-run=none.")  # fmt: skip
        return "none"
    raise CliError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')


def propagation(session: Session, values: Values) -> str:
    """The propagation policy that --cascade stands for."""
    text = values.text("cascade")
    words = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}
    instead = "background" if text in TRUE else "orphan" if text in FALSE else ""
    if instead:
        session.complain(
            f"warning: --cascade={text} is deprecated (boolean value) and can be replaced with "
            f"--cascade={instead}."
        )
    if (instead or text) in words:
        return words[instead or text]
    raise CliError(
        f'invalid cascade value ({text}). Must be "background", "foreground", or "orphan"'
    )


def validation(values: Values) -> str:
    """The fieldValidation that the server is asked for."""
    text = values.text("validate")
    if text in ("strict", "true"):
        return "Strict"
    if text == "warn":
        return "Warn"
    if text in ("ignore", "false"):
        return "Ignore"
    raise CliError(
        f'invalid - validate option "{text}"; must be one of: strict (or true), warn, '
        "ignore (or false)"
    )


def suffix(strategy: DryRun) -> str:
    """What stands behind `created`, `deleted` and the like."""
    return {"none": "", "client": " (dry run)", "server": " (server dry run)"}[strategy]


def change_cause(session: Session, values: Values) -> str:
    """The command line as --record keeps it."""
    parts = [session.path, *values.arguments]
    for name in values.given():
        value = values[name]
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, list):
            value = "[" + ",".join(value) + "]"
        parts.append(f"--{name}={value}")
    return " ".join(parts)
