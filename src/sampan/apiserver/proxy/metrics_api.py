"""metrics.k8s.io: usage of pods and nodes, read from the kubelets at each request.

Job: NodeMetrics and PodMetrics from the nodes' /metrics/resource. A rate needs two samples: the one
    of an earlier request where it is young enough, else two of now, a moment apart.
Invariant: no node is asked while nobody asks us; a node that does not answer is left out.
Owner: the API server; its samples are bounded by the nodes there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

import orjson

from sampan.api.calls import Answer, Call, Item, ListAnswer
from sampan.api.cel.amounts import SCRIPTED, BadAmount, Moment, amount, moment_of
from sampan.api.errors import ApiError, ServiceUnavailable, not_found
from sampan.api.objects import Obj, annotations_of, labels_of, name_of, namespace_of, time_text
from sampan.api.quantity import Quantity
from sampan.api.resources import NODE_METRICS, NODES, POD_METRICS, PODS, Resource
from sampan.api.rules import pod_resources
from sampan.api.rules import pods as pod_rules
from sampan.api.rules.selectors import parse_field_selector, parse_label_selector
from sampan.apiserver.proxy.node_proxy import kubelet_origin
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.origin import Target
from sampan.core.patterns import lazy_pattern
from sampan.core.tasks import all_of

if TYPE_CHECKING:
    from sampan.apiserver.authn.user import User
    from sampan.apiserver.write.request_scope import Handler, RequestScope

ASK_SECONDS = 5.0
PAUSE_SECONDS = 0.5  # between two samples where there is none from before
YOUNGEST_SECONDS, OLDEST_SECONDS = 0.4, 90.0
SIMULATED = f"{SCRIPTED}usage-"
_LINE = lazy_pattern(r"^(\w+)(?:\{(.*)\})? ([0-9.eE+-]+)$")
_LABEL = lazy_pattern(r'(\w+)="((?:[^"\\]|\\.)*)"')

Notes = Callable[[Obj], Mapping[str, str]]
Find = Callable[[Resource], Iterable[Obj]]
Key = tuple[str, str, str]  # namespace, pod, container; all empty: the node


@dataclass(frozen=True, slots=True)
class Sample:
    """What one node said at one moment."""

    at: float = 0.0  # monotonic
    cpu_seconds: dict[Key, float] = field(default_factory=dict)
    memory_bytes: dict[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rates:
    window_seconds: float
    cpu_cores: dict[Key, float]
    memory_bytes: dict[Key, int]


def parse_sample(text: str, at: float) -> Sample:
    sample = Sample(at)
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        labels = dict(_LABEL.findall(found[2] or ""))
        key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        match found[1]:
            case "node_cpu_usage_seconds_total" | "container_cpu_usage_seconds_total":
                sample.cpu_seconds[key] = float(found[3])
            case "node_memory_working_set_bytes" | "container_memory_working_set_bytes":
                sample.memory_bytes[key] = int(float(found[3]))
    return sample


def rates(before: Sample, after: Sample) -> Rates:
    """Of what is in both; a container that began in between has no rate yet."""
    window = max(after.at - before.at, 1e-3)
    cores = {
        key: max(0.0, used - before.cpu_seconds[key]) / window
        for key, used in after.cpu_seconds.items()
        if key in before.cpu_seconds
    }
    return Rates(window, cores, after.memory_bytes)


class MetricsApi:
    def __init__(
        self, find: Find, http: HttpClient | None, clock: Clock, notes: Notes = annotations_of
    ) -> None:
        """`notes`: the annotations of a pod, and what a scenario adds to them."""
        self._find, self._http, self._clock, self._notes = find, http, clock, notes
        self._samples: dict[str, Sample] = {}  # by node, of the last request

    def handlers(self) -> "dict[tuple[str, str, str], Handler]":
        """For the chain's table: it has authorized the caller by then."""

        async def nodes(scope: "RequestScope", user: "User", call: Call) -> Answer | ListAnswer:
            return await self.nodes(call)

        async def pods(scope: "RequestScope", user: "User", call: Call) -> Answer | ListAnswer:
            return await self.pods(call)

        table = {NODE_METRICS: nodes, POD_METRICS: pods}
        return {
            (resource.group_resource, "", verb): handler
            for resource, handler in table.items()
            for verb in resource.verbs
        }

    async def nodes(self, call: Call) -> Answer | ListAnswer:
        nodes = _select(self._find(NODES), call)
        shown = [item for item in await all_of(self._node(node) for node in nodes) if item]
        return _answer(NODE_METRICS, call, shown)

    async def pods(self, call: Call) -> Answer | ListAnswer:
        chosen = [
            pod
            for pod in _select(self._find(PODS), call)
            if pod_rules.phase(pod) == "Running" and pod_rules.node_name(pod)
        ]
        names = {pod_rules.node_name(pod) for pod in chosen}
        nodes = [node for node in self._find(NODES) if name_of(node) in names]
        told = dict(
            zip(
                [name_of(node) for node in nodes],
                await all_of(self._rates(node) for node in nodes),
                strict=True,
            )
        )
        now = self._clock.now()
        shown = [
            found
            for pod in chosen
            if (rate := told.get(pod_rules.node_name(pod))) is not None
            and (found := pod_metrics(pod, rate, now)) is not None
        ]
        return _answer(POD_METRICS, call, shown)

    async def _node(self, node: Obj) -> Obj | None:
        rate = await self._rates(node)
        if rate is None or ("", "", "") not in rate.cpu_cores:
            return None
        usage = _usage(rate.cpu_cores["", "", ""], rate.memory_bytes.get(("", "", ""), 0))
        return {
            **_head(NODE_METRICS, node, rate.window_seconds, self._clock.now()),
            "usage": usage,
        }

    async def _rates(self, node: Obj) -> Rates | None:
        if _is_simulated(node):
            return simulated_rates(node, self._find(PODS), self._notes, self._clock.now())
        name = name_of(node)
        before = self._samples.get(name, Sample())
        age = self._clock.monotonic() - before.at
        if not YOUNGEST_SECONDS <= age <= OLDEST_SECONDS:
            first = await self._ask(node)
            if first is None:
                return None
            before = first
            await self._clock.sleep(PAUSE_SECONDS)
        after = await self._ask(node)
        if after is None:
            return None
        self._samples[name] = after
        for gone in set(self._samples) - {name_of(item) for item in self._find(NODES)}:
            del self._samples[gone]
        return rates(before, after)

    async def _ask(self, node: Obj) -> Sample | None:
        if self._http is None:
            raise ServiceUnavailable("no kubelet client configured")
        try:
            url = Target(kubelet_origin(node), "/metrics/resource")
            answer = await self._http.request("GET", url, timeout_seconds=ASK_SECONDS)
        except (HttpError, ApiError):
            return None
        if answer.status != 200:
            return None
        return parse_sample(answer.body.decode(errors="replace"), self._clock.monotonic())


