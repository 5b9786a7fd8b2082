"""What others write into the store: keys and values of none of ours, before a start and after it.

Each is left out and named; every kind is listed, written and worked on as if it were not there.
"""

import random

import orjson
import pytest

from sampan.api.errors import AlreadyExists, InternalError
from sampan.api.kinds import Kinds
from sampan.api.resources import CONFIG_MAPS, NAMESPACES, RESOURCES, SERVICE_ACCOUNTS
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import selected_controllers
from tests.support import virtual_time
from tests.support.seed import SEED
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import ControlPlane

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PREFIXES = sorted({each.storage_prefix for each in RESOURCES})
ODD_KEYS = (
    "/registry/nobody", "/registry/", "/registry//", "/registry/pods", "/registry/pods/",
    "/registry/pods//", "/registry/pods/a/b/c/d", "/registry/things.example.com/x",
    "/registry/masterleases/10.0.0.9:1", "/registry/ranges/servicenodeports",
)  # fmt: skip


def controllers():
    settings = ControllerSettings(root_ca="PEM", clock=LoopClock())
    return selected_controllers(all_controllers(settings), ["*"])


def no_object(rng):
    """Bytes of no protocol, of another one, and objects of which a piece is missing or another."""
    whole = another_object(rng, "x")
    text = orjson.dumps(whole)
    place = rng.choice(["apiVersion", "kind", "metadata", "spec"])
    return rng.choice((
        b"", b"\xff" + rng.randbytes(rng.randrange(300)), b"k8s\0\n\x0c\n\x02v1\x12\x06Secret",
        b"k8s:enc:aescbc:v1:k:" + rng.randbytes(48), text[: rng.randrange(len(text))],
        text.replace(b":", b"\xff", 1), b"[" * rng.randrange(1, 5000), b'{"metadata":{}}',
        orjson.dumps({**whole, place: rng.choice([7, [], True])}),
        orjson.dumps({**whole, "metadata": {"name": "x", "labels": [1]}}),
    ))  # fmt: skip


def another_object(rng, name):
    """Whole, and of a kind that is elsewhere."""
    kind = rng.choice(["Pod", "Event", "Node", "Service", "Lease", "Thing"])
    metadata = {"name": name, "namespace": "default", "uid": f"{kind}-{name}"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {}, "status": {}}


async def spoil(store, name, value):
    for prefix in PREFIXES:
        for place in (name, f"default/{name}"):
            await store.create(prefix + place, value())


async def counts_of(client):
    served = Kinds().served
    lists = [each for each in RESOURCES if "list" in each.verbs and served(each) is not None]
    return {each: len((await client.list(each)).items) for each in lists}


async def takes_work(plane, namespace):
    """Lists, controllers and writes go on."""
    await plane.client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await plane.settled(1.0)
    await plane.client.get(SERVICE_ACCOUNTS, namespace, "default")
    await plane.client.get(CONFIG_MAPS, namespace, "kube-root-ca.crt")


def test_what_is_no_object_is_left_out_wherever_it_is():
    async def story():
        rng = random.Random(SEED)
        plane = ControlPlane(controllers)
        for key in ODD_KEYS:
            await plane.store.create(key, no_object(rng))
        await spoil(plane.store, "early", lambda: no_object(rng))
        async with plane:
            await plane.settled()
            before = await counts_of(plane.client)
            await spoil(plane.store, "late", lambda: no_object(rng))
            await plane.settled()
            assert await counts_of(plane.client) == before
            await takes_work(plane, "new")
            for name in ("early", "late"):
                with pytest.raises(InternalError, match="cannot be read"):
                    await plane.client.get(CONFIG_MAPS, "default", name)
                with pytest.raises(AlreadyExists):
                    await plane.client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")

    virtual_time.run(story())


def test_objects_that_are_elsewhere_keep_nobody_from_the_others():
    async def story():
        rng = random.Random(SEED)
        plane = ControlPlane(controllers)
        await spoil(plane.store, "early", lambda: orjson.dumps(another_object(rng, "early")))
        async with plane:
            await takes_work(plane, "one")
            await spoil(plane.store, "late", lambda: orjson.dumps(another_object(rng, "late")))
            await takes_work(plane, "two")
            assert (await counts_of(plane.client))[NAMESPACES] >= 4

    virtual_time.run(story())
