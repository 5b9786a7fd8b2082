"""A pod with raw sockets among others on one bridge: what it gets through, and whose mail it reads.

Job: three pods with veths, the real enforcer with a policy by which one pod hears another only;
    thousands of frames of the third; print what came through. Run as a program in a network
    namespace of its own.
"""

import asyncio
import ipaddress
import json
import random
import select
import socket
import subprocess
import sys
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import NAMESPACES, PODS
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network import bridge, cni
from sampan.network.pods import interfaces
from sampan.network.policies.enforcer import POLICIES, EnforcerSettings, PolicyEnforcer
from tests.support.generators import odd_frames
from tests.support.generators.odd_frames import Neighbour
from tests.support.parts.pod_places import Place, places
from tests.support.worlds.small_api import SmallApi

# Of Services and of pods.
RANGES = {
    "ip": (("10.96.0.0/12",), ("10.244.0.0/16",)),
    "ip6": (("fd00:10:96::/112",), ("fd00:10:244::/56",)),
    "both": (("10.96.0.0/12", "fd00:10:96::/112"), ("10.244.0.0/16", "fd00:10:244::/56")),
}
WHO = ("attacker", "other", "victim")
ONLY_OTHERS: Obj = {
    "metadata": {"name": "only-others"},
    "spec": {
        "podSelector": {"matchLabels": {"app": "victim"}},
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "other"}}}]}],
    },
}


def main() -> int:
    data_dir, family, seed, count = sys.argv[1:]
    found = asyncio.run(_run(Path(data_dir), family, random.Random(int(seed)), int(count)))
    print(json.dumps(found))
    return 0


async def _run(data_dir: Path, family: str, rng: random.Random, count: int) -> Obj:
    network = cni.set_up(data_dir, *RANGES[family])
    numbers = {name: f"{number}" for number, name in enumerate(WHO, start=5)}
    wanted = {
        name: [_numbered(subnet, number) for subnet in network.subnets]
        for name, number in numbers.items()
    }
    with places(network, wanted) as found:
        async with asyncio.timeout(500), _InForce(network, found):
            result = _attack(network, found, rng, count)
    cni.tear_down(data_dir)
    return result


def _numbered(subnet: str, number: str) -> str:
    return str(ipaddress.ip_network(subnet)[int(number)])


class _InForce:
    """The policy is in force as long as it lasts."""

    def __init__(self, network: bridge.PodNetwork, found: dict[str, Place]) -> None:
        self._tasks, self._api = Tasks("neighbours"), SmallApi(SystemClock())
        self._informers = Informers(self._api, clock=SystemClock())
        settings = EnforcerSettings(cni.nft_table(network), "n1", network.families)
        self._enforcer = PolicyEnforcer(settings, self._informers, SystemClock(), Metrics())
        self._pods = [_pod(name, place) for name, place in found.items()]

    async def __aenter__(self) -> None:
        assert POLICIES is not None
        await self._api.create(NAMESPACES, {"metadata": {"name": "default"}})
        await self._api.create(POLICIES, ONLY_OTHERS, "default")
        for pod in self._pods:
            await self._api.create(PODS, pod, "default")
        self._informers.start()
        self._tasks.supervise("enforcer", self._enforcer.run)
        await self._enforcer.ready.wait()

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.stop()
        await self._informers.stop()


def _pod(name: str, place: Place) -> Obj:
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": "n1"},
        "status": {"podIPs": [{"ip": address} for address in place.addresses]},
    }


def _attack(
    network: bridge.PodNetwork, found: dict[str, Place], rng: random.Random, count: int
) -> Obj:
    neighbours = {
        name: Neighbour(interfaces.hardware_address(place.addresses), place.addresses)
        for name, place in found.items()
    }
    node = Neighbour(interfaces.hardware_of(network.bridge), network.gateways)
    attacker, other, victim = (neighbours[name] for name in WHO)
    found["victim"].serve([odd_frames.PORT])
    found["other"].serve([odd_frames.PORT])
    with found["attacker"].inside():
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("eth0", 3))
    wire.setblocking(False)
    packets = list(odd_frames.packets(attacker, other, victim, node))
    claims = odd_frames.claims(attacker, other, victim, node)
    fuzz = list(odd_frames.mutated(rng, [*packets, *claims], count))
    sent, heard = 0, []
    for each in (*packets, *claims, *fuzz):
        sent += _send(wire, each)
        if sent % 50 == 0:
            heard += _heard(found["victim"])
    heard += _heard(found["victim"])
    overheard = _overheard(wire, attacker)
    # The node and the victim still find whom they look for.
    reached = [
        _tell(found["victim"], address, found["other"]) for address in found["other"].addresses
    ]
    answered = [
        _tell(found["other"], address, found["victim"]) for address in found["victim"].addresses
    ]
    overheard += _overheard(wire, attacker)
    return {
        "sent": sent, "heard": [text.decode(errors="replace") for text in heard],
        "overheard": overheard, "reached": reached, "answered": answered,
        "neighbours": _neighbours(network, {"other": other, "victim": victim}),
        "gateway": _gateway(found["victim"], network, node),
    }  # fmt: skip


def _send(wire: socket.socket, data: bytes) -> int:
    try:
        wire.send(data)
    except OSError:
        return 0  # the kernel refuses what is none
    return 1


def _heard(place: Place) -> list[bytes]:
    found: list[bytes] = []
    while True:
        try:
            found.append(place.servers["UDP", odd_frames.PORT].recv(2000))
        except BlockingIOError:
            return found


def _overheard(wire: socket.socket, own: Neighbour) -> list[str]:
    """What came by the attacker's veth and is addressed to somebody else."""
    found: list[str] = []
    while True:
        try:
            data, (_, _, kind, _, _) = wire.recvfrom(2000)
        except BlockingIOError:
            return found
        if kind != 4 and data[:6] != own.hardware and not data[0] & 1:  # 4: its own
            found.append(data[:60].hex())


def _tell(sender: Place, address: str, receiver: Place) -> bool:
    _heard(receiver)
    with sender.inside():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        client = socket.socket(family, socket.SOCK_DGRAM)
    with client:
        client.sendto(b"letter", (address, odd_frames.PORT))
    for _ in range(20):
        select.select([receiver.servers["UDP", odd_frames.PORT]], [], [], 0.05)
        if b"letter" in _heard(receiver):
            return True
    return False


def _neighbours(network: bridge.PodNetwork, known: dict[str, Neighbour]) -> list[str]:
    """What the node believes of where pods are, and is not so."""
    wrong = []
    for name, neighbour in known.items():
        for address in neighbour.addresses:
            shown = subprocess.run(
                ["ip", "neigh", "show", "to", address, "dev", network.bridge],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            if neighbour.hardware.hex(":") not in shown:
                wrong.append(f"{name} {address}: {shown}")
        shown = subprocess.run(
            ["bridge", "fdb", "show", "br", network.bridge],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        veth = interfaces.host_interface_name(network.bridge, name, "eth0")
        rows = [row for row in shown.splitlines() if row.startswith(neighbour.hardware.hex(":"))]
        wrong += [row for row in rows if f"dev {veth} " not in row]
    return wrong


def _gateway(place: Place, network: bridge.PodNetwork, node: Neighbour) -> list[str]:
    shown = place.run("ip", "neigh").splitlines()
    near = tuple(f"{each} " for each in network.gateways)
    return [row for row in shown if row.startswith(near) and node.hardware.hex(":") not in row]


if __name__ == "__main__":
    sys.exit(main())
