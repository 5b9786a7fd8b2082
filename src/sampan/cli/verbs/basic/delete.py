"""`delete`: objects by file, name, selector or all of a kind; waits until they are gone.

Job: find the objects, ask for their deletion, say so, wait.
"""

from collections.abc import Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, selection, waiting
from sampan.cli.objects.selection import Found, Info, Target
from sampan.cli.session import Session
from sampan.cli.verbs.basic.run import cascade

IMMEDIATE = (
    "Immediate deletion does not wait for confirmation that the running resource has been "
    "terminated. The resource may continue to run on the cluster indefinitely."
)


def run(session: Session, values: Values) -> None:
    if values["raw"]:
        return _raw(session, values)
    strategy = common_flags.dry_run(session, values)
    propagation = cascade(values)
    if values["cascade"] in ("true", "false"):
        instead = "background" if values["cascade"] == "true" else "orphan"
        session.complain(
            f"warning: --cascade={values['cascade']} is deprecated (boolean value) and can be "
            f"replaced with --cascade={instead}."
        )
    grace = _check(session, values)
    if values["output"] not in ("", "name"):
        raise CliError(f"unexpected -o output mode: {values['output']}. We only support '-o name'")
    if values["interactive"] and not _is_agreed(session, values):
        return None
    options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if grace >= 0:
        options["gracePeriodSeconds"] = grace
    if strategy == "server":
        options["dryRun"] = ["All"]
    _delete_all(session, values, options, strategy)
    return None


def _check(session: Session, values: Values) -> int:
    """The grace period in seconds; -1 leaves it to the object."""
    grace = int(values["grace-period"])
    if values["all"] and (values["selector"] or values["field-selector"]):
        raise CliError("setting 'all' parameter but found a non empty selector. ")
    if values["now"]:
        if grace != -1:
            raise CliError("--now and --grace-period cannot be specified together")
        grace = 1
    if values["force"]:
        if grace > 0:
            raise CliError("--force and --grace-period greater than 0 cannot be specified together")
        grace = 0
    elif grace == 0:
        # Without --force nobody waits forever for a node that is gone: a second is enough.
        grace = 1
    return grace


def _find(session: Session, values: Values) -> Iterator[Found]:
    if manifests.has_files(values):
        if values.arguments:
            raise CliError(
                "when paths, URLs, or stdin is provided as input, you may not specify resource "
                "arguments as well"
            )
        yield from selection.from_files(session, values)
        return
    words = values.arguments
    if not words:
        if _has_selector(values):
            raise CliError("at least one resource must be specified to use a selector")
        raise CliError(selection.NOTHING_GIVEN)
    targets = selection.targets(session, words)
    query = selection.query_of(values)
    _check_names(targets, has_selector=bool(query or values["all"]))
    for target in targets:
        namespace = selection.namespace_of(session, values)
        if target.name:
            where = namespace if target.resource.namespaced else ""
            yield Info(target.resource, where, target.name, {})
        else:
            yield from selection.target_objects(session, target, namespace, query)


def _has_selector(values: Values) -> bool:
    return bool(values["all"] or values["selector"] or values["field-selector"])


def _check_names(targets: list[Target], *, has_selector: bool) -> None:
    """Objects are given by their names or by a selector, never by both."""
    has_names = any(target.name for target in targets)
    if has_names and has_selector:
        raise CliError("name cannot be provided when a selector is specified")
    if not has_names and not has_selector:
        raise CliError("resource(s) were provided, but no name was specified")


def _delete_all(session: Session, values: Values, options: Obj, strategy: str) -> None:
    failures: list[Exception] = []
    gone: list[Info] = []
    count = 0
    may_be_missing = values["ignore-not-found"] or _has_selector(values)
    if values["force"]:
        session.pending_warning = IMMEDIATE
    for found in _find(session, values):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        count += 1
        try:
            _delete(session, values, found, options, strategy, gone)
        except ApiError as error:
            if error.reason == "NotFound" and may_be_missing:
                continue
            _name_source(error, found.source)
            failures.append(error)
    if not count and not failures:
        session.print("No resources found")
    elif not failures and values["wait"] and strategy == "none":
        _wait(session, values, gone)
    if failures:
        raise Several(failures)


def _name_source(error: ApiError, source: str) -> None:
    if source and error.reason != "Invalid":
        error.message = f'error when deleting "{source}": {error.message}'


def _delete(
    session: Session, values: Values, info: Info, options: Obj, strategy: str, gone: list[Info]
) -> None:
    if values["force"] and session.pending_warning:
        session.warn(session.pending_warning)
        session.pending_warning = ""
    answer: Obj = {}
    if strategy == "client":
        session.api.json("GET", info.path)
    else:
        answer = session.api.json("DELETE", info.path, body=options)
    uid = (answer.get("metadata") or {}).get("uid") or (answer.get("details") or {}).get("uid")
    gone.append(Info(info.resource, info.namespace, info.name, {"uid": uid or ""}))
    if values["output"] == "name":
        session.print(info.label)
        return
    verb = "force deleted" if values["force"] else "deleted"
    where = f" from {info.namespace} namespace" if info.namespace else ""
    kind = info.resource.qualified_singular
    text = f'{kind} "{info.name}" {verb}{where}{common_flags.suffix(strategy)}'  # type: ignore[arg-type]
    session.print(text)


def _wait(session: Session, values: Values, gone: list[Info]) -> None:
    if values["force"]:
        return
    session.io.stdout.flush()
    seconds = values["timeout"] or 168 * 3600.0
    for info in gone:
        waiting.until_gone(session, info, info.obj.get("uid") or "", seconds)


def _is_agreed(session: Session, values: Values) -> bool:
    infos = [found for found in _find(session, values) if isinstance(found, Info)]
    session.print(f"You are about to delete the following {len(infos)} resource(s):")
    for info in infos:
        session.print(info.label)
    session.write("Do you want to continue? (y/N): ")
    session.io.stdout.flush()
    answer = session.io.stdin.readline().decode(errors="replace").strip()
    if answer.lower() in ("y", "yes"):
        return True
    session.print("deletion is cancelled")
    return False


def _raw(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError("arguments may not be passed when --raw is specified")
    answer = session.api.ask("DELETE", values.text("raw"))
    session.write(answer.body.decode(errors="replace"))


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
