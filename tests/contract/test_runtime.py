"""One suite for every Runtime: the simulated one, and a real containerd. [R3]"""

import asyncio
import itertools
import json
import os
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sampan.core.http import spdy
from sampan.core.http.messages import Request, Upgrade
from sampan.core.http.websocket import BINARY, FrameReader
from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    ImageNotFound,
    LinuxResources,
    RuntimeFailure,
)
from sampan.kubelet.simulated.runtime import SimulatedRuntime
from tests.support.parts import native_runtime as native_parts
from tests.support.parts.images import busybox_archive
from tests.support.parts.private_runtime import private_runtime, why_not
from tests.support.virtual_time import LoopClock, VirtualLoop
from tests.support.worlds.simulated_node import pod_named

REFERENCE = "localhost/test/busybox:1"
# What a container does: the script for those that pretend, the command for those that run.
BEHAVIOURS = {
    "runs": ({}, ["sleep", "1000"]),
    "obeys": ({"stop-exit-code": "7"}, ["sh", "-c", "trap 'exit 7' TERM; sleep 1000 & wait"]),
    "never obeys": ({"stop-seconds": "never"}, ["sh", "-c", "trap '' TERM; sleep 1000 & wait"]),
    "exits with 3": ({"exit-after-seconds": "0.3", "exit-code": "3"}, ["sh", "-c", "exit 3"]),
    "cannot start": ({"fail": "start_container"}, ["/nonexistent"]),
    "says hello": ({"log": "hello"}, ["sh", "-c", "echo hello; sleep 1000"]),
    "execs": ({"exec-exit-code": "5", "exec-output": "out"}, ["sleep", "1000"]),
}


class World:
    """A runtime, and how to make pods for it."""

    def __init__(self, runtime, directory):
        self.runtime = runtime
        self.node = generate.NodeFacts(
            "n", root_dir=f"{directory}/kubelet", log_root=f"{directory}/logs"
        )
        self._numbers = itertools.count()
        self._sandboxes = []

    def pod(self, behaviour="runs"):
        script, command = BEHAVIOURS[behaviour]
        number = next(self._numbers)
        container = {"name": "main", "image": REFERENCE, "command": command}
        pod = pod_named(f"pod-{number}", script=script, containers=[container])
        pod["metadata"] |= {"namespace": "default", "uid": f"uid-{number}-{os.getpid()}"}
        return pod

    async def sandbox(self, pod):
        spec = generate.sandbox_spec(pod, attempt=0, node=self.node)
        sandbox_id = await self.runtime.run_sandbox(spec)
        self._sandboxes.append(sandbox_id)
        return sandbox_id

    async def created(self, behaviour="runs"):
        """(pod, sandbox id, container id)"""
        pod = self.pod(behaviour)
        sandbox_id = await self.sandbox(pod)
        image = await self.runtime.image(REFERENCE)
        spec = generate.container_spec(
            pod,
            pod["spec"]["containers"][0],
            generate.ContainerContext(
                attempt=0,
                image_id=image.id,
                image=image,
                objects={},
                pod_ips=(),
                node=self.node,
            ),
        )
        sandbox = generate.sandbox_spec(pod, attempt=0, node=self.node)
        return pod, sandbox_id, await self.runtime.create_container(sandbox_id, spec, sandbox)

    async def started(self, behaviour="runs"):
        pod, sandbox_id, container_id = await self.created(behaviour)
        await self.runtime.start_container(container_id)
        await asyncio.sleep(0.2)  # a shell has to set its traps
        return pod, sandbox_id, container_id

    async def seen(self, pod):
        return await self.runtime.pod(pod["metadata"]["uid"])

    async def container(self, pod):
        return (await self.seen(pod)).containers[0]

    async def until_exited(self, pod):
        for _ in range(300):
            one = await self.container(pod)
            if one.state is ContainerState.EXITED:
                return one
            await asyncio.sleep(0.02)
        raise AssertionError("it did not end")

    async def clean(self):
        for sandbox_id in self._sandboxes:
            await self.runtime.stop_sandbox(sandbox_id)
            await self.runtime.remove_sandbox(sandbox_id)
        self._sandboxes.clear()


@pytest.fixture(scope="module")
def simulated():
    with (
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
        tempfile.TemporaryDirectory() as directory,
    ):
        runtime = SimulatedRuntime(clock=LoopClock(), images=[REFERENCE])
        yield runner, World(runtime, directory)
        runner.run(runtime.close())


