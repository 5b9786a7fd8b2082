"""`sampan image`: the images of a cluster's nodes on this machine, without a registry."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.cmd.cluster.data_dir import DataDir, DataDirError, find_data_dir, holder
from sampan.cmd.cluster.node import native_images
from sampan.cmd.cluster.nodes import NODES_DIRECTORY
from sampan.cmd.verbs import image_transfer
from sampan.core.clock import SystemClock
from sampan.kubelet.contracts.runtime import Image, RuntimeFailure
from sampan.kubelet.images.archive import ArchiveError, import_archive
from sampan.kubelet.images.reference import PAUSE_IMAGE, InvalidReference, parse

CONNECT_SECONDS = 10.0
SHORTEST_ID = 4
_STEP_BYTES = 1 << 20

if TYPE_CHECKING:
    from sampan.kubelet.runtime.cri_runtime import CriRuntime


class NoSuchImage(Exception):
    """Nothing of that name can be removed; the text says why."""


def run(action: str, data_dir: str, name: str, target: str = "", engine: str = "") -> int:
    """`target` is the file to save to, `engine` whom to load from."""
    try:
        data = find_data_dir(data_dir)
        if native_images.is_native(data.root):
            stores = [native_images.NativeImages(each) for each in _node_directories(data)]
            _run_native(stores, action, name, target or engine)
        else:
            _run_cri(_sockets_of(data), data.root, action, (name, target or engine))
    except (DataDirError, ArchiveError, NoSuchImage, RuntimeFailure) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return 0


def _node_directories(data: DataDir) -> list[Path]:
    """Of every real node on this machine, that of the machine itself first."""
    others = data.root / NODES_DIRECTORY
    return [data.root, *(sorted(others.iterdir()) if others.is_dir() else [])]


def _run_cri(sockets: Sequence[str], root: Path, action: str, words: tuple[str, str]) -> None:
    """`words`: the image or file, and the file to save to or whom to load from."""
    (name, other), first = words, sockets[0]

    def import_everywhere(path: Path) -> list[str]:
        names, *_ = [asyncio.run(_import(each, path)) for each in sockets]
        return names

    match action:
        case "import":
            _say_imported(import_everywhere(Path(name)), Path(name))
        case "load":
            _load(import_everywhere, name, other)
        case "pull":
            full = image_transfer.pull(first, root, name)
            image = asyncio.run(_wait_for(first, [full]))[0]
            if sockets[1:]:
                with image_transfer.scratch() as folder:
                    path = Path(folder, "image.tar")
                    image_transfer.save(first, full, path)
                    for each in sockets[1:]:
                        asyncio.run(_import(each, path))
            print(f"pulled {full} ({_size(image.size_bytes)})")
        case "save":
            size = image_transfer.save(first, name, Path(other))
            print(f"saved {name} to {other} ({_size(size)})")
        case "list":
            _print_table(asyncio.run(_images(first)))
        case "rm":
            _say_removed([asyncio.run(_remove(each, name)) for each in sockets])


def _run_native(
    stores: Sequence[native_images.NativeImages], action: str, name: str, other: str
) -> None:
    """`other`: the file to save to, or whom to load from."""
    images = stores[0]

    def import_everywhere(path: Path) -> list[str]:
        names, *_ = [each.import_file(path) for each in stores]
        return names

    match action:
        case "import":
            _say_imported(import_everywhere(Path(name)), Path(name))
        case "load":
            _load(import_everywhere, name, other)
        case "pull":
            _pull_native(stores, name)
        case "save":
            size = images.save(name, Path(other))
            print(f"saved {name} to {other} ({_size(size)})")
        case "list":
            _print_table(images.images())
        case "rm":
            _say_removed([_remove_native(each, name) for each in stores])


def _pull_native(stores: Sequence[native_images.NativeImages], name: str) -> None:
    """Once, however many nodes there are."""
    progress = _Progress()
    image = stores[0].pull(name, progress.add)
    progress.end()
    if stores[1:]:
        with image_transfer.scratch() as folder:
            path = Path(folder, "image.tar")
            stores[0].save(name, path)
            for each in stores[1:]:
                each.import_file(path)
    full, whole = parse(name).full_name(), _size(image.size_bytes)
    print(f"pulled {full} ({whole}, {_size(progress.came)} of it came now)")


def _remove_native(images: native_images.NativeImages, name: str) -> list[str]:
    image = _find(images.images(), name)
    gone = names_to_remove(image, name)
    images.remove(image, gone)
    return gone


class _Progress:
    """How many bytes came; on a terminal a line that grows."""

    def __init__(self) -> None:
        self.came = self._said = 0

    def add(self, count: int) -> None:
        self.came += count
        if sys.stdout.isatty() and self.came - self._said >= _STEP_BYTES:
            self._said = self.came
            print(f"\r{_size(self.came)}", end="", flush=True)

    def end(self) -> None:
        if self._said:
            print("\r", end="")


def _sockets_of(data: DataDir) -> list[str]:
    """Of every real node on this machine."""
    others = [DataDir(each) for each in _node_directories(data)[1:]]
    return [_socket_of(data), *filter(None, (each.record().get("cri_socket") for each in others))]


def _socket_of(data: DataDir) -> str:
    if not holder(data):
        raise DataDirError(
            f"the cluster in {data.root} does not run: start it with "
            f"`sampan up --data-dir {data.root}`"
        )
    found: str = data.record().get("cri_socket", "")
    if not found:
        raise DataDirError(f"the cluster in {data.root} has no real node, so it keeps no images")
    return found


async def _import(socket_path: str, path: Path) -> list[str]:
    """The names, once the node's runtime knows them: a pod may use them right away."""
    names = await import_archive(socket_path, path)
    await _wait_for(socket_path, names)
    return names