def pod_metrics(pod: Obj, rate: Rates, now: float) -> Obj | None:
    namespace, name = namespace_of(pod), name_of(pod)
    containers = [
        {"name": key[2], "usage": _usage(cores, rate.memory_bytes.get(key, 0))}
        for key, cores in rate.cpu_cores.items()
        if key[:2] == (namespace, name) and key[2]
    ]
    if not containers:
        return None
    head = _head(POD_METRICS, pod, rate.window_seconds, now)
    return {**head, "containers": containers}


def simulated_rates(node: Obj, pods: Iterable[Obj], notes_of: Notes, now: float) -> Rates:
    """Of a node that only pretends: what the pods' scripts say, else what they ask for."""
    found, pods = Rates(30.0, {("", "", ""): 0.0}, {("", "", ""): 0}), list(pods)
    running: Counter[str] | None = None  # counted where a script is a function of it
    for pod in pods:
        if pod_rules.node_name(pod) != name_of(node) or not pod_rules.runs(pod):
            continue
        notes = notes_of(pod)
        if running is None and any(text.startswith("=") for text in notes.values()):
            running = pod_rules.running_by_controller(pods)
        moment = moment_of(pod, pod_rules.replicas_of(pod, running or Counter()), now)
        for container in pod_rules.containers(pod):
            key = (namespace_of(pod), name_of(pod), container["name"])
            asked = pod_resources.container_requests({"containers": [container]})
            used = []
            for what in ("cpu", "memory"):
                said = notes.get(f"{SIMULATED}{what}.{key[2]}", notes.get(f"{SIMULATED}{what}"))
                used.append(_used(said, moment, asked.get(what)))
            cores, size = used
            found.cpu_cores[key], found.memory_bytes[key] = cores, int(size)
            found.cpu_cores["", "", ""] += cores
            found.memory_bytes["", "", ""] += int(size)
    return found


def _used(said: str | None, moment: Moment, asked: Quantity | None) -> float:
    """What is wrong, or less than nothing, says nothing."""
    with suppress(BadAmount):
        if said and (found := amount(said, moment).milli()) >= 0:
            return found / 1000
    return asked.milli() / 1000 if asked is not None else 0.0


def _is_simulated(node: Obj) -> bool:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion", "")).startswith("simulated")


def _select(objects: Iterable[Obj], call: Call) -> list[Obj]:
    selector = parse_label_selector(call.options.label_selector or "")
    fields = parse_field_selector(call.options.field_selector or "")
    return [
        obj
        for obj in objects
        if (not call.namespace or namespace_of(obj) == call.namespace)
        and (not call.name or name_of(obj) == call.name)
        and selector.matches(labels_of(obj))
        and all(one.equal == (_field(obj, one.field) == one.value) for one in fields)
    ]


def _field(obj: Obj, path: str) -> str:
    """Names are all that metrics-server selects by; every other field is empty."""
    if path == "metadata.namespace":
        return namespace_of(obj)
    return name_of(obj) if path == "metadata.name" else ""


def _head(resource: Resource, about: Obj, window_seconds: float, now: float) -> Obj:
    metadata: Obj = {"name": name_of(about), "creationTimestamp": time_text(now)}
    if resource.namespaced:
        metadata["namespace"] = namespace_of(about)
    if labels_of(about):
        metadata["labels"] = labels_of(about)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "timestamp": time_text(now),
        "window": f"{window_seconds:.3f}s",
    }


def _usage(cores: float, memory_bytes: int) -> Obj:
    return {"cpu": f"{round(cores * 1e9)}n", "memory": f"{memory_bytes // 1024}Ki"}


def _answer(resource: Resource, call: Call, shown: Sequence[Obj]) -> Answer | ListAnswer:
    if call.verb == "list":
        return ListAnswer(resource, [Item("", 0, item, orjson.dumps(item)) for item in shown], 0)
    if not shown:
        name = f"{call.namespace}/{call.name}" if resource.namespaced else call.name
        raise not_found(resource.kind.lower(), resource.group, name)
    return Answer(shown[0])
