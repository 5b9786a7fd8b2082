"""What is slow only once is done before anybody waits for it.

Job: let a cluster that nobody sees do what tests do: types are compiled, modules loaded, code
    paths taken for the first time. What is forked later has all of that.
Invariant: nothing of that cluster stays but what is kept for good anyway.
"""

import asyncio
import os
import shutil
from pathlib import Path

import orjson

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.resources import by_kind
from sampan.api.schema.published import Schema
from sampan.client.kubeconfig import Connection
from sampan.client.rest import connect, context_of
from sampan.cmd.cluster.pki import Pki
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.virtual_time.loop import SteppedLoop
from sampan.testing.kit.process.plane import Plane
from sampan.testing.kit.spec import Spec

_POD = {"containers": [{"name": "c", "image": "i"}]}
_LABELS = {"app": "warm"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}
_SETS = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
OBJECTS: tuple[Obj, ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Service", "spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "spec": _SETS},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {**_SETS, "serviceName": "warm"}},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": _SETS},
    {"apiVersion": "batch/v1", "kind": "Job", "spec": {
        "template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
    {"apiVersion": "v1", "kind": "Pod", "spec": _POD},
)  # fmt: skip


def warm_up(directory: Path, keys: Path, schema: Schema) -> None:
    directory.mkdir()
    os.chdir(directory)
    with asyncio.Runner(loop_factory=lambda: SteppedLoop(virtual=False)) as runner:
        runner.run(_live(Plane(Spec(), keys, schema, SystemClock()), Pki(keys)))
    os.chdir(directory.parent)
    shutil.rmtree(directory, ignore_errors=True)


async def touch(plane: Plane, keys: Path) -> None:
    """In a template: what a server makes with its first requests, without leaving anything."""
    admin = await _admin(plane, Pki(keys))
    http = HttpClient(ssl_context=context_of(admin))
    for obj in OBJECTS:
        resource = by_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None
        name = f"{resource.path}/namespaces/default/{resource.plural}/warm"
        await http.request(
            "PATCH",
            f"{admin.server}{name}?dryRun=All&fieldManager=warm",
            headers=[("content-type", "application/apply-patch+yaml")],
            body=orjson.dumps({**obj, "metadata": {"name": "warm"}}),
        )
    await http.close()
    await plane.hang_up()


async def _admin(plane: Plane, keys: Pki) -> Connection:
    return Connection(
        f"https://127.0.0.1:{await plane.listen()}",
        ca=keys.ca.read_bytes(),
        certificate=keys.certificate("admin").read_bytes(),
        key=keys.key("admin").read_bytes(),
    )


async def _live(plane: Plane, keys: Pki) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    await plane.start()
    client = connect(await _admin(plane, keys), clock=SystemClock())
    for obj in OBJECTS:
        resource = by_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None
        named = {**obj, "metadata": {"name": "warm"}}
        try:
            await client.patch(resource, "default", "warm", named, patch_type="apply")
            await loop.settle(0.1)
            await client.list(resource, "default")
            await client.delete(resource, "default", "warm")
        except ApiError:
            continue  # nobody waits for it
    await loop.settle(0.1)
    await client.close()
    await plane.stop()
