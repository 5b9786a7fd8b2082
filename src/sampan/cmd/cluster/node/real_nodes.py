"""Several real nodes on one machine: the machine itself, and others in network namespaces.

Job: a network between them, a namespace and a process for each of the others; start, cut, mend and
    stop them.
Invariant: each has a directory, an address, a range of pods and a cgroup of its own.
Invariant: none of their processes outlives this one; their namespaces last until a reset, as what
    runs in them may.
"""

import asyncio
import ipaddress
import itertools
import signal
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.api.rules.names import dns_subdomain
from sampan.cmd.cluster.addresses import EVERYWHERE
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.node.places import (
    NUMBER,
    directory_of,
    make_namespace,
    namespace_of,
    number_of,
)
from sampan.cmd.cluster.node.real_node import RealNode
from sampan.cmd.cluster.nodes import (
    ClientMaker,
    NodeIdentity,
    NodeSetup,
    Together,
)
from sampan.cmd.cluster.processes import handover
from sampan.cmd.cluster.processes.part_process import PartProcess, note, same_command
from sampan.cmd.errors import CannotStart
from sampan.core.http.origin import Origin
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks, all_of
from sampan.runtime.own_thread import in_own_thread

if TYPE_CHECKING:
    from sampan.kubelet.contracts.runtime import Runtime
    from sampan.network.bridge import PodNetwork

PATH = "/sampan/v1/nodes"
Done = tuple[str, str]  # a node, and how it is now


