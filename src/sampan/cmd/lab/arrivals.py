"""When which pod of a workload comes. Pure.

Job: a Workload and a Random → arrivals in their order, each with the object to create.
Invariant: streams draw from generators of their own: one more pod in one changes no other.
"""

import random
from collections.abc import Iterator

from sampan.api.objects import Obj, copy_of
from sampan.api.resources import JOBS, PODS, Resource
from sampan.cmd.lab.workload import RecordedPod, Span, Stream, Variant, Workload
from sampan.core.fast_dataclass import dataclass

STREAM_LABEL = "lab.sampan.dev/stream"
RECORDED = "recorded"  # the stream of pods that were recorded
EXIT_ANNOTATION = "simulated.sampan.dev/exit-after-seconds"
NEVER = "never"
MOST_RETRIES = 1_000_000  # of a Job: what is preempted comes back, however often


@dataclass(frozen=True, slots=True)
class Arrival:
    at_seconds: float
    resource: Resource
    object: Obj


def arrivals(workload: Workload) -> list[Arrival]:
    found = [arrival for stream in workload.streams for arrival in _stream(stream, workload.seed)]
    found += [_recorded(pod) for pod in workload.pods]
    return sorted(found, key=lambda arrival: arrival.at_seconds)


def _stream(stream: Stream, seed: int) -> Iterator[Arrival]:
    rng = random.Random(f"{seed}/{stream.name}")
    at, weights = stream.start_seconds, [variant.weight for variant in stream.variants]
    width = len(str(stream.count - 1))
    for number in range(stream.count):
        [variant] = rng.choices(stream.variants, weights)
        lasts = None if variant.duration is None else _drawn(variant.duration, rng)
        template = _template(variant, stream.name, lasts, restart=stream.kind == "Pod")
        name = f"{stream.name}-{number:0{width}d}"
        yield _arrival(at, stream, name, template)
        at += 0.0 if stream.gap is None else _drawn(stream.gap, rng)


def _arrival(at: float, stream: Stream, name: str, template: Obj) -> Arrival:
    if stream.kind == "Pod":
        return Arrival(at, PODS, _pod(template, name, stream.namespace))
    labels = {STREAM_LABEL: stream.name}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": stream.namespace, "labels": labels},
        "spec": {
            "backoffLimit": MOST_RETRIES,
            "podReplacementPolicy": "TerminatingOrFailed",
            "template": template,
        },
    }
    return Arrival(at, JOBS, job)


def _recorded(pod: RecordedPod) -> Arrival:
    variant = Variant(template=pod.template)
    template = _template(variant, RECORDED, pod.duration_seconds, restart=True)
    return Arrival(pod.at_seconds, PODS, _pod(template, pod.name, pod.namespace))


def _pod(template: Obj, name: str, namespace: str) -> Obj:
    meta = {**template["metadata"], "name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": meta}


def _template(variant: Variant, stream: str, lasts: float | None, *, restart: bool) -> Obj:
    """A pod that ends stays ended; one that does not is restarted where it may be."""
    template: Obj = copy_of(variant.template)
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), STREAM_LABEL: stream}
    ends = NEVER if lasts is None else f"{lasts:.3f}"  # a Job's pods end by themselves otherwise
    meta["annotations"] = {EXIT_ANNOTATION: ends, **(meta.get("annotations") or {})}
    spec = template.setdefault("spec", {})
    if lasts is not None or not restart:
        spec["restartPolicy"] = "Never"
    if variant.priority_class:
        spec["priorityClassName"] = variant.priority_class
    containers = spec.setdefault("containers", [{}])
    for number, container in enumerate(containers):
        container.setdefault("name", f"c{number}" if number else "c")
        container.setdefault("image", "lab")
    if variant.requests and containers:
        resources = containers[0].setdefault("resources", {})
        resources["requests"] = {**(resources.get("requests") or {}), **variant.requests}
        extended = {name: amount for name, amount in variant.requests.items() if "/" in name}
        if extended:  # more than a limit cannot be asked for, and less cannot either
            resources["limits"] = {**(resources.get("limits") or {}), **extended}
    return template


def _drawn(span: Span, rng: random.Random) -> float:
    match span.form:
        case "uniform":
            return rng.uniform(span.low, span.high)
        case "exponential":
            return rng.expovariate(1 / span.low) if span.low else 0.0
        case _:
            return span.low
