"""The layers of images as directories, each unpacked once.

Job: a blob → a directory that an overlay can be mounted from.
Invariant: a layer's directory is whole: unpacked beside it, forced to the disk, then renamed.
Invariant: what the disk damaged is not used, and is removed.
Owner: one directory, which several processes of a user may share.
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sampan.core.files.remove_tree import remove_tree
from sampan.runtime.images import manifests
from sampan.runtime.images.claims import Claims, is_held
from sampan.runtime.images.content import ContentStore, Descriptor, ImageError

_UNPACK_SECONDS = 1800.0


class LayerDamaged(ImageError):
    """Not as it came: it is removed, and has to come again."""


class Layers:
    def __init__(self, root: Path, content: ContentStore, claims: Claims) -> None:
        self._content, self._claims = content, claims
        self._layers, self._unpacking = root / "layers", root / "unpacking"
        for directory in (self._layers, self._unpacking):
            directory.mkdir(exist_ok=True)
        self._turns: dict[str, asyncio.Lock] = {}

    def has(self, diff_id: str) -> bool:
        return self._path(diff_id).is_dir()

    async def unpacked(self, diff_id: str, layer: Descriptor, below: Sequence[Path]) -> Path:
        """Its directory; `below`: those under it, the lowest first. Raises ImageError."""
        target = self._path(diff_id)
        if target.exists():
            return target
        turn = self._turns.setdefault(diff_id, asyncio.Lock())
        async with turn:
            if not target.exists():
                await self._unpack(diff_id, layer, below)
        self._turns.pop(diff_id, None)
        return target

    def put_aside(self, keep: set[str]) -> None:
        """Those of other diff ids: they are among what is `left` then."""
        for directory in self._layers.iterdir():
            if f"sha256:{directory.name}" not in keep:
                aside = tempfile.mkdtemp(dir=self._unpacking)
                os.rename(directory, aside)

    def left(self) -> list[Path]:
        """What was put aside, and what was being unpacked by a process that is gone."""
        found = []
        for directory in self._unpacking.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if not is_held(directory):
                    found.append(directory)
        return found

    def _path(self, diff_id: str) -> Path:
        return self._layers / diff_id.removeprefix("sha256:")

    async def _unpack(self, diff_id: str, layer: Descriptor, below: Sequence[Path]) -> None:
        with self._claims.not_removing():
            directory = tempfile.mkdtemp(dir=self._unpacking)
            held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(held, fcntl.LOCK_EX)
        os.chmod(directory, 0o755)
        work = [
            str(os.getpid()), str(self._content.path(layer.digest)), manifests.packing_of(layer),
            layer.digest, diff_id, directory, *(str(lower) for lower in reversed(below)),
        ]  # fmt: skip
        try:
            await _run_unpack(work, held)
            _rename(directory, self._path(diff_id))
        except ImageError as error:
            await self._look_at_blob(layer)
            raise ImageError(f"the layer {layer.digest} is not used: {error}") from error
        except OSError as error:
            raise ImageError(f"the layer {layer.digest} cannot be unpacked: {error}") from error
        finally:
            os.close(held)
            await asyncio.to_thread(remove_if_there, directory)

    async def _look_at_blob(self, layer: Descriptor) -> None:
        """Was it the image's fault, or the disk's? What the disk damaged is fetched again."""
        if not await asyncio.to_thread(self._content.is_whole, layer):
            self._content.remove(layer.digest)
            raise LayerDamaged(
                f"the layer {layer.digest} was damaged on the disk and is removed: "
                "pull or import the image again"
            )


def _rename(directory: str, target: Path) -> None:
    try:
        os.rename(directory, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another was faster
            raise


def remove_if_there(directory: str | Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove_tree(directory)


async def _run_unpack(work: Sequence[str], held: int) -> None:
    """`held`: locked while the child lives, too."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "sampan.runtime.images.unpack",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env={"PATH": os.defpath}, pass_fds=(held,),
    )  # fmt: skip
    try:
        async with asyncio.timeout(_UNPACK_SECONDS):
            noted, complaint = await process.communicate(json.dumps(work).encode())
    except TimeoutError:
        raise ImageError("a layer took too long to unpack") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ImageError(_reason(noted, complaint, process.returncode))


def _reason(noted: bytes, complaint: bytes, code: int | None) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(noted)["error"])
    last = complaint.decode(errors="replace").strip().splitlines()[-1:] or [f"it ended with {code}"]
    return f"it cannot be unpacked: {last[0]}"
