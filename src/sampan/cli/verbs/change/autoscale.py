"""`autoscale`: a HorizontalPodAutoscaler for something that scales.

Job: bounds and metrics from the flags; an autoscaling/v2 object from them.
"""

import re

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values, typed=True)
    if values["max"] < 1:
        raise CliError(f"--max=MAXPODS is required and must be at least 1, max: {values['max']}")
    if values["max"] < values["min"]:
        raise CliError(
            f"--max=MAXPODS must be larger or equal to --min=MINPODS, max: {values['max']}, min: "
            f"{values['min']}"
        )
    if values.is_set("cpu-percent") and values["cpu"]:
        raise CliError("--cpu-percent and --cpu are mutually exclusive")
    metrics = _metrics(values)
    failures: list[Exception] = []
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        resource = found.resource
        if "scale" not in resource.subresources:
            group_version = f"{resource.group}/{resource.version}"
            raise CliError(
                f"cannot autoscale a {resource.kind}: could not find scale subresource for "
                f"{group_version}, Resource={resource.plural} in discovery information"
            )
        obj = generate(values, found, metrics)
        obj["metadata"]["namespace"] = session.namespace
        if strategy != "client":
            query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
            path = f"/apis/autoscaling/v2/namespaces/{session.namespace}/horizontalpodautoscalers"
            obj = session.api.json("POST", path, query, body=obj)
        label = f"horizontalpodautoscaler.autoscaling/{obj['metadata']['name']}"
        if printer.format:
            session.write(printer.text(obj, label))
        else:
            session.print(f"{label} autoscaled{common_flags.suffix(strategy)}")
    if failures:
        raise Several(failures)


def generate(values: Values, info: Info, metrics: list[Obj]) -> Obj:
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
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": values["name"] or info.name},
        "spec": spec,
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }


def _metrics(values: Values) -> list[Obj]:
    metrics = []
    if values["cpu-percent"] >= 0:
        metrics.append(_metric("cpu", f"{values['cpu-percent']}%"))
    for name in ("cpu", "memory"):
        if values[name]:
            metrics.append(_metric(name, values.text(name)))
    return metrics


def _metric(name: str, text: str) -> Obj:
    if re.fullmatch(r"[0-9]+%", text):
        target: Obj = {"type": "Utilization", "averageUtilization": int(text[:-1])}
    else:
        try:
            target = {"type": "AverageValue", "averageValue": quantity.canonical(text)}
        except quantity.QuantityError:
            raise CliError(f"invalid resource {name} value: {text}") from None
    return {"type": "Resource", "resource": {"name": name, "target": target}}


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
