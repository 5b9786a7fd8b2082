"""What a test does to pods.

Job: let them fail, read what they wrote.
"""

from sampan.client.blocking import BlockingClient
from sampan.testing.kit.launcher import Control
from sampan.testing.kit.objects import Objects
from sampan.testing.kit.pacing import ClusterClock


class PodHandle:
    def __init__(
        self, control: Control, api: BlockingClient, objects: Objects, clock: ClusterClock
    ) -> None:
        self._control, self._api, self._objects, self._clock = control, api, objects, clock

    def fail(
        self,
        name: str,
        *,
        container: str = "",
        exit_code: int | None = None,
        reason: str = "",
        namespace: str = "default",
    ) -> None:
        """Its containers (or the one that is named) end now, as if of their own; what happens then
        is up to the restartPolicy. Simulated ones end with 1 and Error, or as you say; real ones
        are killed: 137."""
        self._control.ask(
            "fail_pod", name=name, container=container, exit_code=exit_code, reason=reason,
            namespace=namespace,
        )  # fmt: skip
        self._clock.settle_virtually()

    def log(
        self, name: str, *, container: str = "", previous: bool = False, namespace: str = "default"
    ) -> str:
        """As `kubectl logs`."""
        query = {"container": container} if container else {}
        if previous:
            query["previous"] = "true"
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
        return self._api.ask("GET", path, query, accept="*/*").body.decode()

    def names(self, labels: str = "", *, namespace: str = "default") -> list[str]:
        found = self._objects.list("pods", namespace=namespace, labels=labels)
        return sorted(pod["metadata"]["name"] for pod in found)
