"""Simulated nodes that have nothing to do: registered and alive, without an agent of their own.

Job: keep their leases and the times in their statuses; wake those that something happens to.
Invariant: a node is idle or has an agent, never both.
Invariant: no task and no timer for a node that is idle.
Owner: whoever runs the nodes; the rest may be called from anywhere in the same event loop.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, is_deleted, labels_of, meta_of, name_of, status_of, time_text
from sampan.api.resources import NODES
from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.kubelet.node.node_status import differs, is_ready
from sampan.kubelet.node.shared_leases import Alone, Leases

HOSTNAME = "kubernetes.io/hostname"
SPREAD = 0.6180339887  # each next one is told about far from those before it
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


class IdleNodes:
    def __init__(
        self,
        leases: Leases,
        client_of: Callable[[str], Client],
        wake: Callable[[str], None],
        clock: Clock,
        report_seconds: float,
    ) -> None:
        """`client_of` a node, by its name; `wake`: it needs an agent, which it has from now on."""
        self._leases, self._client_of, self._wake = leases, client_of, wake
        self._clock, self._report_seconds = clock, report_seconds
        self._nodes: dict[str, Alone] = {}
        self._due: list[tuple[float, str]] = []  # a heap: whose status is told again, and when
        self._added, self._joined = 0, asyncio.Event()

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, name: str, *, was_away: bool) -> None:
        """`was_away`: its lease was not renewed for a while."""
        alone = self._nodes[name] = partial(self.wake, name)
        self._leases.keep(name, alone, soon=was_away)
        self._added += 1
        share = 1.0 - self._added * SPREAD % 1.0
        heapq.heappush(
            self._due, (self._clock.monotonic() + share * self._report_seconds, name)
        )  # fmt: skip
        self._joined.set()

    def remove(self, name: str) -> None:
        """It has an agent now, or is dead."""
        self._leases.let_go(name, self._nodes.pop(name))

    def wake(self, name: str) -> None:
        if name in self._nodes:
            self.remove(name)
            self._wake(name)

    def seen(self, old: Obj | None, new: Obj | None) -> None:
        """The API shows a node differently. What others wrote into its status its agent answers;
        one that somebody deleted registers itself again when its status is due."""
        if new is None or name_of(new) not in self._nodes:
            return
        if old is not None and differs(status_of(old), status_of(new)):
            self.wake(name_of(new))

    async def run(self) -> None:
        """Until cancelled: statuses are told again now and then, as the agents of others do."""
        while True:
            if not self._due:
                self._joined.clear()
                await self._joined.wait()
            await self._clock.sleep(self._due[0][0] - self._clock.monotonic())
            due_at, name = heapq.heappop(self._due)
            if name in self._nodes:
                heapq.heappush(self._due, (due_at + self._report_seconds, name))
                await self._report(name)

    async def _report(self, name: str) -> None:
        client, now = self._client_of(name), time_text(self._clock.now())
        try:
            node = await client.get(NODES, "", name)
            told = [
                {**each, "lastHeartbeatTime": now}
                for each in status_of(node).get("conditions") or ()
            ]
            status = {"status": {"conditions": told}}
            await client.patch(NODES, "", name, status, subresource="status")
        except ApiError:
            self.wake(name)  # its agent knows what to do


def is_like(node: Obj, pattern: Obj, addresses: Iterable[str]) -> bool:
    """Ready, and as a node would say of itself that differs from `pattern` in its name and its
    addresses only; whatever else others may have written into its metadata."""
    name, meta, wanted = name_of(node), meta_of(node), meta_of(pattern)
    labels = {**(wanted.get("labels") or {}), HOSTNAME: name}
    shown = [{"type": "InternalIP", "address": address} for address in addresses]
    status = {
        **status_of(pattern), "addresses": [*shown, {"type": "Hostname", "address": name}]
    }  # fmt: skip
    return (
        not is_deleted(node)
        and is_ready(status_of(node))
        and _has(labels_of(node), labels)
        and _has(meta.get("annotations") or {}, wanted.get("annotations") or {})
        and _untimed(status_of(node)) == _untimed(status)
    )


def _has(these: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(these.get(key) == value for key, value in wanted.items())


def _untimed(status: Obj) -> Obj:
    plain = [
        {key: value for key, value in each.items() if key not in _TIMES}
        for each in status.get("conditions") or ()
    ]
    return {**status, "conditions": plain}
