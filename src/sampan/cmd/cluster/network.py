"""The network of a node: the parts of network/ that run beside the node agent.

Job: settings → the parts that keep the node's rules; start and stop them.
Invariant: nothing that only Linux has is imported before a real node is wanted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks

if TYPE_CHECKING:
    from sampan.network.services.ruleset import ProxyPlace


class NodeNetwork:
    def __init__(self, node_name: str, place: "ProxyPlace", clock: Clock) -> None:
        self._node_name, self._place, self._clock = node_name, place, clock
        self._tasks = Tasks("network")
        self._informers: Informers | None = None

    async def start(
        self, client: Client, metrics: Metrics, families: Sequence[str] = ("ip",)
    ) -> None:
        """Returns when every Service that there is can be reached."""
        from sampan.network.services.proxy import ProxySettings, ServiceProxy

        informers = Informers(client, clock=self._clock)
        self._informers = informers
        settings = ProxySettings(self._place, self._node_name, tuple(families))
        proxy = ServiceProxy(settings, informers, self._clock, metrics)
        informers.start()
        self._tasks.supervise("service proxy", proxy.run)
        await proxy.ready.wait()

    async def stop(self) -> None:
        """The rules stay: connections go on while sampan is restarted; `sampan reset` ends them."""
        await self._tasks.stop()
        if self._informers is not None:
            await self._informers.stop()
