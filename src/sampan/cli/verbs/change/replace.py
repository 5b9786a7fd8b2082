"""`replace`: an object by what a file says, whole.

Job: put each object; with --force delete it and make it anew.
"""

from collections.abc import Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, manifests, raw_requests, selection, waiting, writing
from sampan.cli.objects.infos import Found, Info, blamed, named
from sampan.cli.objects.validation import validate
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

FORCED_SECONDS = 300.0


def run(session: Session, values: Values) -> None:
    validation = common_flags.validation(values)
    strategy = common_flags.dry_run(session, values)
    _ = session.connection
    printer = ObjectPrinter(values)
    propagation = common_flags.propagation(session, values)
    grace = values["grace-period"] or 1  # as kubectl: at once is after a second
    manifests.require(values)
    session.check_context()
    _check(values, strategy, grace)
    if values["raw"]:
        raw_requests.send(session, "PUT", values)
        return
    query = writing.options(
        dry_run=strategy, manager=values.text("field-manager"), validation=validation
    )
    check = validate if validation != "Ignore" else None
    if values["force"]:
        found = list(selection.from_files(session, values, validate=check))
        _delete(session, values, found, propagation, grace)
        _create(session, values, found, query, printer)
        return
    visited = selection.from_files(session, values, validate=check)
    _replace_all(session, values, visited, query, changing.Outcome(printer, strategy))


def _check(values: Values, strategy: DryRun, grace: int) -> None:
    if grace >= 0 and not values["force"]:
        raise CliError("--grace-period must have --force specified")
    if values["timeout"] and not values["force"]:
        raise CliError("--timeout must have --force specified")
    if values["force"] and strategy != "none":
        raise CliError("--dry-run can not be used when --force is set")
    if not values["raw"]:
        return
    if len(values["filename"]) != 1:
        raise CliError("--raw can only use a single local file or stdin")
    raw_requests.check_file(values)
    if values["output"]:
        raise CliError("--raw and --output are mutually exclusive")
    raw_requests.check_path(values.text("raw"))


def _replace_all(
    session: Session,
    values: Values,
    visited: Iterator[Found],
    query: dict[str, str],
    outcome: changing.Outcome,
) -> None:
    failures: list[Exception] = []
    for found in visited:
        if isinstance(found, Exception):
            failures.append(found)
            continue
        obj = writing.noted(session, values, found.obj)
        try:
            if outcome.strategy != "client":
                obj = _put(session, values, found, obj, query)
        except (ApiError, CliError) as error:
            failures.append(named("replacing", found.source, error))
            continue
        changing.show(session, outcome.printer, found, obj, "replaced", outcome.strategy)
    raise_all(failures)


def _put(session: Session, values: Values, info: Info, obj: Obj, query: dict[str, str]) -> Obj:
    """Over whatever is there now, unless the file says which version it is for."""
    if not info.name:
        raise CliError("resource name may not be empty")
    path = info.path
    if values["subresource"]:
        path += f"/{values['subresource']}"
    if not obj["metadata"].get("resourceVersion"):
        try:
            live = session.api.json("GET", path)
            version = (live.get("metadata") or {}).get("resourceVersion")
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
        except ApiError as error:
            if error.code != 404:
                raise
    try:
        return session.api.json("PUT", path, query, body=obj)
    except ApiError as error:
        raise blamed(session, error, info.namespace) from error


def _delete(
    session: Session, values: Values, found: list[Found], propagation: str, grace: int
) -> None:
    body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if grace >= 0:
        body["gracePeriodSeconds"] = grace
    raise_all([one for one in found if isinstance(one, Exception)])
    infos = [one for one in found if isinstance(one, Info)]
    failures: list[Exception] = []
    for info in infos:
        try:
            session.api.json("DELETE", info.path, body=body)
        except ApiError as error:
            if error.code != 404:
                failures.append(named("deleting", info.source, error))
            continue
        if values["output"] == "name":
            session.print(info.label)
            continue
        where = f" from {info.namespace} namespace" if info.namespace else ""
        session.print(f'{info.resource.qualified_singular} "{info.name}" deleted{where}')
    raise_all(failures)
    if not infos:
        session.print("No resources found")
    for info in infos:
        waiting.until_gone(session, info, "", values["timeout"] or FORCED_SECONDS)


def _create(
    session: Session,
    values: Values,
    found: list[Found],
    query: dict[str, str],
    printer: ObjectPrinter,
) -> None:
    failures: list[Exception] = []
    infos = [one for one in found if isinstance(one, Info)]
    for info in infos:
        try:
            obj = writing.noted(session, values, info.obj)
            obj = writing.create(session, info.resource, info.namespace, obj, query)
        except ApiError as error:
            failures.append(blamed(session, error, info.namespace))
            continue
        changing.show(session, printer, info, obj, "replaced", "none")
    raise_all(failures)
    if not infos:
        raise CliError("no objects passed to replace")


REPLACE = Command(
    "replace",
    "replace -f FILENAME [options]",
    "Replace a resource by file name or stdin.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SAVE_CONFIG,
        common_flags.VALIDATE,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-replace"),
        Flag("cascade", default="background", bare="background", usage="For --force."),
        switch("force", "Delete the object and create it again."),
        Flag("grace-period", "int", -1, "Seconds that objects get to end with --force."),
        Flag("raw", usage="Raw URI to PUT to the server."),
        Flag("subresource", usage="Replace this subresource."),
        Flag("timeout", "duration", 0.0, "How long to wait for a delete with --force."),
        switch("wait", "Wait for deletions."),
    ),
)
