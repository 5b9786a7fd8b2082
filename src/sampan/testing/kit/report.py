"""What a failed test shows of its cluster.

Job: the objects that the test made, their events, the logs of pods, why some are not Ready, and
    the traces of these.
Invariant: it never fails because of the cluster: what cannot be read is said.
"""

from collections.abc import Callable
from typing import Protocol

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, name_of, namespace_of, time_text
from sampan.api.rules import pods as pod_rules
from sampan.client.blocking import NoAnswer
from sampan.testing.kit.expectations import shown
from sampan.testing.kit.launcher import ClusterGone, Refused
from sampan.testing.kit.objects import Objects
from sampan.testing.kit.pod_handle import PodHandle

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
# What every namespace has, and what says nothing about the test.
ROUTINE_KINDS = ("Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision")
ROUTINE_NAMES = ("kube-root-ca.crt", "default", "kubernetes")
MOST_LINES = 20  # of one log, and of events
MOST_OBJECTS = 100


class AboutPod(Protocol):
    def __call__(self, pod: str, *, namespace: str) -> str: ...


def report(
    title: str,
    now: Callable[[], float],
    objects: Objects,
    pods: PodHandle,
    about: tuple[AboutPod, AboutPod],
) -> str:
    """`about`: why a pod is not Ready, and its trace."""
    lines = [title]
    try:
        lines.append(f"its time: {time_text(now())}")
        lines += _Report(objects, pods, about).lines()
    except (ApiError, NoAnswer, ClusterGone, Refused) as error:
        lines.append(f"more could not be read: {error}")
    return "\n".join(lines)


class _Report:
    def __init__(self, objects: Objects, pods: PodHandle, about: tuple[AboutPod, AboutPod]) -> None:
        self._objects, self._pods, (self._why, self._trace) = objects, pods, about

    def lines(self) -> list[str]:
        there = [obj for obj in self._everything() if _is_telling(obj)]
        lines: list[str] = []
        for namespace in sorted({namespace_of(obj) for obj in there}):
            lines.append(f"--- namespace {namespace} ---" if namespace else "--- cluster ---")
            lines += self._namespace([obj for obj in there if namespace_of(obj) == namespace])
            if namespace:
                lines += self._events(namespace)
        for pod in (obj for obj in there if obj["kind"] == "Pod"):
            lines += self._pod(pod)
        return lines

    def _namespace(self, there: list[Obj]) -> list[str]:
        lines: list[str] = []
        for obj in there[:MOST_OBJECTS]:
            lines.append(f"{obj['kind'].lower()}/{name_of(obj)}")
            lines += shown(obj).splitlines() if obj.get("status") else []
        if len(there) > MOST_OBJECTS:
            lines.append(f"… and {len(there) - MOST_OBJECTS} more")
        return lines

    def _everything(self) -> list[Obj]:
        """Of namespaces; of the whole cluster only kinds that the test defined."""
        return [
            obj
            for kind in self._objects.kinds.everything()
            if kind.kind not in ROUTINE_KINDS and kind.group != "metrics.k8s.io"
            if kind.namespaced or (kind.group.count(".") and not kind.group.endswith("k8s.io"))
            for obj in self._objects.list(kind.qualified, namespace="")
        ]

    def _events(self, namespace: str) -> list[str]:
        events = self._objects.events(namespace=namespace)[-MOST_LINES:]
        return ["events:"] * bool(events) + [
            f"  {event.get('type')} {event.get('reason')} "
            f"{event['involvedObject'].get('kind', '').lower()}/"
            f"{event['involvedObject'].get('name')}: {event.get('message')}"
            for event in events
        ]

    def _pod(self, pod: Obj) -> list[str]:
        name, namespace, lines = name_of(pod), namespace_of(pod), []
        for container in pod["spec"]["containers"]:
            try:
                log = self._pods.log(name, container=container["name"], namespace=namespace)
            except ApiError:
                continue  # it has none yet
            if log.strip():
                lines.append(f"log of pod/{name} {container['name']}:")
                lines += [f"  {line}" for line in log.splitlines()[-MOST_LINES:]]
        if not pod_rules.is_ready(pod) and pod_rules.phase(pod) != "Succeeded":
            lines += [f"why pod/{name}:"]
            lines += [f"  {line}" for line in self._why(name, namespace=namespace).splitlines()]
            lines += self._traced(name, namespace)
        return lines

    def _traced(self, name: str, namespace: str) -> list[str]:
        try:
            trace = self._trace(name, namespace=namespace)
        except ApiError:
            return []  # nothing of it is known
        return [f"trace of pod/{name}:", *(f"  {line}" for line in trace.splitlines())]


def _is_telling(obj: Obj) -> bool:
    return namespace_of(obj) not in SYSTEM and name_of(obj) not in ROUTINE_NAMES
