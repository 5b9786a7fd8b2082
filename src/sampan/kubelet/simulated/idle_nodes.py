"""Simulated nodes that have nothing to say of themselves: registered and alive.

Job: keep their leases and the times in their statuses; have an agent made for those that get pods,
    and tell of the images that came with these; leave those that something else happens to.
Invariant: a node has no agent, or one that only looks after its pods; it is kept here for just as
    long. It has none where its pods, if it has any, go on by themselves.
Invariant: no task and no timer for a node that is kept here.
Invariant: thousands that need an agent at once hold nobody up: they get them some at a time.
Owner: whoever runs the nodes; the rest may be called from anywhere in the same event loop.
"""

import asyncio
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple, Protocol

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, is_deleted, labels_of, meta_of, name_of, status_of, time_text
from sampan.api.resources import NODES
from sampan.api.rules.nodes import KUBELET_CONDITIONS
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.kubelet.contracts.runtime import Image
from sampan.kubelet.node.node_status import differs, images_status, is_ready
from sampan.kubelet.node.shared_leases import Alone, Leases
from sampan.kubelet.settings import KubeletSettings

HOSTNAME = "kubernetes.io/hostname"
SPREAD = 0.6180339887  # each next one is told about far from those before it
AHEAD_SECONDS = 1.0  # so much earlier than due, to be told of with others
TOLD_AT_ONCE = 100
IMAGES_SHARE = 0.2  # of the seconds between two reports: so long new images may wait
AGENTS_AT_ONCE = 4  # each takes some milliseconds where there are pods to be taken over
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


class Machines(Protocol):
    """The nodes themselves, by their names."""

    def client_of(self, name: str) -> Client: ...

    def images_of(self, name: str) -> Sequence[Image]: ...

    def shown(self, name: str) -> Obj:
        """The status of its Node, as far as the API has told; empty where there is none."""

    async def report(self, images: Mapping[str, Sequence[Obj] | None]) -> Collection[str]:
        """Tell of all these that they are well, and of the images that are new; those for whom
        that was not possible."""

    def run_pods(self, name: str) -> None:
        """It has pods: it gets an agent that looks after them."""

    def leave(self, name: str) -> None:
        """It has to keep itself from now on."""


class _Due(NamedTuple):
    at: float
    name: str
    repeats: bool


