"""`scale`: another number of replicas.

Job: check the preconditions, patch the scale subresource, wait where asked.
"""

from sampan.api.errors import ApiError
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, waiting, writing
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    if values["replicas"] < 0:
        raise CliError(
            "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0"
        )
    failures: list[Exception] = []
    count = 0
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        count += 1
        try:
            _scale(session, values, found, strategy, printer)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)
    if not count:
        raise CliError("no objects passed to scale")


def _scale(
    session: Session, values: Values, info: Info, strategy: str, printer: ObjectPrinter
) -> None:
    if strategy == "client":
        changing.show(session, printer, info, info.obj, "scaled", strategy)
        return
    path = f"{info.path}/scale"
    if values["current-replicas"] >= 0 or values["resource-version"]:
        scale = session.api.json("GET", path)
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        wanted, revision = values["current-replicas"], scale["metadata"].get("resourceVersion")
        if wanted >= 0 and replicas != wanted:
            raise CliError(f"Expected replicas to be {wanted}, was {replicas}")
        if values["resource-version"] and values["resource-version"] != revision:
            raise CliError(
                f"Expected resource version to be {values['resource-version']}, was {revision}"
            )
    query = writing.options(dry_run=strategy)
    patch = {"spec": {"replicas": values["replicas"]}}
    obj = writing.patch(session, path, patch, "merge", query)
    if values["timeout"] and strategy == "none":
        _wait(session, values, info)
    if printer.format not in ("", "name"):
        obj = session.api.json("GET", info.path)
    changing.show(session, printer, info, obj, "scaled", strategy)


def _wait(session: Session, values: Values, info: Info) -> None:
    wanted = values["replicas"]

    def is_there(obj: object) -> bool:
        assert isinstance(obj, dict)
        meta, status = obj["metadata"], obj.get("status") or {}
        observed = status.get("observedGeneration") or 0
        return bool(
            obj["spec"].get("replicas") == wanted
            and status.get("replicas", 0) == wanted
            and observed >= meta.get("generation", 0)
        )

    if not waiting.until(session, info.path, is_there, values["timeout"]):
        raise CliError(f'timed out waiting for "{info.name}" to be synced')


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
