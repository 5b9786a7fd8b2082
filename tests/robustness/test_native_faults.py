"""kill -9 at every step of a pod's life without containerd; then a start that finds it all again.

Every function of the native runtime that a pod's way enters is a fault point, by its name: the
process is killed as it enters or leaves it. Whatever was under way then, the next process removes
the pod, and nothing is left: no mount, process, cgroup, interface, address, file. [R]
"""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from sampan.cmd.cluster.node.sandbox_network import BridgedSandboxes
from sampan.core.clock import SystemClock
from sampan.kubelet.container_spec import generate
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.reference import parse
from sampan.kubelet.native.native_runtime import NativeRuntime
from sampan.network import cni
from sampan.network.pods.pod_interfaces import PodInterfaces
from sampan.runtime.images.archives import import_archive
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.programs import find_programs
from tests.support.parts import native_runtime as native_parts
from tests.support.parts.images import busybox_archive
from tests.support.parts.killed_lives import in_child, killed_at, noting
from tests.support.parts.processes import eventually
from tests.support.worlds.simulated_node import pod_named

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.containerd,
    pytest.mark.skipif(
        bool(native_parts.why_not()) or os.geteuid() != 0,
        reason=native_parts.why_not() or "needs root",
    ),
]
IMAGE = "localhost/test/busybox:1"
WATCHED = ("/sampan/kubelet/native/", "/sampan/runtime/", "/sampan/network/pods/")
KILLS = 14
LEAK_SECONDS = 60


class Node:
    """One data directory, its network, and the lives of agents on it."""

    def __init__(self, root):
        self.root = root
        self.network = cni.set_up(root)
        self.archive = busybox_archive(root / "busybox.tar", IMAGE)
        self.parent = f"/sampan-faults-{os.getpid()}"
        self.number = 0

    async def agent(self, work, search_path=""):
        interfaces = PodInterfaces(cni.interface_settings(self.root, self.network))
        await interfaces.start()
        path = f"{search_path}:{os.environ['PATH']}"
        programs = find_programs(self.root / "native" / "state", path)
        sandboxes = BridgedSandboxes(interfaces)
        runtime = NativeRuntime(self.root / "native", programs, sandboxes, SystemClock())
        try:
            await runtime.start()
            return await work(runtime)
        finally:
            await runtime.close()
            await interfaces.stop()

    async def story(self, runtime):
        """From the image to the end of the pod."""
        if not (found := runtime.store.find(IMAGE)):
            native_parts.import_image(runtime, self.archive)
            found = runtime.store.find(IMAGE)
        container = {"name": "main", "image": IMAGE, "command": ["sleep", str(self.seconds)]}
        pod = pod_named(f"pod-{self.number}", containers=[container])
        pod["metadata"] |= {"namespace": "default", "uid": f"uid-{self.number}-{os.getpid()}"}
        node = generate.NodeFacts(
            "n", root_dir=f"{self.root}/kubelet", log_root=f"{self.root}/logs"
        )
        sandbox = replace(
            generate.sandbox_spec(pod, attempt=0, node=node), cgroup_parent=self.parent
        )
        context = generate.ContainerContext(
            attempt=0, image_id=found.id, image=await runtime.image(IMAGE), objects={},
            pod_ips=(), node=node,
        )  # fmt: skip
        spec = generate.container_spec(pod, pod["spec"]["containers"][0], context)
        sandbox_id = await runtime.run_sandbox(sandbox)
        container_id = await runtime.create_container(sandbox_id, spec, sandbox)
        await runtime.start_container(container_id)
        await runtime.exec_sync(container_id, ["true"], 60)
        await runtime.stop_container(container_id, 0.0)
        await runtime.remove_container(container_id)
        await runtime.stop_sandbox(sandbox_id)
        await runtime.remove_sandbox(sandbox_id)

    @property
    def seconds(self):
        """How its one process is recognised."""
        return 1_000_000 + self.number * 1000 + os.getpid() % 1000

    def live(self, hook):
        """A process lives the story; how it ended, and what it wrote."""
        self.number += 1

        def life(write):
            hook(write)
            asyncio.run(self.agent(self.story))

        return in_child(life)

    async def clean(self, runtime):
        """What the kubelet does with pods that it does not know."""
        for pod in await runtime.pods():
            for sandbox in pod.sandboxes:
                await runtime.stop_sandbox(sandbox.id)
                await runtime.remove_sandbox(sandbox.id)
        return [await runtime.pods(), runtime._containers.ids()]

    def leaks(self):
        root, found = str(self.root), []
        # What was being unpacked goes with the first collection after its process.
        ImageStore(self.root / "native" / "images").collect()
        found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
                  if root in line]  # fmt: skip
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = process.read_bytes().split(b"\0")
            except OSError:
                continue
            if root.encode() in b" ".join(command) or str(self.seconds).encode() in command:
                found.append((process.parent.name, command))
        found += Path("/sys/fs/cgroup").glob(f"*{self.parent}/*/")
        found += Path("/sys/fs/cgroup").glob(f"{self.parent.strip('/')}/*/")
        found += Path(f"/sys/class/net/{self.network.bridge}/brif").glob("*")
        for directory in ("containers", "sandboxes", "state", "images/unpacking",
                          "images/incoming"):  # fmt: skip
            found += (self.root / "native" / directory).glob("*")
        settings = cni.interface_settings(self.root, self.network)
        found += PodInterfaces(settings).holders()
        return found


