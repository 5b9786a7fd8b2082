"""`delete`: objects by file, name, selector or all of a kind; waits until they are gone.

Job: find the objects, ask for their deletion, say so, wait.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import raw_requests, waiting
from sampan.cli.objects.builder import Builder, Result
from sampan.cli.objects.infos import Info, named
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

Place = tuple[str, str, str]  # resource, namespace, name
IMMEDIATE = (
    "Immediate deletion does not wait for confirmation that the running resource has been "
    "terminated. The resource may continue to run on the cluster indefinitely."
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """How objects are deleted."""

    options: Obj
    strategy: common_flags.DryRun
    is_forced: bool
    agreed: set[Place] | None  # None: nobody was asked


def run(session: Session, values: Values) -> None:
    propagation = common_flags.propagation(session, values)
    session.check_context()
    grace = _grace(values)
    strategy = common_flags.dry_run(session, values)
    result = None if values["raw"] else _builder(session, values).do()
    _check(session, values, grace)
    if result is None:
        _check_raw(values)
        raw_requests.send(session, "DELETE", values)
        return
    options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if grace >= 0:
        options["gracePeriodSeconds"] = grace
    if strategy == "server":
        options["dryRun"] = ["All"]
    agreed: set[Place] | None = None
    if values["interactive"]:
        agreed = _agreed(session, values)
        if not agreed:
            return
    _delete_all(session, values, Deletion(options, strategy, grace == 0, agreed), result)


def _grace(values: Values) -> int:
    """The grace period in seconds; -1 leaves it to the object."""
    grace = int(values["grace-period"])
    if values["now"]:
        if grace != -1:
            raise CliError("--now and --grace-period cannot be specified together")
        grace = 1
    if grace == 0 and not values["force"]:
        # Without --force nobody waits forever for a node that is gone: a second is enough.
        grace = 1
    return 0 if values["force"] and grace < 0 else grace


def _check(session: Session, values: Values, grace: int) -> None:
    if values["output"] not in ("", "name"):
        raise CliError(f"unexpected -o output mode: {values['output']}. We only support '-o name'")
    if values["all"] and values["selector"]:
        raise CliError("cannot set --all and --selector at the same time")
    if values["all"] and values["field-selector"]:
        raise CliError("cannot set --all and --field-selector at the same time")
    if values["force"] and grace == 0:
        session.print_warning(IMMEDIATE)
    elif values["force"] and grace > 0:
        raise CliError("--force and --grace-period greater than 0 cannot be specified together")


def _builder(session: Session, values: Values) -> Builder:
    builder = Builder(session, continue_on_error=True)
    builder.in_namespace(everywhere=bool(values["all-namespaces"])).files(values)
    builder.labels(values.text("selector")).fields(values.text("field-selector"))
    builder.all(bool(values["all"])).arguments(values.arguments)
    builder.requires_object = False
    return builder


def _has_selector(values: Values) -> bool:
    return bool(values["all"] or values["selector"] or values["field-selector"])


def _may_be_missing(values: Values) -> bool:
    if _has_selector(values) and not values.is_set("ignore-not-found"):
        return True
    return bool(values["ignore-not-found"])


def _delete_all(session: Session, values: Values, deletion: Deletion, result: Result) -> None:
    failures: list[Exception] = []
    gone: list[Info] = []
    count = 0
    warns = session.namespace_is_given and not values["all-namespaces"]
    for found in result.visit():
        if isinstance(found, Exception):
            if not _is_missing(values, found):
                failures.append(found)
            continue
        if deletion.agreed is not None and _place(found) not in deletion.agreed:
            continue
        count += 1
        if warns and not found.resource.namespaced:
            session.print_warning(
                "deleting cluster-scoped resources, not scoped to the provided namespace"
            )
            warns = False
        try:
            gone.append(_delete(session, values, found, deletion))
        except ApiError as error:
            if not _is_missing(values, error):
                failures.append(named("deleting", found.source, error))
    raise_all(failures)
    if not count:
        session.print("No resources found")
    elif values["wait"] and deletion.strategy == "none":
        _wait(session, values, gone)


def _is_missing(values: Values, error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == 404 and _may_be_missing(values)


def _delete(session: Session, values: Values, info: Info, deletion: Deletion) -> Info:
    """The object with the uid that is going."""
    answer: Obj = {}
    if deletion.strategy != "client":
        answer = session.api.json("DELETE", info.path, body=deletion.options)
    uid = (answer.get("metadata") or {}).get("uid") or (answer.get("details") or {}).get("uid")
    kind = info.resource.qualified_singular
    if values["output"] == "name":
        session.print(info.label)
    else:
        verb = "force deleted" if deletion.is_forced else "deleted"
        where = f" from {info.namespace} namespace" if info.resource.namespaced else ""
        dry = common_flags.suffix(deletion.strategy)
        session.print(f'{kind} "{info.name}" {verb}{where}{dry}')
    return Info(info.resource, info.namespace, info.name, {"uid": uid or ""})


def _wait(session: Session, values: Values, gone: list[Info]) -> None:
    session.io.stdout.flush()
    seconds = values["timeout"] or 168 * 3600.0
    for info in gone:
        try:
            waiting.until_gone(session, info, info.obj.get("uid") or "", seconds)
        except ApiError as error:
            if error.code not in (403, 405):
                raise
            return  # who may not look cannot wait


def _place(info: Info) -> Place:
    return info.resource.qualified, info.namespace, info.name


def _agreed(session: Session, values: Values) -> set[Place]:
    """What the user has seen, and said yes to."""
    infos, failures = [], []
    for found in _builder(session, values).do().visit():
        if isinstance(found, Info):
            infos.append(found)
        elif not _is_missing(values, found):
            failures.append(found)
    raise_all(failures)
    if not infos:
        session.print("No resources found")
        return set()
    session.print(f"You are about to delete the following {len(infos)} resource(s):")
    for info in infos:
        session.print(info.label)
    session.write("Do you want to continue? (y/N): ")
    session.io.stdout.flush()
    answer = session.io.stdin.readline().decode(errors="replace")
    # As Go scans a line: one word, and the line's end after it.
    if answer.endswith("\n") and answer.strip().lower() == "y":
        return {_place(info) for info in infos}
    session.print("deletion is cancelled")
    return set()


def _check_raw(values: Values) -> None:
    if values["interactive"]:
        raise CliError("--interactive can not be used with --raw")
    if len(values["filename"]) > 1:
        raise CliError("--raw can only use a single local file or stdin")
    raw_requests.check_file(values)
    if values["output"]:
        raise CliError("--raw and --output are mutually exclusive")
    raw_requests.check_path(values.text("raw"))


DELETE = Command(
    "delete",
    "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)]) [options]",
    "Delete resources by file names, stdin, resources and names, or by resources and label "
    "selector.",
    run,
    (
        *common_flags.FILES,
        common_flags.SELECTOR,
        common_flags.FIELD_SELECTOR,
        common_flags.ALL_NAMESPACES,
        common_flags.DRY_RUN,
        switch("all", "Delete all resources, in the namespace of the specified resource types."),
        Flag("cascade", default="background", bare="background",
             usage='Must be "background", "orphan", or "foreground".'),
        switch("force", "Remove the resource from the API at once, without waiting for the node."),
        Flag("grace-period", "int", -1, "Seconds that the resource gets to end by itself."),
        switch("ignore-not-found", "Treat what does not exist as deleted."),
        switch("interactive", "Delete only after a confirmation.", short="i"),
        switch("now", "The same as --grace-period=1."),
        Flag("output", short="o", usage="Output mode: name."),
        Flag("raw", usage="Raw URI to DELETE on the server."),
        Flag("timeout", "duration", 0.0, "How long to wait before giving up."),
        switch("wait", "Wait for resources to be gone before returning.", default=True),
    ),
)  # fmt: skip
