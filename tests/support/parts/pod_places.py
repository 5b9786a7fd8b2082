"""Network namespaces as pods: each at a real veth of a node's bridge, guarded as a pod's is.

Job: make them with the addresses that a test chose, let it open sockets in them, take them away.
    To be used in a network namespace of the test's own.
"""

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sampan.network import bridge, cni
from sampan.network.pods import interfaces
from sampan.network.pods.attachments import Attachment
from sampan.network.pods.interfaces import Veth
from sampan.network.pods.veth_guard import VethGuard

CLONE_NEWNET = 0x40000000


class Place:
    """A pod's network namespace, with its servers."""

    def __init__(self, name: str, addresses: Sequence[str]) -> None:
        """Addresses without their prefix."""
        self._name, self.addresses = name, tuple(addresses)
        self.servers: dict[tuple[str, int], socket.socket] = {}

    @property
    def address(self) -> str:
        return self.addresses[0]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is opened here stays in that namespace."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self._name}", os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home, CLONE_NEWNET) == 0
            os.close(home)
            os.close(there)

    def run(self, *command: str) -> str:
        where = ("nsenter", f"--net=/run/netns/{self._name}")
        return subprocess.run([*where, *command], check=True, capture_output=True, text=True).stdout

    def serve(self, ports: Sequence[int]) -> None:
        with self.inside():
            for port in ports:
                tcp = socket.create_server(("::", port), family=socket.AF_INET6, backlog=64,
                                           dualstack_ipv6=True)  # fmt: skip
                udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
                udp.bind(("::", port))
                udp.setblocking(False)
                tcp.setblocking(False)
                self.servers["TCP", port], self.servers["UDP", port] = tcp, udp


@contextmanager
def places(
    network: bridge.PodNetwork, pods: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Place]]:
    """`pods`: the addresses of each, of every family of the network."""
    found: dict[str, Place] = {}
    names: list[str] = []
    guard = VethGuard(cni.nft_table(network), network.bridge)
    guard.load([])
    try:
        for number, (key, addresses) in enumerate(pods.items()):
            name = f"pm{os.getpid()}-{number}"
            subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
            names.append(name)
            _plug(network, guard, key, name, addresses)
            found[key] = Place(name, addresses)
        yield found
    finally:
        guard.close()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=True, capture_output=True)


def _plug(
    network: bridge.PodNetwork, guard: VethGuard, key: str, name: str, addresses: Sequence[str]
) -> None:
    bits = {(":" in each): each.partition("/")[2] for each in network.subnets}
    whole = tuple(f"{address}/{bits[':' in address]}" for address in addresses)
    veth = interfaces.host_interface_name(network.bridge, key, "eth0")
    guard.put(Attachment(key, "eth0", veth, whole, guarded=True))
    interfaces.plug(Veth(network.bridge, veth, "eth0", f"/run/netns/{name}", whole))
