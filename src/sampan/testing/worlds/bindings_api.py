"""The small API with nodes, pods and bindings: what a scheduler needs to be tested alone.

Job: make nodes and pods in one line; bindings set nodeName once.
"""

from sampan.api.errors import conflict
from sampan.api.objects import Obj, copy_of
from sampan.api.resources import NODES, PODS, Resource
from sampan.core.clock import Clock
from sampan.testing.worlds.small_api import SmallApi


class BindingsApi(SmallApi):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.bound: list[tuple[str, str]] = []

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        if subresource != "binding":
            return await super().create(resource, obj, namespace)
        pod = copy_of(self._found(PODS, namespace, name))
        assert pod["metadata"]["uid"] == obj["metadata"]["uid"]
        if pod["spec"].get("nodeName"):
            raise conflict("pods/binding", "", name, "it already has a node")
        pod["spec"]["nodeName"] = obj["target"]["name"]
        self.bound.append((name, obj["target"]["name"]))
        return self._write("MODIFIED", PODS, (PODS.group_resource, namespace, name), pod)

    async def node(self, name: str = "n", cpu: str = "4", **spec: object) -> Obj:
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
        made = {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}
        return await self.create(NODES, made)

    async def pod(
        self, name: str = "p", cpu: str = "", labels: dict[str, str] | None = None, **spec: object
    ) -> Obj:
        container: Obj = {"name": "c", "image": "web"}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        made = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], **spec},
        }
        return await self.create(PODS, made, "default")

    def said(self, name: str) -> Obj | None:
        """The pod's PodScheduled condition."""
        pod = self.find(PODS, "default", name)
        assert pod is not None
        for one in (pod.get("status") or {}).get("conditions") or ():
            if one["type"] == "PodScheduled":
                found: Obj = one
                return found
        return None
