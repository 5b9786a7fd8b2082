"""`rollout status|history|undo|restart|pause|resume`.

Job: what a workload's revisions say, and small patches that start, hold or reverse a rollout.
"""

from collections.abc import Callable, Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, annotations_of, copy_of, time_text
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, Several, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, three_way, writing
from sampan.cli.objects.builder import Builder, Result
from sampan.cli.objects.infos import Found, Info
from sampan.cli.objects.manifests import has_files
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.workloads import revisions, rollout_status

RESTARTED = "kubectl.kubernetes.io/restartedAt"
# What a deployment says of itself, not its revisions.
_OWN_ANNOTATIONS = (
    writing.LAST_APPLIED, revisions.REVISION, "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
)  # fmt: skip


def _result(session: Session, values: Values) -> Result:
    """Of a type without names, all."""
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.typed = builder.latest = True
    builder.files(values).labels(values.text("selector"))
    return builder.arguments(values.arguments, allow_empty_selector=True).do()


def _check(session: Session, values: Values) -> None:
    session.check_context()
    if not values.arguments and not has_files(values):
        raise CliError("required resource not specified")
    if "revision" in values and values["revision"] < 0:
        raise CliError(f"revision must be a positive integer: {values['revision']}")


def _each(found: Iterator[Found], act: Callable[[Info], None]) -> int:
    """How many there were; raises what failed after the others were done."""
    failures: list[Exception] = []
    count = 0
    for one in found:
        try:
            if isinstance(one, Exception):
                raise one
            count += 1
            act(one)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)
    return count


def _tell_none(session: Session) -> None:
    session.complain(f"No resources found in {session.namespace} namespace.")


def status(session: Session, values: Values) -> None:

    _check(session, values)

    def act(info: Info) -> None:
        rollout_status.follow(session, values, info)

    if not _each(_result(session, values).visit(), act):
        _tell_none(session)


def history(session: Session, values: Values) -> None:
    _check(session, values)
    found = _result(session, values)
    printer = ObjectPrinter(values, typed=True)
    wanted = values["revision"]

    def objects(info: Info) -> None:
        known = revisions.of(session, info)
        chosen = [one for one in known if not wanted or one.number == wanted]
        if wanted and not chosen:
            raise CliError("unable to find the specified revision")
        for revision in chosen:
            obj = revisions.object_at(info, revision)
            session.write(printer.text(obj, _label(obj)))

    def text(info: Info) -> None:
        known = revisions.of(session, info)
        head = f"with revision #{wanted}" if wanted else ""
        done = f"{head}\n{_history_text(known, wanted)}"
        changing.show(session, printer, info, info.obj, done, "none")

    _each(found.visit(), objects if values["output"] else text)


def _label(obj: Obj) -> str:
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    kind = str(obj.get("kind") or "").lower()
    return (
        f"{kind}.{group}/{obj['metadata']['name']}"
        if group
        else f"{kind}/{obj['metadata']['name']}"
    )


def _history_text(known: list[revisions.Revision], wanted: int) -> str:
    if not known:
        return "No rollout history found."
    if not wanted:
        return revisions.table(known)
    revision = next((item for item in known if item.number == wanted), None)
    if revision is None:
        raise CliError("unable to find the specified revision")
    return revisions.template_text(revision)


