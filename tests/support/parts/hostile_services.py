"""Services that claim a node's own address and ports.

Job: programs that listen on the node, Services of every sort that claim where they listen, the real
    proxy; ask from the node, from a pod and from outside who answers; print it. Run as a program in
    the first of two machines.
"""

import asyncio
import itertools
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network import cni
from sampan.network.bridge import PodNetwork
from sampan.network.pods.attachments import Attachment
from sampan.network.pods.host_ports import HostPorts
from sampan.network.pods.plugin_protocol import PortMapping
from sampan.network.services.proxy import ProxySettings, ServiceProxy
from tests.support.parts.pod_places import Place, places
from tests.support.worlds.small_api import SmallApi

RANGES = ("10.96.0.0/12",), ("10.244.0.0/16",)
EVERYWHERE, AT_ONE, FREE, POD_PORT = 10250, 6443, 7777, 9090
SORTS = ("balancer", "external", "local", "empty", "restricted", "node port")


def main() -> int:
    data_dir, own, outside = sys.argv[1:]
    print(json.dumps(asyncio.run(_run(Path(data_dir), own, Place(outside, [])))))
    return 0


def _service(number: int, sort: str, port: int, own: str) -> tuple[Obj, Obj]:
    """It, and the slice that leads to the attacker's pod."""
    name = f"s{number}"
    listed: Obj = {"port": port, "protocol": "TCP"}
    spec: Obj = {"clusterIP": f"10.96.1.{number}", "clusterIPs": [f"10.96.1.{number}"],
                 "ports": [listed], "selector": {"app": "attacker"}}  # fmt: skip
    status: Obj = {}
    if sort == "external":
        spec["externalIPs"] = [own]
    elif sort == "node port":
        spec["type"] = "NodePort"
        listed["nodePort"] = port
    else:
        spec["type"] = "LoadBalancer"
        status = {"loadBalancer": {"ingress": [{"ip": own, "ipMode": "VIP"}]}}
    if sort == "local":
        spec["externalTrafficPolicy"] = "Local"
    if sort == "restricted":
        spec["loadBalancerSourceRanges"] = ["192.0.2.0/24"]
    service = {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": status}
    endpoints = [] if sort == "empty" else [
        {"addresses": ["10.244.0.5"], "conditions": {"ready": True}, "nodeName": "n1"}
    ]  # fmt: skip
    piece = {
        "metadata": {"name": name, "namespace": "default",
                     "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "", "port": POD_PORT, "protocol": "TCP"}],
    }  # fmt: skip
    return service, piece


async def _run(data_dir: Path, own: str, outside: Place) -> Obj:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    network = cni.set_up(data_dir, *RANGES)
    listening = [_listen("0.0.0.0", EVERYWHERE), _listen(own, AT_ONE)]
    wanted = {"attacker": ["10.244.0.5"], "other": ["10.244.0.6"]}
    wrong: list[str] = []
    asked = reached = 0
    with places(network, wanted) as pods:
        with pods["attacker"].inside():
            listening.append(_listen("0.0.0.0", POD_PORT, b"attacker"))
        askers = {"node": None, "pod": pods["other"], "outside": outside}
        for sort in SORTS:
            async with asyncio.timeout(60), _Proxy(network, sort, own):
                for (name, asker), port in itertools.product(askers.items(), (EVERYWHERE, AT_ONE)):
                    said = await asyncio.to_thread(_ask, asker, own, port)
                    asked += 1
                    if said != "node":
                        wrong.append(f"{sort}: {name} asked {port}: {said}")
                for asker in askers.values():
                    reached += await asyncio.to_thread(_ask, asker, own, FREE) == "attacker"
        ports = HostPorts("ip", cni.nft_table(network), network.bridge)
        claimed = (EVERYWHERE, AT_ONE, FREE)
        mapped = tuple(PortMapping(number, POD_PORT, "TCP", "") for number in claimed)
        attacker = Attachment("x", "eth0", "v", ("10.244.0.5/24",), mapped)
        async with _Proxy(network, "none", own):
            ports.load([attacker])
            for (name, asker), port in itertools.product(askers.items(), (EVERYWHERE, AT_ONE)):
                said = await asyncio.to_thread(_ask, asker, own, port)
                asked += 1
                if said != "node":
                    wrong.append(f"host port: {name} asked {port}: {said}")
            reached += await asyncio.to_thread(_ask, outside, own, FREE) == "attacker"
        ports.close()
    for each in listening:
        each.close()
    cni.tear_down(data_dir)
    return {"wrong": wrong, "asked": asked, "reached": reached}


class _Proxy:
    """The real one, with Services of one sort."""

    def __init__(self, network: PodNetwork, sort: str, own: str) -> None:
        self._api, self._tasks = SmallApi(SystemClock()), Tasks("proxy")
        self._informers = Informers(self._api, clock=SystemClock())
        place = cni.proxy_place(network, *RANGES)
        settings = ProxySettings(place, "n1", place.families)
        self._proxy = ServiceProxy(settings, self._informers, SystemClock(), Metrics())
        ports = (EVERYWHERE, AT_ONE, FREE) if sort != "none" else ()
        self._made = [_service(number, sort, port, own) for number, port in enumerate(ports, 1)]

    async def __aenter__(self) -> None:
        for service, piece in self._made:
            await self._api.create(SERVICES, service, "default")
            await self._api.create(ENDPOINT_SLICES, piece, "default")
        self._informers.start()
        self._tasks.supervise("proxy", self._proxy.run)
        await self._proxy.ready.wait()

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.stop()
        await self._informers.stop()


def _listen(address: str, port: int, name: bytes = b"node") -> socket.socket:
    listening = socket.create_server((address, port))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
                connection.sendall(name)
                connection.close()
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    return listening


def _ask(asker: Place | None, address: str, port: int) -> str:
    if asker is None:
        client = socket.socket()
    else:
        with asker.inside():
            client = socket.socket()
    with client:
        client.settimeout(1)
        try:
            client.connect((address, port))
            return client.recv(20).decode()
        except OSError as error:
            return str(error)


if __name__ == "__main__":
    sys.exit(main())
