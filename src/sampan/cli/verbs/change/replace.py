"""`replace`: an object by what a file says, whole.

Job: put each object; with --force delete it and make it anew.
"""

from pathlib import Path

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, manifests, selection, waiting, writing
from sampan.cli.objects.infos import Info
from sampan.cli.objects.validation import validate
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.verbs.basic.create import source_error


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    validation = common_flags.validation(values)
    _check(values)
    manifests.require(values)
    if values["raw"]:
        _raw(session, values)
        return
    outcome = changing.Outcome(ObjectPrinter(values), strategy)
    query = writing.options(
        dry_run=strategy, manager=values.text("field-manager"), validation=validation
    )
    check = validate if validation != "Ignore" else None
    failures: list[Exception] = []
    infos = list(selection.from_files(session, values, validate=check))
    if values["force"]:
        for found in infos:
            if isinstance(found, Info):
                _remove(session, values, found)
    for found in infos:
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            _replace(session, values, found, query, outcome)
        except ApiError as error:
            failures.append(source_error("replacing", found.source, error))
    if failures:
        raise Several(failures)


def _check(values: Values) -> None:
    if values["grace-period"] >= 0 and not values["force"]:
        raise CliError("--grace-period must have --force specified")
    if values["timeout"] and not values["force"]:
        raise CliError("--timeout must have --force specified")


def _raw(session: Session, values: Values) -> None:
    name = values["filename"][0]
    content = session.io.stdin.read() if name == "-" else Path(name).read_bytes()
    answer = session.api.ask("PUT", values.text("raw"), body=content, raw=True)
    session.write(answer.body.decode(errors="replace"))


def _replace(
    session: Session,
    values: Values,
    info: Info,
    query: dict[str, str],
    outcome: changing.Outcome,
) -> None:
    obj = info.obj
    if values["save-config"] or (not values["force"] and _was_applied(session, info)):
        obj = writing.with_last_applied(obj)
    if outcome.strategy != "client":
        obj = _send(session, values, info, obj, query)
    changing.show(session, outcome.printer, info, obj, "replaced", outcome.strategy)


def _was_applied(session: Session, info: Info) -> bool:
    return False


def _send(session: Session, values: Values, info: Info, obj: Obj, query: dict[str, str]) -> Obj:
    if values["force"]:
        return writing.create(session, info.resource, info.namespace, obj, query)
    path = info.path
    if values["subresource"]:
        path += f"/{values['subresource']}"
    return session.api.json("PUT", path, query, body=obj)


def _remove(session: Session, values: Values, info: Info) -> None:
    body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    if values["grace-period"] >= 0:
        body["gracePeriodSeconds"] = values["grace-period"]
    try:
        session.api.json("DELETE", info.path, body=body)
    except ApiError as error:
        if error.reason == "NotFound":
            return
        raise
    where = f" from {info.namespace} namespace" if info.namespace else ""
    session.print(f'{info.resource.qualified_singular} "{info.name}" deleted{where}')
    waiting.until_gone(session, info, "", values["timeout"] or 300.0)


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