@pytest.fixture(scope="module")
def containerd():
    if why_not() or os.geteuid() != 0:
        pytest.skip(why_not() or "needs root")
    root = Path(tempfile.mkdtemp(prefix="sampan-rt-"))
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        node = runner.run(stack.enter_async_context(private_runtime(root)))
        archive = busybox_archive(root / "busybox.tar", REFERENCE)
        runner.run(node.import_image(archive.read_bytes()))
        yield runner, World(node.runtime, root)
        runner.run(stack.aclose())
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def native():
    if native_parts.why_not() or os.geteuid() != 0:
        pytest.skip(native_parts.why_not() or "needs root")
    root = Path(tempfile.mkdtemp(prefix="sampan-nr-"))
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        runtime = runner.run(stack.enter_async_context(native_parts.native_runtime(root)))
        native_parts.import_image(runtime, busybox_archive(root / "busybox.tar", REFERENCE))
        yield runner, World(runtime, root)
        runner.run(stack.aclose())
    shutil.rmtree(root)


REAL = [
    pytest.param(name, marks=[pytest.mark.containerd, pytest.mark.slow])
    for name in ("containerd", "native")
]


@pytest.fixture(params=["simulated", *REAL])
def told(request):
    """`told(story)` runs an async story in the world of this runtime."""
    runner, world = request.getfixturevalue(request.param)

    def run(story):
        try:
            runner.run(story(world))
        finally:
            runner.run(world.clean())

    return run


def test_it_says_what_it_is(told):
    async def story(world):
        info = await world.runtime.info()
        assert info.ready
        assert info.network_ready
        assert info.name
        assert info.version

    told(story)


def test_a_sandbox_has_an_address_and_its_pods_names(told):
    async def story(world):
        pod = world.pod()
        sandbox_id = await world.sandbox(pod)
        seen = await world.seen(pod)
        sandbox = seen.sandboxes[0]
        assert (sandbox.id, sandbox.ready, sandbox.attempt) == (sandbox_id, True, 0)
        assert (seen.name, seen.namespace) == (pod["metadata"]["name"], "default")
        assert len(sandbox.ips) >= 1
        assert seen.containers == ()

    told(story)


@pytest.mark.containerd
@pytest.mark.slow
@pytest.mark.parametrize("name", ["containerd", "native"])
def test_in_a_sandbox_whose_addresses_are_refused_nothing_can_start(request, name):
    """As where the network policies of its pod are not in force."""
    runner, world = request.getfixturevalue(name)

    async def refuse(_namespace, _name, addresses):
        assert addresses
        raise RuntimeFailure("not yet")

    async def admit(*_):
        pass

    async def story():
        pod = world.pod()
        world.runtime.call_with_addresses(refuse)
        try:
            with pytest.raises(RuntimeFailure, match="not yet"):
                await world.sandbox(pod)
        finally:
            world.runtime.call_with_addresses(admit)
        seen = await world.seen(pod)
        for sandbox in seen.sandboxes if seen is not None else ():
            assert not sandbox.ready
            await world.runtime.remove_sandbox(sandbox.id)

    runner.run(story())


def test_a_pod_that_is_not_there_is_none(told):
    async def story(world):
        assert await world.runtime.pod("nobody") is None

    told(story)


def test_a_container_is_created_then_runs(told):
    async def story(world):
        pod, sandbox_id, container_id = await world.created()
        one = await world.container(pod)
        assert (one.id, one.sandbox_id, one.name) == (container_id, sandbox_id, "main")
        assert one.state is ContainerState.CREATED
        await world.runtime.start_container(container_id)
        one = await world.container(pod)
        assert one.state is ContainerState.RUNNING
        assert one.started_at >= one.created_at > 0
        assert one.attempt == 0
        assert one.annotations["io.kubernetes.container.restartCount"] == "0"
        assert one.labels["io.kubernetes.container.name"] == "main"

    told(story)


def test_everything_is_listed(told):
    async def story(world):
        first, _, _ = await world.started()
        second, _, _ = await world.created()
        listed = {pod.uid: pod for pod in await world.runtime.pods()}
        states = [listed[pod["metadata"]["uid"]].containers[0].state for pod in (first, second)]
        assert states == [ContainerState.RUNNING, ContainerState.CREATED]

    told(story)


def test_an_exit_has_a_code_a_time_and_a_reason(told):
    async def story(world):
        pod, _, _ = await world.started("exits with 3")
        one = await world.until_exited(pod)
        assert one.exit_code == 3
        assert one.reason == "Error"
        assert one.finished_at >= one.started_at

    told(story)


def test_a_container_that_obeys_ends_with_its_own_code(told):
    async def story(world):
        pod, _, container_id = await world.started("obeys")
        await world.runtime.stop_container(container_id, 20.0)
        one = await world.container(pod)
        assert one.state is ContainerState.EXITED
        assert one.exit_code == 7

    told(story)


