"""The private containerd itself: found again, replaced, revived, side by side, gone."""

import asyncio
import io
import json
import os
import platform
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from sampan.core.clock import SystemClock
from sampan.core.elf import architecture
from sampan.core.mounts import unmount_below
from sampan.kubelet.container_spec import generate
from sampan.kubelet.containerd import process, reset
from sampan.kubelet.containerd.config import ContainerdError, layout
from sampan.kubelet.contracts.runtime import (
    ContainerState,
    Credentials,
    ImageNotFound,
    RuntimeFailure,
    RuntimeUnavailable,
)
from sampan.kubelet.images.archive import (
    ArchiveError,
    ArchiveFile,
    ImageSettings,
    build_archive,
    import_archive,
)
from sampan.kubelet.images.pause_program import pause_program
from sampan.kubelet.images.reference import PAUSE_IMAGE
from sampan.network import bridge, cni
from sampan.runtime.programs import system_path
from tests.support.parts.leftovers import leftovers
from tests.support.parts.private_runtime import daemon_for, private_runtime, why_not

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]


def pause_pod(name="p", **container):
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "image": PAUSE_IMAGE, **container}]},
    }


async def start_pod(node, pod):
    place = generate.NodeFacts(
        "n", root_dir=str(node.data_dir / "kubelet"), log_root=str(node.data_dir / "logs")
    )
    sandbox = generate.sandbox_spec(pod, attempt=0, node=place)
    sandbox_id = await node.runtime.run_sandbox(sandbox)
    image = await node.runtime.image(PAUSE_IMAGE)
    spec = generate.container_spec(
        pod,
        pod["spec"]["containers"][0],
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
    return container_id


async def state_of(node, uid="uid-p"):
    return (await node.runtime.pod(uid)).containers[0].state


async def eventually(holds, seconds=60.0):
    clock = SystemClock()
    deadline = clock.monotonic() + seconds
    while not await holds():
        assert clock.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_a_containerd_that_dies_comes_back_and_its_containers_live_on(tmp_path):
    """[N21] [R2]"""

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await start_pod(node, pause_pod())
            events = node.runtime.events()
            waiting = asyncio.ensure_future(anext(events))  # noqa: TID251  the test is the owner
            await asyncio.sleep(0.1)
            before = node.daemon.pid
            os.kill(before, signal.SIGKILL)
            with pytest.raises(RuntimeUnavailable):
                await waiting
            await node.runtime.connect(15)
            assert node.daemon.pid != before
            assert await state_of(node) is ContainerState.RUNNING

    asyncio.run(story())


def test_the_containerd_of_a_killed_sampan_is_taken_over(tmp_path):
    """[N21]"""

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await start_pod(node, pause_pod())
            # A second sampan on the same data directory, as after kill -9 of the first.
            successor = daemon_for(node.data_dir, node.clock)
            await successor.start()
            assert successor.pid == node.daemon.pid
            assert await state_of(node) is ContainerState.RUNNING
            await successor.stop()

    asyncio.run(story())


def test_a_containerd_without_a_record_is_found_and_replaced(tmp_path):
    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await start_pod(node, pause_pod())
            before = node.daemon.pid
            (node.data_dir / "containerd" / "process.json").unlink()
            await node.daemon._tasks.stop()  # the first sampan is gone
            successor = daemon_for(node.data_dir, node.clock)
            await successor.start()
            assert successor.pid != before
            await node.runtime.connect(15)
            assert await state_of(node) is ContainerState.RUNNING
            await successor.stop()

    asyncio.run(story())


def test_a_pid_that_belongs_to_somebody_else_by_now_is_left_alone(tmp_path):
    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await node.daemon.stop()
            record = node.data_dir / "containerd" / "process.json"
            record.write_text(f'{{"pid": {os.getpid()}, "started": 1, "config": "x"}}')
            again = daemon_for(node.data_dir, node.clock)
            await again.start()
            assert again.pid not in (None, os.getpid())
            await again.stop()

    asyncio.run(story())


def test_stopping_leaves_containers_running_for_the_next_start(tmp_path):
    """[N21]"""

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await start_pod(node, pause_pod())
            await node.daemon.stop()
            with pytest.raises(RuntimeUnavailable):
                await node.runtime.info()
            again = daemon_for(node.data_dir, node.clock)
            await again.start()
            await node.runtime.connect(15)
            assert await state_of(node) is ContainerState.RUNNING
            await again.stop()

    asyncio.run(story())


def switch_off(node):
    """What a power cut does to a node: no process, mount, bridge or rule is left, but all files."""
    paths = layout(node.data_dir)
    os.kill(node.daemon.pid, signal.SIGKILL)
    reset._delete_containers(paths, system_path({}))
    reset._kill(reset.shims(paths))
    unmount_below(str(paths.home))
    bridge.delete(node.network.bridge)


def test_after_a_power_cut_pods_are_shown_as_ended_and_can_run_again(tmp_path):
    """[N21]"""

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            await start_pod(node, pause_pod())
            await node.daemon._tasks.stop()
            switch_off(node)
            assert cni.set_up(node.data_dir) == node.network
            again = daemon_for(node.data_dir, node.clock)
            await again.start()
            await node.runtime.connect(15)
            seen = await node.runtime.pod("uid-p")
            assert not seen.sandboxes[0].ready
            assert seen.containers[0].state is not ContainerState.RUNNING
            await node.runtime.remove_container(seen.containers[0].id)
            await node.runtime.stop_sandbox(seen.sandboxes[0].id)
            await node.runtime.remove_sandbox(seen.sandboxes[0].id)
            await start_pod(node, pause_pod())
            assert await state_of(node) is ContainerState.RUNNING
            await again.stop()

    asyncio.run(story())


def test_two_run_side_by_side_and_leave_nothing_behind(tmp_path):
    before = leftovers(tmp_path)

    async def story():
        async with private_runtime(tmp_path / "a") as one, private_runtime(tmp_path / "b") as two:
            assert one.network.bridge != two.network.bridge
            assert one.network.subnet != two.network.subnet
            await start_pod(one, pause_pod())
            await start_pod(two, pause_pod())
            addresses = {(await node.runtime.pod("uid-p")).sandboxes[0].ips for node in (one, two)}
            assert len(addresses) == 2

    asyncio.run(story())
    assert leftovers(tmp_path) == before


def test_a_reset_without_a_working_containerd_still_removes_everything(tmp_path):
    before = leftovers(tmp_path)
    data = tmp_path / "d"
    sandboxes = []

    async def story():
        async with private_runtime(data) as node:
            ports = [{"containerPort": 80, "hostPort": 38080}]
            await start_pod(node, pause_pod(ports=ports))
            sandboxes.append((await node.runtime.pod("uid-p")).sandboxes[0].id)
            await node.daemon.stop()
            (data / "containerd" / "config.toml").unlink()

    asyncio.run(story())
    assert leftovers(tmp_path) == before
    assert not list(Path("/var/lib/cni/results").glob(f"*{sandboxes[0]}*"))
    saved = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True).stdout
    assert sandboxes[0] not in saved
    assert not (data / "containerd").exists()


