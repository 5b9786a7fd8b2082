"""The pod network against the rest of the machine."""

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.network import cni, cni_configuration
from tests.support.parts.images import busybox_archive
from tests.support.parts.private_runtime import private_runtime, why_not
from tests.support.places import PYTHONPATH

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]

BUSYBOX = "localhost/test/busybox:1"


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def outside():
    """A machine beyond this one, which knows no way back to any pod: it answers on port 7000."""
    name = f"out{os.getpid()}"[:12]
    said("ip", "netns", "add", name)
    try:
        said("ip", "link", "add", name, "type", "veth", "peer", "name", "out", "netns", name)
        said("ip", "addr", "add", "198.51.100.1/24", "dev", name)
        said("ip", "link", "set", name, "up")
        inside = ["ip", "netns", "exec", name]
        said(*inside, "ip", "addr", "add", "198.51.100.2/24", "dev", "out")
        said(*inside, "ip", "link", "set", "out", "up")
        busybox = shutil.which("busybox")
        server = subprocess.Popen(
            [*inside, busybox, "nc", "-l", "-p", "7000"], stdin=subprocess.PIPE
        )
        server.stdin.write(b"from far away\n")
        server.stdin.close()
        try:
            yield "198.51.100.2"
        finally:
            server.kill()
            server.wait()
    finally:
        # At once: what goes with its namespace goes some time later, and its name stays taken.
        said("ip", "link", "del", name)
        said("ip", "netns", "del", name)


def test_a_pod_reaches_the_world_with_the_node_s_address(tmp_path):
    """By our own plugin and by the reference plugins, in turn: the world has one address."""

    async def story(address, data_dir, reference):
        async with private_runtime(data_dir, reference=reference) as node:
            assert cni.uses_own_plugin(node.data_dir) is not reference
            archive = busybox_archive(tmp_path / "busybox.tar", BUSYBOX)
            await node.import_image(archive.read_bytes())
            status = await run_to_its_end(node, ["nc", "-w", "5", address, "7000"])
            assert Path(status.log_path).read_text().endswith("stdout F from far away\n")

    for reference in (
        (False, True) if cni_configuration.plugin_directory() is not None else (False,)
    ):
        with outside() as address:
            asyncio.run(story(address, tmp_path / f"d{reference}", reference))


def test_the_network_is_set_up_once_and_let_through_where_the_machine_forwards_nothing(tmp_path):
    """In a network namespace of its own, with the policy that Docker sets."""
    script = textwrap.dedent(
        """
        import subprocess, sys
        from pathlib import Path
        from sampan.network import cni
        def said(*command):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout
        said("iptables", "-P", "FORWARD", "DROP")
        data = Path(sys.argv[1])
        first = cni.set_up(data)
        assert cni.set_up(data) == first
        rules = said("iptables", "-S", "FORWARD").splitlines()
        assert len([rule for rule in rules if first.bridge in rule]) == 2, rules
        assert f"{first.bridge}-pods" in said("nft", "list", "tables")
        cni.tear_down(data)
        assert said("iptables", "-S", "FORWARD").splitlines() == ["-P FORWARD DROP"]
        assert "sampan" not in said("nft", "list", "tables")
        assert not list(data.iterdir())
        """
    )
    subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script, str(tmp_path)],
        env={"PYTHONPATH": PYTHONPATH, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        check=True,
    )


