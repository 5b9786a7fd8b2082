"""`autoscale`: a HorizontalPodAutoscaler for something that scales.

Job: bounds and metrics from the flags; an autoscaling/v2 object from them.
"""

import math
import re

from sampan.api import quantity
from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

UNITS = {"cpu": "m", "memory": "Mi"}


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    session.check_context()
    if values["max"] < 1:
        raise CliError(f"--max=MAXPODS is required and must be at least 1, max: {values['max']}")
    if values["max"] < values["min"]:
        raise CliError(
            f"--max=MAXPODS must be larger or equal to --min=MINPODS, max: {values['max']}, min: "
            f"{values['min']}"
        )
    if values["cpu-percent"] > 0 and values["cpu"]:
        raise CliError("--cpu-percent and --cpu are mutually exclusive")
    metrics = _metrics(values)
    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    builder.arguments(values.arguments)
    failures: list[Exception] = []
    count = 0
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            check_scalable(session, found.resource)
            _autoscale(session, values, generate(session, values, found, metrics), strategy)
            count += 1
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)
    if not count:
        raise CliError("no objects passed to autoscale")


def check_scalable(session: Session, resource: ApiResource) -> None:
    if "scale" not in session.discovery.find(resource.qualified).subresources:
        where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        raise CliError(
            f"cannot autoscale a {resource.kind}: could not find scale subresource for {where} in "
            "discovery information"
        )


def _autoscale(session: Session, values: Values, obj: Obj, strategy: DryRun) -> None:
    obj = writing.recorded(session, values, obj)
    done = "created"
    if strategy != "client":
        if values["save-config"]:
            note = {writing.LAST_APPLIED: writing.last_applied(obj, typed=True)}
            obj = writing.annotate(obj, note)
        done, obj = "autoscaled", _created(session, values, obj, strategy)
    printer = ObjectPrinter(values, typed=True)
    label = f"horizontalpodautoscaler.autoscaling/{obj['metadata']['name']}"
    if printer.format:
        session.write(printer.text(obj, label))
    else:
        session.print(f"{label} {done}{common_flags.suffix(strategy)}")


def _created(session: Session, values: Values, obj: Obj, strategy: str) -> Obj:
    """By autoscaling/v2; what it refuses is tried as autoscaling/v1, where that can say it."""
    query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
    path = "/apis/autoscaling/{}/namespaces/{}/horizontalpodautoscalers"
    try:
        return session.api.json("POST", path.format("v2", session.namespace), query, body=obj)
    except ApiError:
        cpu = values.text("cpu").strip()
        if not cpu:
            raise CliError(f"{_INCOMPATIBLE}: empty input") from None
        if values["memory"] or not (values["cpu-percent"] >= 0 or cpu.endswith("%")):
            raise CliError(f"{_INCOMPATIBLE}: %!w(<nil>)") from None
    spec = {key: value for key, value in obj["spec"].items() if key != "metrics"}
    percent = values["cpu-percent"] if values["cpu-percent"] >= 0 else int(cpu[:-1])
    spec["targetCPUUtilizationPercentage"] = percent
    status = {"currentReplicas": 0, "desiredReplicas": 0}
    old = {**obj, "apiVersion": "autoscaling/v1", "spec": spec, "status": status}
    return session.api.json("POST", path.format("v1", session.namespace), query, body=old)


_INCOMPATIBLE = (
    "failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1"
)


def generate(session: Session, values: Values, info: Info, metrics: list[Obj]) -> Obj:
    spec: Obj = {
        "scaleTargetRef": {
            "apiVersion": info.resource.api_version, "kind": info.resource.kind, "name": info.name
        },
        "maxReplicas": values["max"],
    }  # fmt: skip
    if values["min"] > 0:
        spec["minReplicas"] = values["min"]
    if metrics:
        spec["metrics"] = metrics
    meta = {"name": values["name"] or info.name}
    if session.namespace_is_given:
        meta["namespace"] = session.namespace
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta,
        "spec": spec,
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }


def _metrics(values: Values) -> list[Obj]:
    metrics = []
    if values["cpu-percent"] > 0:
        metrics.append(_metric("cpu", f"{values['cpu-percent']}%"))
    for name in ("cpu", "memory"):
        if values[name]:
            metrics.append(_metric(name, values.text(name)))
    return metrics


def _metric(name: str, text: str) -> Obj:
    text = text.strip()
    if not text:
        raise CliError("empty input")
    if text.endswith("%"):
        percent = text[:-1]
        if not re.fullmatch(r"\+?[0-9]+", percent) or int(percent) >= 2**31:
            raise CliError(f"invalid percentage value: {percent}")
        target: Obj = {"type": "Utilization", "averageUtilization": int(percent)}
    else:
        target = {"type": "AverageValue", "averageValue": _quantity(name, text)}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _quantity(name: str, text: str) -> str:
    """A bare number has the unit that people mean: thousandths of a CPU, MiB."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isnan(number):
        from sampan.api.go_template.formatting import sprintf

        text = sprintf("%g", [number]) + UNITS[name]
    try:
        return quantity.canonical(text)
    except quantity.QuantityError:
        raise CliError(f"invalid resource {name} value: {text}") from None


AUTOSCALE = Command(
    "autoscale",
    "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY] [options]",
    "Creates an autoscaler that automatically chooses and sets the number of pods that run.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SAVE_CONFIG,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-autoscale"),
        Flag("cpu", usage="Target CPU utilization (70%) or value (500m)."),
        Flag("cpu-percent", "int32", -1, "Target average CPU utilization.",
             deprecated="Use --cpu with percentage or resource quantity format (e.g., '70%' for "
             "utilization or '500m' for milliCPU)."),
        Flag("max", "int32", -1, "The upper limit for the number of pods.", required=True),
        Flag("memory", usage="Target memory utilization (60%) or value (200Mi)."),
        Flag("min", "int32", -1, "The lower limit for the number of pods."),
        Flag("name", usage="The name for the newly created object."),
    ),
)  # fmt: skip
