"""`wait`: until objects are as wanted.

Job: parse --for, look at each object until it holds or the time is over.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, selection, waiting
from sampan.cli.objects.builder import NOTHING_GIVEN
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.jsonpath import Template, relax, value_text
from sampan.cli.session import Session

Check = Callable[[Obj | None], bool]


def parse(text: str) -> Check:
    _kind, _, rest = text.partition("=")
    if text.lower() in ("delete", "create"):
        return (
            (lambda obj: obj is None) if text.lower() == "delete" else (lambda obj: obj is not None)
        )
    if text.startswith("condition="):
        name, _, value = rest.partition("=")
        return _condition(name, value or "true")
    if text.startswith("jsonpath="):
        return _jsonpath(rest)
    raise CliError(f'unrecognized condition: "{text}"')


def _condition(name: str, value: str) -> Check:
    def check(obj: Obj | None) -> bool:
        for condition in ((obj or {}).get("status") or {}).get("conditions") or []:
            if str(condition.get("type")).lower() == name.lower():
                observed = condition.get("observedGeneration")
                generation = (obj or {})["metadata"].get("generation")
                if observed is not None and generation is not None and observed < generation:
                    return False
                return str(condition.get("status")).lower() == value.lower()
        return False

    return check


def _jsonpath(text: str) -> Check:
    path, equals, wanted = _split(text)
    template = Template(relax(path))

    def check(obj: Obj | None) -> bool:
        if obj is None:
            return False
        values = template.values(obj)
        if not values:
            return False
        if not equals:
            return True
        if len(values) > 1:
            raise CliError("given jsonpath expression matches more than one value")
        if isinstance(values[0], (dict, list)):
            raise CliError("jsonpath leads to a nested object or list which is not supported")
        return value_text(values[0]) == wanted

    return check


def _split(text: str) -> tuple[str, bool, str]:
    """The expression and the value; braces may hide equals signs."""
    if text.startswith("{"):
        closing = text.rfind("}=")
        if closing >= 0:
            value = text[closing + 2 :]
            return text[: closing + 1], True, value.strip("'\"")
        return text, False, ""
    path, equals, value = text.partition("=")
    return path, bool(equals), value.strip("'\"")


def run(session: Session, values: Values) -> None:
    check = parse(values.text("for"))
    printer = ObjectPrinter(values)
    mode = values.text("for").lower()
    seconds = values["timeout"]
    seconds = 7 * 24 * 3600.0 if seconds < 0 else seconds
    targets = _targets(session, values, mode)
    if not targets and mode != "delete":  # what is not there is deleted
        raise CliError("no matching resources found")
    deadline = session.clock.monotonic() + seconds
    failures: list[Exception] = []
    for info in targets:
        left = max(deadline - session.clock.monotonic(), 0.0)
        try:
            _wait(session, info, check, mode, left, seconds)
        except CliError as error:
            failures.append(error)
            continue
        if printer.format:
            session.write(printer.text(info.obj, info.label))
        else:
            session.print(f"{info.label} condition met")
    if failures:
        raise Several(failures)


def _wait(
    session: Session, info: Info, check: Check, mode: str, seconds: float, whole: float
) -> None:
    seen: dict[str, Any] = {}

    def is_met(obj: Obj | None) -> bool:
        seen["obj"] = obj
        if obj is None and mode not in ("delete", "create"):
            raise CliError(f'{info.resource.qualified} "{info.name}" not found')
        return check(obj)

    if waiting.until(session, info.path, is_met, seconds):
        return
    what = f"{info.resource.plural}/{info.name}"
    if mode == "create":
        raise CliError("timed out waiting for the condition")
    if whole == 0:
        raise CliError(f"condition not met for {what}")
    raise CliError(f"timed out waiting for the condition on {what}")


def _targets(session: Session, values: Values, mode: str) -> list[Info]:
    found: list[Info] = []
    failures: list[Exception] = []
    if mode == "create" and not manifests.has_files(values) and values.arguments:
        return [
            Info(target.resource, session.namespace, target.name, {})
            for target in selection.targets(session, values.arguments)
            if target.name
        ]
    live = selection.live(
        session,
        values,
        values.arguments,
        all_objects=bool(values["all"]),
        nothing=NOTHING_GIVEN,
    )
    for item in live:
        if isinstance(item, ApiError) and item.reason == "NotFound" and mode == "delete":
            continue
        if isinstance(item, Exception):
            failures.append(item)
        else:
            found.append(item)
    if failures:
        raise Several(failures)
    return found


WAIT = Command(
    "wait",
    "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]] [options]",
    "Wait for a specific condition on one or many resources.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.SELECTOR,
        common_flags.FIELD_SELECTOR,
        common_flags.ALL_NAMESPACES,
        switch("all", "Select all resources in the namespace of the specified resource types."),
        Flag(
            "for",
            usage="create, delete, condition=NAME[=VALUE] or jsonpath='{EXPRESSION}'[=VALUE].",
        ),
        Flag("timeout", "duration", 30.0, "How long to wait; 0: check once; negative: a week."),
    ),
)
