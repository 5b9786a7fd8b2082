"""What a test does to nodes.

Job: cordon, drain, cut from the network, kill.
"""

from sampan.api.errors import NotFound, TooManyRequests
from sampan.api.objects import Obj
from sampan.api.rules import pods
from sampan.api.rules.durations import long_seconds
from sampan.client.blocking import BlockingClient
from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.launcher import Control
from sampan.testing.kit.objects import Objects
from sampan.testing.kit.pacing import ClusterClock


class NodeHandle:
    def __init__(
        self, control: Control, api: BlockingClient, objects: Objects, clock: ClusterClock
    ) -> None:
        self._control, self._api, self._objects, self._clock = control, api, objects, clock

    def names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self._objects.list("nodes"))

    def cordon(self, name: str) -> None:
        self._objects.patch(f"node/{name}", {"spec": {"unschedulable": True}})

    def uncordon(self, name: str) -> None:
        self._objects.patch(f"node/{name}", {"spec": {"unschedulable": None}})

    def drain(self, name: str, *, timeout: float | str = 60.0) -> None:
        """As `kubectl drain --ignore-daemonsets`: no new pods, the others are evicted, budgets are
        respected. Returns when they are gone."""
        self._objects.get("node", name)
        self.cordon(name)
        if not self._clock.wait_until(lambda: self._evict_all(name), long_seconds(timeout)):
            left = ", ".join(pod["metadata"]["name"] for pod in self._evictable(name))
            raise NotAsExpected(f"expected within {timeout}: {name} is drained; it has {left}")

    def cut(self, name: str) -> None:
        """Its kubelet reaches the API no more, its containers go on; `mend` ends it."""
        self._do("cut_node", name)

    def mend(self, name: str) -> None:
        self._do("mend_node", name)

    def kill(self, name: str) -> None:
        """The machine is gone, with everything on it: nobody says a word about it any more."""
        self._do("kill_node", name)

    def _do(self, command: str, name: str) -> None:
        self._control.ask(command, name=name)
        self._clock.settle_virtually()

    def _evict_all(self, name: str) -> bool:
        """True where none is left."""
        left = self._evictable(name)
        for pod in left:
            self._evict(pod)
        return not left

    def _evictable(self, name: str) -> list[Obj]:
        pods = self._objects.list("pods", namespace="", fields=f"spec.nodeName={name}")
        return [pod for pod in pods if not _stays(pod)]

    def _evict(self, pod: Obj) -> None:
        meta = pod["metadata"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        }
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
        try:
            self._api.json("POST", path, body=eviction)
        except (NotFound, TooManyRequests):
            return  # it is gone, or a budget says: later
        self._clock.settle_virtually()


def _stays(pod: Obj) -> bool:
    """Of a DaemonSet, static, or over."""
    meta = pod["metadata"]
    owners = {owner["kind"] for owner in meta.get("ownerReferences") or ()}
    over = pods.is_terminal(pod) and not meta.get("deletionTimestamp")
    return "DaemonSet" in owners or pods.is_mirror(pod) or over
