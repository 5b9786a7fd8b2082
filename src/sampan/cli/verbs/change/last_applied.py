"""`apply view-last-applied`, `set-last-applied`: the annotation by itself.

Job: show or write what client-side apply remembers of the last file.
"""

import json

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info, get_object, named
from sampan.cli.output import ObjectPrinter
from sampan.cli.printers.json_text import compact
from sampan.cli.session import Session


def view(session: Session, values: Values) -> None:
    builder = Builder(session).in_namespace().files(values)
    builder.arguments(values.arguments, allow_empty_selector=session.namespace_is_given)
    builder.all(bool(values["all"])).labels(values.text("selector"))
    builder.latest = True
    texts = []
    for found in builder.do().visit():
        assert isinstance(found, Info)
        text = _annotation(found.obj)
        if text is not None:
            texts.append(text)
        elif found.source:
            missing = "no last-applied-configuration annotation found on resource: "
            raise CliError(f'error when {missing}{found.name}\n "{found.source}": <nil>')
    for text in texts:
        session.write(_shown(values.text("output"), text))


def _annotation(obj: Obj) -> str | None:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(writing.LAST_APPLIED)
    return None if text is None else str(text)


def _shown(form: str, text: str) -> str:
    if form == "json":
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    if form == "yaml":
        from sampan.cli.printers.yaml_text import to_yaml

        return to_yaml(json.loads(text))
    raise UsageError(
        f"Unexpected -o output mode: {form}, the flag 'output' must be one of yaml|json"
    )


def set_annotation(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    session.check_context()
    printer = ObjectPrinter(values)
    builder = Builder(session).in_namespace().files(values)
    changes: list[tuple[Info, str]] = []
    for found in builder.do().visit():
        assert isinstance(found, Info)
        text = compact(found.obj, ordered=False) + "\n"
        live = _live(session, found)
        before = _annotation(live.obj)
        if before is None and not values["create-annotation"]:
            raise CliError(
                f"no last-applied-configuration annotation found on resource: {found.name}, to "
                "create the annotation, run the command with --create-annotation"
            )
        if before == text:
            session.print(f"set-last-applied {found.name}: no changes required.")
        else:
            changes.append((live, text))
    for live, text in changes:
        obj = live.obj
        if strategy != "client":
            patch = {"metadata": {"annotations": {writing.LAST_APPLIED: text}}}
            query = writing.options(dry_run=strategy)
            obj = writing.patch(session, live.path, patch, "merge", query)
        changing.show(session, printer, live, obj, "configured", strategy)


def _live(session: Session, found: Info) -> Info:
    try:
        return get_object(session, found.resource, found.namespace, found.name, source=found.source)
    except ApiError as error:
        if error.code == 404:
            raise
        doing = f"retrieving current configuration of:\n{found.where}\nfrom server for:"
        raise named(doing, found.source, error) from error
