"""Pods on a real containerd, through the Runtime contract and the translation of real pods."""

import asyncio
import ipaddress
import os
import socket
import subprocess
from pathlib import Path

import pytest

from sampan.core.tasks import all_of
from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts import paths
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.contracts.runtime import CommandTimedOut, ContainerState, RuntimeFailure
from sampan.kubelet.images.reference import PAUSE_IMAGE
from tests.support.parts.images import busybox_archive
from tests.support.parts.private_runtime import private_runtime, why_not

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]

BUSYBOX = "localhost/test/busybox:1"


def make_pod(*commands, name="p", container=None, **spec):
    """One busybox container per command."""
    containers = [
        {
            "name": f"c{number}",
            "image": BUSYBOX,
            "command": ["sh", "-c", command],
            "terminationMessagePath": "/dev/termination-log",
            **(container or {}),
        }
        for number, command in enumerate(commands)
    ]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": containers, **spec},
    }


def facts(node):
    return generate.NodeFacts(
        "n1",
        root_dir=str(node.data_dir / "kubelet"),
        log_root=str(node.data_dir / "logs"),
        node_ips=("192.0.2.1",),
        memory_bytes=1 << 34,
    )


async def with_busybox(node):
    archive = busybox_archive(node.data_dir / "busybox.tar", BUSYBOX)
    await node.import_image(archive.read_bytes())
    deadline = node.clock.monotonic() + 60
    while await node.runtime.image(BUSYBOX) is None:
        assert node.clock.monotonic() < deadline
        await asyncio.sleep(0.01)


async def start_pod(node, pod, objects=None):
    runtime = node.runtime
    sandbox = generate.sandbox_spec(pod, attempt=0, node=facts(node))
    sandbox_id = await runtime.run_sandbox(sandbox)
    seen = await runtime.pod(pod["metadata"]["uid"])
    ids = []
    for container in pod["spec"]["containers"]:
        image = await runtime.image(container["image"])
        spec = generate.container_spec(
            pod,
            container,
            generate.ContainerContext(
                attempt=0,
                image_id=image.id,
                image=image,
                objects=objects or {},
                pod_ips=seen.sandboxes[0].ips,
                node=facts(node),
            ),
        )
        ids.append(await runtime.create_container(sandbox_id, spec, sandbox))
        await runtime.start_container(ids[-1])
    return sandbox_id, ids


async def ended(node, pod, name="c0"):
    deadline = node.clock.monotonic() + 60
    while True:
        seen = await node.runtime.pod(pod["metadata"]["uid"])
        found = next(one for one in seen.containers if one.name == name)
        if found.state is ContainerState.EXITED:
            return found
        assert node.clock.monotonic() < deadline, found
        await asyncio.sleep(0.01)


def output(status):
    lines = Path(status.log_path).read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


def story(tmp_path, tell):
    async def run():
        async with private_runtime(tmp_path / "data") as node:
            await with_busybox(node)
            await tell(node)

    asyncio.run(run())


def test_a_pod_runs_is_seen_and_goes_without_a_trace(tmp_path):
    """[R1] [N10] [N11]"""

    async def tell(node):
        pod = make_pod("echo hello; echo bye >&2; echo last words >/dev/termination-log; exit 3")
        sandbox_id, (container_id,) = await start_pod(node, pod)
        status = await ended(node, pod)
        assert (status.exit_code, status.reason) == (3, "Error")
        assert sorted(output(status)) == ["bye", "hello"]  # two streams, in any order
        assert status.finished_at >= status.started_at > status.created_at > 0
        message = paths.termination_log(pod, "c0", attempt=0, root_dir=facts(node).root_dir)
        assert Path(message).read_text() == "last words\n"
        seen = await node.runtime.pod("uid-p")
        assert seen.sandboxes[0].ready
        address = ipaddress.ip_address(seen.sandboxes[0].ips[0])
        assert address in ipaddress.ip_network(node.network.subnet)
        assert [one.uid for one in await node.runtime.pods()] == ["uid-p"]
        # Everything twice: what is stopped or gone already is no error.
        for _ in range(2):
            await node.runtime.stop_container(container_id, 1)
            await node.runtime.remove_container(container_id)
            await node.runtime.stop_sandbox(sandbox_id)
            await node.runtime.remove_sandbox(sandbox_id)
        assert await node.runtime.pod("uid-p") is None
        assert list(await node.runtime.pods()) == []

    story(tmp_path, tell)


