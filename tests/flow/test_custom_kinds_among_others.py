"""Custom kinds beside built-in ones: what holds for those holds for them; none disturbs another.

Policies and their parameters, quotas, equivalent versions; definitions as odd as they come.
"""

import asyncio
import copy
import random

import pytest

from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server
from tests.support.worlds.control_plane import published_schema

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1 = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{V1}/validatingadmissionpolicies", f"{V1}/validatingadmissionpolicybindings"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MAPS = "/api/v1/namespaces/default/configmaps"
FIELDS = {"size": {"type": "integer"}, "note": {"type": "string"}}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}


def definition(plural="boats", kind="Boat", versions=("v1",), schema=SCHEMA):
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": version, "served": True, "storage": at == 0,
                    "schema": {"openAPIV3Schema": schema},
                }
                for at, version in enumerate(versions)
            ],
        },
    }  # fmt: skip


def path(plural="boats", version="v1"):
    return f"/apis/example.com/{version}/namespaces/default/{plural}"


def boat(name, version="v1", kind="Boat", **spec):
    head = {"apiVersion": f"example.com/{version}", "kind": kind}
    return {**head, "metadata": {"name": name}, "spec": spec}


async def serve(api, body):
    await api.made(DEFINITIONS, body)
    spec = body["spec"]
    for version in spec["versions"]:
        while (await api.get(path(spec["names"]["plural"], version["name"]))).status != 200:
            await asyncio.sleep(0.01)


def run(test):
    async def main():
        async with api_server(published_schema()) as api:
            await test(api)

    virtual_time.run(main())


def policy(expression, versions=("v1",), **more):
    rule = {
        "apiGroups": ["example.com"], "apiVersions": list(versions), "resources": ["boats"],
        "operations": ["CREATE", "UPDATE"],
    }  # fmt: skip
    match = {"resourceRules": [rule], "matchPolicy": "Equivalent"}
    spec = {"matchConstraints": match, "validations": [{"expression": expression}], **more}
    return {"metadata": {"name": "p"}, "spec": spec}


def binding(**more):
    spec = {"policyName": "p", "validationActions": ["Deny"], **more}
    return {"metadata": {"name": "b"}, "spec": spec}


def test_a_custom_object_is_a_policys_parameter():
    async def test(api):
        await serve(api, definition())
        await serve(api, definition("harbours", "Harbour"))
        await api.made(path("harbours"), boat("limits", kind="Harbour", size=3))
        kind = {"apiVersion": "example.com/v1", "kind": "Harbour"}
        await api.made(POLICIES, policy("object.spec.size <= params.spec.size", paramKind=kind))
        reference = {"name": "limits", "parameterNotFoundAction": "Deny"}
        await api.made(BINDINGS, binding(paramRef=reference))
        assert (await api.post(path(), boat("a", size=3))).status == 201
        assert (await api.post(path(), boat("b", size=4))).status == 422
        await api.patch(f"{path('harbours')}/limits", {"spec": {"size": 4}}, MERGE)
        assert (await api.post(path(), boat("b", size=4))).status == 201

    run(test)


def test_a_policy_about_one_version_sees_writes_in_another():
    async def test(api):
        await serve(api, definition(versions=("v1", "v2")))
        await api.made(POLICIES, policy("object.apiVersion == 'example.com/v1'"))
        await api.made(BINDINGS, binding())
        assert (await api.post(path(version="v2"), boat("a", "v2"))).status == 201
        await api.patch(f"{POLICIES}/p", {"spec": {"matchConstraints": {"matchPolicy": "Exact"}}},
                        MERGE)  # fmt: skip
        await api.patch(
            f"{POLICIES}/p", {"spec": {"validations": [{"expression": "false"}]}}, MERGE
        )
        assert (await api.post(path(version="v2"), boat("b", "v2"))).status == 201
        assert (await api.post(path(), boat("c"))).status == 422

    run(test)


def test_a_quota_counts_custom_objects():
    async def test(api):
        await serve(api, definition())
        hard = {"count/boats.example.com": "2"}
        quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        made = await api.made(QUOTAS, quota)
        status = {"hard": hard, "used": {"count/boats.example.com": "0"}}
        assert (await api.put(f"{QUOTAS}/q/status", {**made, "status": status})).status == 200
        for name in ("a", "b"):
            assert (await api.post(path(), boat(name))).status == 201
        refused = await api.post(path(), boat("c"))
        assert refused.status == 403
        assert "exceeded quota: q, requested: count/boats.example.com=1" in refused.message

    run(test)


