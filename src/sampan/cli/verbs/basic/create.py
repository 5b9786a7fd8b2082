"""`create`: objects from files, and the generators as its commands.

Job: read the manifests, send each, print each; one failure does not stop the others.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.create import access, data, policy, services, workloads
from sampan.cli.errors import CliError, UsageError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, raw_requests, selection, writing
from sampan.cli.objects.infos import named
from sampan.cli.objects.validation import validate
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(values.arguments)}]")
    strategy = common_flags.dry_run(session, values)
    validation = common_flags.validation(values)
    printer = ObjectPrinter(values)
    manifests.require(values)
    if values["raw"]:
        _check_raw(values)
        raw_requests.send(session, "POST", values)
        return
    if values["edit"]:
        from sampan.cli.verbs.change.edit import edit_before_create

        edit_before_create(session, values)
        return
    session.check_context()
    check = validate if values.text("validate") not in ("false", "ignore") else None
    query = writing.options(
        dry_run=strategy, manager=values.text("field-manager"), validation=validation
    )
    failures: list[Exception] = []
    count = 0
    selector = values.text("selector")
    for found in selection.from_files(session, values, validate=check, selector=selector):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        count += 1
        obj = writing.noted(session, values, found.obj)
        try:
            if strategy != "client":
                obj = writing.create(session, found.resource, found.namespace, obj, query)
        except ApiError as error:
            failures.append(named("creating", found.source, error))
            continue
        name = (obj.get("metadata") or {}).get("name") or "<unknown>"
        label = f"{found.resource.qualified_singular}/{name}"
        _show(session, printer, obj, label, strategy)
    raise_all(failures)
    if not count:
        raise CliError("no objects passed to create")


def _show(
    session: Session,
    printer: ObjectPrinter,
    obj: Obj,
    label: str,
    strategy: common_flags.DryRun,
) -> None:
    if printer.format:
        session.write(printer.text(obj, label))
    else:
        session.print(f"{label} created{common_flags.suffix(strategy)}")


def _check_raw(values: Values) -> None:
    if values["edit"]:
        raise CliError("--raw and --edit are mutually exclusive")
    if len(values["filename"]) != 1:
        raise CliError("--raw can only use a single local file or stdin")
    raw_requests.check_file(values)
    if values["selector"]:
        raise CliError("--raw and --selector (-l) are mutually exclusive")
    if values["output"]:
        raise CliError("--raw and --output are mutually exclusive")
    raw_requests.check_path(values.text("raw"))


CREATE = Command(
    "create",
    "create -f FILENAME [options]",
    "Create a resource from a file or from stdin.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SAVE_CONFIG,
        common_flags.VALIDATE,
        common_flags.RECORD,
        common_flags.SELECTOR,
        common_flags.field_manager("kubectl-create"),
        switch("edit", "Edit the API resource before creating."),
        Flag("raw", usage="Raw URI to POST to the server."),
        switch("windows-line-endings", "Accepted; only for --edit on Windows."),
    ),
    (
        access.CLUSTER_ROLE, access.CLUSTER_ROLE_BINDING, data.CONFIG_MAP, workloads.CRON_JOB,
        workloads.DEPLOYMENT, services.INGRESS, workloads.JOB, policy.NAMESPACE,
        policy.DISRUPTION_BUDGET, policy.PRIORITY_CLASS, policy.QUOTA, access.ROLE,
        access.ROLE_BINDING, data.SECRET, services.SERVICE, access.SERVICE_ACCOUNT, access.TOKEN,
    ),
)  # fmt: skip
