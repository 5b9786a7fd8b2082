"""The largest legal and the worst illegal input of each kind: nobody holds the loop.

Each input is sent to a whole server while the loop's own processor time is watched: the longest
stretch without a pause is what everybody else had to wait.
"""

import asyncio
import json

import pytest

from sampan.apiserver.write.request_scope import LARGE_BYTES
from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import JSON_PATCH, MERGE, STRATEGIC, api_server
from tests.support.parts.loop_holds import loop_holds
from tests.support.worlds.control_plane import published_schema

pytestmark = [pytest.mark.usefixtures("settled_memory"), pytest.mark.slow, pytest.mark.timeout(300)]

MOST_SECONDS = 0.05
NS = "/api/v1/namespaces/default"
APPLY = "application/apply-patch+yaml"
YAML = {"content-type": "application/yaml"}
RBAC, NETWORK = "rbac.authorization.k8s.io", "/apis/networking.k8s.io/v1/namespaces/default"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


def pod(name="p", **more):
    spec = {"containers": [{"name": "a", "image": "i"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def named(count, **more):
    return [{"name": f"n{number}", **more} for number in range(count)]


def with_meta(**meta):
    made = pod()
    made["metadata"].update(meta)
    return made


def policy(*expressions):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}
    made = [{"expression": one} for one in expressions]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": made}
    return {"metadata": {"name": "p"}, "spec": spec}


KEYS = {f"k{number}": "v" for number in range(20_000)}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": KEYS}
CHANGED = {"data": dict.fromkeys(KEYS, "w")}
INPUTS = {
    "a text of a megabyte": ("POST", f"{NS}/configmaps",
                             {"metadata": {"name": "c"}, "data": {"a": "x" * 1_000_000}}, {}),
    "20 000 keys": ("POST", f"{NS}/configmaps", MAP, {}),
    "20 000 keys, merged": ("PATCH", f"{NS}/configmaps/there", CHANGED, {"content-type": MERGE}),
    "20 000 keys, merged strategically":
        ("PATCH", f"{NS}/configmaps/there", CHANGED, {"content-type": STRATEGIC}),
    "20 000 keys, applied":
        ("PATCH", f"{NS}/configmaps/m?fieldManager=a", MAP, {"content-type": APPLY}),
    "10 000 operations":
        ("PATCH", f"{NS}/configmaps/there",
         [{"op": "add", "path": f"/data/x{number}", "value": "v"} for number in range(10_000)],
         {"content-type": JSON_PATCH}),
    "copies that double":
        ("PATCH", f"{NS}/configmaps/there",
         [{"op": "copy", "from": "/data", "path": f"/data/x{number}"} for number in range(100)],
         {"content-type": JSON_PATCH}),
    "20 000 variables":
        ("POST", f"{NS}/pods", pod(containers=[
            {"name": "a", "image": "i", "env": named(20_000, value="v")}]), {}),
    "10 000 variables, applied":
        ("PATCH", f"{NS}/pods/p?fieldManager=a", pod(containers=[
            {"name": "a", "image": "i", "env": named(10_000, value="v")}]),
         {"content-type": APPLY}),
    "3 000 containers": ("POST", f"{NS}/pods", pod(containers=named(3_000, image="i")), {}),
    "30 000 containers without a name":
        ("POST", f"{NS}/pods", pod(containers=[{}] * 30_000), {}),
    "8 000 volumes": ("POST", f"{NS}/pods", pod(volumes=named(8_000, emptyDir={})), {}),
    "100 000 unknown fields":
        ("POST", f"{NS}/pods", pod(**{f"u{number}": 1 for number in range(100_000)}), {}),
    "50 000 finalizers":
        ("POST", f"{NS}/pods", with_meta(finalizers=[f"a.b/{n}" for n in range(50_000)]), {}),
    "10 000 owners":
        ("POST", f"{NS}/pods", with_meta(ownerReferences=[
            {"apiVersion": "v1", "kind": "A", "name": "n", "uid": str(n)} for n in range(10_000)]),
         {}),
    "40 000 labels": ("POST", f"{NS}/pods", with_meta(labels=dict(list(KEYS.items()) * 2)), {}),
    "a million empty lists":
        ("POST", f"{NS}/pods", b'{"spec":{"containers":[' + b"[]," * 900_000 + b"[]]}}", {}),
    "half a million times the same field":
        ("POST", f"{NS}/pods", b'{"metadata":{"name":"a"},' + b'"x":1,' * 500_000 + b'"y":1}', {}),
    "depth without end": ("POST", f"{NS}/pods", b'{"a":' * 400_000, {}),
    "200 kB of YAML": ("POST", f"{NS}/pods", b"spec: [" + b"a," * 100_000 + b"a]", YAML),
    "aliases that multiply":
        ("POST", f"{NS}/pods", b"a0: &a0 [x]\n" + b"".join(
            b"a%d: &a%d [%b]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9))
            for n in range(1, 30)), YAML),
    "5 000 peers":
        ("POST", f"{NETWORK}/networkpolicies", {"metadata": {"name": "n"}, "spec": {
            "podSelector": {}, "ingress": [{"from": [
                {"ipBlock": {"cidr": f"10.{n // 256}.{n % 256}.0/24"}} for n in range(5_000)]}]}},
         {}),
    "10 000 subjects":
        ("POST", f"/apis/{RBAC}/v1/clusterrolebindings", {"metadata": {"name": "b"}, "roleRef": {
            "apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}, "subjects": [
                {"kind": "User", "apiGroup": RBAC, "name": str(n)} for n in range(10_000)]}, {}),
    "5 000 endpoints":
        ("POST", f"{NS}/endpoints", {"metadata": {"name": "e"}, "subsets": [{"addresses": [
            {"ip": f"10.1.{n // 256}.{n % 256}"} for n in range(5_000)], "ports": [{"port": 1}]}]},
         {}),
    "a selector of 60 kB":
        ("GET", f"{NS}/pods?labelSelector=" + "%2C".join(f"k{n}=v" for n in range(5_000)),
         None, {}),
    "1 000 expressions":
        ("POST", POLICIES, policy(*(f'"x{n}" != "a"' for n in range(1_000))), {}),
    "an expression without end": ("POST", POLICIES, policy("(" * 100_000), {}),
    "an object of 20 000 keys as YAML":
        ("GET", f"{NS}/configmaps/there", None, {"accept": "application/yaml"}),
}  # fmt: skip


def assert_free(measure):
    """The machine is shared: what counts is what is too long three times in a row."""
    held = []
    for _ in range(3):
        held.append(asyncio.run(measure()))
        if held[-1] < MOST_SECONDS:
            return
    raise AssertionError(f"held for {', '.join(f'{each * 1000:.0f} ms' for each in held)}")


async def held_by(api, method, path, body, headers=None):
    async with loop_holds() as holds:
        got = await api.send(method, path, body, headers=headers)
    return got, holds.longest_seconds


@pytest.mark.parametrize("case", INPUTS)
def test_nobody_holds_the_loop(case):
    method, path, body, headers = INPUTS[case]

    async def measure():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            await api.made(f"{NS}/configmaps", {**MAP, "metadata": {"name": "there"}})
            # What is loaded with the first of its kind is not what is measured.
            for kind, small in (("pods", pod("w")), ("configmaps", {"metadata": {"name": "w"}})):
                await api.post(f"{NS}/{kind}?dryRun=All", small)
            await api.send(method, path, None if body is None else {"metadata": {}})
            await api.post(f"{POLICIES}?dryRun=All", policy("true"))
            got, held = await held_by(api, method, path, body, headers)
            assert got.status not in (0, 409)
            return held

    assert_free(measure)


EXPRESSION = 'object.metadata.name != "x{0}" && [1, 2, 3].all(x, x < {0} + 10)'
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LISTED = 4_000


def about_maps(made, name="p"):
    made["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = ["configmaps"]
    made["metadata"]["name"] = name
    return made


async def bind(api, made):
    name = made["metadata"]["name"]
    await api.made(POLICIES, made)
    spec = {"policyName": name, "validationActions": ["Deny"]}
    await api.made(f"{POLICIES[:-3]}ybindings", {"metadata": {"name": name}, "spec": spec})


def definition(plural="widgets", group="example.com", fields=10, rules=0):
    properties = {f"f{n}": {"type": "string", "maxLength": 9} for n in range(fields)}
    for n in range(rules):
        properties[f"f{n}"]["x-kubernetes-validations"] = [{"rule": f'self != "x{n}"'}]
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].capitalize()}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def define(api, made):
    await api.made(DEFINITIONS, made)
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    async with asyncio.timeout(60):
        while "Established" not in [
            condition["type"]
            for condition in (await api.get(path)).obj["status"].get("conditions") or ()
            if condition["status"] == "True"
        ]:
            await asyncio.sleep(0.01)


def widget(name, fields):
    spec = {f"f{n}": "v" for n in range(fields)}
    about = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
    return {**about, "spec": spec}


async def many_maps(api):
    for n in range(LISTED):
        await api.made(f"{NS}/configmaps", {"metadata": {"name": f"c{n}", "labels": {"a": "b"}}})


async def a_large_policy(api):
    await bind(api, about_maps(policy(*(EXPRESSION.format(n) for n in range(300)))))
    return "POST", f"{NS}/configmaps", {"metadata": {"name": "new"}}


async def many_policies(api):
    for n in range(200):
        await bind(api, about_maps(policy(EXPRESSION.format(n)), f"p{n}"))
    return "POST", f"{NS}/configmaps", {"metadata": {"name": "new"}}


async def many_match_conditions(api):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE"]}  # fmt: skip
    hooks = [
        {
            "name": f"h{n}.example.com", "clientConfig": {"url": "https://127.0.0.1:1/x"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule],
            "matchConditions": [
                {"name": f"m{m}", "expression": f"{m + n} > 0 && ({EXPRESSION.format(m)})"}
                for m in range(63)
            ] + [{"name": "no", "expression": f"{n} < 0"}],
        }
        for n in range(20)
    ]  # fmt: skip
    hooking = {"metadata": {"name": "w"}, "webhooks": hooks}
    where = POLICIES.rpartition("/")[0]
    await api.made(f"{where}/validatingwebhookconfigurations", hooking)
    return "POST", f"{NS}/configmaps", {"metadata": {"name": "new"}}


async def the_first_object_of_a_large_schema(api):
    await define(api, definition(fields=1_000, rules=500))
    return "POST", WIDGETS, widget("w", 1_000)


async def a_list_after_its_schema_has_changed(api):
    await define(api, definition(fields=30))
    for n in range(LISTED):
        await api.made(WIDGETS, widget(f"w{n}", 20))
    path = f"{DEFINITIONS}/widgets.example.com"
    changed = (await api.get(path)).obj
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["more"] = {"type": "string", "default": "d"}
    assert (await api.put(path, changed)).status == 200
    async with asyncio.timeout(60):
        while (await api.get(f"{WIDGETS}/w1")).obj.get("more") != "d":
            await asyncio.sleep(0.01)
    return "GET", WIDGETS, None


async def a_list_by_3_000_requirements(api):
    await many_maps(api)
    labels = "%2C".join(f"k{n}!%3Dv" for n in range(3_000))
    return "GET", f"{NS}/configmaps?labelSelector={labels}", None


async def a_list_by_1_000_fields(api):
    await many_maps(api)
    fields = "%2C".join(f"metadata.name!%3Dv{n}" for n in range(1_000))
    return "GET", f"{NS}/configmaps?fieldSelector={fields}", None


async def a_collection_that_is_deleted(api):
    await many_maps(api)
    return "DELETE", f"{NS}/configmaps", None


async def a_list_as_a_table(api):
    await many_maps(api)
    return (
        "GET",
        f"{NS}/configmaps",
        None,
        {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )


async def a_list_as_yaml(api):
    await many_maps(api)
    return "GET", f"{NS}/configmaps", None, {"accept": "application/yaml"}


async def a_large_object_in_protobuf(api):
    await api.made(f"{NS}/configmaps", MAP)
    return "GET", f"{NS}/configmaps/m", None, {"accept": "application/vnd.kubernetes.protobuf"}


async def the_binding_of_a_large_pod(api):
    large = [{"name": "a", "image": "i", "env": named(8_000, value="v")}]
    await api.made(f"{NS}/pods", pod(containers=large))
    target = {"kind": "Node", "name": "n"}
    return "POST", f"{NS}/pods/p/binding", {"metadata": {"name": "p"}, "target": target}


async def a_small_pod_that_a_limit_range_fills(api):
    """Four containers of four thousand resources each, in a body of 200 bytes: that is too many for
    the annotation that tells them, and whatever makes the pod tries again and again."""
    limit = {"type": "Container", "max": {f"e.com/r{n}": "1" for n in range(4_000)}}
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
    await api.made(f"{NS}/limitranges", limits)
    return "POST", f"{NS}/pods", pod(containers=named(4, image="i"))


async def short_addresses(api):
    """As many blocks of addresses as there are in a body that is just not large."""
    size = LARGE_BYTES // 22
    blocks = [f"10.{n // 256}.{n % 256}.0/26" for n in range(size)]
    peers = [{"ipBlock": {"cidr": "10.0.0.0/8", "except": blocks}}]
    made = {"metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": [{"from": peers}]}}
    assert len(json.dumps(made, separators=(",", ":"))) < LARGE_BYTES
    return "POST", f"{NETWORK}/networkpolicies", made


SCENES = (
    a_small_pod_that_a_limit_range_fills, short_addresses,
    a_large_policy, many_policies, many_match_conditions, the_first_object_of_a_large_schema,
    a_list_after_its_schema_has_changed, a_list_by_3_000_requirements, a_list_by_1_000_fields,
    a_collection_that_is_deleted, a_list_as_a_table, a_list_as_yaml, a_large_object_in_protobuf,
    the_binding_of_a_large_pod,
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_others_prepared_holds_nobody(scene):
    async def measure():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            method, path, body, *headers = await scene(api)
            got, held = await held_by(api, method, path, body, *headers)
            assert got.status in (200, 201) or b"Too long" in got.body, got.body[:500]
            return held

    assert_free(measure)
