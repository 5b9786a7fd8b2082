"""`rollout status|history|undo|restart|pause|resume`.

Job: what a workload's revisions say, and small patches that start, hold or reverse a rollout.
"""

from collections.abc import Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of, time_text
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, selection, writing
from sampan.cli.objects.infos import Found, Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.workloads import revisions, rollout_status

REQUIRED = "required resource not specified"
REVISION = "deployment.kubernetes.io/revision"


def _select(session: Session, values: Values) -> "Iterator[Found]":
    """Of a type without names, all."""
    return selection.live(session, values, values.arguments, all_objects=True, nothing=REQUIRED)


def _find(session: Session, values: Values) -> Iterator[Info]:
    """The objects; failures are raised after the others."""
    failures: list[Exception] = []
    count = 0
    for found in _select(session, values):
        if isinstance(found, Exception):
            failures.append(found)
        else:
            count += 1
            yield found
    if failures:
        raise Several(failures)
    if not count:
        session.complain(f"No resources found in {session.namespace} namespace.")


def _each(session: Session, values: Values, act: object) -> None:
    assert callable(act)
    failures: list[Exception] = []
    count = 0
    for found in _select(session, values):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        count += 1
        try:
            act(found)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)
    if not count:
        session.complain(f"No resources found in {session.namespace} namespace.")


def status(session: Session, values: Values) -> None:

    def act(info: Info) -> None:
        rollout_status.follow(session, values, info)

    _each(session, values, act)


def history(session: Session, values: Values) -> None:
    if values["revision"] < 0:
        raise CliError(f"revision must be a positive integer: {values['revision']}")
    for found in _find(session, values):
        known = revisions.of(session, found)
        if values["output"]:
            _history_objects(session, values, found, known)
            continue
        wanted = values["revision"]
        text = _history_text(known, wanted)
        head = f"{found.label} with revision #{wanted}" if wanted else f"{found.label} "
        session.print(head)
        session.write(text)


def _history_text(known: list[revisions.Revision], wanted: int) -> str:
    if not known:
        return "No rollout history found.\n"
    if not wanted:
        return revisions.table(known)
    revision = next((item for item in known if item.number == wanted), None)
    if revision is None:
        raise CliError("unable to find the specified revision")
    return revisions.template_text(revision) + "\n"


def _history_objects(
    session: Session, values: Values, info: Info, known: list[revisions.Revision]
) -> None:
    printer = ObjectPrinter(values)
    for revision in known:
        if not values["revision"] or revision.number == values["revision"]:
            session.write(printer.text(revision.obj, info.label))


def undo(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)

    def act(info: Info) -> None:
        if info.resource.kind not in ("Deployment", "StatefulSet", "DaemonSet"):
            kind = info.resource.kind
            raise CliError(
                f'error retrieving rollbacker for "{kind}", no visitor method exists for '
                f"{{{info.resource.group} {kind}}}"
            )
        revision = revisions.to_roll_back_to(session, info, values["to-revision"])
        if strategy == "client" and not printer.format:
            session.print(f"{info.label} {revisions.template_text(revision)} (dry run)")
            return
        if info.obj["spec"].get("paused"):
            raise CliError(
                f"you cannot rollback a paused deployment; resume it first with '{session.program} "
                f"rollout resume' and try again"
            )
        if revisions.same(info.obj["spec"]["template"], revision.template):
            session.print(
                f"{info.label} skipped rollback (current template already matches revision {revision.number})"
            )
            return
        patch = [{"op": "replace", "path": "/spec/template", "value": revision.template}]
        obj = writing.patch(session, info.path, patch, "json", writing.options(dry_run=strategy))
        changing.show(session, printer, info, obj, "rolled back", strategy)

    _each(session, values, act)


