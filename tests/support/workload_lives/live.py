"""One life: a namespace, the steps of a scenario, and what was seen of it.

Job: do the steps over a transport; tell answers, statuses in their order, events and the objects
    at the end.
Invariant: what a life made is gone or on its way out when it is over; it waits by its own steps
    only, so that on virtual time it takes no time.
"""

import asyncio
from typing import Any, assert_never

import orjson

from sampan.api.objects import Obj, meta_of, name_of
from sampan.core.tasks import Tasks
from tests.support.workload_lives.seen import answer_text, event_text, masked, summary
from tests.support.workload_lives.stand_in_nodes import StandInNodes
from tests.support.workload_lives.steps import (
    Change,
    Create,
    Life,
    NodeStep,
    Post,
    Remove,
    Step,
    Wait,
    path,
    resource_of,
)
from tests.support.workload_lives.transport import JSON, Transport

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
# What every namespace has: told by no life.
COMMON = (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"))
PROMPT_EVENTS = ("Scheduled",)  # names a node


class Stage:
    """Where a life takes place."""

    def __init__(self, transport: Transport, nodes: StandInNodes, name: str) -> None:
        self._transport, self._nodes = transport, nodes
        self.name, self.namespace = name, f"life-{name}"
        self._answers: list[str] = []
        self._story: dict[str, list[Any]] = {}
        self._made: list[str] = []  # paths of what no namespace takes with it

    async def begin(self) -> None:
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
            case Create(objects):
                for obj in objects:
                    await self._create(obj)
            case Change(kind, name, patch, content_type):
                at = path(kind, self.namespace, await self._named(kind, name))
                await self._note(*await self._transport.call("PATCH", at, patch, content_type))
            case Remove(kind, name, options):
                at = path(kind, self.namespace, await self._named(kind, name))
                body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
                await self._note(*await self._transport.call("DELETE", at, body))
            case Post(kind, name, body):
                known = await self._named(kind, name)
                text = orjson.dumps(body).decode().replace("{name}", known)
                at = path(kind, self.namespace, known)
                await self._note(*await self._transport.call("POST", at, orjson.loads(text)))
            case NodeStep():
                await self._node_step(step)
            case _:
                assert_never(step)

    async def ended(self, life: Life) -> Obj:
        """What there is to see."""
        final: dict[str, list[Obj]] = {}
        for kind in (*SEEN, *life.shows):
            items = await self._items(kind)
            if kind in life.shows and kind != "nodes":
                items = [item for item in items if name_of(item).startswith(self.name)]
            shown = [summary(kind, item) for item in items if (kind, name_of(item)) not in COMMON]
            if shown:
                final[kind] = sorted(shown, key=lambda item: orjson.dumps(item))
        seen: Obj = {
            "answers": self._answers,
            "final": final,
            "events": await self._events(),
            "story": dict(sorted(self._story.items())),
        }
        return {**seen, "places": await self._places()} if life.places else seen

    async def clear(self) -> None:
        for at in reversed(self._made):
            await self._transport.call("DELETE", at)
        await self._transport.call("DELETE", f"/api/v1/namespaces/{self.namespace}")
        await self._nodes.restore()

    async def _create(self, obj: Obj) -> None:
        resource = resource_of(obj)
        kind = resource.plural
        if resource.group and "." in resource.group and not resource.kind.islower():
            kind = _kind(obj)
        code, answer = await self._transport.call("POST", path(kind, self.namespace), obj)
        if code < 300 and not resource.namespaced:
            self._made.append(path(kind, "", name_of(answer)))
        await self._note(code, answer)

    async def _note(self, code: int, answer: Obj) -> None:
        self._answers.append(answer_text(code, answer))

    async def _items(self, kind: str) -> list[Obj]:
        code, listed = await self._transport.call("GET", path(kind, self.namespace))
        return list(listed.get("items") or ()) if code == 200 else []

    async def _named(self, kind: str, name: str) -> str:
        if "=" not in name:
            return name
        label, _, number = name.partition("#")
        key, _, value = label.partition("=")
        names = [
            name_of(item)
            for item in await self._items(kind.partition("/")[0] if "@" not in kind else kind)
            if (meta_of(item).get("labels") or {}).get(key) == value
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

    async def _events(self) -> dict[str, int]:
        found: dict[str, int] = {}
        at = f"/api/v1/namespaces/{self.namespace}/events"
        for event in (await self._transport.call("GET", at))[1]["items"]:
            if event["reason"] not in PROMPT_EVENTS:
                text = event_text(event)
                found[text] = found.get(text, 0) + (event.get("count") or 1)
        return dict(sorted(found.items()))

    async def _places(self) -> list[int]:
        """How many pods each node has, not which."""
        counts: dict[str, int] = {}
        for pod in await self._items("pods"):
            node = pod["spec"].get("nodeName", "")
            counts[node] = counts.get(node, 0) + 1
        waiting = counts.pop("", 0)
        return [waiting, *sorted(counts.values())]


def _kind(obj: Obj) -> str:
    resource = resource_of(obj)
    return f"{resource.plural}@{resource.api_version}" if not resource.verbs else resource.plural


async def live(transport: Transport, nodes: StandInNodes, name: str, life: Life) -> Obj:
    stage = Stage(transport, nodes, name)
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
        await stage.clear()


__all__ = ["JSON", "live"]