def test_rules_that_somebody_deletes_or_changes_are_written_again_at_once(tmp_path):
    """In a network namespace of its own: the real proxy and enforcer on a small API."""
    script = textwrap.dedent(
        """
        import asyncio, errno, socket, subprocess, sys
        from pathlib import Path
        import uvloop
        from sampan.api.resources import NAMESPACES, PODS, SERVICE_CIDRS, SERVICES
        from sampan.client.informer import Informers
        from sampan.core.clock import SystemClock
        from sampan.core.metrics import Metrics
        from sampan.core.tasks import Tasks
        from sampan.network import cni
        from sampan.network.nftables.queries import WrittenRules
        from sampan.network.pods.pod_interfaces import PodInterfaces
        from sampan.network.policies.enforcer import POLICIES, EnforcerSettings, PolicyEnforcer
        from sampan.network.services.proxy import ProxySettings, ServiceProxy
        from tests.support.worlds.small_api import SmallApi

        KNOWN = "10.96.0.7 . tcp . 80", "10.244.0.9 :"

        def rules(table):
            shown = ""
            for family in ("ip", "bridge"):  # of frames: the guard of pods' veth pairs
                command = ["nft", "list", "table", family, table]
                shown += subprocess.run(command, capture_output=True, text=True).stdout
            return sorted(shown.splitlines())  # who comes first may write first

        def handle(table):
            # Another one when the table was made again.
            command = ["nft", "-a", "list", "table", "ip", table]
            shown = subprocess.run(command, capture_output=True, text=True)
            return shown.stdout.partition("\\n")[0]

        def is_refused():
            with socket.socket() as caller:
                caller.settimeout(0.2)
                return caller.connect_ex(("192.0.2.9", 80)) == errno.ECONNREFUSED

        async def no_address_of_a_further_range_leads_anywhere(api, bridge):
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            subprocess.run(["ip", "route", "add", "192.0.2.0/24", "dev", bridge], check=True)
            assert not await asyncio.to_thread(is_refused)
            more = {"metadata": {"name": "more"}, "spec": {"cidrs": ["192.0.2.0/24"]}}
            await api.create(SERVICE_CIDRS, more)
            inside = {"metadata": {"name": "inside"}, "spec": {"cidrs": ["192.0.2.0/26"]}}
            await api.create(SERVICE_CIDRS, inside)
            async with asyncio.timeout(60):
                while not await asyncio.to_thread(is_refused):
                    await asyncio.sleep(0.02)
            await api.delete(SERVICE_CIDRS, "", "more")
            await api.delete(SERVICE_CIDRS, "", "inside")
            async with asyncio.timeout(60):
                while await asyncio.to_thread(is_refused):
                    await asyncio.sleep(0.02)

        async def story(data):
            network = cni.set_up(data, ("10.96.0.0/12",))
            written = WrittenRules.now()
            table, clock = cni.nft_table(network), SystemClock()
            untouched = rules(table)
            assert written.are_the_last()
            subprocess.run(["nft", f"flush chain ip {table} services"], check=True)
            subprocess.run(["nft", f"flush chain ip {table} hook-ingress"], check=True)
            api, tasks = SmallApi(clock), Tasks("test")
            meta = {"name": "s", "namespace": "default"}
            ports = [{"port": 80, "protocol": "TCP"}]
            spec = {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": ports}
            await api.create(SERVICES, {"metadata": meta, "spec": spec}, "default")
            await api.create(NAMESPACES, {"metadata": {"name": "default"}})
            policy = {"podSelector": {}, "policyTypes": ["Ingress"]}
            await api.create(POLICIES, {"metadata": meta, "spec": policy}, "default")
            pod = {"metadata": {"name": "p", "namespace": "default", "labels": {}},
                   "spec": {"nodeName": "n"}, "status": {"podIPs": [{"ip": "10.244.0.9"}]}}
            await api.create(PODS, pod, "default")
            informers = Informers(api, clock=clock)
            place = cni.proxy_place(network, ("10.96.0.0/12",))
            settings = ProxySettings(place, "n", written=written)
            proxy = ServiceProxy(settings, informers, clock, Metrics())
            policed = EnforcerSettings(table, "n", written=written)
            enforcer = PolicyEnforcer(policed, informers, clock, Metrics())
            proxy.call_when_restored(enforcer.reload)
            interfaces = PodInterfaces(cni.interface_settings(data, network))
            await interfaces.start(written)
            proxy.call_when_restored(interfaces.restore_soon)
            informers.start()
            tasks.supervise("proxy", proxy.run)
            await proxy.ready.wait()
            tasks.supervise("enforcer", enforcer.run)
            await enforcer.ready.wait()
            async with asyncio.timeout(60):
                while not all(known in str(rules(table)) for known in KNOWN):
                    await asyncio.sleep(0.02)
            await no_address_of_a_further_range_leads_anywhere(api, network.bridge)
            whole, here = rules(table), f"ip {table}"
            assert set(untouched) <= set(whole), whole
            for mischief in (
                "flush ruleset",
                f"flush chain {here} services",
                f"add rule {here} nat-output drop",
                f"delete element {here} no-endpoint-ips {{ 10.96.0.7 . tcp . 80 }}",
                f"add element {here} no-endpoint-ips {{ 10.96.0.99 . tcp . 80 }}",
                f"flush set {here} no-endpoint-ips",
                f"add chain {here} theirs {{ type filter hook input priority 0; policy drop; }}",
                f"add chain {here} nat-output {{ policy drop; }}",
                f"add table {here} {{ flags dormant; }}",
                f"delete table {here}",
                f"delete table bridge {table}",
                f"flush chain bridge {table} veth-guard",
            ):
                before = handle(table)
                subprocess.run(["nft", mischief], check=True)
                async with asyncio.timeout(60):
                    while handle(table) in ("", before) or rules(table) != whole:
                        await asyncio.sleep(0.02)
            # What others do elsewhere, and we ourselves here, is no reason to write them again.
            before = handle(table)
            subprocess.run(["nft", "add table ip theirs; add chain ip theirs c"], check=True)
            more = {"clusterIP": "10.96.0.8", "clusterIPs": ["10.96.0.8"], "ports": ports}
            again = {"name": "t", "namespace": "default"}
            await api.create(SERVICES, {"metadata": again, "spec": more}, "default")
            async with asyncio.timeout(60):
                while "10.96.0.8 . tcp . 80" not in str(rules(table)):
                    await asyncio.sleep(0.02)
            assert handle(table) == before
            await tasks.stop()
            await informers.stop()
            await interfaces.stop()
            cni.tear_down(data)
            print("restored")

        uvloop.run(story(Path(sys.argv[1])))
        """
    )
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script, str(tmp_path / "d")],
        env={"PYTHONPATH": PYTHONPATH, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.stdout.endswith("restored\n"), done.stdout + done.stderr


def test_routes_to_other_nodes_outlive_a_link_that_goes_down_and_one_that_cannot_be_set(tmp_path):
    """In a network namespace of its own: the node `a-far` is on no network of this machine."""
    script = textwrap.dedent(
        """
        import asyncio, subprocess, sys
        from sampan.api.resources import NODES
        from sampan.client.informer import Informers
        from sampan.core.clock import SystemClock
        from sampan.core.tasks import Tasks
        from sampan.network.overlay.overlay import Overlay, OverlaySettings
        from tests.support.worlds.small_api import SmallApi

        def ip(*words):
            command = ["ip", *words]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        def node(name, address, cidr):
            status = {"addresses": [{"type": "InternalIP", "address": address}]}
            return {"metadata": {"name": name}, "spec": {"podCIDRs": [cidr]}, "status": status}

        async def until(true):
            async with asyncio.timeout(60):
                while not true():
                    await asyncio.sleep(0.02)

        def routed():
            return "10.244.2.0/24 via 192.0.2.2" in ip("route")

        async def story(data):
            ip("link", "add", "eth0", "type", "veth", "peer", "name", "wire")
            ip("link", "set", "wire", "up")
            ip("addr", "add", "192.0.2.1/24", "dev", "eth0")
            ip("link", "set", "eth0", "up")
            clock = SystemClock()
            api, tasks = SmallApi(clock), Tasks("test")
            await api.create(NODES, node("a-far", "203.0.113.9", "10.244.1.0/24"))
            await api.create(NODES, node("b-near", "192.0.2.2", "10.244.2.0/24"))
            informers = Informers(api, clock=clock)
            settings = OverlaySettings("me", ("192.0.2.1",), ("10.244.0.0/24",), "sampan0", data,
                                       "host-gw")
            informers.start()
            tasks.supervise("routes", Overlay(settings, informers, clock).run)
            await until(routed)
            ip("link", "set", "eth0", "down")
            assert not routed()
            ip("link", "set", "eth0", "up")
            await until(routed)
            ip("route", "del", "10.244.2.0/24")
            await until(routed)
            await tasks.stop()
            await informers.stop()
            print("routed")

        asyncio.run(story(sys.argv[1]))
        """
    )
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script, str(tmp_path)],
        env={"PYTHONPATH": PYTHONPATH, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        check=False, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.stdout.endswith("routed\n"), done.stdout + done.stderr


async def run_to_its_end(node, command):
    place = generate.NodeFacts(
        "n", root_dir=str(node.data_dir / "kubelet"), log_root=str(node.data_dir / "logs")
    )
    container = {"name": "c", "image": BUSYBOX, "command": command}
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
        "spec": {"containers": [container]},
    }
    sandbox = generate.sandbox_spec(pod, attempt=0, node=place)
    sandbox_id = await node.runtime.run_sandbox(sandbox)
    image = await node.runtime.image(BUSYBOX)
    spec = generate.container_spec(
        pod,
        container,
        generate.ContainerContext(
            attempt=0,
            image_id=image.id,
            image=image,
            objects={},
            pod_ips=(),
            node=place,
        ),
    )
    container_id = await node.runtime.create_container(sandbox_id, spec, sandbox)
    await node.runtime.start_container(container_id)
    async with asyncio.timeout(60):
        while True:
            status = (await node.runtime.pod("uid-p")).containers[0]
            if status.state is ContainerState.EXITED:
                return status
            await asyncio.sleep(0.02)
