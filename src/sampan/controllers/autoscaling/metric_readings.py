"""What the metrics APIs say: of pods (metrics.k8s.io, custom.metrics.k8s.io), of an object, of what
is outside (external.metrics.k8s.io).

Job: one reading for each metric of an autoscaler, or why there is none, in upstream's words.
Invariant: a metric that cannot be read spoils no other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, seconds_of
from sampan.api.quantity import value_of
from sampan.api.resources import POD_METRICS, Resource, by_kind
from sampan.api.rules.selectors import from_object
from sampan.controllers.autoscaling.replica_calculator import CannotCompute, Sample, samples_of
from sampan.controllers.controller import View
from sampan.core.fast_dataclass import dataclass

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")  # in the order in which they are preferred
DEFAULT_WINDOW_SECONDS = 60.0
_UNFETCHED = "unable to fetch metrics from {} metrics API: {}"
_NONE_RETURNED = "no metrics returned from {} metrics API"


@dataclass(frozen=True, slots=True)
class Reading:
    """`samples` of pods, by their names; `milli` of one object; `values` of what is outside."""

    samples: Mapping[str, Sample] | None = None
    milli: int = 0
    values: Sequence[int] = ()
    failure: str = ""  # why there is nothing else here


async def readings_of(view: View, autoscaler: Obj, selector: str) -> list[Reading]:
    """In the order of spec.metrics. `selector`: of the target's pods."""
    source = _Source(view, autoscaler["metadata"]["namespace"], selector)
    found: list[Reading] = []
    for metric in autoscaler["spec"].get("metrics") or ():
        try:
            found.append(await source.read(metric))
        except CannotCompute as error:
            found.append(Reading(failure=str(error)))
    return found


class _Source:
    """Of one autoscaler, once: pods' resources are asked for once for all metrics."""

    def __init__(self, view: View, namespace: str, selector: str) -> None:
        self._view, self._namespace, self._selector = view, namespace, selector
        self._pod_metrics: Sequence[Obj] | ApiError | None = None

    async def read(self, metric: Obj) -> Reading:
        """Raises CannotCompute."""
        match metric.get("type"):
            case "Resource":
                return await self._resource(metric["resource"]["name"], "")
            case "ContainerResource":
                wanted = metric["containerResource"]
                return await self._resource(wanted["name"], wanted["container"])
            case "Pods":
                return await self._pods(metric["pods"]["metric"])
            case "Object":
                wanted = metric["object"]
                return await self._object(wanted["metric"], wanted["describedObject"])
            case "External":
                return await self._external(metric["external"]["metric"])
        return Reading()

    async def _resource(self, resource: str, container: str) -> Reading:
        if self._pod_metrics is None:
            self._pod_metrics = await _or_error(self._list_pod_metrics)
        if isinstance(self._pod_metrics, ApiError):
            raise CannotCompute(_UNFETCHED.format("resource", self._pod_metrics.message))
        if not self._pod_metrics:
            raise CannotCompute(_NONE_RETURNED.format("resource"))
        return Reading(samples=samples_of(self._pod_metrics, resource, container))

    async def _list_pod_metrics(self) -> Sequence[Obj]:
        listed = await self._view.client.list(
            POD_METRICS, self._namespace, label_selector=self._selector
        )
        return listed.items

    async def _pods(self, metric: Obj) -> Reading:
        items = await self._custom("pods", "*", metric, {"labelSelector": self._selector})
        if not items:
            raise CannotCompute(_NONE_RETURNED.format("custom"))
        return Reading(samples={_described(item): _sample(item) for item in items})

    async def _object(self, metric: Obj, described: Obj) -> Reading:
        plural = await self._plural_of(described)
        if plural == "namespaces":  # its own, whatever the name says
            items = await self._custom("metrics", "", metric, {})
        else:
            items = await self._custom(plural, described.get("name", ""), metric, {})
        if len(items) != 1:
            why = f"the custom metrics API server returned {len(items)} results when we asked for"
            raise CannotCompute(_UNFETCHED.format("custom", f"{why} exactly one"))
        return Reading(milli=value_of(items[0].get("value") or 0).milli())

    async def _external(self, metric: Obj) -> Reading:
        resource = Resource(EXTERNAL, "v1beta1", "ExternalMetricValueList", metric["name"])
        selector = str(from_object(metric.get("selector"))) if metric.get("selector") else ""
        try:
            listed = await self._view.client.list(
                resource, self._namespace, label_selector=selector
            )
        except ApiError as error:
            raise CannotCompute(_UNFETCHED.format("external", error.message)) from error
        if not listed.items:
            raise CannotCompute(_NONE_RETURNED.format("external"))
        return Reading(values=[value_of(item.get("value") or 0).milli() for item in listed.items])

    async def _custom(self, plural: str, name: str, metric: Obj, query: Obj) -> Sequence[Obj]:
        """Of the objects of that name, or without one of the namespace itself."""
        if metric.get("selector"):
            query = {**query, "metricLabelSelector": str(from_object(metric["selector"]))}
        path = (name, metric["name"]) if name else (metric["name"], "")
        try:
            resource = Resource(CUSTOM, await self._custom_version(), "MetricValueList", plural)
            answer = await self._view.client.get(
                resource, self._namespace, path[0], subresource=path[1], parameters=query
            )
        except (ApiError, _NoCustomApi) as error:
            why = error.message if isinstance(error, ApiError) else str(error)
            raise CannotCompute(_UNFETCHED.format("custom", why)) from error
        items: Sequence[Obj] = answer.get("items") or ()
        return items

    async def _custom_version(self) -> str:
        for version in CUSTOM_VERSIONS:
            if await _is_served(self._view, CUSTOM, version):
                return version
        raise _NoCustomApi(f"no custom metrics API ({CUSTOM}) registered")

    async def _plural_of(self, described: Obj) -> str:
        """`deployments.apps`, as custom metrics name what they describe."""
        api_version, kind = described.get("apiVersion") or "v1", described.get("kind", "")
        found = by_kind(api_version, kind)
        if found is None:
            group, _, version = api_version.rpartition("/")
            try:
                served = await self._view.client.resources(group, version)
            except ApiError:
                served = ()
            found = next((resource for resource in served if resource.kind == kind), None)
        return found.group_resource if found is not None else kind.lower()


class _NoCustomApi(Exception):
    """Nobody serves custom metrics."""


async def _is_served(view: View, group: str, version: str) -> bool:
    try:
        await view.client.resources(group, version)
    except ApiError:
        return False
    return True


async def _or_error(
    read: Callable[[], Awaitable[Sequence[Obj]]],
) -> Sequence[Obj] | ApiError:
    try:
        return await read()
    except ApiError as error:
        return error


def _described(item: Obj) -> str:
    return str((item.get("describedObject") or {}).get("name") or "")


def _sample(item: Obj) -> Sample:
    window = item.get("windowSeconds", item.get("window"))
    seconds = DEFAULT_WINDOW_SECONDS if window is None else float(window)
    at = seconds_of(item["timestamp"]) if item.get("timestamp") else 0.0
    return Sample(value_of(item.get("value") or 0).milli(), at, seconds)
