"""One life: a namespace, the steps of a scenario, and what was seen of it.

Job: do the steps over a transport; tell answers, statuses in their order, events and the objects
    at the end.
Invariant: what a life made is gone or on its way out when it is over, where the cluster lasts; it
    waits by its own steps only, so that on virtual time it takes no time.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, assert_never

import orjson

from sampan.api.objects import Obj, meta_of, name_of, uid_of
from sampan.api.resources import by_kind
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import Tasks
from tests.support.workload_lives.played_metrics import PlayedMetrics
from tests.support.workload_lives.seen import answer_text, event_text, masked, summary
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import (
    Change,
    Create,
    Life,
    Measure,
    NodeStep,
    Post,
    Remove,
    Step,
    UntilSecond,
    Wait,
    path,
    resource_of,
)
from tests.support.workload_lives.transport import Transport
from tests.support.workload_lives.words import filled

# Kinds whose every status is told, in order.
TOLD = (
    "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs",
    "poddisruptionbudgets", "replicationcontrollers", "horizontalpodautoscalers",
    "persistentvolumeclaims", "resourceclaims", "resourcequotas",
)  # fmt: skip
SEEN = (
    *TOLD, "pods", "controllerrevisions", "endpointslices", "endpoints", "services",
    "serviceaccounts", "secrets", "configmaps",
)  # fmt: skip
WORKLOADS = (
    "horizontalpodautoscalers", "cronjobs", "jobs", "deployments", "replicasets", "statefulsets",
    "daemonsets", "replicationcontrollers",
)  # fmt: skip
# What every namespace has: told by no life.
COMMON = (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"))
PROMPT_EVENTS = ("Scheduled",)  # names a node
UIDS = re.compile(r"(\{uid (\S+) ([^\s}]+)\})")


class Stage:
    """Where a life takes place."""

    def __init__(self, place: "Place", name: str) -> None:
        self._place, self._transport, self._nodes = place, place.transport, place.nodes
        self.name, self.namespace = name, f"life-{name}"
        self._answers: list[str] = []
        self._story: dict[str, list[Any]] = {}
        self._made: list[str] = []  # paths of what no namespace takes with it
        self._known_events: Counter[str] = Counter()  # about what has no namespace

    async def begin(self) -> None:
        for event in await self._cluster_events():
            self._known_events[event_text(event)] += event.get("count") or 1
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        code, answer = await self._transport.call("POST", "/api/v1/namespaces", body)
        assert code == 201, answer
        account = path("serviceaccounts", self.namespace, "default")
        for _ in range(100):
            if (await self._transport.call("GET", account))[0] == 200:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the namespace has no account")

    async def tell(self, kind: str) -> None:
        """Every status of the kind from now on."""
        async for what, obj in self._transport.watch(path(kind, self.namespace)):
            told = self._story.setdefault(f"{kind}/{masked(name_of(obj))}", [])
            seen = "DELETED" if what == "DELETED" else masked(obj.get("status") or {})
            if not told or told[-1] != seen:
                told.append(seen)

    async def do(self, step: Step) -> None:
        match step:
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case UntilSecond(second):
                await asyncio.sleep((second - self._place.clock.now()) % 60)
            case Create(objects, user, groups):
                for obj in objects:
                    await self._create(await self._filled(obj), user, groups)
            case Change(kind, name, patch, content_type):
                at = await self._path(kind, name)
                body = await self._filled(patch)
                await self._note(*await self._transport.call("PATCH", at, body, content_type))
            case Remove(kind, name, options):
                body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
                at = await self._path(kind, name)
                await self._note(*await self._transport.call("DELETE", at, body))
            case Post(kind, name, body):
                at = await self._path(kind, name)
                known = at.split("/")[-2] if "/" in kind else at.split("/")[-1]
                filled_in = await self._filled(body, name=known)
                await self._note(*await self._transport.call("POST", at, filled_in))
            case Measure(values):
                self._place.metrics.say(self.namespace, values)
            case NodeStep():
                await self._node_step(step)
            case _:
                assert_never(step)

    async def ended(self, life: Life) -> Obj:
        """What there is to see."""
        final: dict[str, list[Obj]] = {}
        for other in ("", *life.also):
            for kind in (*SEEN, *(life.shows if not other else ())):
                shown = await self._shown(kind, f"{self.namespace}{other}")
                if shown:
                    final[f"{other} {kind}".strip()] = sorted(shown, key=orjson.dumps)
        seen: Obj = {
            "answers": self._answers,
            "final": final,
            "events": await self._events(life),
            "story": dict(sorted(self._story.items())),
        }
        return {**seen, "places": await self._places()} if life.places else seen

    async def clear(self) -> None:
        """Workloads first: while a namespace goes they would go on trying, and telling of it."""
        for kind in WORKLOADS:
            options = {"propagationPolicy": "Background"}
            await self._transport.call("DELETE", path(kind, self.namespace), options)
        for at in reversed(self._made):
            await self._transport.call("DELETE", at)
        await self._transport.call("DELETE", f"/api/v1/namespaces/{self.namespace}")
        self._place.metrics.forget(self.namespace)

    async def _filled(self, obj: Any, **words: str) -> Any:
        known = {"ns": self.namespace, "life": self.name, **words}
        text = orjson.dumps(filled(obj, known, self._place.clock.now())).decode()
        for asked, kind, name in set(UIDS.findall(text)):
            _, found = await self._transport.call("GET", await self._path(kind, name))
            text = text.replace(asked, uid_of(found))
        return orjson.loads(text)

    async def _create(self, obj: Obj, user: str, groups: Sequence[str]) -> None:
        resource = resource_of(obj)
        kind = resource.plural
        if by_kind(resource.api_version, resource.kind) is None:
            kind = f"{resource.plural}@{resource.api_version}"
        namespace = meta_of(obj).get("namespace") or self.namespace
        headers = [("impersonate-user", user)] if user else []
        headers += [("impersonate-group", group) for group in groups]
        at = path(kind, namespace)
        code, answer = await self._transport.call("POST", at, obj, headers=headers)
        if code < 300 and (not resource.namespaced or namespace != self.namespace):
            self._made.append(path(kind, namespace, name_of(answer)))
        await self._note(code, answer)

    async def _note(self, code: int, answer: Obj) -> None:
        self._answers.append(answer_text(code, answer))

    async def _shown(self, kind: str, namespace: str) -> list[Obj]:
        items = await self._items(kind, namespace)
        if "/" not in path(kind, namespace).partition("/namespaces/")[2]:
            mine = (self.name, f"{self.name}.", self.namespace)
            items = [
                item
                for item in items
                if (name_of(item) == mine[0] or name_of(item).startswith(mine[1:]))
                or kind == "nodes"
            ]
        return [summary(kind, item) for item in items if (kind, name_of(item)) not in COMMON]

    async def _items(self, kind: str, namespace: str) -> list[Obj]:
        code, listed = await self._transport.call("GET", path(kind, namespace))
        return list(listed.get("items") or ()) if code == 200 else []

    async def _path(self, kind: str, name: str) -> str:
        own, namespace = await self._filled(name), self.namespace
        if "=" not in own and "/" in own:
            namespace, _, own = own.partition("/")
        return path(kind, namespace, await self._named(kind, namespace, own))

    async def _named(self, kind: str, namespace: str, name: str) -> str:
        if "=" not in name and "#" not in name:
            return name
        name, _, node = name.partition(" on ")
        label, _, number = name.partition("#")
        key, _, value = label.partition("=")
        plural = kind.partition("/")[0] if "@" not in kind else kind
        names = [
            name_of(item)
            for item in await self._items(plural, namespace)
            if key == "*" or (meta_of(item).get("labels") or {}).get(key) == value
            if not node or item["spec"].get("nodeName") == node
        ]
        return sorted(names)[int(number or 0)]

    async def _node_step(self, step: NodeStep) -> None:
        match step.what:
            case "silence":
                self._nodes.silence(step.node)
            case "return":
                await self._nodes.return_(step.node)
            case "add":
                await self._nodes.add(step.node, **step.labels)
            case "remove":
                await self._note(*await self._nodes.remove(step.node))

    async def _events(self, life: Life) -> dict[str, int]:
        found: Counter[str] = Counter()
        events: list[Obj] = []
        for other in ("", *life.also):
            at = f"/api/v1/namespaces/{self.namespace}{other}/events"
            events += (await self._transport.call("GET", at))[1].get("items") or ()
        for event in await self._cluster_events():
            about = event["involvedObject"]
            of_node = "nodes" in life.shows and about["kind"] == "Node"
            if about["name"].startswith(f"{self.name}.") or of_node:
                events.append(event)
        for event in events:
            if event["reason"] not in PROMPT_EVENTS:
                found[event_text(event)] += event.get("count") or 1
        found.subtract({text: self._known_events[text] for text in found})
        return {text: count for text, count in sorted(found.items()) if count > 0}

    async def _cluster_events(self) -> list[Obj]:
        at = "/api/v1/namespaces/default/events"
        found: list[Obj] = (await self._transport.call("GET", at))[1].get("items") or []
        return found

    async def _places(self) -> list[int]:
        """How many pods each node has, not which."""
        counts: dict[str, int] = {}
        for pod in await self._items("pods", self.namespace):
            node = pod["spec"].get("nodeName", "")
            counts[node] = counts.get(node, 0) + 1
        waiting = counts.pop("", 0)
        return [waiting, *sorted(counts.values())]


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster that lives are lived in."""

    transport: Transport
    nodes: StandInNodes
    metrics: PlayedMetrics
    clock: Clock
    lasts: bool = True  # other lives follow: what this one made must go


async def live(place: Place, name: str, life: Life) -> Obj:
    stage = Stage(place, name)
    await stage.begin()
    telling = Tasks("telling")
    for kind in TOLD:
        telling.start(kind, stage.tell(kind))
    try:
        for step in life.steps:
            await stage.do(step)
        return await stage.ended(life)
    finally:
        await telling.stop()
        if place.lasts:
            await stage.clear()
        if place.lasts and life.alone:
            await place.nodes.restore()
