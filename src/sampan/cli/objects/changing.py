"""What the verbs that change objects share: select, change, send, say.

Job: one loop over the objects with one failure per object, and the flags around it.
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

CHANGE_FLAGS = (
    *PRINT_FLAGS,
    *common_flags.FILES,
    common_flags.SELECTOR,
    common_flags.DRY_RUN,
    switch("local", "Do not ask the server: change only what the files say."),
)
ALL = switch("all", "Select all resources, in the namespace of the specified resource types.")


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
    return inner


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change is made and told."""

    printer: ObjectPrinter
    strategy: Any  # of the dry run
    done: str = ""  # the word for it


def show(
    session: Session, printer: ObjectPrinter, info: Info, obj: Obj, done: str, strategy: Any
) -> None:
    if printer.format:
        session.write(printer.text(obj, info.label))
    else:
        session.print(f"{info.label} {done}{common_flags.suffix(strategy)}")


def change_pod_specs(
    session: Session,
    values: Values,
    words: list[str],
    change: Callable[[Info, Obj, Obj], None],
    done: str,
) -> None:
    """`change` edits a copy of the object and its pod spec; what differs is sent."""
    strategy = common_flags.dry_run(session, values)
    outcome = Outcome(ObjectPrinter(values, typed=True), strategy, done)
    if values.get("all") and values.get("selector"):
        raise CliError("cannot set --all and --selector at the same time")
    failures: list[Exception] = []
    for found in select(session, values, words):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            after = copy_of(found.obj)
            inner = pod_spec(after)
            if inner is None:
                raise CliError(
                    f"{found.resource.plural}/{found.name} the object is not a pod or does not "
                    f"have a pod template: {go_type(found)}"
                )
            change(found, after, inner)
            apply_change(session, values, found, after, outcome)
        except Partly as error:
            apply_change(session, values, found, error.obj, outcome)
            failures.append(CliError(str(error)))
        except CliError as error:
            failures.append(error)
    if failures:
        raise Several(failures)


class Partly(CliError):
    """Some of the change could be made; it is sent all the same."""

    def __init__(self, message: str, obj: Obj) -> None:
        super().__init__(message)
        self.obj = obj


def apply_change(
    session: Session,
    values: Values,
    info: Info,
    after: Obj,
    outcome: Outcome,
) -> None:
    printer, strategy, done = outcome.printer, outcome.strategy, outcome.done
    if values.get("local") or strategy == "client":
        if after != info.obj or values.get("local"):
            show(session, printer, info, _with_type(after), done, strategy)
        return
    from sampan.cli.objects.typed import schema

    patch = three_way.two_way_patch(schema(), info.obj, after)
    if not patch:
        return
    if values.get("record"):
        cause = {writing.CHANGE_CAUSE: common_flags.change_cause(session, values)}
        patch = three_way._join(patch, {"metadata": {"annotations": cause}})
    query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
    try:
        obj = writing.patch(session, info.path, patch, "strategic", query)
    except ApiError as error:
        what = done.split()[0]
        raise CliError(f"failed to patch {what} update to pod template: {error.message}") from error
    show(session, printer, info, obj, done, strategy)


def _with_type(obj: Obj) -> Obj:
    from sampan.cli.objects.typed import with_zeros

    return with_zeros(obj)
