"""`patch`: fields of an object, by any of the patch types.

Job: read the patch, send it, say whether anything changed.
"""

from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, documents, writing
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter, read_template
from sampan.cli.session import Session

TYPES = ("json", "merge", "strategic")


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    kind = values.text("type").lower()
    if bool(values["patch"]) == bool(values["patch-file"]):
        raise UsageError("must specify either -p or --patch-file option, but not both" if values["patch"]
                         else "must specify -p to patch")  # fmt: skip
    if kind not in TYPES:
        raise UsageError(f'--type must be one of [json merge strategic], not "{values["type"]}"')
    text = values.text("patch") or read_template(values.text("patch-file"))
    change = _parse(text)
    outcome = changing.Outcome(printer, strategy)
    failures: list[Exception] = []
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            _patch(session, values, found, change, outcome)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _parse(text: str) -> Any:
    try:
        found = documents.first_document(text.encode(), "patch")
    except CliError as error:
        why = (
            str(error)
            .partition("error parsing patch: ")[2]
            .removeprefix("error converting YAML to JSON: ")
        )
        raise CliError(f'unable to parse "{text}": {why}') from error
    return found or {}


def _patch(
    session: Session,
    values: Values,
    info: Info,
    change: Any,
    outcome: changing.Outcome,
) -> None:
    printer, strategy, kind = outcome.printer, outcome.strategy, values.text("type").lower()
    if values["local"] or strategy == "client":
        after = _apply(info.obj, change, kind)
    else:
        query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
        path = info.path
        if values["subresource"]:
            path += f"/{values['subresource']}"
            info = _subresource(info, session.api.json("GET", path))
        after = writing.patch(session, path, change, kind, query)
    word = (
        "patched"
        if _without_revision(after) != _without_revision(info.obj)
        else "patched (no change)"
    )
    changing.show(session, printer, info, after, word, strategy)


def _subresource(info: Info, before: Obj) -> Info:
    """As it was; a Scale is named by its own kind."""
    group, _, version = str(before["apiVersion"]).rpartition("/")
    kind, plural = str(before["kind"]), info.resource.plural
    own = ApiResource(group, version, kind, plural, kind.lower(), info.resource.namespaced)
    return Info(own, info.namespace, info.name, before)


def _apply(obj: Obj, change: Any, kind: str) -> Obj:
    from sampan.cli.objects.overrides import overridden_data

    return overridden_data(obj, change, kind)


def _without_revision(obj: Obj) -> Obj:
    meta = {
        key: value
        for key, value in (obj.get("metadata") or {}).items()
        if key not in ("resourceVersion", "managedFields")
    }
    return {**obj, "metadata": meta}


PATCH = Command(
    "patch",
    "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE] [options]",
    "Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.",
    run,
    (
        *changing.CHANGE_FLAGS[:-2],
        common_flags.DRY_RUN,
        changing.CHANGE_FLAGS[-1],
        common_flags.RECORD,
        common_flags.field_manager("kubectl-patch"),
        Flag("patch", short="p", usage="The patch to be applied to the resource (JSON or YAML)."),
        Flag("patch-file", usage="A file containing a patch to be applied to the resource."),
        Flag("subresource", usage="Patch this subresource."),
        Flag("type", default="strategic", usage="The type of patch: json merge strategic."),
    ),
)