@pytest.fixture(scope="module")
def node():
    root = Path(tempfile.mkdtemp(prefix="sampan-nf-"))
    made = Node(root)
    yield made
    cni.tear_down(root)
    for pattern in (f"*{made.parent}", made.parent.strip("/")):
        for left in Path("/sys/fs/cgroup").glob(pattern):
            left.rmdir()
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def points(node):
    """All there are, in their order; of a life in which nothing is killed."""
    code, lines = node.live(noting(WATCHED))
    assert code == 0
    assert node.leaks() == []
    assert len(lines) > 100
    return lines


def check_nothing_is_left(node, point):
    assert asyncio.run(node.agent(node.clean)) == [[], []], point
    # Interfaces go a little later; so do processes that were killed.
    try:
        eventually(lambda: not node.leaks(), LEAK_SECONDS)
    except AssertionError:
        raise AssertionError(f"{point}, left: {node.leaks()}") from None


def check_killed_at(node, point):
    shutil.rmtree(node.root / "native" / "images", ignore_errors=True)
    code, _ = node.live(killed_at(WATCHED, point))
    # 0: this life did not come by that point, as not every one does that waits.
    assert code in (-signal.SIGKILL, 0), (point, code)
    check_nothing_is_left(node, f"killed at {point}")


def test_nothing_is_left_wherever_the_agent_is_killed(node, points):
    for point in random.Random(20).sample(points, KILLS):
        check_killed_at(node, point)


# Where, in a program that stands before the real one: $REAL "$@" is the real call.
DEATHS = {
    "crun, before it creates": ("crun", "create", "kill -9 $$"),
    "crun, after it created": ("crun", "create", '$REAL "$@"; kill -9 $$'),
    "conmon, before anything": ("conmon", "--cid", "kill -9 $$"),
    "conmon, as its container is there": ("crun", "create", '$REAL "$@"; kill -9 $PPID'),
    "crun and conmon at once": ("crun", "create", "kill -9 $PPID $$"),
    "crun, as it runs a program": ("crun", "exec", "kill -9 $$"),
}


@pytest.mark.parametrize("death", sorted(DEATHS))
@pytest.mark.timeout(110)  # conmon waits for 120 s for a crun that was killed; we do not
def test_nothing_is_left_wherever_a_program_is_killed(node, tmp_path, death):
    program, word, script = DEATHS[death]
    real = shutil.which(program)
    stands = tmp_path / program
    stands.write_text(
        f"""#!/bin/sh
REAL={real}
case " $* " in
*" {word} "*) if mkdir {tmp_path}/once 2>/dev/null; then {script}; exit 1; fi ;;
esac
exec $REAL "$@"
"""
    )
    stands.chmod(0o755)
    node.number += 1
    with contextlib.suppress(RuntimeFailure):
        asyncio.run(node.agent(node.story, str(tmp_path)))
    assert (tmp_path / "once").exists(), "nothing was killed"
    check_nothing_is_left(node, death)


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    subprocess.run(command, check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_said_and_empty_again(small_disk, tmp_path):
    """Of 4 MiB: 2 MiB of blobs fit, but not what is in them; then not even the blobs."""

    def imported(store, megabytes):
        file = tmp_path / "image.tar"
        files = {"tool": ArchiveFile(b"x" * (megabytes << 20))}
        file.write_bytes(build_archive(IMAGE, files, ImageSettings()))
        import_archive(store, file, lambda name: parse(name).full_name(), "amd64")
        return store.find(IMAGE)

    store = ImageStore(small_disk / "images")
    found = imported(store, 2)
    with pytest.raises(ImageError, match=r"No space left|holds more than"):
        asyncio.run(store.lowers(found))
    assert list((small_disk / "images" / "unpacking").iterdir()) == []
    assert store.find(IMAGE) == found, "its blobs are as they were"
    store.remove(found)
    store.collect()
    with pytest.raises(ImageError, match="No space left"):
        imported(store, 8)
    assert store.images() == []
    store.collect()
    assert os.statvfs(small_disk).f_bavail * 4096 > 3 << 20
    assert asyncio.run(store.lowers(imported(store, 1)))
