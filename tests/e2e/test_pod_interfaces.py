"""The node's own CNI plugin: the real program, the real kernel, network namespaces as pods."""

import asyncio
import json
import os
import socket
import subprocess
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest
import uvloop

from sampan.network import cni
from sampan.network.pods import interfaces
from sampan.network.pods.pod_interfaces import PodInterfaces
from tests.support.parts.private_runtime import why_not

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]
SECONDS = 60


class Node:
    def __init__(self, data_dir, network, plugin):
        self.data_dir, self.network, self.plugin = data_dir, network, plugin
        self._places = []

    def namespace(self, name):
        place = f"pi{os.getpid()}-{name}"
        subprocess.run(["ip", "netns", "add", place], check=True)
        self._places.append(place)
        return f"/run/netns/{place}"

    def remove_namespaces(self):
        for place in self._places:
            subprocess.run(["ip", "netns", "del", place], check=False)

    async def call(self, command, container="c1", namespace="", *, kind="sampan", **config):
        environment = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": namespace,
        }
        written = {"cniVersion": "1.0.0", "name": "sampan", "type": kind, **config}
        done = await asyncio.to_thread(
            subprocess.run,
            [str(cni.plugins_of(self.data_dir) / kind)],
            env=environment, input=json.dumps(written).encode(), stdout=subprocess.PIPE,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout else {}

    async def add(self, container, namespace, **config):
        code, said = await self.call("ADD", container, namespace, **config)
        assert code == 0, said
        return said["ips"][0]["address"].partition("/")[0]

    async def freed(self, address):
        """The kernel takes its time, the runtime's call does not."""
        async with asyncio.timeout(SECONDS):
            while address in self.plugin._attachments.taken():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def node(data_dir, **settings):
    network = cni.set_up(data_dir)
    chosen = replace(cni.interface_settings(data_dir, network), **settings)
    plugin = PodInterfaces(chosen)
    found = Node(data_dir, network, plugin)
    try:
        await plugin.start()
        yield found
    finally:
        await plugin.stop()
        found.remove_namespaces()
        cni.tear_down(data_dir)


def tell(story, data_dir, **settings):
    async def told():
        async with node(data_dir, **settings) as here:
            await story(here)

    uvloop.run(told())  # as the product does


@contextmanager
def echo(namespace, kind=socket.SOCK_STREAM, port=7777):
    """A pod's program: answers with the client's address, as it sees it."""
    with interfaces._opened(namespace) as opened, interfaces._inside(opened):
        listening = socket.socket(socket.AF_INET, kind)
    listening.bind(("0.0.0.0", port))
    if kind == socket.SOCK_STREAM:
        listening.listen()

    def serve():
        try:
            while True:
                if kind == socket.SOCK_STREAM:
                    connection, client = listening.accept()
                    with connection:
                        connection.sendall(client[0].encode())
                else:
                    _, client = listening.recvfrom(100)
                    listening.sendto(client[0].encode(), client)
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR) if kind == socket.SOCK_STREAM else None
        listening.close()


def asked(target, kind=socket.SOCK_STREAM, namespace="/proc/thread-self/ns/net"):
    with interfaces._opened(namespace) as opened, interfaces._inside(opened):
        client = socket.socket(socket.AF_INET, kind)
    with client:
        client.settimeout(5)
        client.connect(target)
        if kind == socket.SOCK_DGRAM:
            client.send(b"?")
        return client.recv(100).decode()