def test_a_signal_is_sent_and_its_effect_awaited(told):
    async def story(world):
        pod, _, container_id = await world.started("obeys")
        assert await world.runtime.signal_container(container_id, "SIGTERM", 20.0)
        await world.runtime.stop_container(container_id, 0.0)
        assert (await world.until_exited(pod)).exit_code == 7  # CRI lags behind the process
        assert await world.runtime.signal_container(container_id, "SIGTERM", 1.0)  # it has ended

    told(story)


def test_a_running_container_gets_other_limits_and_goes_on(told):
    """[N6]"""

    async def story(world):
        pod, _, container_id = await world.started("obeys")
        more = LinuxResources(
            cpu_shares=512, cpu_quota=50_000, cpu_period=100_000, memory_limit_bytes=64 * 1024**2
        )
        await world.runtime.update_container(container_id, more)
        one = await world.container(pod)
        assert (one.id, one.state) == (container_id, ContainerState.RUNNING)
        with pytest.raises(RuntimeFailure):
            await world.runtime.update_container("0" * 64, more)

    told(story)


def test_a_container_that_does_not_obey_is_killed_after_the_grace(told):
    async def story(world):
        pod, _, container_id = await world.started("never obeys")
        began = asyncio.get_running_loop().time()
        await world.runtime.stop_container(container_id, 1.0)
        assert asyncio.get_running_loop().time() - began > 0.9
        assert (await world.container(pod)).exit_code == 137

    told(story)


def test_stopping_and_removing_what_is_gone_succeeds(told):
    async def story(world):
        pod, sandbox_id, container_id = await world.started("obeys")
        for _ in range(2):
            await world.runtime.stop_container(container_id, 5.0)
        for _ in range(2):
            await world.runtime.remove_container(container_id)
        for _ in range(2):
            await world.runtime.stop_sandbox(sandbox_id)
        for _ in range(2):
            await world.runtime.remove_sandbox(sandbox_id)
        await world.runtime.stop_container(container_id, 5.0)
        assert await world.seen(pod) is None

    told(story)


def test_a_stopped_sandbox_takes_its_containers_with_it(told):
    async def story(world):
        pod, sandbox_id, _ = await world.started()
        await world.runtime.stop_sandbox(sandbox_id)
        seen = await world.seen(pod)
        assert not seen.sandboxes[0].ready
        assert (await world.until_exited(pod)).exit_code == 137

    told(story)


def test_a_container_that_cannot_start_fails_and_shows_it(told):
    async def story(world):
        pod, _, container_id = await world.created("cannot start")
        with pytest.raises(RuntimeFailure):
            await world.runtime.start_container(container_id)
        one = await world.until_exited(pod)
        assert one.exit_code == 128
        assert one.reason == "StartError"

    told(story)


def test_what_a_container_says_is_in_its_log(told):
    async def story(world):
        pod, _, _ = await world.started("says hello")
        path = Path((await world.container(pod)).log_path)
        for _ in range(100):
            if path.exists() and path.read_text():
                break
            await asyncio.sleep(0.02)
        moment, stream, flag, text = path.read_text().strip().split(" ", 3)
        assert moment.endswith(("Z", "+00:00"))
        assert (stream, flag, text) == ("stdout", "F", "hello")

    told(story)


def test_a_command_in_a_container_answers(told):
    async def story(world):
        _, _, container_id = await world.started("execs")
        command = ["sh", "-c", "printf out; exit 5"]
        result = await world.runtime.exec_sync(container_id, command, 10.0)
        assert (result.exit_code, result.stdout) == (5, b"out")

    told(story)


class Client:
    """The other end of an exec's connection: opens its streams, reads until the status is there."""

    def __init__(self, opening=()):
        self.written, self._opening = b"", [*opening]
        self._has_status = asyncio.Event()
        self.closed = False

    async def read(self):
        if self._opening:
            return self._opening.pop(0)
        await self._has_status.wait()
        return b""  # it has what it wants, and goes

    async def write(self, data):
        self.written += data
        if b'"metadata"' in data:
            self._has_status.set()

    def close(self):
        self.closed = True


def over_spdy():
    """Headers of the request, the client, and what it heard by stream."""
    session, kinds = spdy.Session(), ("error", "stdout", "stderr")
    opened = [session.open({"streamtype": kind}) for kind in kinds]
    names = {stream: kind for (stream, _), kind in zip(opened, kinds, strict=True)}
    client = Client(frame for _, frame in opened)

    def heard():
        said = dict.fromkeys(kinds, b"")
        for event in session.feed(client.written):
            if isinstance(event, spdy.Data):
                said[names[event.stream]] += event.payload
        return said

    return {"upgrade": "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io"}, client, heard


def over_websocket():
    client = Client()

    def heard():
        said = dict.fromkeys(("stdin", "stdout", "stderr", "error"), b"")
        for frame in FrameReader(from_client=False).feed(client.written):
            if frame.opcode == BINARY:
                said[[*said][frame.payload[0]]] += frame.payload[1:]
        return said

    asked = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13",
             "sec-websocket-key": "x", "sec-websocket-protocol": "v5.channel.k8s.io"}  # fmt: skip
    return asked, client, heard


