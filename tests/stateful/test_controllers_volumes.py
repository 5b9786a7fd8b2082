"""Claims and volumes come to rest, whatever was made, deleted and restarted in between."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import AlreadyExists, Conflict, NotFound
from sampan.api.quantity import value_of
from sampan.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.support.worlds.controller_worlds import play, steps

NAMES = ["persistentvolume-binder", "pvc-protection", "pv-protection", "local-provisioner"]
NUMBERS = st.integers(0, 2)
STEPS = steps(
    st.tuples(st.just("volume"), st.tuples(NUMBERS, st.integers(1, 3))),
    st.tuples(st.just("claim"), st.tuples(NUMBERS, st.integers(1, 3))),
    st.tuples(st.just("local claim"), st.tuples(NUMBERS, st.integers(1, 3))),
    st.tuples(st.just("reserve"), st.tuples(NUMBERS, NUMBERS)),
    st.tuples(st.just("delete claim"), st.tuples(NUMBERS, st.none())),
    st.tuples(st.just("delete volume"), st.tuples(NUMBERS, st.none())),
    most=14,
)


def claim(number, size, class_name=""):
    meta = {"name": f"c{number}", "namespace": "default"}
    if class_name:
        meta["annotations"] = {"volume.kubernetes.io/selected-node": "n"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{size}Gi"}},
            "storageClassName": class_name,
        },
    }


def volume(number, size, holder=None):
    spec = {
        "capacity": {"storage": f"{size}Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp/v"},
    }
    if holder is not None:
        spec["claimRef"] = {"namespace": "default", "name": f"c{holder}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v{number}"},
        "spec": spec,
    }


async def do(plane, verb, number, value):
    client = plane.client
    with suppress(AlreadyExists, NotFound, Conflict):
        match verb:
            case "volume":
                await client.create(PERSISTENT_VOLUMES, volume(number, value))
            case "reserve":
                await client.create(PERSISTENT_VOLUMES, volume(number, 3, value))
            case "claim":
                await client.create(PERSISTENT_VOLUME_CLAIMS, claim(number, value))
            case "local claim":
                made = claim(number, value, "standard")
                await client.create(PERSISTENT_VOLUME_CLAIMS, made)
            case "delete claim":
                await client.delete(PERSISTENT_VOLUME_CLAIMS, "default", f"c{number}")
            case "delete volume":
                await client.delete(PERSISTENT_VOLUMES, "", f"v{number}")


async def check(plane):
    claims = (await plane.client.list(PERSISTENT_VOLUME_CLAIMS)).items
    volumes = {
        one["metadata"]["name"]: one for one in (await plane.client.list(PERSISTENT_VOLUMES)).items
    }
    held = []
    for one in claims:
        if one["status"]["phase"] != "Bound":
            assert one["spec"]["storageClassName"] != "standard"
            continue
        mine = volumes[one["spec"]["volumeName"]]
        held.append(mine["metadata"]["name"])
        assert mine["spec"]["claimRef"]["uid"] == one["metadata"]["uid"]
        assert mine["status"]["phase"] == "Bound"
        wanted = value_of(one["spec"]["resources"]["requests"]["storage"])
        assert wanted <= value_of(mine["spec"]["capacity"]["storage"])
    assert len(held) == len(set(held)), "two claims hold one volume"
    for name, one in volumes.items():
        if one["status"]["phase"] == "Bound":
            assert name in held
    waiting = [one for one in claims if one["status"]["phase"] == "Pending"]
    free = [one for one in volumes.values() if one["status"]["phase"] == "Available"]
    unreserved = [one for one in free if "claimRef" not in one["spec"]]
    for one in waiting:
        wanted = value_of(one["spec"]["resources"]["requests"]["storage"])
        fitting = [v for v in unreserved if wanted <= value_of(v["spec"]["capacity"]["storage"])]
        assert not fitting, "a claim waits although a volume would do"


class World:
    def __init__(self, plane):
        self.plane = plane

    async def begin(self):
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        await self.plane.client.create(NODES, node)

    async def do(self, verb, value):
        await do(self.plane, verb, *value)

    async def tend(self):
        return False

    async def check(self):
        await check(self.plane)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_every_claim_that_can_be_bound_is_bound_to_a_volume_of_its_own(told):
    play(NAMES, World, told)