def mapped(table):
    command = ["nft", "list", "map", "ip", table, "host-ports"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return "elements" in shown


def machine_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def test_a_pod_has_an_interface_an_address_and_a_way_out(tmp_path):
    async def story(here):
        place = here.namespace("a")
        code, _ = await here.call("ADD", "c1", place, kind="loopback")
        assert code == 0
        address = await here.add("c1", place)
        with echo(place):
            assert await asyncio.to_thread(asked, (address, 7777)) == here.network.gateway
        code, said = await here.call("CHECK", "c1", place)
        assert code == 0, said
        assert interfaces.addresses_inside(place, "lo") == {"127.0.0.1/8", "::1/128"}
        assert f"{address}/24" in interfaces.addresses_inside(place, "eth0")
        code, _ = await here.call("DEL", "c1", place)
        assert code == 0
        await here.freed(address)
        with pytest.raises(OSError, match="no interface"):
            interfaces.addresses_inside(place, "eth0")
        code, said = await here.call("CHECK", "c1", place)
        assert (code, said["code"]) == (1, 100)
        code, _ = await here.call("DEL", "c1", place)
        assert code == 0

    tell(story, tmp_path / "d")


def test_the_interface_has_the_network_s_mtu(tmp_path):
    async def story(here):
        place = here.namespace("a")
        await here.add("c1", place)
        shown = subprocess.run(
            ["nsenter", f"--net={place}", "ip", "-o", "link", "show", "eth0"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert " mtu 1400 " in shown

    tell(story, tmp_path / "d", mtu=1400)


@pytest.mark.parametrize(
    ("protocol", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)]
)
def test_a_host_port_leads_into_the_pod(tmp_path, protocol, kind):
    port = 38_500 + os.getpid() % 500

    async def story(here):
        place = here.namespace("a")
        mapping = {"HostPort": port, "ContainerPort": 7777, "Protocol": protocol, "HostIP": ""}
        ports = {"portMappings": [mapping]}
        address = await here.add("c1", place, runtimeConfig=ports)
        with echo(place, kind):
            for target in (machine_address(), "127.0.0.1", here.network.gateway):
                await asyncio.to_thread(asked, (target, port), kind)
            # The pod itself, by the machine's address.
            own = await asyncio.to_thread(asked, (machine_address(), port), kind, place)
            assert own != address
            code, _ = await here.call("DEL", "c1", place)
            assert code == 0
            with pytest.raises(OSError):  # noqa: PT011  refused or silent, as the protocol has it
                await asyncio.to_thread(asked, (machine_address(), port), kind)

    tell(story, tmp_path / "d")


def test_a_host_port_of_one_address_is_at_no_other(tmp_path):
    port = 38_000 + os.getpid() % 500

    async def story(here):
        place = here.namespace("a")
        mapping = {"hostPort": port, "containerPort": 7777, "hostIP": "127.0.0.1"}
        await here.add("c1", place, runtimeConfig={"portMappings": [mapping]})
        with echo(place):
            await asyncio.to_thread(asked, ("127.0.0.1", port))
            with pytest.raises(ConnectionRefusedError):
                await asyncio.to_thread(asked, (machine_address(), port))

    tell(story, tmp_path / "d")


def test_many_at_once_have_addresses_of_their_own(tmp_path):
    async def story(here):
        places = [here.namespace(number) for number in range(20)]
        addresses = await asyncio.gather(  # noqa: TID251
            *(here.add(f"c{number}", place) for number, place in enumerate(places))
        )
        assert len(set(addresses)) == 20

    tell(story, tmp_path / "d")


def test_an_address_outlives_the_agent_and_goes_with_its_interface(tmp_path):
    """kill −9, and a reboot: what is in the files is compared with the interfaces at each start."""

    async def story(here):
        first, second = here.namespace("a"), here.namespace("b")
        stays = await here.add("c1", first)
        await here.add("c2", second)
        await here.plugin.stop()
        code, said = await here.call("ADD", "c3", second)
        assert (code, said["code"]) == (1, 11)
        interfaces.unplug(interfaces.host_interface_name(here.network.bridge, "c2", "eth0"))
        here.plugin = PodInterfaces(cni.interface_settings(here.data_dir, here.network))
        await here.plugin.start()
        assert here.plugin._attachments.taken() == {stays}
        assert here.plugin.holders() == {"c1"}
        assert await here.add("c4", second) != stays
        await here.plugin.release("c1")
        assert here.plugin.holders() == {"c4"}
        await here.plugin.stop()

    tell(story, tmp_path / "d")


def test_a_failure_keeps_no_address(tmp_path):
    async def story(here):
        code, said = await here.call("ADD", "c1", str(tmp_path / "no-such-namespace"))
        assert (code, said["code"]) == (1, 100)
        assert "No such file" in said["msg"]
        assert here.plugin._attachments.taken() == set()

    tell(story, tmp_path / "d")


def test_a_full_range_says_so_and_gives_again_what_is_given_back(tmp_path):
    async def story(here):
        place = here.namespace("a")
        address = await here.add("c1", place)
        code, said = await here.call("ADD", "c2", here.namespace("b"))
        assert code == 1
        assert "no IP addresses available in range set: 10.250.0.2-10.250.0.2" in said["msg"]
        code, said = await here.call("STATUS")
        assert code == 1
        await here.call("DEL", "c1", place)
        await here.freed(address)
        assert await here.add("c3", place) == address

    tell(story, tmp_path / "d", subnets=("10.250.0.0/30",))


def test_garbage_collection_leaves_what_is_valid(tmp_path):
    async def story(here):
        for number in (1, 2):
            await here.add(f"c{number}", here.namespace(number))
        valid = [{"containerID": "c2", "ifname": "eth0"}]
        code, _ = await here.call("GC", cniVersion="1.1.0", **{"cni.dev/valid-attachments": valid})
        assert code == 0
        assert here.plugin.holders() == {"c2"}

    tell(story, tmp_path / "d")


def test_host_ports_come_back_after_somebody_flushed_all_rules(tmp_path):
    port = 37_500 + os.getpid() % 500

    async def story(here):
        place, table = here.namespace("a"), cni.nft_table(here.network)
        mapping = {"hostPort": port, "containerPort": 7777}
        await here.add("c1", place, runtimeConfig={"portMappings": [mapping]})
        subprocess.run(["nft", "delete", "table", "ip", table], check=True)
        here.plugin.restore_soon()
        async with asyncio.timeout(SECONDS):
            while not mapped(table):
                await asyncio.sleep(0.01)
        with echo(place):
            await asyncio.to_thread(asked, (machine_address(), port))

    tell(story, tmp_path / "d")


def seconds_for(size, sender, receiver, target):
    """How long it takes from the one namespace to the other."""
    with interfaces._opened(receiver) as opened, interfaces._inside(opened):
        listening = socket.socket(socket.AF_INET)
    with interfaces._opened(sender) as opened, interfaces._inside(opened):
        client = socket.socket(socket.AF_INET)
    with listening, client:
        listening.bind(("0.0.0.0", 0))
        listening.listen()
        client.settimeout(SECONDS)
        began = time.monotonic()
        client.connect((target, listening.getsockname()[1]))
        sending = threading.Thread(target=client.sendall, args=(bytes(size),))
        sending.start()
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(SECONDS)
            left = size
            while left:
                left -= len(connection.recv(1 << 16))
        sending.join()
        return time.monotonic() - began


def test_bandwidth_is_limited_both_ways(tmp_path):
    async def story(here):
        limited, other = here.namespace("limited"), here.namespace("other")
        limits = {"ingressRate": 24_000_000, "ingressBurst": 2**32 - 1, "egressRate": 16_000_000}
        address = await here.add("limited", limited, runtimeConfig={"bandwidth": limits})
        gateway = await here.add("other", other)
        size = 1 << 20
        # A busy machine is slower than that, and none is faster.
        burst = 24_000_000 / 8 * 0.05
        assert await asyncio.to_thread(
            seconds_for, size, other, limited, address
        ) > 0.9 * (size - burst) * 8 / 24_000_000  # fmt: skip
        assert await asyncio.to_thread(
            seconds_for, size, limited, other, gateway
        ) > 0.9 * (size - burst) * 8 / 16_000_000  # fmt: skip

    tell(story, tmp_path)
