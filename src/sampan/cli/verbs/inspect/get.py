"""`get`: objects as the server's tables, or whole in one of many formats.

Job: find the objects, ask for tables or objects, print; who watches goes on in get_watch.py.
"""

from collections.abc import Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Plain, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, selection
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.selection import Target
from sampan.cli.output import FORMATS, PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers import table
from sampan.cli.session import Session

GET_FORMATS = tuple(sorted((*FORMATS, "custom-columns", "custom-columns-file", "wide")))
NOTHING = (
    "Required resource not specified.\n"
    'Use "{program} explain <resource>" for a detailed description of that resource '
    "(e.g. {program} explain pods)."
)


def run(session: Session, values: Values) -> None:
    if values["raw"]:
        _raw(session, values)
        return
    targets = _targets(session, values)
    output = values.text("output")
    name = output.partition("=")[0].lower()
    if name in ("custom-columns", "custom-columns-file"):
        _custom(session, values, targets, name, output.partition("=")[2])
    elif output in ("", "wide"):
        _tables(session, values, targets)
    else:
        _objects(session, values, targets)


def _targets(session: Session, values: Values) -> list[Target]:
    if manifests.has_files(values):
        return _file_targets(session, values)
    if not values.arguments:
        session.complain(
            "You must specify the type of resource to get. Use "
            f'"{session.program} api-resources" for a complete list of supported resources.\n'
        )
        raise UsageError(NOTHING.format(program=session.program))
    _check_format(values)
    targets = selection.targets(session, values.arguments)
    selection.check_selectors(values, targets)
    _check_targets(values, targets)
    return targets


def _file_targets(session: Session, values: Values) -> list[Target]:
    if values.arguments:
        raise CliError(
            "when paths, URLs, or stdin is provided as input, you may not specify resource "
            "arguments as well"
        )
    targets = []
    try:
        for info in selection.from_files(session, values):
            if isinstance(info, Exception):
                raise info
            targets.append(Target(info.resource, info.name))
    except CliError as error:
        if values["kustomize"]:
            raise Plain(str(error)) from error
        raise
    return targets


def _check_targets(values: Values, targets: list[Target]) -> None:
    names = [target for target in targets if target.name]
    if values["all-namespaces"] and any(target.resource.namespaced for target in names):
        raise CliError("a resource cannot be retrieved by name across all namespaces")
    if values["subresource"] and not names:
        raise CliError("subresource cannot be used when bulk resources are specified")
    if _is_watch(values) and len({target.resource for target in targets}) > 1:
        raise CliError("you may only specify a single resource type")


def _is_watch(values: Values) -> bool:
    return bool(values["watch"] or values["watch-only"])


def _check_format(values: Values) -> None:
    output = values.text("output")
    name = output.partition("=")[0].lower()
    if output and name not in GET_FORMATS:
        raise _unknown(output)


def _unknown(output: str) -> CliError:
    from sampan.cli.output import unknown_format

    return unknown_format(output, GET_FORMATS)


def _raw(session: Session, values: Values) -> None:
    if values.arguments or manifests.has_files(values):
        raise UsageError("arguments may not be passed when --raw is specified")
    answer = session.api.ask("GET", values.text("raw"))
    session.write(answer.body.decode(errors="replace"))


# --- objects


def _collect(
    session: Session, values: Values, targets: list[Target]
) -> tuple[list[tuple[ApiResource, Obj]], list[Exception]]:
    found: list[tuple[ApiResource, Obj]] = []
    failures: list[Exception] = []
    query = selection.query_of(values)
    for target in targets:
        namespace = selection.namespace_of(session, values)
        try:
            if target.name:
                path = target.resource.path(namespace, target.name, values.text("subresource"))
                found.append((target.resource, session.api.json("GET", path)))
            else:
                for obj in selection.list_objects(session, target.resource, namespace, query):
                    found.append((target.resource, obj))
        except ApiError as error:
            if not (values["ignore-not-found"] and error.reason == "NotFound"):
                failures.append(_not_found(session, target, error))
    return found, failures


def _not_found(session: Session, target: Target, error: ApiError) -> ApiError:
    """Where the whole namespace is missing, that is what to say."""
    if error.reason != "NotFound" or not target.name or not target.resource.namespaced:
        return error
    if not session.namespace_is_given:
        return error
    try:
        session.api.json("GET", f"/api/v1/namespaces/{session.namespace}")
    except ApiError as missing:
        return missing if missing.reason == "NotFound" else error
    return error


