"""Custom resources: what they cost beside config maps of the same size.

Job: print validation time, rates of create, get, list and watch, how long 300 definitions take
    and how much memory each needs, and when the first object of a new kind is accepted.
    CPU time of this process, so that others on the machine do not count.
Run: make bench-crd
"""

import asyncio
import gc
import tempfile
import time
import tracemalloc

import orjson

from sampan.api.custom.custom_version import CustomKind
from sampan.api.schema.published import Schema
from sampan.api.validation.custom_resources.custom_object import object_errors
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request
from tests.support.generators.api_requests import api_server, client_certificate

ITEMS = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 60},
        "image": {"type": "string", "pattern": "^[a-z/.:0-9-]+$"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
FIELDS = {
    "note": {"type": "string"},
    "replicas": {"type": "integer", "default": 1},
    "parts": {
        "type": "array", "items": ITEMS, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COUNT, BATCH = 1000, 50
CERTIFICATE = client_certificate("admin", "system:masters")


def definition(plural, kind):
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.bench.example"},
        "spec": {
            "group": "bench.example", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
            }],
        },
    }  # fmt: skip


def part(at):
    return {
        "name": f"part-{at}", "image": f"registry/app-{at}:1", "port": 8000 + at, "mode": "b",
        "env": {"A": "x" * 20, "B": "y" * 20},
    }  # fmt: skip


def widget(name):
    """No two are the same: what was found of one says nothing of the next."""
    spec = {"note": name, "replicas": 2, "parts": [part(at) for at in range(13)]}
    head = {"apiVersion": "bench.example/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def config_map(name):
    """Stored, both have the same size: of a widget there is more to say in managedFields."""
    data = {f"key-{at}": orjson.dumps(part(at)).decode() for at in range(19)} | {"note": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def validation_microseconds():
    version = CustomKind(definition("widgets", "Widget"), Schema.load()).versions["v1"]
    obj = {**widget("w"), "metadata": {"name": "w"}}
    size = len(orjson.dumps(obj))
    assert object_errors(version, obj, None, []) == []
    rounds = 500
    start = time.process_time()
    for at in range(rounds):
        obj["spec"]["note"] = f"checked {at}"
        object_errors(version, obj, None, [])
    checked = (time.process_time() - start) / rounds * 1e6
    start = time.process_time()
    for at in range(rounds):
        obj["spec"]["note"] = f"decoded {at}"
        version.decoded(obj)
    return size, checked, (time.process_time() - start) / rounds * 1e6


KINDS = {
    "config maps": ("/api/v1/namespaces/default/configmaps", config_map),
    "custom": ("/apis/bench.example/v1/namespaces/default/widgets", widget),
}


def request(method, where, body=b""):
    path, _, query = where.partition("?")
    headers = {"content-type": "application/json", "user-agent": "bench/1"}
    return Request(method, path, query, headers, body, peer_certificate=CERTIFICATE)


async def send(api, method, where, body=b""):
    reply = await api.server.handle_http(request(method, where, body))
    assert reply.status < 300, reply.whole()
    return reply


async def create_some(api, path, make, batch):
    bodies = [orjson.dumps(make(f"x{batch}-{at}")) for at in range(BATCH)]
    start = time.process_time()
    for body in bodies:
        await send(api, "POST", path, body)
    return BATCH / (time.process_time() - start)


async def get_some(api, path, _make, batch):
    start = time.process_time()
    for at in range(BATCH):
        await send(api, "GET", f"{path}/x{batch}-{at}")
    return BATCH / (time.process_time() - start)


async def list_all(api, path, _make, _batch):
    start = time.process_time()
    (await send(api, "GET", path)).whole()
    return 1 / (time.process_time() - start)


async def watch_all(api, path, _make, _batch):
    """Every object as an event of a watch that has seen nothing."""
    start = time.process_time()
    stream = await api.server.handle_http(request("GET", f"{path}?watch=true&resourceVersion=0"))
    seen = 0
    async for chunk in stream.chunks:
        seen += chunk.count(b'{"type":"ADDED"')
        if seen >= COUNT:
            break
    await stream.chunks.aclose()
    return seen / (time.process_time() - start)


async def rates(api, work):
    """The best of each kind, batch by batch in turn: others on the machine disturb both alike."""
    best = dict.fromkeys(KINDS, 0.0)
    for batch in range(COUNT // BATCH):
        for name, (path, make) in KINDS.items():
            best[name] = max(best[name], await work(api, path, make, batch))
    return best


async def first_accepted(api):
    start = time.process_time()
    reply = await api.post(DEFINITIONS, definition("firsts", "First"))
    assert reply.status == 201, reply.body
    returned = time.process_time()
    first = {**widget("a"), "kind": "First"}
    while True:
        reply = await api.post("/apis/bench.example/v1/namespaces/default/firsts", first)
        if reply.status == 201:
            return (returned - start) * 1000, (time.process_time() - returned) * 1000
        await asyncio.sleep(0)


async def many(api):
    start = time.process_time()
    for at in range(600):
        if at == 300:
            took = time.process_time() - start
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
        body = definition(f"kinds{at}", f"Kind{at}")
        reply = await api.post(DEFINITIONS, body)
        assert reply.status == 201, reply.body
    path = "/apis/bench.example/v1/namespaces/default/kinds599"
    while (await api.get(path)).status != 200:
        await asyncio.sleep(0)
    gc.collect()
    used = (tracemalloc.get_traced_memory()[0] - before) / 300 / 1024
    tracemalloc.stop()
    return took, used


async def start_seconds(count):
    """From nothing to a server that answers for the last of so many definitions."""
    schema, clock = Schema.load(), SystemClock()
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/store.db"
        async with api_server(schema, store=store, clock=clock) as api:
            for at in range(count):
                await api.post(DEFINITIONS, definition(f"kinds{at}", f"Kind{at}"))
        start = time.process_time()
        async with api_server(schema, store=store, clock=clock) as api:
            last = f"/apis/bench.example/v1/kinds{count - 1}"
            while count and (await api.get(last)).status != 200:
                await asyncio.sleep(0)
            return time.process_time() - start


async def main():
    async with api_server(Schema.load(), clock=SystemClock()) as api:
        await api.post(DEFINITIONS, definition("widgets", "Widget"))
        while (await api.get("/apis/bench.example/v1/widgets")).status != 200:
            await asyncio.sleep(0)
        size, checked, shaped = validation_microseconds()
        print(f"object of {size} bytes: validated in {checked:.0f} µs, pruned in {shaped:.0f} µs")
        for name, work in (
            ("create", create_some), ("get", get_some), ("list", list_all), ("watch", watch_all),
        ):  # fmt: skip
            plain, own = (await rates(api, work)).values()
            print(f"{name}: config maps {plain:.0f}/s, custom {own:.0f}/s ({own / plain:.0%})")
        crd, first = await first_accepted(api)
        print(
            f"first object accepted {first:.1f} ms after its definition (created in {crd:.1f} ms)"
        )
        took, used = await many(api)
        print(f"300 definitions in {took:.2f} s, {used:.0f} KiB each")
    few, many_of_them = await start_seconds(0), await start_seconds(300)
    print(f"a start with 300 definitions takes {many_of_them - few:.2f} s longer ({few:.2f} s)")


if __name__ == "__main__":
    asyncio.run(main())
