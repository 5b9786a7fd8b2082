"""custom.metrics.k8s.io and external.metrics.k8s.io by script: what annotations say.

Job: a GET of one of the two APIs → its answer, from the objects that are in the cache.
Invariant: asked only where a Local APIService says that this server has the group: an adapter that
    somebody installs takes its place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

from sampan.api.cel.amounts import SCRIPTED, BadAmount, amount, moment_of, series
from sampan.api.errors import BadRequest, InternalError, MethodNotAllowed, NotFound, UnknownPath
from sampan.api.objects import Obj, labels_of, name_of, namespace_of, time_text
from sampan.api.resources import NAMESPACES, PODS, Resource
from sampan.api.rules import pods as pod_rules
from sampan.api.rules.selectors import LabelSelector, SelectorError, parse_label_selector
from sampan.apiserver.registry.generic import Registry
from sampan.core.clock import Clock
from sampan.core.http.messages import Request
from sampan.core.http.query import first_value

METRIC, EXTERNAL_METRIC = f"{SCRIPTED}metric.", f"{SCRIPTED}external-metric."

Notes = Callable[[Obj], Mapping[str, str]]
Series = tuple[Mapping[str, str], str]  # labels and value


class ScriptedMetrics:
    def __init__(self, registry: Registry, notes: Notes, clock: Clock) -> None:
        """`notes`: the annotations of an object, and what a scenario adds to them."""
        self._registry, self._notes, self._clock = registry, notes, clock
        self._running: dict[str, Counter[str]] = {}  # by namespace, of this answer

    def answer(self, request: Request) -> Obj:
        """Raises ApiError."""
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("scripted metrics are read only")
        group, version, *rest = [unquote(part) for part in request.path.strip("/").split("/")[1:]]
        match (group, rest):
            case (_, []):
                head = {"kind": "APIResourceList", "apiVersion": "v1"}
                return {**head, "groupVersion": f"{group}/{version}", "resources": []}
            case ("external.metrics.k8s.io", ["namespaces", namespace, metric]):
                chosen = _selector(request.query, "labelSelector")
                items = list(self._external(namespace, metric, chosen))
                return _listed("ExternalMetricValueList", group, version, items)
            case ("custom.metrics.k8s.io", ["namespaces", namespace, "metrics", metric]):
                found = self._objects(NAMESPACES, "", namespace, request.query)
            case ("custom.metrics.k8s.io", ["namespaces", namespace, plural, name, metric]):
                found = self._objects(self._kind(plural), namespace, name, request.query)
            case ("custom.metrics.k8s.io", [plural, name, metric]):
                found = self._objects(self._kind(plural), "", name, request.query)
            case _:
                raise UnknownPath("the server could not find the requested resource")
        resource, objects = found
        chosen = _selector(request.query, "metricLabelSelector")
        items = [
            _custom_item(version, resource, obj, metric, value, self._clock.now())
            for obj in objects
            for labels, value in self._series(obj, METRIC + metric)
            if chosen.matches(labels)
        ]
        if not items:
            what = f"the server could not find the metric {metric} for {resource.group_resource}"
            raise NotFound(what if rest[-2] == "*" else f"{what} {rest[-2]}")
        return _listed("MetricValueList", group, version, items)

    def _kind(self, plural: str) -> Resource:
        for row in self._registry.kinds.all():
            if row.group_resource == plural:
                return row
        raise NotFound(f"the server could not find the resource {plural}")

    def _objects(
        self, resource: Resource, namespace: str, name: str, query: str
    ) -> tuple[Resource, Iterable[Obj]]:
        """Those of that name, or with `*` all that the query selects; of pods those that run."""
        if name != "*":
            found = self._registry.find(resource, namespace, name)
            return resource, [] if found is None else [found]
        chosen = _selector(query, "labelSelector")
        listed = (
            self._registry.find_in(resource, namespace)
            if namespace
            else self._registry.find_all(resource)
        )
        return resource, [
            obj
            for obj in sorted(listed, key=name_of)
            if chosen.matches(labels_of(obj)) and (resource is not PODS or pod_rules.runs(obj))
        ]

    def _external(self, namespace: str, metric: str, chosen: LabelSelector) -> Iterator[Obj]:
        found = self._registry.find(NAMESPACES, "", namespace)
        if found is None:
            return
        for labels, value in self._series(found, EXTERNAL_METRIC + metric):
            if chosen.matches(labels):
                yield {
                    "metricName": metric,
                    "metricLabels": dict(labels),
                    "timestamp": time_text(self._clock.now()),
                    "value": value,
                }

    def _series(self, obj: Obj, annotation: str) -> Iterator[Series]:
        """Raises InternalError where the script is wrong."""
        text = self._notes(obj).get(annotation)
        if text is None:
            return
        moment = moment_of(obj, self._replicas(obj), self._clock.now())
        try:
            for labels, written in series(text):
                yield labels, str(amount(written, moment))
        except BadAmount as error:
            raise InternalError(f"{annotation} of {name_of(obj)}: {error}") from error

    def _replicas(self, obj: Obj) -> int:
        """Of a pod those that run of its controller; of all else those of any controller that run
        in the namespace."""
        namespace = name_of(obj) if obj.get("kind") == NAMESPACES.kind else namespace_of(obj)
        if namespace not in self._running:
            beside = self._registry.find_in(PODS, namespace) if namespace else ()
            self._running[namespace] = pod_rules.running_by_controller(beside)
        if obj.get("kind") == PODS.kind:
            return pod_rules.replicas_of(obj, self._running[namespace])
        return self._running[namespace].total()


def _selector(query: str, key: str) -> LabelSelector:
    try:
        return parse_label_selector(first_value(query, key))
    except SelectorError as error:
        raise BadRequest(f"{key}: {error}") from error


def _custom_item(
    version: str, resource: Resource, obj: Obj, metric: str, value: str, now: float
) -> Obj:
    described = {"kind": resource.kind, "name": name_of(obj), "apiVersion": resource.api_version}
    if namespace_of(obj):
        described["namespace"] = namespace_of(obj)
    old = version == "v1beta1"
    named = {"metricName": metric} if old else {"metric": {"name": metric, "selector": None}}
    return {"describedObject": described, **named, "timestamp": time_text(now), "value": value}


def _listed(kind: str, group: str, version: str, items: list[Obj]) -> Obj:
    return {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "items": items}
