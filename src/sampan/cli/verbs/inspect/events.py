"""`events`: what happened, oldest first.

Job: list events, choose by object and type, show when and how often; watch where asked.
"""

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, switch
from sampan.cli.describe.events import interval, last_seen
from sampan.cli.errors import CliError, Plain
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection
from sampan.cli.objects.discovery import NoMatch
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

TITLES = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]


def run(session: Session, values: Values) -> None:
    session.check_context()
    query = _about(session, values.text("for")) if values["for"] else {}
    _ = session.connection
    # A template alone is no format here.
    printer = ObjectPrinter(values, typed=True) if values["output"] else None
    for kind in values["types"]:
        if kind.lower() not in ("normal", "warning"):
            raise CliError("valid --types are Normal or Warning")
    namespace = selection.namespace_of(session, values)
    resource = session.discovery.find("events.")
    if values["watch"]:
        _watch(session, values, resource.path(namespace), query, printer)
        return
    items = selection.list_objects(session, resource, namespace, query)
    items = sorted((item for item in items if _is_chosen(item, values)), key=last_seen)
    if not items:
        if values["all-namespaces"]:
            session.complain("No events found.")
        else:
            session.complain(f"No events found in {namespace} namespace.")
        return
    if printer is not None:
        items = [{"kind": "Event", "apiVersion": "v1", **item} for item in items]
        whole = {"apiVersion": "v1", "items": items, "kind": "EventList", "metadata": {}}
        session.write(printer.text(whole))
        return
    rows = [_row(item, session, bool(values["all-namespaces"])) for item in items]
    titles = ["NAMESPACE", *TITLES] if values["all-namespaces"] else TITLES
    table = rows if values["no-headers"] else [titles, *rows]
    session.write(align(_without_breaks(table)))


def _without_breaks(rows: list[list[str]]) -> list[list[str]]:
    """A message of several lines goes on at the start of the next."""
    out = []
    for row in rows:
        parts = row[-1].split("\n")
        out.append([*row[:-1], parts[0]])
        for index, part in enumerate(parts[1:]):
            is_last = index == len(parts) - 2
            out.append(
                [part, ""] if is_last and rows[0] is not row and len(rows[0]) > 1 else [part]
            )
    return out


def _about(session: Session, text: str) -> dict[str, str]:
    """The field selector of an object's events."""
    if "/" not in text:
        raise CliError("--for must be in resource/name form")
    if text.count("/") > 1:
        raise CliError("arguments in resource/name form may not have more than one slash")
    kind, _, name = text.partition("/")
    try:
        found = session.discovery.find(kind.lower())
    except NoMatch as error:
        raise Plain(str(error)) from error
    if not name:
        return {}
    fields = {"kind": found.kind, "apiVersion": found.api_version, "name": name}
    return {
        "fieldSelector": ",".join(f"involvedObject.{key}={value}" for key, value in fields.items())
    }


def _is_chosen(event: Obj, values: Values) -> bool:
    types = [kind.lower() for kind in values["types"]]
    return not types or str(event.get("type")).lower() in types


def _row(event: Obj, session: Session, with_namespace: bool) -> list[str]:
    about = event.get("involvedObject") or {}
    row = [
        interval(event, session.clock.now()), event.get("type") or "", event.get("reason") or "",
        f"{about.get('kind')}/{about.get('name')}", (event.get("message") or "").strip(),
    ]  # fmt: skip
    return [event["metadata"]["namespace"], *row] if with_namespace else row


def _watch(
    session: Session,
    values: Values,
    path: str,
    query: dict[str, str],
    printer: ObjectPrinter | None,
) -> None:
    titles = ["NAMESPACE", *TITLES] if values["all-namespaces"] else TITLES
    is_first = not values["no-headers"]
    for kind, event in session.api.watch(path, query):
        if kind == "DELETED" or not _is_chosen(event, values):
            continue
        if printer is not None:
            session.write(printer.text({"kind": "Event", "apiVersion": "v1", **event}))
        else:
            row = _row(event, session, bool(values["all-namespaces"]))
            session.write(align([titles, row] if is_first else [row]))
            is_first = False
        session.io.stdout.flush()


EVENTS = Command(
    "events",
    "events [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|jsonpath-as-json|jsonpath-file] [--for TYPE/NAME] [--watch] [--types=Normal,Warning] [options]",
    "Display events.",
    run,
    (
        *PRINT_FLAGS,
        ALL_NAMESPACES,
        Flag("chunk-size", "int64", 500, "Return large lists in chunks of this size."),
        Flag("for", usage="Only those about this object, TYPE/NAME."),
        switch("no-headers", "Don't print headers."),
        Flag("types", "slice", [], "Only events of these types: Normal, Warning."),
        switch("watch", "After listing, watch for changes.", short="w"),
    ),
)
