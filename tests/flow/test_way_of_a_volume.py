"""docs/flows/volume.md, followed: the files of its steps are entered, in order, no others."""

import asyncio
from pathlib import Path

import pytest

from sampan.api.resources import by_kind
from tests.support.worlds import followed_stories as stories
from tests.support.worlds import followed_way as way

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "flows" / "volume.md"
STEPS = way.steps_in(PAGE.read_text().partition("What can go wrong")[0])[:6]
CLAIMS = by_kind("v1", "PersistentVolumeClaim")
FOLDERS = ("controllers/storage/", "kubelet/volumes/")
# They look whether the claim, or the pod, concerns them.
BESIDE = (
    "controllers/storage/migrated_plugins.py",
    "controllers/storage/volume_expansion.py",
    "controllers/storage/volume_protection.py",
    "controllers/storage/ephemeral_volumes.py",
    "controllers/storage/resource_claims.py",
)


async def mounted(client) -> None:
    meta = {"name": "data", "namespace": "default"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    await client.create(CLAIMS, claim)
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = stories.pod(volumes=volumes)
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    await stories.running_pod(client, pod)


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> way.Entries:
    return asyncio.run(way.followed(tmp_path_factory.mktemp("cluster"), mounted))


def test_every_file_that_a_step_names_is_entered(entered):
    assert way.missing(STEPS, entered, set()) == []


def test_the_steps_come_in_their_order(entered):
    order = way.order_of_steps(STEPS, entered, set())
    assert order == sorted(order)


def test_no_file_of_volumes_is_left_out(entered):
    left = way.left_out(STEPS, entered, *BESIDE)
    assert [path for path in left if path.startswith(FOLDERS)] == []