async def _wait_for(socket_path: str, names: Sequence[str]) -> list[Image]:
    """The images, once the runtime shows them; it hears of them by events of its own."""
    from sampan.kubelet.runtime.cri_runtime import CriRuntime

    clock = SystemClock()
    runtime = CriRuntime(socket_path, clock)
    deadline, found = clock.monotonic() + CONNECT_SECONDS, []
    try:
        for name in names:
            while (image := await runtime.image(name)) is None:
                if clock.monotonic() > deadline:
                    raise ArchiveError(f"{name} is there, but the runtime does not show it")
                await clock.sleep(0.005)
            found.append(image)
    finally:
        await runtime.close()
    return found


def _say_imported(names: Sequence[str], path: Path) -> None:
    size = _size(path.stat().st_size)
    for name in names:
        print(f"imported {name} ({size})")
        if name.endswith(":latest"):
            print("  its tag is latest: pods need imagePullPolicy IfNotPresent, or it is pulled")


def _say_removed(gone: Sequence[Sequence[str]]) -> None:
    """By node: it is the same everywhere."""
    for name in gone[0]:
        print(f"removed {name}")


def _load(import_file: Callable[[Path], list[str]], name: str, wanted: str) -> None:
    engine = image_transfer.engine(wanted)
    with image_transfer.scratch() as folder:
        path = image_transfer.save_from(engine, name, Path(folder))
        print(f"{engine} has {name} ({_size(path.stat().st_size)})", flush=True)
        _say_imported(import_file(path), path)


async def _images(socket_path: str) -> list[Image]:
    from sampan.kubelet.runtime.cri_runtime import CriRuntime

    runtime = CriRuntime(socket_path, SystemClock())
    try:
        await runtime.connect(CONNECT_SECONDS)
        return list(await runtime.images())
    finally:
        await runtime.close()


async def _remove(socket_path: str, name: str) -> list[str]:
    """The names that are gone. CRI knows only how to remove an image with all that it has."""
    from sampan.kubelet.runtime.cri_runtime import CriRuntime

    runtime = CriRuntime(socket_path, SystemClock())
    try:
        await runtime.connect(CONNECT_SECONDS)
        image = _find(await runtime.images(), name)
        gone = names_to_remove(image, name)
        if {*image.tags, *image.digests} <= {*gone}:
            await runtime.remove_image(image.id)
        else:
            await asyncio.to_thread(image_transfer.untag, socket_path, gone)
            await _wait_until_gone(runtime, gone)
    finally:
        await runtime.close()
    return gone


async def _wait_until_gone(runtime: "CriRuntime", names: Sequence[str]) -> None:
    """The runtime hears of it by events of its own."""
    clock = SystemClock()
    deadline = clock.monotonic() + CONNECT_SECONDS
    while any({*image.tags, *image.digests} & {*names} for image in await runtime.images()):
        if clock.monotonic() > deadline:
            raise ArchiveError(f"{names[0]} is gone, but the runtime still shows it")
        await clock.sleep(0.005)


def names_to_remove(image: Image, name: str) -> list[str]:
    """One name of several goes alone, but for the digests of a repository that has no tag left;
    an id, the last name, or a digest stands for all that it has (of the repository)."""
    names = [*image.tags, *image.digests]
    try:
        asked = parse(name)
    except InvalidReference:
        return names or [image.id]
    full = asked.full_name()
    if full not in names:
        return names or [image.id]  # it was meant by its id
    mine = [each for each in names if parse(each).repository == asked.repository]
    others = [each for each in image.tags if each != full and each in mine]
    return [full] if full in image.tags and others else mine


def _find(images: Sequence[Image], name: str) -> Image:
    """By a name as `list` shows it, by a short one (`busybox`), or by the beginning of an id."""
    try:
        full = parse(name).full_name()
    except InvalidReference:
        full = name
    found = [image for image in images if {name, full} & {*image.tags, *image.digests, image.id}]
    found = found or [image for image in images if _id_begins(image, name)]
    if len(found) != 1:
        raise NoSuchImage(f"{len(found) or 'no'} images are called {name}: `sampan image list`")
    if found[0].pinned or PAUSE_IMAGE in found[0].tags:
        raise NoSuchImage(f"the node itself needs {name}")
    return found[0]


def _id_begins(image: Image, text: str) -> bool:
    short = text.removeprefix("sha256:")
    return len(short) >= SHORTEST_ID and image.id.removeprefix("sha256:").startswith(short)


def _print_table(images: list[Image]) -> None:
    rows = sorted(
        (name, image.id.removeprefix("sha256:")[:12], _size(image.size_bytes))
        for image in images
        for name in image.tags or image.digests or ("<none>",)
    )
    width = max((len(row[0]) for row in rows), default=0)
    print(f"{'IMAGE':<{width}}  {'ID':<12}  SIZE")
    for name, identity, size in rows:
        print(f"{name:<{width}}  {identity:<12}  {size}")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
