"""Whatever is created, deleted and restarted in whatever order, garbage goes and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import NotFound
from sampan.api.resources import CONFIG_MAPS
from tests.support.worlds.controller_worlds import play, steps

NAMES = "abcdef"
STEPS = steps(
    st.tuples(
        st.just("create"),
        st.tuples(
            st.sampled_from(NAMES),
            st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=2),
        ),
    ),
    st.tuples(
        st.just("delete"),
        st.tuples(st.sampled_from(NAMES), st.sampled_from(["Background", "Foreground", "Orphan"])),
    ),
    most=14,
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

    async def begin(self):
        pass

    async def do(self, verb, value):
        await (self.create(*value) if verb == "create" else self.delete(*value))

    async def tend(self):
        return False

    async def check(self):
        listed = (await self.plane.client.list(CONFIG_MAPS, "default")).items
        living = {
            one["metadata"]["uid"]: one
            for one in listed
            if one["metadata"]["name"] != "kube-root-ca.crt"
        }
        for obj in living.values():
            assert "deletionTimestamp" not in obj["metadata"], "a deletion hangs"
            for reference in obj["metadata"].get("ownerReferences") or ():
                assert reference["uid"] in living, "a reference leads nowhere"
        for uid in self.owners:
            assert uid in living or self.may_go(uid), "something went that is no garbage"


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_only_garbage_goes_and_all_of_it(told):
    play(["garbagecollector"], World, told)