def undo(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    _check(session, values)

    def act(info: Info) -> None:
        done = _rolled_back(session, info, values["to-revision"], strategy)
        printer = ObjectPrinter(values, typed=True)
        changing.show(session, printer, info, info.obj, done, strategy)

    _each(_result(session, values).visit(), act)


def _rolled_back(session: Session, info: Info, wanted: int, strategy: DryRun) -> str:
    """How it is told."""
    revisions.check_rollback(info)
    revision = revisions.to_roll_back_to(session, info, wanted)
    if strategy == "client":
        return revisions.template_text(revision)
    obj = session.api.json("GET", info.path)
    if obj["spec"].get("paused"):
        raise CliError(
            "you cannot rollback a paused deployment; resume it first with 'kubectl rollout "
            "resume' and try again"
        )
    if obj["spec"]["template"] == revision.template:
        return f"skipped rollback (current template already matches revision {wanted})"
    patch: list[Obj] = [{"op": "replace", "path": "/spec/template", "value": revision.template}]
    kind, body = "json", patch
    if info.resource.kind == "Deployment":
        patch.append(
            {"op": "replace", "path": "/metadata/annotations", "value": _annotations(obj, revision)}
        )
    else:
        kind, body = "strategic", revision.obj["data"]
    try:
        writing.patch(session, info.path, body, kind, writing.options(dry_run=strategy))
    except ApiError as error:
        raise CliError(f"failed restoring revision {wanted}: {error.message}") from error
    return "rolled back"


def _annotations(deployment: Obj, revision: revisions.Revision) -> dict[str, str]:
    own, old = annotations_of(deployment), annotations_of(revision.obj)
    return {
        **{key: own[key] for key in _OWN_ANNOTATIONS if key in own},
        **{key: value for key, value in old.items() if key not in _OWN_ANNOTATIONS},
    }


Change = Callable[[Obj], None]


def _patch_all(session: Session, values: Values, change: Change, done: str, same: str) -> None:
    """`change` edits a copy of a workload or refuses it; `same` is what is said where nothing
    changed, empty where that is a failure."""
    _check(session, values)
    every = list(_result(session, values).visit())
    failures = [one for one in every if isinstance(one, Exception)]
    found = [one for one in every if isinstance(one, Info)]
    if len(failures) > 1:
        failures = [Several(failures)]
    if not found and not failures:
        _tell_none(session)
        return
    for info in found:
        try:
            _patch(session, values, info, change, (done, same))
        except CliError as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _patch(
    session: Session, values: Values, info: Info, change: Change, words: tuple[str, str]
) -> None:
    from sampan.cli.objects.typed import schema

    done, same = words
    after = copy_of(info.obj)
    try:
        change(after)
    except CliError as error:
        raise CliError(f'error: {info.resource.qualified} "{info.name}" {error}') from error
    patch = three_way.two_way_patch(schema(), info.obj, after)
    if not patch and not same:
        raise CliError(
            f"failed to create patch for {info.name}: if restart has already been triggered "
            "within the past second, please wait before attempting to trigger another"
        )
    obj = info.obj
    if patch:
        query = writing.options(manager=values.text("field-manager"))
        try:
            obj = writing.patch(session, info.path, patch, "strategic", query)
        except ApiError as error:
            raise CliError(f"failed to patch: {error.message}") from error
    printer = ObjectPrinter(values, typed=True)
    changing.show(session, printer, info, obj, done if patch else same, "none")


def pause(session: Session, values: Values) -> None:
    def change(obj: Obj) -> None:
        if obj["kind"] != "Deployment":
            raise CliError("pausing is not supported")
        if obj["spec"].get("paused"):
            raise CliError("is already paused")
        obj["spec"]["paused"] = True

    _patch_all(session, values, change, "paused", "already paused")


def resume(session: Session, values: Values) -> None:
    def change(obj: Obj) -> None:
        if obj["kind"] != "Deployment":
            raise CliError("resuming is not supported")
        if not obj["spec"].get("paused"):
            raise CliError("is not paused")
        del obj["spec"]["paused"]

    _patch_all(session, values, change, "resumed", "already resumed")


def restart(session: Session, values: Values) -> None:
    moment = time_text(session.clock.now())

    def change(obj: Obj) -> None:
        if obj["kind"] not in ("Deployment", "StatefulSet", "DaemonSet"):
            raise CliError("restarting is not supported")
        if obj["kind"] == "Deployment" and obj["spec"].get("paused"):
            raise CliError("can't restart paused deployment (run rollout resume first)")
        meta = obj["spec"]["template"].setdefault("metadata", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), RESTARTED: moment}

    _patch_all(session, values, change, "restarted", "")


_COMMON = (*PRINT_FLAGS, *common_flags.FILES, common_flags.SELECTOR)
MANAGER = common_flags.field_manager("kubectl-rollout")
ROLLOUT = Command(
    "rollout",
    "rollout SUBCOMMAND [options]",
    "Manage the rollout of one or many resources.",
    is_helpful=True,
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
