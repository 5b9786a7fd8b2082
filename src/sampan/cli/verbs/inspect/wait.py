"""`wait`: until objects are as wanted.

Job: parse --for, look at each object until it holds or the time is over.
Invariant: a condition that can never hold is refused, not waited for.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, selection, waiting
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Found, Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.jsonpath import Template, relax, value_text
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

Check = Callable[[Obj], bool]
WEEK_SECONDS = 7 * 24 * 3600.0
CREATE_PAUSE_SECONDS = 0.5
TIMED_OUT = "timed out waiting for the condition"


def parse(text: str) -> Check | None:
    """What has to hold of an object; None for `delete` and `create`."""
    if text.lower() in ("delete", "create"):
        return None
    if text.startswith("condition="):
        name, equals, value = text.removeprefix("condition=").partition("=")
        return _condition(name, value if equals else "true")
    if text.startswith("jsonpath="):
        return _jsonpath(text.removeprefix("jsonpath="))
    raise CliError(f'unrecognized condition: "{text}"')


def _condition(name: str, value: str) -> Check:
    def check(obj: Obj) -> bool:
        status = obj.get("status") or {}
        for condition in status.get("conditions") or []:
            if str(condition.get("type")).casefold() != name.casefold():
                continue
            observed = condition.get("observedGeneration", status.get("observedGeneration"))
            generation = obj["metadata"].get("generation")
            if observed is not None and generation is not None and observed < generation:
                return False
            return str(condition.get("status")).casefold() == value.casefold()
        return False

    return check


def _jsonpath(text: str) -> Check:
    parts = _split(text)
    if len(parts) > 2:
        raise CliError(
            "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or "
            "--for=jsonpath='{.status.readyReplicas}'"
        )
    expression = relax(parts[0])
    wanted = parts[1].strip("'\"") if len(parts) == 2 else None
    if wanted == "":
        raise CliError(
            "jsonpath wait has to have a value after equal sign, like "
            "--for=jsonpath='{.status.readyReplicas}'=3"
        )
    if not expression:
        raise CliError("jsonpath expression cannot be empty")
    template = Template(expression)

    def check(obj: Obj) -> bool:
        results = template.results(obj)
        if not results or not results[0]:
            return False
        if len(results) > 1:
            raise CliError("given jsonpath expression matches more than one list")
        if len(results[0]) > 1:
            raise CliError("given jsonpath expression matches more than one value")
        [value] = results[0]
        if wanted is None:
            return True
        if isinstance(value, (dict, list)):
            raise CliError("jsonpath leads to a nested object or list which is not supported")
        return value_text(value).strip() == wanted.strip()

    return check


def _split(text: str) -> list[str]:
    """At each equals sign that stands alone."""
    parts = [""]
    at = 0
    while at < len(text):
        if text.startswith("==", at):
            parts[-1] += "=="
            at += 2
            continue
        if text[at] == "=":
            parts.append("")
        else:
            parts[-1] += text[at]
        at += 1
    return parts


@dataclass(frozen=True, slots=True)
class Wanted:
    mode: str  # create, delete or anything else
    check: Check | None
    seconds: float
    deadline: float


def run(session: Session, values: Values) -> None:
    printer = ObjectPrinter(values)
    _ = session.connection
    check = parse(values.text("for"))
    seconds = WEEK_SECONDS if values["timeout"] < 0 else values["timeout"]
    deadline = session.clock.monotonic() + seconds
    wanted = Wanted(values.text("for").lower(), check, seconds, deadline)
    if wanted.mode == "create":
        _until_created(session, values, wanted)
    failures: list[Exception] = []
    count = 0
    for found in _visit(session, values):
        try:
            if isinstance(found, Exception):
                raise found
            count += 1
            obj = _wait(session, found, wanted)
        except ApiError as error:
            if wanted.mode != "delete" or error.code != 404:
                failures.append(error)
            continue
        except CliError as error:
            failures.append(error)
            continue
        changing.show(session, printer, found, obj, "condition met", "none")
    raise_all(failures)
    if not count and wanted.mode != "delete":  # what is not there is deleted
        raise CliError("no matching resources found")


def _visit(session: Session, values: Values) -> Iterator[Found]:
    builder = Builder(session, continue_on_error=True)
    builder.in_namespace(everywhere=bool(values["all-namespaces"]))
    builder.files(values)
    if values["local"]:
        builder.is_local = True
        if values.arguments:
            builder.fail(changing.FILES_ONLY)
    else:
        builder.arguments(values.arguments, allow_empty_selector=bool(values["all"]))
        builder.labels(selection.labels_flag(values)).fields(values.text("field-selector"))
        builder.latest = True
    yield from builder.do().visit()


def _until_created(session: Session, values: Values, wanted: Wanted) -> None:
    """Until one of them is there; whatever else is wrong ends it."""
    while True:
        found = list(_visit(session, values))
        failures = [item for item in found if isinstance(item, Exception)]
        is_missing = len(failures) == 1 and getattr(failures[0], "code", 0) == 404
        if not is_missing:
            raise_all(failures)
        if not failures and found:
            return
        left = wanted.deadline - session.clock.monotonic()
        if left <= 0:
            raise CliError(TIMED_OUT)
        time.sleep(min(CREATE_PAUSE_SECONDS, left))


def _wait(session: Session, info: Info, wanted: Wanted) -> Obj:
    """The object as it was when it was as wanted."""
    if not info.name:
        raise CliError("resource name must be provided")
    if wanted.mode == "create":
        return info.obj
    seen: dict[str, Any] = {}

    def is_met(obj: Obj | None) -> bool:
        is_first = not seen
        seen["obj"] = obj or seen.get("obj") or info.obj
        if wanted.check is None:
            return obj is None
        if obj is None and is_first:
            raise NotFound(f'{info.resource.qualified} "{info.name}" not found')
        return obj is not None and wanted.check(obj)

    left = max(wanted.deadline - session.clock.monotonic(), 0.0)
    if waiting.until(session, info.path, is_met, left):
        return dict(seen["obj"])
    what = f"{info.resource.plural}/{info.name}"
    if wanted.seconds == 0:
        raise CliError(f"condition not met for {what}")
    raise CliError(f"{TIMED_OUT} on {what}")


WAIT = Command(
    "wait",
    "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]] [options]",
    "Wait for a specific condition on one or many resources.",
    run,
    (
        *PRINT_FLAGS,
        common_flags.FILES[0],
        switch(
            "recursive",
            "Process the directory used in -f, --filename recursively.",
            default=True,
            short="R",
        ),
        common_flags.SELECTOR,
        common_flags.FIELD_SELECTOR,
        common_flags.ALL_NAMESPACES,
        switch("all", "Select all resources in the namespace of the specified resource types."),
        switch("local", "Do not ask the server: look only at what the files say."),
        Flag(
            "for",
            usage="create, delete, condition=NAME[=VALUE] or jsonpath='{EXPRESSION}'[=VALUE].",
        ),
        Flag("timeout", "duration", 30.0, "How long to wait; 0: check once; negative: a week."),
    ),
)
