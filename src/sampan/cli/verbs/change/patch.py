"""`patch`: fields of an object, by any of the patch types.

Job: read the patch, send it as it is, say whether anything changed.
"""

from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.client import json_bytes

TYPES = ("json", "merge", "strategic")


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    session.check_context()
    _check(values, strategy)
    patch = _as_json(values, _read(values))
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.is_local = bool(values["local"])
    builder.files(values)
    builder.subresource = values.text("subresource")
    builder.arguments(values.arguments)
    failures: list[Exception] = []
    count = 0
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            count += 1
            _patch(session, values, found, patch, strategy)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)
    if not count:
        raise CliError("no objects passed to patch")


def _check(values: Values, strategy: DryRun) -> None:
    if values["patch"] and values["patch-file"]:
        raise CliError("cannot specify --patch and --patch-file together")
    if not values["patch"] and not values["patch-file"]:
        raise CliError("must specify --patch or --patch-file containing the contents of the patch")
    if values["local"] and values.arguments:
        raise CliError("cannot specify --local and server resources")
    if values["local"] and strategy == "server":
        raise CliError(changing.NOT_ON_SERVER)
    if values["type"] and values.text("type").lower() not in TYPES:
        raise CliError(f'--type must be one of [json merge strategic], not "{values["type"]}"')


def _read(values: Values) -> bytes:
    path = values.text("patch-file")
    if not path:
        return values.text("patch").encode()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        why = f"open {path}: {(error.strerror or str(error)).lower()}"
        raise CliError(f"unable to read patch file: {why}") from error


def _as_json(values: Values, content: bytes) -> bytes:
    """What begins with a brace is JSON and is left to the server to read; the rest is YAML."""
    from sampan.api import strict_yaml

    if content.lstrip().startswith(b"{"):
        return content
    try:
        found = strict_yaml.first_document(content.decode(errors="replace"))
    except ValueError as error:
        from sampan.api.go_quoting import quoted

        raise CliError(f"unable to parse {quoted(values.text('patch'))}: {error}") from error
    return json_bytes.dumps(found)


def _patch(session: Session, values: Values, info: Info, patch: bytes, strategy: DryRun) -> None:
    kind = values.text("type").lower() or "strategic"
    if values["local"] or strategy == "client":
        before = after = _applied(info, patch, kind)
    else:
        before, after = _sent(session, values, info, patch, kind, strategy)
    word = "patched" if before != info.obj else "patched (no change)"
    # As kubectl: a dry run is not told.
    changing.show(session, ObjectPrinter(values), _as_answered(info, after), after, word, "none")


def _sent(
    session: Session, values: Values, info: Info, patch: bytes, kind: str, strategy: DryRun
) -> tuple[Obj, Obj]:
    """What the patch made, and what the record of it made of that."""
    query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
    path = info.path
    if values["subresource"]:
        path += f"/{values['subresource']}"
    try:
        patched = writing.patch(session, path, patch, kind, query)
    except ApiError as error:
        if error.code != 415:
            raise
        one = info.resource
        what = f"{one.group}/{one.version}, Kind={one.kind}"
        raise CliError(
            f"{writing.CONTENT_TYPES[kind]} is not supported by {what}: {error.message}"
        ) from error
    if not values["record"]:
        return patched, patched
    cause = {writing.CHANGE_CAUSE: common_flags.change_cause(session, values)}
    record: Any = {"metadata": {"annotations": cause}}
    return patched, writing.patch(session, path, record, "merge", query)


def _as_answered(info: Info, after: Obj) -> Info:
    """A Scale is named by its own kind."""
    group, _, version = str(after.get("apiVersion") or "").rpartition("/")
    kind, plural = str(after.get("kind") or ""), info.resource.plural
    own = ApiResource(group, version, kind, plural, kind.lower(), info.resource.namespaced)
    name = (after.get("metadata") or {}).get("name") or info.name
    return Info(own, info.namespace, str(name), after)


def _applied(info: Info, patch: bytes, kind: str) -> Obj:
    """The patch over the object, here."""
    from sampan.cli.objects.overrides import patched_data
    from sampan.cli.objects.typed import schema

    one = info.resource
    if kind == "strategic" and schema().type_of(one.api_version, one.kind) is None:
        raise CliError(
            f"strategic merge patch is not supported for {one.group}/{one.version}, "
            f"Kind={one.kind} locally, try --type merge"
        )
    return patched_data(info.obj, patch.decode(errors="replace"), kind)


PATCH = Command(
    "patch",
    "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE] [options]",
    "Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        changing.LOCAL,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-patch"),
        Flag("patch", short="p", usage="The patch to be applied to the resource (JSON or YAML)."),
        Flag("patch-file", usage="A file containing a patch to be applied to the resource."),
        Flag("subresource", usage="Patch this subresource."),
        Flag("type", default="strategic", usage="The type of patch: json merge strategic."),
    ),
)