# Definitions as odd as they come.

ODD = (
    None, True, 0, -1, 2**63, 1.5, "", "x" * 300, "ß\n\x00", [], {}, [None], {"a": None},
    "object", "array", "^(a+)+$", "(", [[]], {"type": "string"}, ["v1", "v1"],
)  # fmt: skip
RICH = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too large"}],
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "default": 1},
                "text": {"type": "string", "pattern": "^a", "maxLength": 5, "nullable": True},
                "either": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "inner": {
                    "type": "object", "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object", "required": ["name"],
                        "properties": {"name": {"type": "string"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}  # fmt: skip


def rich_definition(at):
    body = definition(f"odds{at}", f"Odd{at}", ("v1", "v1beta1"), copy.deepcopy(RICH))
    body["spec"]["versions"][0] |= {
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        ],
        "selectableFields": [{"jsonPath": ".spec.size"}],
    }  # fmt: skip
    return body


def places(value, found):
    """Every container and key inside."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            places(value[key], found)
    return found


def twisted(rng, at):
    body = rich_definition(at)
    for _ in range(rng.choice((1, 1, 2, 3))):
        spots = places(body["spec"], [])
        holder, key = rng.choice(spots)
        match rng.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("x-kubernetes-odd", "items", "not", "nullable"))] = rng.choice(
                    ODD
                )
            case 2:
                other, name = rng.choice(spots)
                holder[key] = copy.deepcopy(other[name]) if name in _keys(other) else None
            case _:
                holder[key] = rng.choice(ODD)
    return body


def _keys(holder):
    return holder if isinstance(holder, dict) else range(len(holder))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_no_definition_however_odd_disturbs_another_kind(seed):
    rng = random.Random(seed)
    taken = []

    async def test(api):
        await serve(api, definition())
        for at in range(40):
            body = twisted(rng, at)
            reply = await api.post(DEFINITIONS, body)
            assert reply.status in (201, 400, 422), (reply.status, reply.message, body)
            if reply.status == 201:
                taken.append(body)
                await try_objects(api, body, rng)
            assert (await api.post(path(), boat(f"b{at}", size=at))).status == 201
        assert (await api.post(MAPS, {"metadata": {"name": "m"}})).status == 201
        for where in ("/apis", "/openapi/v2", "/apis/example.com/v1", DEFINITIONS, path()):
            assert (await api.get(where)).status == 200
        for body in taken:
            name = body["metadata"]["name"]
            assert (await api.delete(f"{DEFINITIONS}/{name}")).status == 200
        while len((await api.get(DEFINITIONS)).obj["items"]) > 1:
            await asyncio.sleep(0.1)
        assert len((await api.get(path())).obj["items"]) == 40

    run(test)
    assert taken, "nothing was taken: nothing was tried"


async def try_objects(api, body, rng):
    """Whatever the answer is, it is one."""
    spec = body["spec"]
    version, plural = spec["versions"][0]["name"], spec["names"]["plural"]
    await asyncio.sleep(0.1)
    for size in (3, rng.choice(ODD)):
        head = {"apiVersion": f"example.com/{version}", "kind": spec["names"]["kind"]}
        obj = {**head, "metadata": {"generateName": "o-"}, "spec": {"size": size, "text": "a"}}
        reply = await api.post(path(plural, version), obj)
        assert reply.status in (201, 400, 403, 404, 405, 422), (reply.status, reply.body, body)
        if reply.status != 201:
            continue
        name = reply.obj["metadata"]["name"]
        for where in (f"/{name}", "", "?limit=1", f"/{name}/status", f"/{name}/scale"):
            got = await api.get(f"{path(plural, version)}{where}")
            assert got.status in (200, 404, 405), (got.status, got.body, body)
        patch = {"spec": {"text": None, "free": {"x": size}}}
        got = await api.patch(f"{path(plural, version)}/{name}", patch, MERGE)
        assert got.status in (200, 400, 422), (got.status, got.body, body)
        apply = {**head, "metadata": {"name": name}, "spec": {"size": 4}}
        where = f"{path(plural, version)}/{name}?fieldManager=me&force=true"
        got = await api.patch(where, apply, "application/apply-patch+yaml")
        assert got.status in (200, 400, 422, 500), (got.status, got.body, body)
        if got.status == 500:  # as the original: what the schema does not declare
            assert "field not declared in schema" in got.message, (got.message, body)
