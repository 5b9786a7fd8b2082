"""A node with a tunnel to another: what others write into it, and what comes out.

Job: a pod at a real veth, the real Overlay with two Nodes; packets of the tunnel from a pod, from
    the other node's machine and from a stranger's; print what the pod heard. Run as a program in
    the first of three machines.
"""

import asyncio
import itertools
import json
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import NODES
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from sampan.network import bridge, cni
from sampan.network.netlink import VXLAN_NUMBER, VXLAN_PORT
from sampan.network.overlay.overlay import Overlay, OverlaySettings
from sampan.network.overlay.routes import hardware_address
from tests.support.generators import odd_frames
from tests.support.parts.pod_places import Place, places
from tests.support.worlds.small_api import SmallApi

OTHER_RANGE = "10.244.9.0/24"
RANGES = ("10.96.0.0/12",), ("10.244.0.0/16",)


def main() -> int:
    data_dir, own, other, other_namespace, stranger_namespace = sys.argv[1:]
    machines = {
        "other": Place(other_namespace, [other]),
        "stranger": Place(stranger_namespace, []),
    }
    print(json.dumps(asyncio.run(_run(Path(data_dir), own, machines))))
    return 0


def _node(name: str, address: str, cidr: str) -> Obj:
    return {
        "metadata": {"name": name}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }  # fmt: skip


async def _run(data_dir: Path, own: str, machines: dict[str, Place]) -> Obj:
    network = cni.set_up(data_dir, *RANGES)
    prefix = network.subnet.rpartition(".")[0]
    settings = OverlaySettings(
        "n1", (own,), network.subnets, network.bridge, str(data_dir), "vxlan", 1500,
        cni.nft_table(network),
    )  # fmt: skip
    api, tasks = SmallApi(SystemClock()), Tasks("tunnel")
    await api.create(NODES, _node("n1", own, network.subnet))
    await api.create(NODES, _node("n2", machines["other"].address, OTHER_RANGE))
    # What no kernel can be told is nobody else's trouble.
    await api.create(NODES, _node("n3", "1.2.3.4; flush ruleset", "10.244.8.0/24"))
    informers = Informers(api, clock=SystemClock())
    with places(network, {"attacker": [f"{prefix}.5"], "victim": [f"{prefix}.6"]}) as pods:
        async with asyncio.timeout(120):
            informers.start()
            tasks.supervise("routes", Overlay(settings, informers, SystemClock()).run)
            while not _routed():
                await asyncio.sleep(0.05)
            found = await asyncio.to_thread(_attack, network, own, machines, pods)
            await tasks.stop()
            await informers.stop()
    cni.tear_down(data_dir)
    return found


def _routed() -> bool:
    shown = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    return OTHER_RANGE in shown


def _attack(
    network: bridge.PodNetwork, own: str, machines: dict[str, Place], pods: dict[str, Place]
) -> Obj:
    victim, attacker = pods["victim"], pods["attacker"]
    victim.serve([odd_frames.PORT])
    # From the other node, of a pod of its own: the tunnel works, or nothing is tested.
    pod_there = OTHER_RANGE.replace(".0/24", ".7")
    good = _told(machines["other"], own, own, pod_there, victim)
    node = hardware_address(own)
    sources = {
        "a pod of this node": attacker.address, "the victim": victim.address,
        "the gateway": network.gateway, "nobody's": "10.244.77.7", "loopback": "127.0.0.1",
        "the node": own, "the world": "192.0.2.77",
    }  # fmt: skip
    wrong = {
        name: _told(machines["other"], own, own, source, victim) for name, source in sources.items()
    }
    there = _listening(machines["other"])
    writers = {
        "a pod": (attacker, own), "a pod, to its gateway": (attacker, network.gateway),
        "a stranger": (machines["stranger"], own),
    }  # fmt: skip
    for name, (writer, target) in writers.items():
        for source, number in itertools.product((pod_there, attacker.address), (1, 0, 2)):
            told = _told(writer, target, own, source, victim, number)
            wrong[f"{name} as {source} in {number}"] = told
    _write(attacker, machines["other"].address, node, pod_there, victim.address, VXLAN_NUMBER)
    passed, _, _ = select.select([there], [], [], 0.5)
    return {"good": good, "wrong": [name for name, told in wrong.items() if told],
            "tried": len(wrong), "passed on": bool(passed)}  # fmt: skip


def _listening(machine: Place) -> socket.socket:
    with machine.inside():
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.bind(("0.0.0.0", VXLAN_PORT))
    return found


def _told(
    writer: Place, target: str, node: str, source: str, victim: Place, number: int = VXLAN_NUMBER
) -> bool:
    _write(writer, target, hardware_address(node), source, victim.address, number)
    server = victim.servers["UDP", odd_frames.PORT]
    ready, _, _ = select.select([server], [], [], 0.2)
    while ready:
        try:
            server.recv(2000)
        except BlockingIOError:
            return True
    return False


def _write(
    writer: Place, target: str, hardware: bytes, source: str, victim: str, number: int
) -> None:
    inner = odd_frames.frame(
        hardware, b"\x0a\x58\1\2\3\4", *odd_frames.datagram(source, victim, b"by tunnel")
    )
    with writer.inside():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        packet = struct.pack(">BxxxI", 8, number << 8) + inner
        sender.sendto(packet, (target, VXLAN_PORT))


if __name__ == "__main__":
    sys.exit(main())
