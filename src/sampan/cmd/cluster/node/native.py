"""Containers without containerd: `--runtime native`.

Job: what it needs, or what is missing; the runtime over the node's interfaces; images from files;
    and nothing of it left after a reset.
"""

import asyncio
import contextlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.cluster.cluster_names import data_directory, name_of_directory
from sampan.cmd.errors import CannotStart
from sampan.core.clock import Clock
from sampan.core.elf import architecture
from sampan.core.log import get_logger
from sampan.kubelet.images.reference import HELLO_IMAGE, parse

if TYPE_CHECKING:
    from sampan.kubelet.native.native_runtime import NativeRuntime
    from sampan.kubelet.native.node_images import NodeImages
    from sampan.kubelet.native.sandboxes import SandboxNetwork
    from sampan.network.pods.pod_interfaces import PodInterfaces
    from sampan.runtime.images.image_store import ImageStore
    from sampan.runtime.programs import Programs

log = get_logger(__name__)

# As containerd's own default; the cluster's directory is asked before.
CERTS_DIRECTORIES = (Path("/etc/containerd/certs.d"), Path("/etc/docker/certs.d"))


def home(data_dir: Path) -> Path:
    return data_dir / "native"


def missing_programs(search_path: str, *, tried: bool) -> list[str]:
    """`tried`: programs that do not work are missing, too; where nothing else could be done,
    `started_runtime` says so."""
    from sampan.runtime.programs import ProgramsMissing, find_programs, look_for_programs

    try:
        if tried:
            find_programs(Path("/nonexistent"), search_path)
        else:
            look_for_programs(search_path)
    except ProgramsMissing as error:
        return [str(error)]
    return []


def sandbox_network(
    data_dir: Path, interfaces: "PodInterfaces | None", conf_dir: Path, bin_dir: Path
) -> "SandboxNetwork":
    """Who makes pods' interfaces: sampan itself, or CNI plugins."""
    from sampan.cmd.cluster.node.sandbox_network import BridgedSandboxes, PluggedSandboxes
    from sampan.network.plugins.plugin_network import PluginNetwork, PluginPlaces

    if interfaces is not None:
        return BridgedSandboxes(interfaces)
    places = PluginPlaces(conf_dir, bin_dir, home(data_dir) / "attachments")
    return PluggedSandboxes(PluginNetwork(places, os.environ))


def working_programs(data_dir: Path, *, limits: bool = True) -> "Programs":
    """Takes a moment. `limits`: whether we may make cgroups. Raises CannotStart."""
    from sampan.runtime import apparmor, programs, user_namespace

    search_path = os.environ.get("PATH", os.defpath)
    inside = user_namespace.rights().is_inside  # profiles are the machine's root's
    if not inside and (why_not := apparmor.load_default(search_path)):
        log.warning("containers have no AppArmor profile of the runtime's", error=why_not)
    try:
        return programs.find_programs(home(data_dir) / "state", search_path, limits=limits)
    except programs.ProgramsMissing as error:
        raise CannotStart(f"containers cannot be run: there must be {error}") from error


async def started_runtime(
    data_dir: Path, programs: "Programs", network: "SandboxNetwork", clock: Clock
) -> "NativeRuntime":
    """With the image of `sampan run hello` on board. Raises CannotStart."""
    from sampan.kubelet.contracts.runtime import RuntimeFailure
    from sampan.kubelet.native.native_runtime import NativeRuntime
    from sampan.runtime.images.content import ImageError

    try:
        images = node_images(data_dir, clock)
        runtime = NativeRuntime(home(data_dir), programs, network, clock, images)
        await runtime.start()
        await asyncio.to_thread(_import_hello, runtime.store)
    except (RuntimeFailure, ImageError, OSError) as error:
        raise CannotStart(f"containers cannot be run: {error}") from error
    return runtime


def _import_hello(store: "ImageStore") -> None:
    if store.find(HELLO_IMAGE) is not None:
        return
    from sampan.kubelet.images.hello_image import hello_archive

    # In memory: whoever is killed meanwhile leaves no file.
    with open(os.memfd_create("hello"), "wb") as file:
        file.write(hello_archive())
        file.flush()
        import_file(store, Path(f"/proc/self/fd/{file.fileno()}"))


def import_file(store: "ImageStore", file: Path, name: str = "") -> list[str]:
    """The full names of what is in it. Raises ImageError."""
    from sampan.runtime.images.archives import import_archive

    machine = architecture(platform.machine())
    return import_archive(store, file, lambda given: parse(given).full_name(), machine, name)


def certs_directory(data_dir: Path) -> Path:
    """Where --registry-mirror is written, and what a person writes: as containerd reads it."""
    return home(data_dir) / "certs.d"


def node_images(data_dir: Path, clock: Clock) -> "NodeImages":
    """Named clusters of a user have their blobs and layers in common; one with a directory of its
    own keeps everything there."""
    from sampan.kubelet.native.native_runtime import image_store
    from sampan.kubelet.native.node_images import NodeImages

    named = name_of_directory(data_dir, os.environ)
    shared = data_directory(os.environ) / "images" if named else None
    directories = (certs_directory(data_dir), *CERTS_DIRECTORIES)
    store = image_store(home(data_dir), shared)
    return NodeImages(store, directories, clock)


async def reset(data_dir: Path, clock: Clock) -> None:
    """Every container, mount and namespace of a cluster that does not run any more."""
    from sampan.core.mounts import unmount_below
    from sampan.kubelet.contracts.runtime import RuntimeFailure
    from sampan.kubelet.native.native_runtime import NativeRuntime
    from sampan.runtime.programs import ProgramsMissing, find_programs

    try:
        programs = find_programs(home(data_dir) / "state", os.environ.get("PATH", os.defpath))
        images = node_images(data_dir, clock)
        # Sampan's own bridge goes as a whole; what plugins made, they take back.
        network = sandbox_network(data_dir, None, Path("/nonexistent"), Path("/nonexistent"))
        runtime = NativeRuntime(home(data_dir), programs, network, clock, images)
        await runtime.start()
        for pod in await runtime.pods():
            for sandbox in pod.sandboxes:
                with contextlib.suppress(RuntimeFailure):  # a plugin is gone, or refuses
                    await runtime.remove_sandbox(sandbox.id)
        await runtime.close()
        images.store.forget_home()
        await asyncio.to_thread(images.store.collect)
    except (ProgramsMissing, RuntimeFailure):
        """What runs still is ended by its cgroup; mounts go here."""
    await asyncio.to_thread(unmount_below, str(home(data_dir)))