def _objects(session: Session, values: Values, targets: list[Target]) -> None:
    printer = _printer(values)
    found, failures = _collect(session, values, targets)
    if values["sort-by"]:
        objects = _in_order([obj for _, obj in found], values.text("sort-by"))
        found = [(resource, obj) for obj in objects for resource, own in found if own is obj]
    if not values["watch-only"]:
        _print_objects(session, printer, targets, found)
        session.io.stdout.flush()
    if _is_watch(values):
        from sampan.cli.verbs.inspect.get_watch import watch_objects

        watch_objects(session, values, targets[0], [obj for _, obj in found], printer)
    if failures:
        raise Several(failures)


def _print_objects(
    session: Session,
    printer: ObjectPrinter,
    targets: list[Target],
    found: list[tuple[ApiResource, Obj]],
) -> None:
    objects = [obj for _, obj in found]
    if printer.format == "name":
        for resource, obj in found:
            label = f"{resource.qualified_singular}/{obj['metadata']['name']}"
            session.write(printer.text(obj, label))
    elif len(targets) == 1 and targets[0].name:
        if objects:
            session.write(printer.text(objects[0]))
    elif objects or not any(target.name for target in targets):
        whole = {
            "apiVersion": "v1", "items": objects, "kind": "List",
            "metadata": {"resourceVersion": ""},
        }  # fmt: skip
        session.write(printer.text(whole))


def _printer(values: Values) -> ObjectPrinter:
    output = values.text("output")
    name, equals, rest = output.partition("=")
    values._values["output"] = name.lower() + equals + rest
    return ObjectPrinter(values, formats=GET_FORMATS)


def _in_order(objects: list[Obj], field: str) -> list[Obj]:
    from sampan.cli.objects.sorting import sorted_objects

    return sorted_objects(objects, field)


def _custom(session: Session, values: Values, targets: list[Target], name: str, spec: str) -> None:
    from sampan.cli.printers import custom_columns

    spec = spec or values.text("template")
    if name == "custom-columns":
        columns = custom_columns.parse(spec)
    else:
        if not spec:
            raise CliError("custom-columns format specified but no custom columns given")
        columns = custom_columns.from_file(spec)
    found, failures = _collect(session, values, targets)
    objects = [obj for _, obj in found]
    if values["sort-by"]:
        objects = _in_order(objects, values.text("sort-by"))
    if objects or not failures:
        headers = not values["no-headers"]
        session.write(custom_columns.text_of(columns, objects, headers=headers))
    if failures:
        raise Several(failures)


# --- tables


def _style(values: Values) -> table.TableStyle:
    return table.TableStyle(
        wide=values["output"] == "wide",
        headers=not values["no-headers"],
        namespaces=bool(values["all-namespaces"]),
        labels=bool(values["show-labels"]),
        label_columns=tuple(values["label-columns"]),
    )


def _tables(session: Session, values: Values, targets: list[Target]) -> None:
    style = _style(values)
    resources = list(dict.fromkeys(target.resource for target in targets))
    with_kind = bool(values["show-kind"]) or len(resources) > 1
    failures: list[Exception] = []
    tables = list(_ask(session, values, targets, failures))
    if values["sort-by"]:
        tables = _tables_in_order(tables, values.text("sort-by"))
    texts = _table_texts(tables, style, with_kind=with_kind)
    if not values["watch-only"]:
        session.write("\n".join(texts))
    if _is_watch(values):
        if len([target for target in targets if target.name]) > 1:
            raise CliError("you may only watch a single resource or type of resource at a time")
        from sampan.cli.verbs.inspect.get_watch import watch_tables

        watch_tables(session, values, targets[0], [item for _, item in tables], style)
    elif not texts and not failures and not values["ignore-not-found"]:
        _say_nothing_found(session, values, resources)
    if failures:
        raise Several(failures)


def _tables_in_order(
    tables: list[tuple[ApiResource, Obj]], field: str
) -> list[tuple[ApiResource, Obj]]:
    from sampan.cli.objects.sorting import sorted_rows

    return [(resource, sorted_rows(item, field)) for resource, item in tables]


def _table_texts(
    tables: list[tuple[ApiResource, Obj]], style: table.TableStyle, *, with_kind: bool
) -> list[str]:
    """Each table that has rows; a namespace column only where its objects have namespaces."""
    texts = []
    for resource, item in _merge(tables):
        if not item.get("rows"):
            continue
        kind = resource.qualified_singular if with_kind else ""
        own = style
        if style.namespaces and not resource.namespaced:
            own = table.TableStyle(
                style.wide, style.headers, False, style.labels, style.label_columns
            )
        texts.append(table.table_text(item, own, kind))
    return texts