def test_the_end_of_a_container_wakes_us_with_its_code_and_is_believed_at_once(tmp_path):
    """[R2]"""

    async def tell(node):
        events = node.runtime.events()
        first = asyncio.ensure_future(anext(events))  # noqa: TID251  the test is the owner
        await asyncio.sleep(0.2)  # until the subscription is there
        pod = make_pod("sleep 0.3; exit 5")
        _, (container_id,) = await start_pod(node, pod)
        event = await first
        while event.exit_code is None:
            event = await asyncio.wait_for(anext(events), 60)
        late = node.clock.now() - event.exited_at
        assert (event.uid, event.container_id, event.exit_code) == ("uid-p", container_id, 5)
        status = (await node.runtime.pod("uid-p")).containers[0]
        assert (status.state, status.exit_code) == (ContainerState.EXITED, 5)
        assert late < 0.2
        await events.aclose()

    story(tmp_path, tell)


def test_what_the_pod_says_is_what_the_program_sees(tmp_path):
    """[N10]"""

    async def tell(node):
        checks = "; ".join(
            [
                "id -u", "id -g", "id -G", "hostname", "pwd", "echo $COLOR-$IP-$PART",
                "grep web /etc/hosts | cut -f2", "grep alias /etc/hosts | cut -f1",
                "cat /etc/resolv.conf", "touch /x 2>/dev/null && echo writable || echo read-only",
                "grep NoNewPrivs /proc/self/status | cut -f2",
                "grep CapBnd /proc/self/status | cut -f2",
                "cat /proc/sys/net/ipv4/tcp_syncookies",
            ]
        )  # fmt: skip
        pod = make_pod(
            checks,
            name="web",
            container={
                "workingDir": "/tmp",
                "env": [
                    {"name": "COLOR", "value": "blue"},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "PART", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                ],
                "securityContext": {
                    "runAsUser": 1234,
                    "runAsGroup": 77,
                    "readOnlyRootFilesystem": True,
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            },
            securityContext={
                "fsGroup": 88,
                "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "0"}],
            },
            hostAliases=[{"ip": "192.0.2.99", "hostnames": ["alias"]}],
            dnsPolicy="None",
            dnsConfig={"nameservers": ["192.0.2.53"], "searches": ["a.example"]},
        )
        objects = {("ConfigMap", "m"): {"data": {"k": "half"}}}
        await start_pod(node, pod, objects)
        status = await ended(node, pod)
        ip = (await node.runtime.pod("uid-web")).sandboxes[0].ips[0]
        assert output(status) == [
            "1234", "77", "77 88", "web", "/tmp", f"blue-{ip}-half", "web", "192.0.2.99",
            "search a.example", "nameserver 192.0.2.53", "read-only", "1", "0000000000000000", "0",
        ]  # fmt: skip

    story(tmp_path, tell)


def test_containers_of_a_pod_share_localhost_and_pods_reach_each_other(tmp_path):
    async def tell(node):
        pod = make_pod(
            "while true; do echo over | nc -l -p 7777; done",
            "until nc 127.0.0.1 7777 </dev/null; do sleep 0.1; done",
        )
        await start_pod(node, pod)
        status = await ended(node, pod, "c1")
        assert output(status) == ["over"]
        ip = (await node.runtime.pod("uid-p")).sandboxes[0].ips[0]
        other = make_pod(f"until nc {ip} 7777 </dev/null; do sleep 0.1; done", name="q")
        await start_pod(node, other)
        assert output(await ended(node, other)) == ["over"]

    story(tmp_path, tell)


def test_the_grace_period_is_kept_and_ends(tmp_path):
    """[N11]"""

    async def tell(node):
        polite = make_pod("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done")
        stubborn = make_pod("trap '' TERM; echo up; while :; do sleep 0.05; done", name="q")
        for pod, code, least in ((polite, 4, 0.0), (stubborn, 137, 1.0)):
            _, (container_id,) = await start_pod(node, pod)
            seen = await node.runtime.pod(pod["metadata"]["uid"])
            log = Path(seen.containers[0].log_path)
            while "up" not in log.read_text():
                await asyncio.sleep(0.01)
            began = node.clock.monotonic()
            await node.runtime.stop_container(container_id, 1)
            assert node.clock.monotonic() - began >= least
            assert (await ended(node, pod)).exit_code == code

    story(tmp_path, tell)


def test_too_much_memory_is_told_apart_from_a_kill(tmp_path):
    """[N16]"""

    async def tell(node):
        limits = {"resources": {"limits": {"memory": "16Mi"}}}
        pod = make_pod("exec tail /dev/zero", container=limits)
        await start_pod(node, pod)
        status = await ended(node, pod)
        assert (status.exit_code, status.reason) == (137, "OOMKilled")

    story(tmp_path, tell)


def test_a_command_that_is_not_there_is_told_with_its_name(tmp_path):
    async def tell(node):
        pod = make_pod("unused", container={"command": ["/no/such/thing"]})
        with pytest.raises(RuntimeFailure, match="/no/such/thing"):
            await start_pod(node, pod)
        status = await ended(node, pod)
        assert (status.exit_code, status.reason) == (128, "StartError")

    story(tmp_path, tell)


def test_commands_run_in_a_container_and_are_stopped_in_time(tmp_path):
    async def tell(node):
        _, (container_id,) = await start_pod(node, make_pod("sleep 60"))
        done = await node.runtime.exec_sync(
            container_id, ["sh", "-c", "echo out; echo err >&2; exit 6"], 5
        )
        assert (done.exit_code, done.stdout, done.stderr) == (6, b"out\n", b"err\n")
        with pytest.raises(CommandTimedOut, match='command "sleep 20" timed out'):
            await node.runtime.exec_sync(container_id, ["sleep", "20"], 1)
        shell = StreamOptions(stdin=True, stdout=True, stderr=True, tty=True, command=("sh",))
        url = await node.runtime.exec_url(container_id, shell)
        assert url.startswith("http://127.0.0.1:")

    story(tmp_path, tell)


def test_the_pause_image_itself_runs_as_a_pod(tmp_path):
    async def tell(node):
        pod = make_pod("unused", container={"image": PAUSE_IMAGE, "command": []})
        _, (container_id,) = await start_pod(node, pod)
        await node.runtime.stop_container(container_id, 10)
        assert (await ended(node, pod)).exit_code == 0

    story(tmp_path, tell)


def test_a_host_port_leads_into_the_pod_and_is_free_afterwards(tmp_path):
    async def tell(node):
        ports = {"ports": [{"containerPort": 7777, "hostPort": 37777}]}
        pod = make_pod("while true; do echo over | nc -l -p 7777; done", container=ports)
        sandbox_id, _ = await start_pod(node, pod)
        address = machine_address()

        async def read():
            reader, writer = await asyncio.open_connection(address, 37777)
            try:
                return await asyncio.wait_for(reader.read(), 60)
            finally:
                writer.close()

        deadline = node.clock.monotonic() + 60
        while True:
            try:
                assert await read() == b"over\n"
                break
            except OSError:
                assert node.clock.monotonic() < deadline
                await asyncio.sleep(0.05)
        await node.runtime.stop_sandbox(sandbox_id)
        with pytest.raises(OSError):  # noqa: PT011  refused or unreachable, as the kernel likes
            await read()

    story(tmp_path, tell)
    saved = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True).stdout
    assert "37777" not in saved


def machine_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def test_a_container_that_is_stopped_right_after_its_start_still_hears_it(tmp_path):
    """[N11]"""

    async def tell(node):
        async def one(number):
            pod = make_pod(
                "unused", name=f"p{number}", container={"image": PAUSE_IMAGE, "command": []}
            )
            _, (container_id,) = await start_pod(node, pod)
            await node.runtime.stop_container(container_id, 30)
            return (await ended(node, pod)).exit_code

        async with asyncio.timeout(20):
            # Many at once, so that some are slow to begin.
            assert await all_of(one(number) for number in range(12)) == [0] * 12

    story(tmp_path, tell)


def test_a_pod_of_the_best_quality_runs_where_oom_scores_cannot_be_lowered_too(tmp_path):
    """[N16]"""

    async def tell(node):
        amounts = {"cpu": "100m", "memory": "32Mi"}
        resources = {"requests": amounts, "limits": amounts}
        pod = make_pod("echo fine", container={"resources": resources})
        await start_pod(node, pod)
        assert output(await ended(node, pod)) == ["fine"]

    story(tmp_path, tell)
