"""`get -w`: what is there, then what changes, a row or an object each.

Job: list, then watch from where the list ended; rows under the list's columns.
Invariant: a column that has grown stays as wide: rows come one by one.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects.builder import Builder, Result
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.printers import custom_columns, table
from sampan.cli.session import Session
from sampan.cli.verbs.inspect.get_formats import is_table, printer_of
from sampan.cli.verbs.inspect.get_tables import as_table, style_of


def watch(session: Session, values: Values, builder: Builder) -> None:
    result = builder.do()
    try:
        infos = [found for found in result.visit() if isinstance(found, Info)]
    except ApiError as error:
        if error.code == 404 and values["ignore-not-found"]:
            return
        raise
    printer = printer_of(values)
    shown: _Rows | _Whole
    if is_table(values):
        shown = _Rows(session, values, result.resources[0])
    else:
        shown = _Whole(session, values, printer)
    for info in infos:
        shown.show(
            "ADDED",
            info.obj if info.obj.get("kind") == "Table" else _table(session, values, info),
            is_listed=True,
        )
    session.io.stdout.flush()
    if result.count != 1:
        raise CliError("you may only watch a single resource or type of resource at a time")
    _follow(session, values, builder, result, infos, shown)


def _table(session: Session, values: Values, info: Info) -> Obj:
    return as_table(session, info) if is_table(values) else info.obj


def _follow(
    session: Session,
    values: Values,
    builder: Builder,
    result: Result,
    infos: list[Info],
    shown: "_Rows | _Whole",
) -> None:
    resource = result.resources[0]
    query = {}
    if result.is_single:
        info = infos[0]
        path = resource.path(info.namespace)
        query["fieldSelector"] = f"metadata.name={info.name}"
    else:
        path = resource.path(builder.namespace)
        if builder.label_selector:
            query["labelSelector"] = builder.label_selector
        if builder.field_selector:
            query["fieldSelector"] = builder.field_selector
    revision = _revision(result, infos)
    if revision:
        query["resourceVersion"] = revision
    known = {_version_of(info.obj) for info in infos}
    for event, obj in session.api.watch(path, query, accept=builder.form.accept):
        if not revision and _version_of(obj) in known:
            continue  # it was listed
        if is_table(values) and obj.get("kind") != "Table":
            obj = as_table(session, Info(resource, "", obj["metadata"]["name"], obj))
        shown.show(event, obj)
        session.io.stdout.flush()


def _revision(result: Result, infos: list[Info]) -> str:
    """Where the watch starts: at the last list, or at the named object's own revision. Empty: what
    is there comes again."""
    for info in reversed(infos):
        revision = (info.obj.get("metadata") or {}).get("resourceVersion")
        is_whole = result.is_single or info.obj.get("kind") == "Table"
        if revision and is_whole:
            return str(revision)
        rows = info.obj.get("rows") if info.obj.get("kind") == "Table" else None
        if result.is_single and rows:
            return str(rows[0]["object"]["metadata"].get("resourceVersion") or "")
    return ""


def _version_of(obj: Obj) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return metadata.get("uid") or "", metadata.get("resourceVersion") or ""


class _Whole:
    """Objects, or events with objects, in a format."""

    def __init__(
        self, session: Session, values: Values, printer: ObjectPrinter | custom_columns.Printer
    ) -> None:
        self._session, self._printer = session, printer
        self._events = bool(values["output-watch-events"])
        self._skips_list = bool(values["watch-only"])

    def show(self, event: str, obj: Obj, *, is_listed: bool = False) -> None:
        if is_listed and self._skips_list:
            return
        label = _label(obj)
        if not self._events:
            self._session.write(self._printer.text(obj, label))
        elif isinstance(self._printer, ObjectPrinter):
            self._session.write(self._printer.event_text(event, obj, label))
        else:
            self._session.write(self._printer.text({"type": event, "object": obj}))


def _label(obj: Obj) -> str:
    group, _, _ = str(obj.get("apiVersion") or "").rpartition("/")
    kind = str(obj.get("kind") or "").lower()
    name = (obj.get("metadata") or {}).get("name") or ""
    return f"{kind}.{group}/{name}" if group else f"{kind}/{name}"


class _Rows:
    """Rows of tables; the header before the first one."""

    def __init__(self, session: Session, values: Values, resource: ApiResource) -> None:
        self._session = session
        self._style = style_of(values).of(resource.namespaced)
        self._kind = resource.qualified_singular if values["show-kind"] else ""
        self._events = bool(values["output-watch-events"])
        self._skips_list = bool(values["watch-only"])
        self._columns: list[Obj] = []
        self._has_header = not self._style.headers
        self._widths: list[int] = []

    def show(self, event: str, item: Obj, *, is_listed: bool = False) -> None:
        columns = item.get("columnDefinitions") or self._columns
        if columns != self._columns:
            self._columns = columns
        item = {**item, "columnDefinitions": columns}
        if is_listed and self._skips_list:
            return
        rows = [table.row_of(item, row, self._style, self._kind) for row in item.get("rows") or []]
        if self._events:
            rows = [[event.ljust(len("MODIFIED")), *row] for row in rows]
        if rows and not self._has_header:
            header = table.header_of(item, self._style)
            rows.insert(0, ["EVENT", *header] if self._events else header)
            self._has_header = True
        self._grow(rows)
        self._session.write("".join(self._padded(row) for row in rows))

    def _grow(self, rows: list[list[str]]) -> None:
        for row in rows:
            for index, cell in enumerate(row[:-1]):
                if index == len(self._widths):
                    self._widths.append(6)
                self._widths[index] = max(self._widths[index], len(cell) + 3)

    def _padded(self, row: list[str]) -> str:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], self._widths, strict=False)]
        return "".join([*cells, row[-1]]) + "\n"
