"""`apply`: objects as files say, client-side (three-way) or server-side; --prune.

Job: create or patch each object, say what happened; then remove what the files no longer have.
"""

import json

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import applying, manifests, pruning, selection, writing
from sampan.cli.objects.selection import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.verbs.basic.create import source_error, structural_check

MISSING = (
    "resource {what} is missing the kubectl.kubernetes.io/last-applied-configuration annotation "
    "which is required by kubectl apply. kubectl apply should only be used on resources created "
    "declaratively by either kubectl create --save-config or kubectl apply. The missing annotation "
    "will be patched automatically."
)
CONFLICT_ADVICE = """
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""
IMMUTABLE = "field is immutable"


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    if values.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(values.arguments)}]")
    manifests.require(values)
    validation = common_flags.validation(values)
    _check(values, strategy)
    printer = ObjectPrinter(values)
    check = structural_check if validation != "Ignore" else None
    failures: list[Exception] = []
    done: list[Info] = []
    count = 0
    for found in selection.from_files(session, values, check=check):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        if values["selector"] and not pruning.matches(values.text("selector"), found.obj):
            continue
        count += 1
        try:
            _apply(session, values, found, strategy, printer, validation)
            done.append(found)
        except (CliError, ApiError) as error:
            failures.append(error)
    if not count and not failures:
        raise CliError("no objects passed to apply")
    if values["prune"] and not failures:
        for line in pruning.prune(session, values, done, strategy):
            if printer.format == "":
                session.print(line)
    if failures:
        raise Several(failures)


def _check(values: Values, strategy: str) -> None:
    if values["force-conflicts"] and not values["server-side"]:
        raise CliError("--force-conflicts only works with --server-side")
    if strategy == "client" and values["server-side"]:
        raise CliError(
            "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server "
            "instead?)"
        )
    if values["server-side"] and values["force"]:
        raise CliError("--force cannot be used with --server-side")
    if values["prune"]:
        if values["server-side"]:
            raise CliError(
                "--prune is in alpha and doesn't currently work on objects created by server-side "
                "apply"
            )
        if not values["all"] and not values["selector"]:
            raise CliError(
                "all resources selected for prune without explicitly passing --all. To prune all "
                "resources, pass the --all flag. If you did not mean to prune all resources, "
                "specify a label selector"
            )
    if values["all"] and values["selector"]:
        raise CliError("cannot set --all and --selector at the same time")
    if values["prune"]:
        pruning.kinds(values["prune-allowlist"])


def _apply(
    session: Session,
    values: Values,
    info: Info,
    strategy: str,
    printer: ObjectPrinter,
    validation: str,
) -> None:
    if not info.name:
        prefix = (info.obj.get("metadata") or {}).get("generateName") or ""
        raise CliError(f"from {prefix}: cannot use generate name with apply")
    manager = values.text("field-manager")
    if values["server-side"]:
        _server_side(session, values, info, strategy, printer, validation)
        return
    query = writing.options(
        dry_run=strategy, manager=manager or "kubectl-client-side-apply", validation=validation
    )
    modified = writing.with_last_applied(info.obj)
    live = applying.current(session, info)
    if live is None:
        _create(session, info, modified, strategy, printer, query)
        return
    if applying.last_applied_of(live) is None:
        session.warn(MISSING.format(what=f"{info.resource.plural}/{info.name}"))
    if strategy == "client":
        patch, _ = applying.patch_for(info, modified, live)
        _say(session, printer, info, _merge(live, modified), bool(patch), strategy)
        return
    try:
        obj, _ = applying.send(session, info, modified, live, query)
    except ApiError as error:
        if not (values["force"] and error.reason in ("Invalid", "Conflict")):
            raise
        obj = _replace(session, values, info, modified, query)
    changed = live["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion")
    if strategy == "server":
        changed = _content(obj) != _content(live)
    _say(session, printer, info, obj, changed, strategy)


def _content(obj: Obj) -> Obj:
    meta = {
        key: value
        for key, value in (obj.get("metadata") or {}).items()
        if key not in ("managedFields", "resourceVersion")
    }
    return {**obj, "metadata": meta}


def _merge(live: Obj, modified: Obj) -> Obj:
    from sampan.api.patch.merge_patch import merged_value

    found: Obj = merged_value(live, modified)
    return found


def _say(
    session: Session, printer: ObjectPrinter, info: Info, obj: Obj, changed: bool, strategy: str
) -> None:
    if printer.format:
        session.write(printer.text(obj, info.label))
        return
    word = "configured" if changed else "unchanged"
    session.print(f"{info.label} {word}{common_flags.suffix(strategy)}")  # type: ignore[arg-type]


def _create(
    session: Session,
    info: Info,
    modified: Obj,
    strategy: str,
    printer: ObjectPrinter,
    query: dict[str, str],
) -> None:
    obj = dict(modified)
    if strategy != "client":
        body = {
            **obj,
            "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"},
        }
        try:
            obj = writing.create(session, info.resource, info.namespace, body, query)
        except ApiError as error:
            raise source_error("creating", info.source, error) from error
    if printer.format:
        session.write(printer.text(obj, info.label))
    else:
        session.print(f"{info.label} created{common_flags.suffix(strategy)}")  # type: ignore[arg-type]


def _replace(
    session: Session, values: Values, info: Info, modified: Obj, query: dict[str, str]
) -> Obj:
    """--force: delete, wait, create again."""
    from sampan.cli.objects import waiting

    body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if values["grace-period"] >= 0:
        body["gracePeriodSeconds"] = values["grace-period"]
    session.api.json("DELETE", info.path, body=body)
    waiting.until_gone(session, info, "", values["timeout"] or 60.0)
    return writing.create(session, info.resource, info.namespace, modified, query)


def _server_side(
    session: Session,
    values: Values,
    info: Info,
    strategy: str,
    printer: ObjectPrinter,
    validation: str,
) -> None:
    query = writing.options(
        dry_run=strategy,
        manager=values.text("field-manager") or "kubectl",
        validation=validation,
        force=bool(values["force-conflicts"]),
    )
    try:
        obj = writing.patch(session, info.path, info.obj, "apply", query)
    except ApiError as error:
        if error.reason == "Conflict" and error.message.startswith("Apply failed"):
            raise CliError(error.message + CONFLICT_ADVICE) from error
        raise
    if printer.format:
        session.write(printer.text(obj, info.label))
    else:
        word = f"serverside-applied{common_flags.suffix(strategy)}"  # type: ignore[arg-type]
        session.print(f"{info.label} {word}")


# --- the annotation by itself


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
        raise CliError(selection.NOTHING_GIVEN)
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
        _say(session, printer, found, obj, True, strategy)


def edit_annotation(session: Session, values: Values) -> None:
    if not values.arguments and not manifests.has_files(values):
        raise CliError(selection.NOTHING_GIVEN)
    raise CliError("edit-last-applied is not supported: use apply set-last-applied -f FILE")


APPLY = Command(
    "apply",
    "apply (-f FILENAME | -k DIRECTORY) [options]",
    "Apply a configuration to a resource by file name or stdin.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SELECTOR,
        common_flags.VALIDATE,
        common_flags.RECORD,
        Flag("field-manager", default="", usage="Name of the manager used to track field ownership."),
        switch("all", "Select all resources in the namespace of the specified resource types."),
        Flag("cascade", default="background", bare="background", usage="For --force and --prune."),
        switch("force", "Delete and create again what cannot be changed."),
        switch("force-conflicts", "Server-side apply takes fields of other managers."),
        Flag("grace-period", "int", -1, "Seconds that objects get to end with --force."),
        switch("openapi-patch", "Accepted: patches are always computed from the types.", default=True),
        switch("overwrite", "Resolve conflicts by the file's values.", default=True),
        switch("prune", "Delete objects that apply made before and the files no longer have."),
        Flag("prune-allowlist", "array", [], "Kinds to prune, <group/version/kind>."),
        switch("server-side", "Apply runs in the server instead of the client."),
        Flag("timeout", "duration", 0.0, "How long to wait for a delete with --force."),
        switch("wait", "Wait for deletions."),
    ),
    (
        Command("edit-last-applied", "apply edit-last-applied (RESOURCE/NAME | -f FILENAME) [options]",
                "Edit latest last-applied-configuration annotations", edit_annotation,
                (*PRINT_FLAGS, *common_flags.FILES)),
        Command("set-last-applied", "apply set-last-applied -f FILENAME [options]",
                "Set the last-applied-configuration annotation to match the contents of a file", set_annotation,
                (*PRINT_FLAGS, *common_flags.FILES, common_flags.DRY_RUN,
                 switch("create-annotation", "Create the annotation where there is none."))),
        Command("view-last-applied", "apply view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME) [options]",
                "View the latest last-applied-configuration annotations", view,
                (*common_flags.FILES, common_flags.SELECTOR, switch("all", "All objects of the kind."),
                 Flag("output", short="o", default="yaml", usage="yaml or json."))),
    ),
)  # fmt: skip