def pause(session: Session, values: Values) -> None:
    printer = ObjectPrinter(values)

    def act(info: Info) -> None:
        what = f'{info.resource.qualified} "{info.name}"'
        if info.resource.kind != "Deployment":
            raise CliError(f"{what} pausing is not supported")
        if info.obj["spec"].get("paused"):
            raise CliError(f"{what} is already paused")
        query = writing.options(manager=values.text("field-manager"))
        obj = writing.patch(session, info.path, {"spec": {"paused": True}}, "strategic", query)
        changing.show(session, printer, info, obj, "paused", "none")

    _each(session, values, act)


def resume(session: Session, values: Values) -> None:
    printer = ObjectPrinter(values)

    def act(info: Info) -> None:
        what = f'{info.resource.qualified} "{info.name}"'
        if info.resource.kind != "Deployment":
            raise CliError(f"{what} resuming is not supported")
        if not info.obj["spec"].get("paused"):
            raise CliError(f"{what} is not paused")
        query = writing.options(manager=values.text("field-manager"))
        obj = writing.patch(session, info.path, {"spec": {"paused": None}}, "strategic", query)
        changing.show(session, printer, info, obj, "resumed", "none")

    _each(session, values, act)


def restart(session: Session, values: Values) -> None:
    printer = ObjectPrinter(values)
    moment = time_text(session.clock.now())

    def act(info: Info) -> None:
        what = f'{info.resource.qualified} "{info.name}"'
        if info.resource.kind not in ("Deployment", "StatefulSet", "DaemonSet"):
            raise CliError(f"{what} restarting is not supported")
        if info.obj["spec"].get("paused"):
            raise CliError(f"{what} can't restart paused deployment (run rollout resume first)")
        template = copy_of(info.obj["spec"]["template"])
        before = ((template.get("metadata") or {}).get("annotations") or {}).get(
            "kubectl.kubernetes.io/restartedAt"
        )
        if before == moment:
            raise CliError(
                f"failed to create patch for {info.name}: if restart has already been triggered "
                "within the past second, please wait before attempting to trigger another"
            )
        annotation = {"kubectl.kubernetes.io/restartedAt": moment}
        patch: Obj = {"spec": {"template": {"metadata": {"annotations": annotation}}}}
        query = writing.options(manager=values.text("field-manager"))
        obj = writing.patch(session, info.path, patch, "strategic", query)
        changing.show(session, printer, info, obj, "restarted", "none")

    _each(session, values, act)


_COMMON = (*PRINT_FLAGS, *common_flags.FILES, common_flags.SELECTOR)
MANAGER = common_flags.field_manager("kubectl-rollout")
ROLLOUT = Command(
    "rollout",
    "rollout SUBCOMMAND [options]",
    "Manage the rollout of one or many resources.",
    children=(
        Command("history", "rollout history (TYPE NAME | TYPE/NAME) [flags] [options]", "View rollout history", history,
                (*_COMMON, Flag("revision", "int64", 0, "See the details of the revision specified."))),
        Command("pause", "rollout pause RESOURCE [options]", "Mark the provided resource as paused", pause, (*_COMMON, MANAGER)),
        Command("restart", "rollout restart RESOURCE [options]", "Restart a resource", restart, (*_COMMON, MANAGER)),
        Command("resume", "rollout resume RESOURCE [options]", "Resume a paused resource", resume, (*_COMMON, MANAGER)),
        Command("status", "rollout status (TYPE NAME | TYPE/NAME) [flags] [options]", "Show the status of the rollout", status,
                (*common_flags.FILES, common_flags.SELECTOR,
                 Flag("revision", "int64", 0, "Pin to a specific revision for showing its status."),
                 Flag("timeout", "duration", 0.0, "How long to wait; 0: as long as it takes."),
                 switch("watch", "Watch the status of the rollout until it's done.", default=True, short="w"))),
        Command("undo", "rollout undo (TYPE NAME | TYPE/NAME) [flags] [options]", "Undo a previous rollout", undo,
                (*_COMMON, common_flags.DRY_RUN, Flag("to-revision", "int64", 0, "The revision to rollback to; 0: the last one."))),
    ),
)  # fmt: skip
