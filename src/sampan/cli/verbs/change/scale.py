"""`scale`: another number of replicas.

Job: check the preconditions, change the scale subresource, wait where asked.
"""

import time

from sampan.api.errors import ApiError
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session

CONFLICT_SECONDS = 300.0
PAUSE_SECONDS = 1.0


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    session.check_context()
    if values["replicas"] < 0:
        raise CliError(
            "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0"
        )
    if values["current-replicas"] < -1:
        raise CliError("The --current-replicas must specify an integer of -1 or greater")
    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    builder.arguments(values.arguments, allow_empty_selector=bool(values["all"]))
    builder.labels(values.text("selector"))
    every = list(builder.do().visit())
    found = [item for item in every if isinstance(item, Info)]
    failures = [item for item in every if isinstance(item, Exception)]
    if values["resource-version"] and len(found) > 1:
        raise CliError("cannot use --resource-version with multiple resources")
    if not found and not failures:
        raise CliError("no objects passed to scale")
    for info in found:
        if strategy != "client":
            _scale(session, values, info, strategy)
        changing.show(session, printer, info, info.obj, "scaled", strategy)
    if failures:
        raise Several(failures)


def _scale(session: Session, values: Values, info: Info, strategy: str) -> None:
    path, query = f"{info.path}/scale", writing.options(dry_run=strategy)
    deadline = session.clock.monotonic() + CONFLICT_SECONDS
    while True:
        try:
            _change(session, values, path, query)
            break
        except ApiError as error:
            _without_group(error, info)
            if error.reason != "Conflict" or session.clock.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
    if values["timeout"] and strategy == "none":
        _wait(session, values, info, path)
    if values["record"]:
        cause = {writing.CHANGE_CAUSE: common_flags.change_cause(session, values)}
        record = {"metadata": {"annotations": cause}}
        writing.patch(session, info.path, record, "merge")


def _without_group(error: ApiError, info: Info) -> None:
    """kubectl's scale client knows no group."""
    start, bracket, request = error.message.partition(" (")
    if bracket and start == "the server could not find the requested resource":
        method = request.partition(" ")[0]
        error.message = f"{start} ({method} {info.resource.plural} {info.name})"


def _change(session: Session, values: Values, path: str, query: dict[str, str]) -> None:
    wanted, version = values["current-replicas"], values.text("resource-version")
    if wanted == -1 and not version:
        patch = {"spec": {"replicas": values["replicas"]}}
        writing.patch(session, path, patch, "merge", query)
        return
    scale = session.api.json("GET", path)
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    own = scale["metadata"].get("resourceVersion")
    if wanted != -1 and replicas != wanted:
        raise CliError(f"Expected replicas to be {wanted}, was {replicas}")
    if version and version != own:
        raise CliError(f"Expected resource version to be {version}, was {own}")
    spec = {**(scale.get("spec") or {}), "replicas": values["replicas"]}
    session.api.json("PUT", path, query, body={**scale, "spec": spec})


def _wait(session: Session, values: Values, info: Info, path: str) -> None:
    """Until as many run as are wanted, or somebody wants another number."""
    deadline = session.clock.monotonic() + values["timeout"]
    while True:
        scale = session.api.json("GET", path)
        wanted = (scale.get("spec") or {}).get("replicas") or 0
        have = (scale.get("status") or {}).get("replicas") or 0
        if wanted == have or wanted != values["replicas"]:
            return
        if session.clock.monotonic() >= deadline:
            raise CliError(f'timed out waiting for "{info.name}" to be synced')
        time.sleep(min(PAUSE_SECONDS, max(deadline - session.clock.monotonic(), 0.01)))


SCALE = Command(
    "scale",
    "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME) [options]",
    "Set a new size for a deployment, replica set, replication controller, or stateful set.",
    run,
    (
        *changing.CHANGE_FLAGS[:-1],
        changing.ALL,
        common_flags.RECORD,
        Flag("current-replicas", "int", -1, "Only scale when this is the present size."),
        Flag("replicas", "int", 0, "The new desired number of replicas.", required=True),
        Flag("resource-version", usage="Only scale when this is the object's resource version."),
        Flag("timeout", "duration", 0.0, "How long to wait for the scaling; 0: do not wait."),
    ),
)