def test_a_long_path_works_too(tmp_path):
    long = tmp_path / ("x" * 60) / ("y" * 60)

    async def story():
        async with private_runtime(long) as node:
            assert len(node.daemon.socket_path) < 100
            await start_pod(node, pause_pod())
            assert (long / "containerd" / "run" / "containerd.sock").exists()
        assert not Path(node.daemon.socket_path).parent.exists()

    asyncio.run(story())


def test_a_containerd_that_cannot_start_says_why(tmp_path, caplog):
    async def story():
        daemon = daemon_for(tmp_path / "d", SystemClock())
        (tmp_path / "d" / "containerd").mkdir(parents=True)
        (tmp_path / "d" / "containerd" / "root").write_text("in the way")
        with pytest.raises(ContainerdError, match="ended while starting"):
            await daemon.start()
        assert daemon.pid is None

    asyncio.run(story())
    asyncio.run(process.reset(tmp_path / "d", environment={}, clock=SystemClock()))
    assert "ended while starting" in caplog.text, "nobody waits for its socket"


def test_the_network_of_a_data_directory_stays_the_same(tmp_path):
    first = cni.set_up(tmp_path / "a")
    other = cni.set_up(tmp_path / "b")
    try:
        assert cni.set_up(tmp_path / "a") == first
        assert other != first
        cni.tear_down(tmp_path / "a")
        # Somebody else took the bridge meanwhile: another one is chosen.
        (tmp_path / "a" / "network.json").write_text(
            f'{{"bridge": "{other.bridge}", "subnet": "{other.subnet}"}}'
        )
        assert cni.set_up(tmp_path / "a") != other
    finally:
        cni.tear_down(tmp_path / "a")
        cni.tear_down(tmp_path / "b")