class IdleNodes:
    def __init__(
        self, leases: Leases, machines: Machines, clock: Clock, report_seconds: float
    ) -> None:
        self._leases, self._machines = leases, machines
        self._clock, self._report_seconds = clock, report_seconds
        self._nodes: dict[str, Alone] = {}
        self._with_pods: set[str] = set()  # those that have an agent
        self._waiting: dict[str, None] = {}  # for one
        self._due: list[_Due] = []  # a heap: whose status is told again, and when
        self._added, self._earlier = 0, asyncio.Event()

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, name: str, *, was_away: bool) -> None:
        """`was_away`: its lease was not renewed for a while."""
        alone = self._nodes[name] = partial(self.leave, name)
        self._leases.keep(name, alone, soon=was_away)
        self._added += 1
        share = 1.0 - self._added * SPREAD % 1.0
        self._tell_in(share * self._report_seconds, name, repeats=True)

    def remove(self, name: str) -> None:
        """It is dead, or left."""
        self._leases.let_go(name, self._nodes.pop(name))
        self._with_pods.discard(name)

    def run_pods(self, name: str) -> None:
        """It has pods that something happens to, perhaps for the first time."""
        if name in self._nodes and name not in self._with_pods:
            if not self._waiting:
                asyncio.get_running_loop().call_soon(self._run_some)
            self._waiting[name] = None

    def _run_some(self) -> None:
        for name in list(islice(self._waiting, AGENTS_AT_ONCE)):
            del self._waiting[name]
            self.have_agent(name)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run_some)

    def have_agent(self, name: str) -> None:
        """It is needed now."""
        if name in self._nodes and name not in self._with_pods:
            self._with_pods.add(name)
            self._machines.run_pods(name)
            self._tell_in(IMAGES_SHARE * self._report_seconds, name, repeats=False)

    def leave(self, name: str) -> None:
        if name in self._nodes:
            self.remove(name)
            self._machines.leave(name)

    def seen(self, old: Obj | None, new: Obj | None) -> None:
        """The API shows a node differently. What others wrote into its status its agent answers;
        one that somebody deleted registers itself again when its status is due."""
        if old is None or new is None or name_of(new) not in self._nodes:
            return
        before, now, name = status_of(old), status_of(new), name_of(new)
        if name in self._with_pods and now.get("images") != before.get("images"):
            before = {**before, "images": self._images_of(name)}  # told from here
        if differs(before, now):
            self.leave(name)

    def _images_of(self, name: str) -> list[Obj]:
        return _shown_images(tuple(self._machines.images_of(name)))

    def _tell_in(self, seconds: float, name: str, *, repeats: bool) -> None:
        due = _Due(self._clock.monotonic() + seconds, name, repeats)
        heapq.heappush(self._due, due)
        if self._due[0] is due:
            self._earlier.set()

    async def run(self) -> None:
        """Until cancelled: statuses are told again now and then, as the agents of others do."""
        while True:
            self._earlier.clear()
            if not self._due or self._due[0].at > self._clock.monotonic():
                await self._wait(self._due[0].at if self._due else None)
                continue
            await self._report(self._take_due())

    async def _wait(self, moment: float | None) -> None:
        seconds = None if moment is None else moment - self._clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                await self._earlier.wait()
        except TimeoutError:
            return

    def _take_due(self) -> dict[str, list[Obj] | None]:
        """Who is told of now, with others that would be a moment later; and their images, where
        they have others than they show."""
        moment, found = self._clock.monotonic() + AHEAD_SECONDS, dict[str, list[Obj] | None]()
        while self._due and self._due[0].at <= moment and len(found) < TOLD_AT_ONCE:
            due = heapq.heappop(self._due)
            if due.name not in self._nodes:
                continue
            if due.repeats:
                heapq.heappush(self._due, due._replace(at=due.at + self._report_seconds))
            images = self._new_images(due.name)
            if due.repeats or images is not None:
                found[due.name] = images
        return found

    def _new_images(self, name: str) -> list[Obj] | None:
        if name not in self._with_pods:
            return None
        images = self._images_of(name)
        return None if images == (self._machines.shown(name).get("images") or []) else images

    async def _report(self, images: Mapping[str, list[Obj] | None]) -> None:
        for name in await self._machines.report(images) if images else ():
            if name in self._nodes:
                await self._report_alone(name, images[name])

    async def _report_alone(self, name: str, images: list[Obj] | None) -> None:
        client, now = self._machines.client_of(name), time_text(self._clock.now())
        try:
            shown = status_of(await client.get(NODES, "", name))
            told = [
                {**each, "lastHeartbeatTime": now}
                for each in shown.get("conditions") or ()
                if each["type"] in KUBELET_CONDITIONS
            ]
            status = {"conditions": told, **({} if images is None else {"images": images})}
            await client.patch(NODES, "", name, {"status": status}, subresource="status")
        except ApiError:
            self.leave(name)  # its agent knows what to do


@lru_cache(maxsize=256)
def _shown_images(images: tuple[Image, ...]) -> list[Obj]:
    """Once for all nodes that have the same."""
    return images_status(images, KubeletSettings("").images_in_status)


def is_like(node: Obj, pattern: Obj, addresses: Iterable[str], *, has_pods: bool = False) -> bool:
    """Ready, and as a node would say of itself that differs from `pattern` in its name and its
    addresses only, and with pods in its images; whatever else others may have written into its
    metadata."""
    name, meta, wanted = name_of(node), meta_of(node), meta_of(pattern)
    labels = {**(wanted.get("labels") or {}), HOSTNAME: name}
    shown = [{"type": "InternalIP", "address": address} for address in addresses]
    status = {
        **status_of(pattern), "addresses": [*shown, {"type": "Hostname", "address": name}]
    }  # fmt: skip
    told, aside = status_of(node), ("images",) if has_pods else ()
    return (
        not is_deleted(node)
        and is_ready(told)
        and _has(labels_of(node), labels)
        and _has(meta.get("annotations") or {}, wanted.get("annotations") or {})
        and _untimed(told, aside) == _untimed(status, aside)
    )


def _has(these: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(these.get(key) == value for key, value in wanted.items())


def _untimed(status: Obj, aside: Iterable[str]) -> Obj:
    plain = [
        {key: value for key, value in each.items() if key not in _TIMES}
        for each in status.get("conditions") or ()
    ]
    rest = {key: value for key, value in status.items() if key not in aside}
    return {**rest, "conditions": plain}
