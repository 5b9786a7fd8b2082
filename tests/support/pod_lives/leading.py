"""Pods are led through their lives on a cluster: what is done to each when it has come so far.

Job: make the pods of scenarios, act on them, keep what a watcher sees of them, and their events.
Invariant: an action is taken when the pod has come to where it says, not by the clock.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, copy_of, meta_of, name_of
from sampan.api.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS
from sampan.client.contract import Client
from sampan.core.tasks import all_of
from tests.support.pod_lives.looks import Look, is_when, look, look_at_event

_OTHERS = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}
ALL = 1000
LOOKS_AFTER_THE_END = 10  # events are written a little later than what they tell of
Done = Callable[["Life"], bool]


class Life:
    """One pod, as it is seen."""

    def __init__(self, name: str, scenario: Obj) -> None:
        self.name, self.scenario = name, scenario
        self.looks: list[Look] = []
        self.events: list[Look] = []
        self.refused = ""
        self.is_watched = True
        self.pod: Obj = {}
        self._node = ""

    def see(self, kind: str, pod: Obj) -> None:
        if not self.is_watched:
            return  # it is taken away: that is not of its life
        self.pod = pod
        self._node = (pod.get("spec") or {}).get("nodeName") or self._node
        seen = look(kind, pod, self._node)
        if not self.looks or self.looks[-1] != seen:
            self.looks.append(seen)

    @property
    def is_gone(self) -> bool:
        return bool(self.looks) and self.looks[-1]["type"] == "DELETED"

    def take_events(self, events: Sequence[Obj]) -> None:
        found = {
            json.dumps(look_at_event(event, self.pod, self._node), sort_keys=True)
            for event in events
            if event["involvedObject"]["name"] == self.name
        }
        self.events = [json.loads(one) for one in sorted(found)]


def _is_when(when: str, life: Life) -> bool:
    return is_when(when, life.pod)


class Leading:
    """Lives in one namespace, all at once."""

    def __init__(self, client: Client, namespace: str, node: str, lives: Sequence[Life]) -> None:
        self._client, self._namespace, self._node = client, namespace, node
        self._lives = {life.name: life for life in lives}
        self._changed = {life.name: asyncio.Event() for life in lives}

    async def run(
        self, is_over: Done, seconds: Callable[[Life], float], at_once: int = ALL
    ) -> None:
        """Each until it is over, for at most so long."""
        room = asyncio.Semaphore(at_once)
        listed = await self._client.list(PODS, self._namespace)
        watching = asyncio.get_running_loop().create_task(self._watch(listed.revision))
        try:
            await all_of(
                self._lead(life, is_over, seconds(life), room) for life in self._lives.values()
            )
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _lead(
        self, life: Life, is_over: Done, seconds: float, room: asyncio.Semaphore
    ) -> None:
        async with room:
            try:
                async with asyncio.timeout(seconds):
                    await self._live(life, is_over)
            except TimeoutError:
                pass  # what is missing is said by the comparison
            await self._take_events(life)
            life.is_watched = False
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, self._namespace, life.name, grace_seconds=0)

    async def _take_events(self, life: Life) -> None:
        about = f"involvedObject.name={life.name}"
        listed = await self._client.list(EVENTS, self._namespace, field_selector=about)
        life.take_events(listed.items)

    async def _live(self, life: Life, is_over: Done) -> None:
        for obj in life.scenario["objects"]:
            await self._client.create(_OTHERS[obj["kind"]], copy_of(obj), self._namespace)
        shown = life.scenario["pod"]
        named = {**shown, "metadata": {**shown.get("metadata", {}), "name": life.name}}
        text = json.dumps(named)
        pod = json.loads(text.replace('"NODE"', json.dumps(self._node)))
        try:
            await self._client.create(PODS, pod, self._namespace)
        except ApiError as error:
            life.refused = str(error)
            return
        for when, what, how in life.scenario["actions"]:
            if when.startswith("after:"):
                await asyncio.sleep(float(when.partition(":")[2]))
            else:
                await self._until(life, partial(_is_when, when))
            await self._act(life.name, what, how)
        looks = 0
        while not is_over(life) and looks < LOOKS_AFTER_THE_END:
            looks += life.is_gone
            await self._take_events(life)
            try:
                async with asyncio.timeout(0.5):
                    await self._until(life, is_over)
            except TimeoutError:
                continue

    async def _until(self, life: Life, done: Done) -> None:
        changed = self._changed[life.name]
        while not (life.pod and done(life)):
            changed.clear()
            await changed.wait()

    async def _watch(self, revision: int) -> None:
        while True:
            try:
                async for event in self._client.watch(PODS, self._namespace, revision=revision):
                    revision = int(meta_of(event.object)["resourceVersion"])
                    life = self._lives.get(name_of(event.object))
                    if event.type != "BOOKMARK" and life is not None:
                        life.see(event.type, event.object)
                        self._changed[life.name].set()
            except ApiError:
                await asyncio.sleep(0.1)

    async def _act(self, name: str, what: str, how: Any) -> None:
        client, where = self._client, self._namespace
        match what:
            case "delete":
                await client.delete(PODS, where, name, grace_seconds=how)
            case "evict":
                eviction = {"metadata": {"name": name, "namespace": where}}
                await client.create(PODS, eviction, where, name=name, subresource="eviction")
            case "patch":
                kind, below = how["type"], how["subresource"]
                body = how["body"]
                await client.patch(PODS, where, name, body, patch_type=kind, subresource=below)
            case "create":
                await client.create(_OTHERS[how["kind"]], copy_of(how), where)
            case "update":
                named = {**how, "metadata": {**how["metadata"], "namespace": where}}
                await client.update(_OTHERS[how["kind"]], named)
            case "wait":
                pass
            case _:
                raise AssertionError(what)