def _say_nothing_found(session: Session, values: Values, resources: list[ApiResource]) -> None:
    namespaced = any(resource.namespaced for resource in resources)
    if values["all-namespaces"] or not namespaced:
        session.complain("No resources found")
    else:
        session.complain(f"No resources found in {session.namespace} namespace.")


def _ask(
    session: Session, values: Values, targets: list[Target], failures: list[Exception]
) -> Iterator[tuple[ApiResource, Obj]]:
    query = selection.query_of(values)
    extra = {"includeObject": "Object"} if values["sort-by"] else {}
    for target in targets:
        path = target.resource.path(
            selection.namespace_of(session, values), target.name, values.text("subresource")
        )
        try:
            if target.name:
                answer = session.api.json("GET", path, extra, accept=table.ACCEPT)
                yield target.resource, _as_table(values, target.resource, answer)
                continue
            pages = {**query, **extra, **_limit(values)}
            while True:
                answer = session.api.json("GET", path, pages, accept=table.ACCEPT)
                yield target.resource, _as_table(values, target.resource, answer)
                token = (answer.get("metadata") or {}).get("continue")
                if not token:
                    break
                pages = {**pages, "continue": token}
        except ApiError as error:
            if not (values["ignore-not-found"] and error.reason == "NotFound"):
                error = _not_found(session, target, error)
                failures.append(selection.list_failure(error, target.resource, query))


def _limit(values: Values) -> dict[str, str]:
    return {"limit": str(values["chunk-size"])} if values["chunk-size"] > 0 else {}


def _as_table(values: Values, resource: ApiResource, answer: Obj) -> Obj:
    """What the server gave, or a plain table where it knows none."""
    if answer.get("kind") == "Table" and values["server-print"]:
        return answer
    if answer.get("kind") == "Table":
        definitions, rows = answer["columnDefinitions"], answer.get("rows") or []
        names = [column["name"] for column in definitions]
        at = names.index("Age") if "Age" in names else None
        kept = [0, *([at] if at is not None else [])]
        return {
            **answer,
            "columnDefinitions": [{**definitions[index], "priority": 0} for index in kept],
            "rows": [{**row, "cells": [row["cells"][index] for index in kept]} for row in rows],
        }
    items = answer.get("items") if isinstance(answer.get("items"), list) else [answer]
    return {
        "kind": "Table",
        "metadata": answer.get("metadata") or {},
        "columnDefinitions": [{"name": "Name"}, {"name": "Created At"}],
        "rows": [
            {
                "cells": [item["metadata"]["name"], item["metadata"].get("creationTimestamp")],
                "object": item,
            }
            for item in items or []
        ],
    }


def _merge(tables: list[tuple[ApiResource, Obj]]) -> list[tuple[ApiResource, Obj]]:
    """Neighbouring tables of one resource under one header."""
    merged: list[tuple[ApiResource, Obj]] = []
    for resource, item in tables:
        if merged and merged[-1][0] == resource and _columns(merged[-1][1]) == _columns(item):
            before = merged[-1][1]
            rows = [*(before.get("rows") or []), *(item.get("rows") or [])]
            merged[-1] = (resource, {**before, "rows": rows})
        else:
            merged.append((resource, item))
    return merged


def _columns(item: Obj) -> list[str]:
    return [column["name"] for column in item.get("columnDefinitions") or []]


GET = Command(
    "get",
    "get [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|"
    "jsonpath|jsonpath-as-json|jsonpath-file|custom-columns|custom-columns-file|wide] "
    "(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags] "
    "[options]",
    "Display one or many resources.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.SELECTOR,
        common_flags.FIELD_SELECTOR,
        common_flags.ALL_NAMESPACES,
        Flag("chunk-size", "int64", 500, "Return large lists in chunks of this size."),
        switch("ignore-not-found", "Exit with 0 where a named object does not exist."),
        Flag("label-columns", "slice", [], "Labels to show as columns.", short="L"),
        switch("no-headers", "Don't print headers."),
        switch("output-watch-events", "Output watch event objects."),
        Flag("raw", usage="Raw URI to request from the server."),
        switch("server-print", "Have the server return tables.", default=True),
        switch("show-kind", "List the resource type for the requested objects."),
        switch("show-labels", "Show all labels as the last column."),
        Flag("sort-by", usage="Sort by this field (a JSONPath expression)."),
        Flag("subresource", usage="Fetch this subresource of the named object."),
        switch("watch", "After listing, watch for changes.", short="w"),
        switch("watch-only", "Watch for changes, without listing first."),
    ),
    examples="""
        # List all pods
        {program} get pods

        # List one deployment and the pods of a label, with more columns
        {program} get deploy/web -o wide
        {program} get pods -l app=web -o wide
    """,
)
