"""The metrics APIs that lives have: what they say is what the life's last `measure` said.

Job: answer GETs of metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io by path.
    `measure(cpu="90m")`: what each Running pod's container uses, or a list, by the pods' names;
    `custom={"rps": …}` of each pod likewise, `objects={"services/s/hits": "7"}`,
    `external={"waiting": ["3", "4"]}`.
Invariant: a namespace of which nothing was said has no metrics: 404, as an adapter answers.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from sampan.api.objects import Obj, name_of
from sampan.api.rules.selectors import parse_label_selector
from sampan.core.clock import Clock
from tests.support.workload_lives.transport import Transport

RESOURCES, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = {RESOURCES: "v1beta1", CUSTOM: "v1beta2", EXTERNAL: "v1beta1"}
_PATH = re.compile(r"/apis/([a-z.0-9]+)/(v\w+)(?:/namespaces/([^/]+)/(.+))?$")
WINDOW_SECONDS = 1


class PlayedMetrics:
    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._said: dict[str, Mapping[str, Any]] = {}

    def say(self, namespace: str, values: Mapping[str, Any]) -> None:
        self._said[namespace] = values

    def forget(self, namespace: str) -> None:
        self._said.pop(namespace, None)

    async def answer(self, path: str, query: str = "") -> Obj | None:
        """None: there is no such thing."""
        found = _PATH.match(path.rstrip("/"))
        if found is None or VERSIONS.get(found[1]) != found[2]:
            return None
        if found[3] is None:
            return _resource_list(found[1])
        said = self._said.get(found[3], {})
        asked = {name: texts[0] for name, texts in parse_qs(query).items()}
        match found[1], found[4].split("/"):
            case ("metrics.k8s.io", ["pods"]):
                pods = await self._pods(found[3], asked.get("labelSelector", ""))
                return {"items": self._usages(pods, said)}
            case ("custom.metrics.k8s.io", ["pods", "*", metric]) if metric in said.get(
                "custom", {}
            ):
                pods = await self._pods(found[3], asked.get("labelSelector", ""))
                return {"items": self._values(pods, metric, said["custom"][metric])}
            case ("custom.metrics.k8s.io", [kind, *name]):
                what = "/".join((kind, *name))
                value = said.get("objects", {}).get(what)
                return None if value is None else {"items": [self._value(name[0], value)]}
            case ("external.metrics.k8s.io", [metric]):
                return self._external(metric, said.get("external", {}).get(metric))
        return None

    async def _pods(self, namespace: str, selector: str) -> Sequence[Obj]:
        _, listed = await self._transport.call("GET", f"/api/v1/namespaces/{namespace}/pods")
        wanted = parse_label_selector(selector)
        pods = [
            pod
            for pod in listed["items"]
            if (pod.get("status") or {}).get("phase") == "Running"
            and wanted.matches(pod["metadata"].get("labels") or {})
        ]
        return sorted(pods, key=name_of)

    def _usages(self, pods: Sequence[Obj], said: Mapping[str, Any]) -> list[Obj]:
        names = [name for name in ("cpu", "memory") if name in said]
        found = []
        for number, pod in enumerate(pods):
            usage = {name: _of(said[name], number) for name in names}
            if not usage or None in usage.values():
                continue
            containers = [
                {"name": one["name"], "usage": usage} for one in pod["spec"]["containers"]
            ]
            meta = {"name": name_of(pod), "namespace": pod["metadata"]["namespace"]}
            measured = {"timestamp": self._now(), "window": f"{WINDOW_SECONDS}s"}
            found.append({"metadata": meta, **measured, "containers": containers})
        return found

    def _values(self, pods: Sequence[Obj], metric: str, values: Any) -> list[Obj]:
        return [
            {**self._value(name_of(pod), value), "metric": {"name": metric}}
            for number, pod in enumerate(pods)
            if (value := _of(values, number)) is not None
        ]

    def _value(self, name: str, value: str) -> Obj:
        described = {"kind": "Pod", "apiVersion": "v1", "name": name}
        measured = {"timestamp": self._now(), "windowSeconds": WINDOW_SECONDS}
        return {"describedObject": described, **measured, "value": value}

    def _external(self, metric: str, values: Sequence[str] | None) -> Obj | None:
        if values is None:
            return None
        items = [
            {"metricName": metric, "metricLabels": {}, "timestamp": self._now(), "value": value}
            for value in values
        ]
        return {"items": items}

    def _now(self) -> str:
        return datetime.fromtimestamp(int(self._clock.now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def replied(path: str, found: Obj | None) -> tuple[int, Obj]:
    """As an adapter answers."""
    group, version = (*path.split("/"), "", "", "", "")[2:4]
    if found is None or group not in VERSIONS:
        words = {"reason": "NotFound", "code": 404, "status": "Failure"}
        why = f"the server could not find the metric {path.rpartition('/')[2]}"
        return 404, {"kind": "Status", "apiVersion": "v1", **words, "message": why}
    if "resources" in found:
        return 200, found
    kinds = {
        RESOURCES: "PodMetricsList", CUSTOM: "MetricValueList", EXTERNAL: "ExternalMetricValueList",
    }  # fmt: skip
    meta = {"kind": kinds[group], "apiVersion": f"{group}/{version}", "metadata": {}}
    return 200, {**meta, **found}


def _of(values: Any, number: int) -> str | None:
    """Of the pod with that number; a list that is too short says nothing of it."""
    if isinstance(values, str):
        return values
    return values[number] if number < len(values) else None


def _resource_list(group: str) -> Obj:
    version = f"{group}/{VERSIONS[group]}"
    resource = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics"}
    resources = [{**resource, "verbs": ["get", "list"]}] if group == RESOURCES else []
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
        "resources": resources,
    }  # fmt: skip
