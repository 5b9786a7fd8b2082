"""The network's figures: rules, names, and what a Service costs a connection.

All of it in a network namespace of its own: the program starts itself again in one.
"""

import asyncio
import json
import multiprocessing
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import uvloop

from sampan.api.resources import PODS, SERVICES
from sampan.client import kubeconfig
from sampan.client.informer import Informers
from sampan.client.rest import connect
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.network import cni, cni_configuration
from sampan.network.dns import wire
from sampan.network.dns.server import ClusterDns, DnsSettings
from sampan.network.nftables.desired_elements import DesiredElements, net_changes
from sampan.network.services.elements_of_service import elements_of_service
from sampan.network.services.endpoints import NodeView
from sampan.network.services.table import ServiceTable
from tests.support.parts.pod_places import places
from tests.support.parts.processes import Program
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command
from tests.support.worlds.small_api import SmallApi

from .record import append, print_row

NODE = NodeView("n1")
INSIDE = "SAMPAN_BENCH_INSIDE"
HERE = "198.18.0.1"  # of those for benchmarks (RFC 2544), as are the pods'


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def service(number):
    address = f"10.{96 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    spec = {"clusterIP": address, "clusterIPs": [address], "ports": ports}
    return {"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec}


def piece(*addresses):
    entries = [{"addresses": [each], "nodeName": "n2"} for each in addresses]
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    return {"addressType": "IPv4", "ports": ports, "endpoints": entries}


def rules(place):
    """One endpoint changes, with more and more Services beside it."""
    row = {}
    table, desired, known = ServiceTable("ip", place), DesiredElements(), 0
    table.load()
    for count in (10, 1000, 10_000):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        changes = []
        for number in range(known, count):
            elements = elements_of_service(service(number), [piece("10.244.1.2", "10.244.1.3")],
                                           "ip", NODE)  # fmt: skip
            changes += desired.put(f"default/s{number}", elements)
        started = time.perf_counter()
        table.apply(net_changes(changes))
        row[f"{count - known} Services loaded, ms"] = (time.perf_counter() - started) * 1000
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        times = []
        for turn in range(200):
            last = f"10.244.1.{4 + turn % 2}"
            started = time.perf_counter()
            elements = elements_of_service(service(5), [piece("10.244.1.2", last)], "ip", NODE)
            table.apply(net_changes(desired.put("default/s5", elements)))
            times.append((time.perf_counter() - started) * 1000)
        row[f"one endpoint changed among {count} Services p50, ms"] = statistics.median(times)
        if count == 10_000:
            row["memory per Service, KiB"] = grown / (count - known)
        known = count
    for number in range(known):
        table.apply(net_changes(desired.put(f"default/s{number}", {})))
    table.close()
    return row


async def server_of_many():
    clock = SystemClock()
    api = SmallApi(clock)
    for number in range(1000):
        await api.create(SERVICES, service(number), "default")
    informers = Informers(api, clock=clock)
    server = ClusterDns(DnsSettings(("127.0.0.1",)), informers, clock, Metrics(), random.Random(1))
    informers.start()
    await server.start()
    return server, informers


async def answer_questions(port_pipe):
    server, _ = await server_of_many()
    port_pipe.send(server.endpoints[0][1])
    await asyncio.Event().wait()


def name_server(port_pipe):
    uvloop.run(answer_questions(port_pipe))


def questions():
    return [
        wire.write_question(number, f"s{number}.default.svc.cluster.local", wire.A)
        for number in range(1000)
    ]


def names():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=name_server, args=(theirs,), daemon=True)
    process.start()
    address = ("127.0.0.1", ours.recv())
    asked = questions()
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    client.connect(address)
    before, started, answers = cpu_of(process.pid), time.perf_counter(), 0
    while time.perf_counter() - started < 3:
        for question in asked[:64]:
            client.send(question)
        for _ in range(64):
            client.recv(1500)
        answers += 64
    took, burnt = time.perf_counter() - started, cpu_of(process.pid) - before
    row = {"names answered/s": answers / took, "names answered/s of one core": answers / burnt}
    with ahead_of_others(process.pid):
        row |= latencies(client, asked)
    process.terminate()
    process.join()
    return row | {"names never asked before/s of one core": asyncio.run(new_names())}


@contextmanager
def ahead_of_others(*pids):
    """What else runs on the machine is no part of how long an answer takes."""
    own = os.getpid()
    for pid in (own, *pids):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(own, os.SCHED_OTHER, os.sched_param(0))


async def new_names(rounds=10):
    """Without the answers that were made before, as after any change of a Service."""
    burnt, count = 0.0, 0
    for _ in range(rounds):
        server, informers = await server_of_many()
        started = time.process_time()
        for question in questions():
            assert server.quick_answer(question)
            count += 1
        burnt += time.process_time() - started
        await server.stop()
        await informers.stop()
    return count / burnt


