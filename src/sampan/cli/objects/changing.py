"""What the verbs that change objects share: select, change, send, say.

Job: one loop over the objects with one failure per object, and the flags around it.
Invariant: where one of the objects cannot be had, none is changed.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.cli import common_flags
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Values
from sampan.cli.objects import selection, three_way, writing
from sampan.cli.objects.builder import NOTHING_GIVEN, Builder
from sampan.cli.objects.infos import Found, Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

LOCAL = switch("local", "Do not ask the server: change only what the files say.")
CHANGE_FLAGS = (
    *PRINT_FLAGS,
    *common_flags.FILES,
    common_flags.SELECTOR,
    common_flags.DRY_RUN,
    LOCAL,
)
ALL = switch("all", "Select all resources, in the namespace of the specified resource types.")
FILES_ONLY = (
    "error: you must specify resources by --filename when --local is set.\n"
    "Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'"
)
ALL_AND_SELECTOR = "cannot set --all and --selector at the same time"
NO_RESOURCES = "one or more resources must be specified as <resource> <name> or <resource>/<name>"
NOT_ON_SERVER = "cannot specify --local and --dry-run=server - did you mean --dry-run=client?"
# Kinds with pods inside that kubectl's `set` knows.
_TEMPLATES = {
    "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job",
    "CronJob",
}  # fmt: skip


def go_type(info: Info) -> str:
    """`*v1.ConfigMap`: as Go's %T says it."""
    return f"*{info.resource.version}.{info.resource.kind}"


def select(
    session: Session, values: Values, words: list[str], *, nothing: str = NOTHING_GIVEN
) -> Iterator[Found]:
    """The live objects; with --local those of the files, as they are there."""
    if values.get("local"):
        yield from local(session, values)
        return
    yield from selection.live(
        session, values, words, all_objects=bool(values.get("all")), nothing=nothing
    )


def local(session: Session, values: Values) -> Iterator[Found]:
    builder = Builder(session, continue_on_error=True).files(values)
    builder.is_local, builder.requires_namespace = True, False
    yield from builder.do().visit()


def infos(
    session: Session,
    values: Values,
    words: list[str],
    *,
    stdin_in_use: bool = False,
    words_are_local: bool = False,
) -> list[Info]:
    """Every object that flags and words name, as kubectl's typed builder finds them. With --local
    those of the files, as they are there; words are refused then, unless `words_are_local`."""
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.typed, builder.stdin_in_use = True, stdin_in_use
    builder.files(values)
    if values["local"]:
        if words and not words_are_local:
            raise CliError(FILES_ONLY)
        builder.is_local = True
    else:
        builder.labels(selection.labels_flag(values))
        builder.arguments(words, allow_empty_selector=bool(values["all"]))
        builder.latest = True
    return builder.do().infos()


def pod_spec(obj: Obj) -> Obj | None:
    """The pod spec inside: of a pod itself, a template, or a cron job's template."""
    kind, spec = obj.get("kind"), obj.get("spec")
    if not isinstance(spec, dict):
        return None
    if kind == "Pod":
        return spec
    if kind == "CronJob":
        spec = ((spec.get("jobTemplate") or {}).get("spec")) or {}
    inner: Obj | None = (spec.get("template") or {}).get("spec")
    return inner if kind in _TEMPLATES else None


def pod_spec_of(info: Info, obj: Obj) -> Obj:
    spec = pod_spec(obj)
    if spec is None:
        raise CliError(f"the object is not a pod or does not have a pod template: {go_type(info)}")
    return spec


def show(
    session: Session, printer: ObjectPrinter, info: Info, obj: Obj, done: str, strategy: Any
) -> None:
    if printer.format:
        session.write(printer.text(obj, info.label))
    else:
        session.print(f"{info.label} {done}{common_flags.suffix(strategy)}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change is made and told."""

    printer: ObjectPrinter
    strategy: Any  # of the dry run
    done: str = ""  # the word for it
    failing: str = ""  # what a refused patch is introduced by
    sends_nothing: bool = False  # an empty patch is sent, too


def outcome_of(session: Session, values: Values, done: str, failing: str) -> Outcome:
    strategy = common_flags.dry_run(session, values)
    return Outcome(ObjectPrinter(values, typed=True), strategy, done, failing)


Change = Callable[[Info, Obj], bool]


def change_all(
    session: Session, values: Values, found: list[Info], change: Change, outcome: Outcome,
    failures: list[Exception] | None = None,
) -> None:  # fmt: skip
    """`change` edits a copy of each object and says whether it did; what differs is sent.
    `failures` may be added to by `change`."""
    failures = [] if failures is None else failures
    patches: list[tuple[Info, Obj]] = []
    for info in found:
        after = copy_of(info.obj)
        try:
            if not change(info, after):
                continue
        except CliError as error:
            name = f"{info.resource.plural}/{info.name}"
            if values["local"]:
                name = info.label + ("\n" if info.resource.group else "")
            failures.append(CliError(f"error: {name} {error}\n"))
            continue
        if values.get("record"):
            cause = {writing.CHANGE_CAUSE: common_flags.change_cause(session, values)}
            after = writing.annotate(after, cause)
        patches.append((info, after))
    for info, after in patches:
        try:
            send(session, values, info, after, outcome)
        except CliError as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def send(session: Session, values: Values, info: Info, after: Obj, outcome: Outcome) -> None:
    """The difference as a strategic merge patch, or what there is to show of it."""
    from sampan.cli.objects.typed import schema, with_zeros

    patch = three_way.two_way_patch(schema(), info.obj, after)
    if not patch and not outcome.sends_nothing:
        return
    if values.get("local") or outcome.strategy == "client":
        show(session, outcome.printer, info, with_zeros(after), outcome.done, outcome.strategy)
        return
    query = writing.options(dry_run=outcome.strategy, manager=values.text("field-manager"))
    try:
        obj = writing.patch(session, info.path, patch, "strategic", query)
    except ApiError as error:
        if not outcome.failing:
            raise
        raise CliError(f"{outcome.failing} {error.message}") from error
    show(session, outcome.printer, info, obj, outcome.done, outcome.strategy)
