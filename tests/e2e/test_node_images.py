"""Images that go when the disk is full, on a real containerd [N18]."""

import asyncio
import os
import platform

import pytest

from sampan.kubelet.image_archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.image_garbage import Disk, ImageGarbage, ImageGarbageSettings
from sampan.kubelet.pause_image import architecture
from sampan.testing.private_runtime import private_runtime, why_not

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]


def test_a_full_disk_costs_what_can_be_pulled_again_and_nothing_else(tmp_path, registry_image):
    async def story():
        async with private_runtime(tmp_path / "data") as node:
            imported = "localhost/test/imported:1"
            own = ImageSettings(architecture(platform.machine()))
            await node.import_image(build_archive(imported, {"a": ArchiveFile(b"a")}, own))
            await node.runtime.pull_image(registry_image, None)
            garbage = ImageGarbage(
                node.runtime,
                str(tmp_path),
                settings=ImageGarbageSettings(min_age_seconds=0),
                clock=node.clock,
                warn=lambda reason, message: None,
                disk=lambda _: Disk(capacity_bytes=10**9, available_bytes=0),
            )
            before = {tag for one in await node.runtime.images() for tag in one.tags}
            assert {imported, registry_image} <= before
            assert await garbage.collect() > 0
            left = {tag for one in await node.runtime.images() for tag in one.tags}
            assert before - left == {registry_image}

    asyncio.run(story())