def test_images_come_from_a_registry_and_failures_are_told_apart(
    tmp_path, registry, registry_image
):
    """[N10]"""

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            image_id = await node.runtime.pull_image(registry_image, None)
            image = await node.runtime.image(registry_image)
            assert image.id == image_id
            assert image.digests[0].startswith(f"{registry.address}/test/busybox@sha256:")
            with pytest.raises(ImageNotFound):
                await node.runtime.pull_image(f"{registry.address}/test/busybox:none", None)
            with pytest.raises(RuntimeFailure):
                await node.runtime.pull_image("127.0.0.1:1/a:1", Credentials("u", "p"))
            await node.runtime.remove_image(registry_image)
            await node.runtime.remove_image(registry_image)
            assert await node.runtime.image(registry_image) is None

    asyncio.run(story())


def renamed(archive, annotations):
    """The archive with other annotations on its one image."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=out, mode="w") as new,
    ):
        for member in old:
            data = old.extractfile(member).read()
            if member.name == "index.json":
                index = json.loads(data)
                index["manifests"][0]["annotations"] = annotations
                data = json.dumps(index).encode()
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return out.getvalue()


def test_imported_images_are_there_under_their_full_names(tmp_path):
    standard = "org.opencontainers.image.ref.name"

    async def story():
        async with private_runtime(tmp_path / "d") as node:
            program = {"p": ArchiveFile(pause_program(architecture(platform.machine())))}
            archive = build_archive("short:2", program, ImageSettings(entrypoint=("/p",)))
            for bytes_of_it, name in (
                (archive, "docker.io/library/short:2"),
                (renamed(archive, {standard: "skopeo:3"}), "docker.io/library/skopeo:3"),
                (renamed(archive, {standard: "a.example/b:4"}), "a.example/b:4"),
            ):
                assert await node.import_image(bytes_of_it) == [name]
                await eventually(lambda name=name: _has(node, name))
            nameless = renamed(archive, {standard: "latest"})
            with pytest.raises(ArchiveError, match="does not say what its image is called"):
                await node.import_image(nameless)
            file = tmp_path / "nameless.tar"
            file.write_bytes(nameless)
            named = await import_archive(node.daemon.socket_path, file, name="given")
            assert named == ["docker.io/library/given:latest"]
            await eventually(lambda: _has(node, "docker.io/library/given:latest"))
            with pytest.raises(ArchiveError, match="is not an image archive"):
                await node.import_image(b"no archive")

    asyncio.run(story())


async def _has(node, name):
    return await node.runtime.image(name) is not None


def test_reset_of_what_was_never_there_does_nothing(tmp_path):
    asyncio.run(process.reset(tmp_path / "no", environment={}, clock=SystemClock()))
    cni.tear_down(tmp_path / "no")
