"""`get -w`: what changes after the list, a row or an object each.

Job: watch from where the list ended; rows under the list's columns.
"""

from sampan.api.objects import Obj
from sampan.cli.flags import Values
from sampan.cli.objects import selection
from sampan.cli.objects.selection import Target
from sampan.cli.output import ObjectPrinter
from sampan.cli.printers import table
from sampan.cli.session import Session


def watch_tables(
    session: Session,
    values: Values,
    target: Target,
    tables: list[Obj],
    style: table.TableStyle,
) -> None:
    path = target.resource.path(selection.namespace_of(session, values))
    query = _watch_query(values, target, _revision(target, tables))
    kind = target.resource.qualified_singular if values["show-kind"] else ""
    is_first = not any(item.get("rows") for item in tables) or values["watch-only"]
    widths: list[int] = []
    header = _last_header(tables)
    for event, obj in session.api.watch(path, query, accept=table.ACCEPT):
        header = obj if obj.get("columnDefinitions") else {**obj, **_definitions(header)}
        rows = _rows_of(header, style, kind)
        titles = table.header_of(header, style)
        if values["output-watch-events"]:
            rows = [[event, *row] for row in rows]
            titles = ["EVENT", *titles]
        if not widths:
            listed = [row for item in tables for row in _rows_of(item, style, kind)]
            widths = _widths([titles, *listed])
        if is_first and style.headers:
            session.write(_pad(titles, widths))
            is_first = False
        for row in rows:
            session.write(_pad(row, widths))
        session.io.stdout.flush()


def watch_objects(
    session: Session, values: Values, target: Target, listed: list[Obj], printer: ObjectPrinter
) -> None:
    path = target.resource.path(selection.namespace_of(session, values))
    query = _watch_query(values, target, "")
    del query["resourceVersion"]  # what is there comes first: all that the list did not have
    known = {_version_of(obj) for obj in listed}
    for _, obj in session.api.watch(path, query):
        if _version_of(obj) in known:
            continue
        label = f"{target.resource.qualified_singular}/{obj['metadata']['name']}"
        session.write(printer.text(obj, label))
        session.io.stdout.flush()


def _version_of(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("uid") or "", metadata.get("resourceVersion") or ""


def _watch_query(values: Values, target: Target, revision: str) -> dict[str, str]:
    query = {**selection.query_of(values), "resourceVersion": revision}
    if target.name:
        query["fieldSelector"] = f"metadata.name={target.name}"
    return query


def _revision(target: Target, tables: list[Obj]) -> str:
    """Where the watch starts: at the last list, or at the named object's own revision."""
    revision = ""
    for item in tables:
        revision = (item.get("metadata") or {}).get("resourceVersion") or revision
    first_row = next((row for item in tables for row in item.get("rows") or []), None)
    if target.name and not revision and first_row:
        revision = first_row["object"]["metadata"].get("resourceVersion") or ""
    return revision


def _last_header(tables: list[Obj]) -> Obj:
    """The last table that says its columns."""
    return next((item for item in reversed(tables) if item.get("columnDefinitions")), {})


def _rows_of(item: Obj, style: table.TableStyle, kind: str) -> list[list[str]]:
    return [table.row_of(item, row, style, kind) for row in item.get("rows") or []]


def _definitions(header: Obj) -> Obj:
    return {"columnDefinitions": header.get("columnDefinitions") or []}


def _widths(rows: list[list[str]]) -> list[int]:
    return [
        max([6, *(len(row[index]) + 3 for row in rows if index < len(row))])
        for index in range(max(len(row) for row in rows))
    ]


def _pad(row: list[str], widths: list[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
    return "".join([*cells, row[-1]]) + "\n"
