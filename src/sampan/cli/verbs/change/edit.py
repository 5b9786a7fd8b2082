"""`edit`: objects in the user's editor, and what changed to the server.

Job: find the objects, and send the difference as a patch; also for `create --edit` and
    `apply edit-last-applied`.
"""

import json

from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import three_way, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info, map_object
from sampan.cli.objects.manifests import Manifest
from sampan.cli.output import unknown_format, without_managed_fields
from sampan.cli.session import Session
from sampan.cli.verbs.change.editing import APPLIED_HEADER, FORMS, Editing

NEVER_APPLIED = (
    "no last-applied-configuration annotation found on resources, to create the annotation, use "
    "command `kubectl apply set-last-applied --create-annotation`"
)


def run(session: Session, values: Values) -> None:
    form = _form(values)
    infos = _selected(session, values, values.text("subresource"))
    if not infos:
        raise CliError("edit cancelled, no objects found")
    query = _query(values)

    def send(before: Info, after: Info) -> str:
        return _patch(session, values, before, after, query)

    editing = Editing(session, form, send)
    editing.validates = common_flags.validation(values) != "Ignore"
    editing.edit(infos)


def _form(values: Values) -> str:
    form = values.text("output") or "yaml"
    if form not in FORMS:
        raise unknown_format(form, FORMS)
    return form


def _selected(session: Session, values: Values, subresource: str) -> list[Info]:
    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    builder.arguments(values.arguments, allow_empty_selector=True)
    builder.latest, builder.subresource = True, subresource
    return builder.do().infos()


def _query(values: Values) -> dict[str, str]:
    return writing.options(
        manager=values.text("field-manager"), validation=common_flags.validation(values)
    )


def _noted(session: Session, values: Values, obj: Obj) -> Obj:
    """With what --save-config and --record say."""
    if values["save-config"]:
        obj = writing.with_last_applied(obj)
    return writing.recorded(session, values, obj)


def _patch(
    session: Session, values: Values, before: Info, after: Info, query: dict[str, str]
) -> str:
    from sampan.cli.objects.typed import schema

    old = without_managed_fields(before.obj)
    new = _noted(session, values, without_managed_fields(after.obj))
    for obj in (old, new):
        identity = (obj.get("apiVersion"), obj.get("kind"), (obj.get("metadata") or {}).get("name"))
        if identity != (old.get("apiVersion"), old.get("kind"), before.name):
            raise CliError("At least one of apiVersion, kind and name was changed")
    known = schema().type_of(before.resource.api_version, before.resource.kind) is not None
    if known:
        patch = three_way.two_way_patch(schema(), old, new)
    else:
        patch = three_way.merge_patch(old, new, old)
    if values["output-patch"]:
        from sampan.cli.printers.json_text import compact

        session.print(f"Patch: {compact(patch, ordered=False)}")
    path = before.path + (f"/{values['subresource']}" if values["subresource"] else "")
    writing.patch(session, path, patch, "strategic" if known else "merge", query)
    return "edited"


def edit_before_create(session: Session, values: Values) -> None:
    """`create --edit`: one file after the other."""
    query = _query(values)

    def send(before: Info, after: Info) -> str:
        obj = _noted(session, values, after.obj)
        writing.create(session, after.resource, after.namespace or session.namespace, obj, query)
        return "created"

    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    failures: list[Exception] = []
    for found in builder.do().visit():
        if isinstance(found, Exception):
            failures.append(found)
        else:
            Editing(session, "yaml", send).edit([found])
    raise_all(failures)


def edit_last_applied(session: Session, values: Values) -> None:
    applied: list[Info] = []
    for info in _selected(session, values, ""):
        text = ((info.obj.get("metadata") or {}).get("annotations") or {}).get(writing.LAST_APPLIED)
        if text:
            applied += _decoded(session, text)
    if not applied:
        raise CliError(NEVER_APPLIED)
    form = _form(values)

    def send(before: Info, after: Info) -> str:
        from sampan.cli.printers.json_text import compact

        annotations = {writing.LAST_APPLIED: compact(after.obj, ordered=False) + "\n"}
        patch = {"metadata": {"annotations": annotations}}
        writing.patch(session, before.path, patch, "merge", _query(values))
        return "edited"

    editing = Editing(session, form, send, header=APPLIED_HEADER)
    editing.edit(applied)


def _decoded(session: Session, text: str) -> list[Info]:
    found = []
    for one in map_object(session, Manifest(json.loads(text), "edited-file"), default_namespace=""):
        if isinstance(one, Exception):
            raise one
        found.append(one)
    return found


EDIT_FLAGS = (
    *common_flags.FILES,
    common_flags.VALIDATE,
    common_flags.RECORD,
    Flag("output", short="o", usage="Output format: yaml, json or kyaml."),
    switch("show-managed-fields", "Keep the managedFields."),
    Flag("template", usage="Accepted, as -o takes no template."),
    switch("allow-missing-template-keys", "Accepted, as -o takes no template.", default=True),
    switch("windows-line-endings", "Accepted; only for Windows."),
)
EDIT = Command(
    "edit",
    "edit (RESOURCE/NAME | -f FILENAME) [options]",
    "Edit a resource from the default editor.",
    run,
    (
        *EDIT_FLAGS,
        common_flags.SAVE_CONFIG,
        common_flags.field_manager("kubectl-edit"),
        switch("output-patch", "Output the patch if the resource is edited."),
        Flag("subresource", usage="Edit this subresource."),
    ),
)