def latencies(client, asked, rate=5000, seconds=3):
    """An open loop: the next question does not wait for the last answer."""
    sent, times = {}, []

    def listen():
        client.settimeout(1)
        try:
            while len(times) < rate * seconds:
                number = int.from_bytes(client.recv(1500)[:2], "big")
                times.append((time.perf_counter() - sent[number]) * 1000)
        except TimeoutError:
            return

    listener = threading.Thread(target=listen)
    listener.start()
    started = time.perf_counter()
    for number in range(rate * seconds):
        due = started + number / rate
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        identity = number % 60000
        sent[identity] = time.perf_counter()
        client.send(identity.to_bytes(2, "big") + asked[number % 1000][2:])
    listener.join()
    times.sort()
    return {
        "names answered of 5000/s, part": len(times) / (rate * seconds),
        "names at 5000/s p50, ms": times[len(times) // 2],
        "names at 5000/s p99, ms": times[int(len(times) * 0.99)],
    }


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def two_pods(network):
    """At veth pairs as pods have them."""
    subnet = network.subnet.rpartition(".")[0]
    addresses = {name: [f"{subnet}.{number}"] for number, name in ((2, "client"), (3, "server"))}
    with places(network, addresses) as found:
        yield [(place, place.address) for place in found.values()]


def connections(network, place):
    """The same two pods, directly and through a Service."""
    with two_pods(network) as [(client, _), (server, address)]:
        with server.inside():
            listening = socket.create_server(("", 8080), backlog=512)
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        table, desired = ServiceTable("ip", place), DesiredElements()
        elements = elements_of_service(service(7), [piece(address)], "ip", NODE)
        table.apply(net_changes(desired.put("default/s7", elements)))
        row = {}
        ways = {"pod→pod": (address, 8080), "pod→Service": ("10.96.0.7", 80)}
        opened = {name: [] for name in ways}
        rates = {name: [] for name in ways}
        for _ in range(5):  # in turn, so that a busy moment is everybody's
            for name, target in ways.items():
                opened[name] += connect_times(client, target)
                rates[name].append(throughput(client, target))
        for name in ways:
            times = sorted(opened[name])
            row[f"{name} connect p50, ms"] = times[len(times) // 2]
            row[f"{name} connect p99, ms"] = times[int(len(times) * 0.99)]
            row[f"{name}, MB/s"] = statistics.median(rates[name])
        row["pod→Service ÷ pod→pod, MB/s"] = row["pod→Service, MB/s"] / row["pod→pod, MB/s"]
        for part in ("p50", "p99"):
            row[f"pod→Service ÷ pod→pod, connect {part}"] = (
                row[f"pod→Service connect {part}, ms"] / row[f"pod→pod connect {part}, ms"]
            )
        row |= first_packet(table, desired, client, address)
        table.close()
        return row


def serve(listening):
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=drain, args=(connection,), daemon=True).start()


def drain(connection):
    while connection.recv(1 << 18):
        pass
    connection.close()


def connect_times(client, target, count=200):
    times = []
    for _ in range(count):
        with client.inside():
            one = socket.socket()
        started = time.perf_counter()
        one.connect(target)
        times.append((time.perf_counter() - started) * 1000)
        one.close()
    return times


def throughput(client, target, seconds=0.4):
    with client.inside():
        one = socket.socket()
    one.connect(target)
    block, sent, started = b"x" * (1 << 18), 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        sent += one.send(block)
    one.close()
    return sent / (time.perf_counter() - started) / 1e6


def first_packet(table, desired, client, address):
    """From the EndpointSlice to a connection that is accepted, without the API."""
    times = []
    for number in range(100, 150):
        started = time.perf_counter()
        elements = elements_of_service(service(number), [piece(address)], "ip", NODE)
        table.apply(net_changes(desired.put(f"default/s{number}", elements)))
        with client.inside():
            one = socket.socket()
        one.connect((service(number)["spec"]["clusterIP"], 80))
        times.append((time.perf_counter() - started) * 1000)
        one.close()
    return {"endpoint heard of→first connection p50, ms": statistics.median(times)}


@contextmanager
def cluster_with_proxy(root):
    """An API server with controllers, and the proxy beside it, as processes of their own."""
    cluster = SampanProcess(Path(root) / "api", "--runtime", "simulated").up()
    ready = Path(root) / "proxied"
    command = [*sampan_command("service-proxy"), "--kubeconfig", str(cluster.kubeconfig),
               "--ready-file", str(ready)]  # fmt: skip
    proxy = Program(command, Path(root) / "proxy.out", environment())
    try:
        proxy.wait_until(ready.exists, 60)
        yield cluster
    finally:
        proxy.stop()
        cluster.stop()
        cluster.reset()


async def first_packets(kubeconfig_file, rounds=25):
    """From the write that makes a pod Ready to a connection through its Service: the API, the
    EndpointSlice controller, the proxy and the kernel. The pods are addresses of this machine."""
    loaded = kubeconfig.load(str(kubeconfig_file), {}, "/")
    client = connect(loaded.connection(), clock=SystemClock())
    listening = socket.create_server(("", 8080), backlog=512)
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    found = await client.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec}, "default")
    target, times = (found["spec"]["clusterIP"], 80), []
    _ip("addr", "add", f"{HERE}/32", "dev", "lo")
    _ip("route", "add", f"{target[0]}/32", "dev", "lo", "src", HERE)
    for number in range(1, rounds + 1):
        name, address = f"p{number}", f"198.18.1.{number}"
        _ip("addr", "add", f"{address}/32", "dev", "lo")
        containers = [{"name": "c", "image": "i"}]
        meta = {"name": name, "labels": {"app": "web"}}
        pod = {"metadata": meta, "spec": {"nodeName": "elsewhere", "containers": containers}}
        await client.create(PODS, pod, "default")
        await set_ready(client, name, address, "False")
        await accepted(target, wanted=False)
        started = time.perf_counter()
        await set_ready(client, name, address, "True")
        await accepted(target, wanted=True)
        times.append((time.perf_counter() - started) * 1000)
        await client.delete(PODS, "default", name, grace_seconds=0)
    await client.close()
    times.sort()
    return {
        "pod Ready→first connection through its Service p50, ms": times[len(times) // 2],
        "pod Ready→first connection through its Service p90, ms": times[int(len(times) * 0.9)],
    }


async def set_ready(client, name, address, status):
    said = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": status}]}  # fmt: skip
    await client.patch(PODS, "default", name, {"status": said}, subresource="status")


async def accepted(target, *, wanted):
    """Until a connection is, or is not."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60):
        while True:
            asker = socket.socket()
            asker.setblocking(False)
            try:
                await loop.sock_connect(asker, target)
                found = True
            except OSError:
                found = False
            asker.close()
            if found is wanted:
                return
            await asyncio.sleep(0.0005)


async def interfaces(root, *, reference, rounds=15):
    """What the container runtime waits for at a pod's start and at its end: every plugin that it
    starts, one after the other, in a namespace that is there."""
    data_dir = Path(root) / ("reference" if reference else "own")
    cni.set_up(data_dir, reference=reference)
    plugins, name = cni.plugins_of(data_dir), f"bi{os.getpid()}"
    chain = json.loads(
        (cni_configuration.conf_directory(data_dir) / "10-sampan.conflist").read_text()
    )
    chain = [{"type": "loopback"}, *chain["plugins"]]
    times = {"ADD": [], "DEL": []}
    _ip("netns", "add", name)
    async with cni.answered_plugin(data_dir):
        for number in range(rounds):
            for command in times:
                started = time.perf_counter()
                for plugin in chain:
                    await asyncio.to_thread(call_plugin, plugins, command, number, name, plugin)
                times[command].append((time.perf_counter() - started) * 1000)
    _ip("netns", "del", name)
    cni.tear_down(data_dir)
    who = "reference plugins" if reference else "our plugin"
    return {f"{who}, {command} p50, ms": statistics.median(times[command]) for command in times}


def call_plugin(plugins, command, number, name, plugin):
    environment = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": f"bench{number}",
        "CNI_IFNAME": "lo" if plugin["type"] == "loopback" else "eth0",
        "CNI_NETNS": f"/run/netns/{name}",
        "CNI_PATH": str(plugins),
        "PATH": os.environ["PATH"],
    }
    config = {"cniVersion": "1.0.0", "name": "sampan", **plugin}
    subprocess.run([plugins / plugin["type"]], input=json.dumps(config).encode(), env=environment,
                   stdout=subprocess.DEVNULL, check=True)  # fmt: skip


def main():
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-m", "tests.bench.network"])
    _ip("link", "set", "lo", "up")
    with tempfile.TemporaryDirectory(prefix="sampan-bench-") as root:
        data_dir = Path(root) / "d"
        network = cni.set_up(data_dir, ("10.96.0.0/12",))
        place = cni.proxy_place(network, ("10.96.0.0/12",))
        row = rules(place) | connections(network, place) | names()
        cni.tear_down(data_dir)
        row |= uvloop.run(interfaces(root, reference=False))
        if cni_configuration.plugin_directory() is not None:
            row |= uvloop.run(interfaces(root, reference=True))
        with cluster_with_proxy(root) as cluster:
            row |= uvloop.run(first_packets(cluster.kubeconfig))
    print_row(row)
    append(row)


if __name__ == "__main__":
    main()
