"""`apply view-last-applied`, `set-last-applied`, `edit-last-applied`: the annotation by itself.

Job: show or write what client-side apply remembers of the last file.
"""

import json

from sampan.cli import common_flags
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Values
from sampan.cli.objects import applying, manifests, selection, writing
from sampan.cli.objects.builder import NOTHING_GIVEN
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session


def view(session: Session, values: Values) -> None:
    form = values.text("output") or "yaml"
    if form not in ("yaml", "json"):
        raise UsageError(
            f"Unexpected -o output mode: {form}, the flag 'output' must be one of yaml|json"
        )
    for found in selection.live(session, values, values.arguments, all_objects=bool(values["all"])):
        if isinstance(found, Exception):
            raise Several([found])
        applied = applying.last_applied_of(found.obj)
        if applied is None:
            continue
        if form == "json":
            session.print(json.dumps(applied, indent=2, sort_keys=True, ensure_ascii=False))
        else:
            from sampan.cli.printers.yaml_text import to_yaml

            session.write(to_yaml(applied))


def set_annotation(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    if not manifests.has_files(values):
        raise CliError(NOTHING_GIVEN)
    printer = ObjectPrinter(values)
    for found in selection.from_files(session, values):
        if isinstance(found, Exception):
            raise found
        live = applying.current(session, found)
        if live is None:
            raise CliError(f"no last-applied-configuration: {found.label} does not exist")
        from sampan.cli.printers.json_text import compact

        text = compact(found.obj, ordered=False) + "\n"
        before = (live["metadata"].get("annotations") or {}).get(writing.LAST_APPLIED)
        if before is None and not values["create-annotation"]:
            raise CliError(
                f"no last-applied-configuration annotation found on resource: {found.name}, to "
                "create the annotation, run the command with --create-annotation"
            )
        if before == text:
            session.print(f"set-last-applied {found.name}: no changes required.")
            continue
        patch = {"metadata": {"annotations": {writing.LAST_APPLIED: text}}}
        obj = live
        if strategy != "client":
            query = writing.options(dry_run=strategy)
            obj = writing.patch(session, found.path, patch, "merge", query)
        if printer.format:
            session.write(printer.text(obj, found.label))
        else:
            session.print(f"{found.label} configured{common_flags.suffix(strategy)}")