class RealNodes:
    mount_volumes = True

    def __init__(self, setup: NodeSetup, names: Sequence[str]) -> None:
        if setup.again is None:
            raise CannotStart("several real nodes are for `sampan up`, in one process")
        self._setup, self._again, self._runtime = setup, setup.again, setup.settings.runtime
        self._root = setup.data.root
        self.name, *self._wanted = names
        self._tasks = Tasks("nodes")
        self._parts: dict[str, PartProcess] = {}
        self._lan: PodNetwork | None = None
        self._first: RealNode | None = None
        self._gateways: tuple[str, ...] = ()

    @property
    def real_names(self) -> tuple[str, ...]:
        return (self.name, *(self._parts or self._wanted))

    @property
    def first(self) -> RealNode:
        """The machine itself."""
        assert self._first is not None, "its address was asked for before"
        return self._first

    @property
    def lan(self) -> "PodNetwork":
        assert self._lan is not None, "gateways come first"
        return self._lan

    @property
    def identity(self) -> NodeIdentity:
        from sampan.network import node_lan

        return NodeIdentity(self.name, node_lan.addresses_of(self.lan, 1))

    @property
    def containers(self) -> "Runtime | None":
        return self.first.containers

    async def place_of(self, kubelet: Origin) -> Origin:
        return kubelet

    async def gateways(self) -> tuple[str, ...]:
        """The machine's addresses among the nodes, where all of their pods find it."""
        from sampan.network import node_lan
        from sampan.network.bridge import NetworkError

        families = self._setup.settings.ranges.families
        if len(self._wanted) >= node_lan.MOST_NODES:
            raise CannotStart(f"--nodes: at most {node_lan.MOST_NODES} real ones on one machine")
        try:
            self._lan = await asyncio.to_thread(node_lan.reserve, self._root, families)
        except NetworkError as error:
            raise CannotStart(str(error)) from error
        self._first = RealNode(replace(self._setup, identity=self.identity))
        self._gateways = await self._first.gateways()
        return node_lan.addresses_of(self.lan, 1)

    async def prepare(self) -> None:
        await all_of([self.first.prepare(), self._prepare_others()])

    def act_together(self, together: Together) -> None:
        """Each has an agent of its own; by `POST /sampan/v1/nodes/add` and so on they come and
        go."""
        assert together.offer is not None, "the API is in this process"
        for word, action in {
            "add": self.add, "remove": self.remove, "cut": self.cut, "mend": self.mend,
            "kill": self.kill, "start": self.start_again,
        }.items():  # fmt: skip
            together.offer(f"{PATH}/{word}", partial(_answered, action))

    async def start(self, clients: ClientMaker, metrics: Metrics, tls: ssl.SSLContext) -> None:
        for part in self._parts.values():
            part.may_start.set()
        with self._setup.progress.step("other nodes") as step:
            await all_of(
                [
                    self.first.start(clients, metrics, tls),
                    *(part.started() for part in self._parts.values()),
                ]
            )
            step.detail = f"{', '.join(self._parts)}, Ready"

    def hurry(self) -> None:
        self.first.hurry()
        for part in self._parts.values():
            part.signal(signal.SIGTERM)

    async def stop(self) -> None:
        stops = [part.stop() for part in self._parts.values()]
        await all_of([*stops, *([self._first.stop()] if self._first is not None else [])])
        await self._tasks.stop()
        self._setup.data.processes_file.unlink(missing_ok=True)

    # One of them, by whoever may.

    async def add(self, name: str) -> Done:
        """Another one; says what its address is. Raises BadRequest."""

        name = name or next(
            chosen
            for number in itertools.count(2)
            if not directory_of(self._root, chosen := f"{self.name}-{number}").exists()
        )
        if name in self.real_names or dns_subdomain(name):
            raise BadRequest(f"{name!r} cannot be a new node's name: there is one, or it is none")
        return await self._come(name)

    async def remove(self, name: str) -> Done:
        """It stops with its pods, and nothing of it is left on the machine."""
        from sampan.cmd.cluster.node.removal import clear_node
        from sampan.network import node_lan

        part, number = self._part(name), number_of(self._root, name)
        await part.stop()
        del self._parts[name]
        directory = directory_of(self._root, name)
        await asyncio.to_thread(clear_node, directory)
        await asyncio.to_thread(node_lan.disconnect, self.lan, number)
        self._note()
        return name, "removed"

    async def cut(self, name: str) -> Done:
        """From the network: its agent and its pods go on, alone."""
        from sampan.network import node_lan

        self._part(name)
        await asyncio.to_thread(node_lan.cut, self.lan, number_of(self._root, name))
        return name, "cut off"

    async def mend(self, name: str) -> Done:
        from sampan.network import node_lan

        self._part(name)
        await asyncio.to_thread(node_lan.mend, self.lan, number_of(self._root, name))
        return name, "connected"

    async def kill(self, name: str) -> Done:
        """As when its power fails: agent and containers end without a word."""
        from sampan.kubelet.cgroups.pod_cgroups import remove_root

        part = self._part(name)
        await part.kill()
        place = self._setup.settings.cgroup_place
        await asyncio.to_thread(remove_root, directory_of(self._root, name), place, kill=True)
        self._note()
        return name, "killed"

    async def start_again(self, name: str) -> Done:
        """One that was killed."""
        if not self._part(name).has_ended:
            raise BadRequest(f"node {name} runs")
        return await self._come(name)

    def _part(self, name: str) -> PartProcess:
        """Raises BadRequest."""
        if name == self.name:
            raise BadRequest(f"node {name} is the machine itself: the others are "
                             f"{', '.join(self._parts)}")  # fmt: skip
        if name not in self._parts:
            raise BadRequest(f"there is no node {name!r} of its own: there are "
                             f"{', '.join(self._parts)}")  # fmt: skip
        return self._parts[name]

    async def _come(self, name: str) -> Done:
        """Raises BadRequest."""
        try:
            await self._begin(name)
            self._parts[name].may_start.set()
            await self._parts[name].started()
        except CannotStart as error:
            raise BadRequest(str(error)) from error
        self._note()
        return name, "Ready"

    async def _prepare_others(self) -> None:
        """Namespaces and wires; and their processes, which load what they need meanwhile."""
        from sampan.network import node_lan
        from sampan.network.bridge import NetworkError

        for name in self._wanted:
            await self._begin(name)
        ranges = self._setup.settings.ranges.cluster
        try:
            await asyncio.to_thread(node_lan.let_out, self.lan, ranges)
        except NetworkError as error:
            raise CannotStart(str(error)) from error

    async def _begin(self, name: str) -> None:
        """Its process, which waits for its word. Raises CannotStart."""
        from sampan.network import node_lan

        directory = directory_of(self._root, name)
        open_data_dir(str(directory))
        number = number_of(self._root, name)
        (directory / NUMBER).write_text(str(number))
        try:
            await in_own_thread("namespace", lambda: make_namespace(directory))
            namespace = str(namespace_of(directory))
            await asyncio.to_thread(node_lan.connect, self.lan, number, namespace)
        except OSError as error:
            raise CannotStart(f"node {name} cannot have a network of its own: {error}") from error
        addresses = ",".join(node_lan.addresses_of(self.lan, number))
        known = {
            "name": name,
            "addresses": addresses,
            "server": self._server,
            "names": ",".join(self._gateways),  # where the machine's node answers for names
        }
        part = PartProcess(
            handover.node_part(name), same_command(self._again.arguments),
            handover.Handover(self._runtime, {}, known), self._again.lock, self._note,
            self._setup.clock,
        )  # fmt: skip
        self._parts[name] = part
        part.task = self._tasks.start(name, part.keep())

    @property
    def _server(self) -> str:
        """Where the others find the API: what is for this machine only is for its nodes, too."""
        bind = self._setup.settings.bind_address
        if bind in EVERYWHERE or ipaddress.ip_address(bind).is_loopback:
            return self.identity.address
        return bind

    def _note(self) -> None:
        """For `sampan status`."""
        note(self._setup.data.processes_file, self._parts)


async def _answered(action: Callable[[str], Awaitable[Done]], body: Obj) -> Obj:
    """Raises BadRequest."""
    name = body.get("name", "")
    if not isinstance(name, str) or body.keys() - {"name"}:
        raise BadRequest("a node has a name, and nothing else")
    known, state = await action(name)
    return {"name": known, "state": state}
