"""Whatever is created, deleted and restarted in whatever order, garbage goes and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import NotFound
from sampan.api.resources import CONFIG_MAPS
from sampan.controllers.garbage_collector import garbage_collector
from sampan.testing import virtual_time
from sampan.testing.control_plane import ControlPlane

NAMES = "abcdef"
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("create"),
            st.sampled_from(NAMES),
            st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=2),
        ),
        st.tuples(
            st.just("delete"),
            st.sampled_from(NAMES),
            st.sampled_from(["Background", "Foreground", "Orphan"]),
        ),
        st.tuples(st.just("wait"), st.just(""), st.none()),
        st.tuples(st.just("restart"), st.just(""), st.none()),
    ),
    max_size=14,
)


class World:
    """What the test did, and what therefore may go."""

    def __init__(self, plane):
        self.plane = plane
        self.uids = {}  # newest uid by name
        self.owners = {}  # uid → owners' uids, as created
        self.deleted = set()

    async def create(self, name, owners):
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner,
                "uid": self.uids[owner],
                "blockOwnerDeletion": block,
            }
            for owner, block in dict(owners).items()
            if owner in self.uids and owner != name
        ]
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "ownerReferences": references},
        }
        if await self.found(name) is None:
            stored = await self.plane.client.create(CONFIG_MAPS, obj)
            uid = self.uids[name] = stored["metadata"]["uid"]
            self.owners[uid] = {one["uid"] for one in references}

    async def delete(self, name, propagation):
        obj = await self.found(name)
        if obj is not None:
            self.deleted.add(obj["metadata"]["uid"])
            await self.plane.client.delete(CONFIG_MAPS, "default", name, propagation=propagation)

    async def found(self, name):
        try:
            return await self.plane.client.get(CONFIG_MAPS, "default", name)
        except NotFound:
            return None

    def may_go(self, uid):
        """Deleted, or all of its owners may go."""
        owners = self.owners[uid]
        return uid in self.deleted or (bool(owners) and all(self.may_go(one) for one in owners))


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_only_garbage_goes_and_all_of_it(steps):
    async def story():
        async with ControlPlane(lambda: [garbage_collector()]) as plane:
            world = World(plane)
            for verb, name, value in steps:
                match verb:
                    case "create":
                        await world.create(name, value)
                    case "delete":
                        await world.delete(name, value)
                    case "wait":
                        await plane.settled()
                    case "restart":
                        await plane.stop_controllers()
                        await plane.start_controllers()
            await plane.settled(seconds=120)
            listed = (await plane.client.list(CONFIG_MAPS, "default")).items
            living = {
                one["metadata"]["uid"]: one
                for one in listed
                if one["metadata"]["name"] != "kube-root-ca.crt"
            }
            for obj in living.values():
                assert "deletionTimestamp" not in obj["metadata"], "a deletion hangs"
                for reference in obj["metadata"].get("ownerReferences") or ():
                    assert reference["uid"] in living, "a reference leads nowhere"
            for uid in world.owners:
                assert uid in living or world.may_go(uid), "something went that is no garbage"

    virtual_time.run(story())