@pytest.mark.parametrize("wire", [over_spdy, over_websocket])
def test_a_client_of_exec_hears_the_output_and_the_code(told, wire):
    headers, client, heard = wire()
    command = ("sh", "-c", "printf out; exit 5")
    options = StreamOptions(stdin=False, stdout=True, stderr=True, tty=False, command=command)

    async def story(world):
        own = world.runtime.local_streams
        if own is None:
            return  # a URL leads to its own streaming server, which is not ours to test
        _, _, container_id = await world.started("execs")
        reply = await own.exec(container_id, options, Request("GET", "/", "", headers, b""))
        assert isinstance(reply, Upgrade)
        await reply.take_over(client)
        said = heard()
        assert (said["stdout"], said["stderr"]) == (b"out", b"")
        status = json.loads(said["error"])
        assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "5"}]
        for bad in ({}, {"upgrade": "websocket", "connection": "Upgrade"}):
            refused = await own.exec(container_id, options, Request("GET", "/", "", bad, b""))
            assert refused.status == 400
        with pytest.raises(RuntimeFailure):
            await own.exec("nobody", options, Request("GET", "/", "", headers, b""))

    told(story)


def test_a_command_in_a_container_that_ended_fails(told):
    async def story(world):
        _, _, container_id = await world.started("obeys")
        await world.runtime.stop_container(container_id, 5.0)
        with pytest.raises(RuntimeFailure):
            await world.runtime.exec_sync(container_id, ["true"], 10.0)

    told(story)


def test_an_exit_is_told_at_once_with_its_code(told):
    """[R2]"""

    async def story(world):
        pod, _, container_id = await world.started("obeys")
        events = world.runtime.events()
        waiting = asyncio.get_running_loop().create_task(_exit_of(events, container_id))
        await asyncio.sleep(0.2)
        await world.runtime.stop_container(container_id, 5.0)
        async with asyncio.timeout(60):
            event = await waiting
        assert event.exit_code == 7
        assert event.exited_at > 0
        assert event.uid in ("", pod["metadata"]["uid"])
        # Whoever heard of the end never sees the container run, however slow the runtime's lists.
        for seen in (await world.runtime.pod(pod["metadata"]["uid"]), *await world.runtime.pods()):
            states = [one.state for one in seen.containers if one.id == container_id]
            assert ContainerState.RUNNING not in states

    async def _exit_of(events, container_id):
        async for event in events:
            if event.container_id == container_id and event.exit_code is not None:
                await events.aclose()
                return event
        raise AssertionError("the stream ended")

    told(story)


def test_a_new_container_has_written_next_to_nothing(told):
    async def story(world):
        _, _, container_id = await world.created("runs")
        await world.runtime.start_container(container_id)
        assert 0 <= await world.runtime.layer_bytes(container_id) < 1 << 20
        with pytest.raises(RuntimeFailure):
            await world.runtime.layer_bytes("nobody")
        assert 0 <= (await world.runtime.layers())[container_id].used_bytes < 1 << 20

    told(story)


def test_a_checkpoint_that_cannot_be_written_is_a_failure(told, tmp_path):
    """[N19] containerd 1.6 cannot at all"""

    async def story(world):
        with pytest.raises(RuntimeFailure):
            await world.runtime.checkpoint("nobody", str(tmp_path / "c.tar"), 1.0)

    told(story)


def test_an_image_is_found_by_its_name_and_by_its_id(told):
    async def story(world):
        image = await world.runtime.image(REFERENCE)
        assert image is not None
        assert (await world.runtime.image(image.id)) is not None
        assert REFERENCE in [tag for one in await world.runtime.images() for tag in one.tags]
        assert await world.runtime.image("localhost/test/nothing:1") is None

    told(story)


def test_an_image_that_nobody_has_is_not_found(told):
    async def story(world):
        with pytest.raises((ImageNotFound, RuntimeFailure)):
            await world.runtime.pull_image("127.0.0.1:1/test/nothing:missing", None)

    told(story)


def test_a_log_goes_on_in_a_new_file_when_the_old_one_was_moved_away(told):
    async def story(world):
        if isinstance(world.runtime, SimulatedRuntime):
            return  # its logs are written once
        pod, _, container_id = await world.started("says hello")
        path = Path((await world.container(pod)).log_path)
        path.rename(f"{path}.old")
        await world.runtime.reopen_log(container_id)
        for _ in range(300):
            if path.exists():
                return
            await asyncio.sleep(0.02)
        raise AssertionError("nobody writes any more")

    told(story)
