import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.rules.node_selectors import matches
from sampan.scheduler.binding.bind_devices import elsewhere
from sampan.scheduler.decision.decide import filter_nodes
from sampan.scheduler.devices.allocate import Search
from sampan.scheduler.devices.device_pools import Pool, Pools
from sampan.scheduler.devices.devices import claim_of
from sampan.scheduler.filters.dynamic_resources import DYNAMIC_RESOURCES
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.scores.dynamic_resources import PREFERRED_DEVICES
from tests.support.generators.device_objects import (
    DRIVER,
    device,
    device_class,
    device_request,
    pod_with,
    resource_claim,
    resource_slice,
)
from tests.support.generators.random_clusters import cache_of

IN_A = {"nodeSelectorTerms": [{"matchExpressions": [
    {"key": "zone", "operator": "In", "values": ["a"]}
]}]}  # fmt: skip


def node(number, zone):
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    labels = {"zone": zone} if zone else {}
    meta = {"name": f"n{number}", "labels": labels}
    return {"metadata": meta, "status": {"allocatable": amounts}}


def world(nodes, slices=(), claims=(), classes=None):
    cache = cache_of(nodes, {})
    allocation = cache.columns.devices
    for one in slices:
        allocation.put_slice(one["metadata"]["name"], one)
    for one in [device_class()] if classes is None else classes:
        allocation.devices.put_class(one["metadata"]["name"], one)
    for one in claims:
        allocation.devices.put_claim(f"default/{one['metadata']['name']}", one)
    return cache


NODES = [node(0, "a"), node(1, "a"), node(2, "b"), node(3, "")]
_places = st.sampled_from(
    (
        {"nodeName": "n0"}, {"nodeName": "n2"}, {"nodeName": "elsewhere"}, {"allNodes": True},
        {"nodeSelector": IN_A}, {"perDeviceNodeSelection": True},
    )
)  # fmt: skip
_slices = st.lists(st.tuples(_places, st.integers(1, 2)), max_size=4)
_results = st.lists(st.integers(0, 3), max_size=2)


def written(places):
    made = []
    for number, (place, count) in enumerate(places):
        devices = [device(f"d{at}") for at in range(count)]
        if "perDeviceNodeSelection" in place:
            for at, one in enumerate(devices):
                one.update({"nodeName": "n1"} if at else {"nodeSelector": IN_A})
        made.append(resource_slice(f"s{number}", devices, **place))
    return made


def reaches(one, row):
    where = one.where
    if where.node:
        return where.node == row.name
    return where.terms is None or any(matches(term, row.name, row.labels) for term in where.terms)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(_slices, st.integers(1, 3), st.lists(st.integers(0, 3), max_size=2))
def test_nodes_that_are_alike_are_searched_once_and_all_are_right(places, count, taken):
    """[S4] Against a search of its own for each node, with what that node reaches, one by one."""
    slices = written(places)
    used = [{"driver": DRIVER, "pool": f"s{at}", "device": "d0", "request": "r"} for at in taken]
    other = resource_claim("o", [], allocation={"devices": {"results": used}})
    asked = [{"name": "r", "exactly": device_request(count=count)}]
    cache = world(NODES, slices, [resource_claim("c", asked), other])
    allocation, nodes = cache.columns.devices, cache.snapshot()
    shape = pod_info_of(pod_with("c")).shape
    found = DYNAMIC_RESOURCES.mask(shape, nodes)
    for at, row in enumerate(nodes.rows):
        pools = [
            Pool(
                pool.identity, tuple(one for one in pool.devices if reaches(one, row)), False, False
            )
            for pool in Pools(allocation.devices.slices.values())._all
        ]
        search = Search(
            [claim_of(resource_claim("c", asked))],
            allocation.devices.classes,
            allocation.devices.in_use(),
            lambda one, text: True,
        )
        expected = search.allocated(pools)
        assert found[at] == (expected is not None), row.name
        if expected is not None:
            [(_, made)] = allocation.allocations(shape.devices, nodes, row.name)
            picked = [(one.device.id[1], one.device.id[2]) for one in expected[0]]
            results = made["devices"]["results"]
            assert [(one["pool"], one["device"]) for one in results] == picked
            # Whoever comes later to the claim finds it exactly where it can be reached.
            stored = resource_claim("c", asked, allocation=made)
            again = world(NODES, slices, [stored, other])
            there = DYNAMIC_RESOURCES.mask(shape, again.snapshot())
            near = [all(reaches(one.device, row) for one in expected[0]) for row in nodes.rows]
            assert there[at]
            assert all(may <= can for may, can in zip(there.tolist(), near, strict=True))
    refused = ~found
    if refused.any():
        said = DYNAMIC_RESOURCES.reasons(shape, nodes, refused)
        assert said == {"cannot allocate all claims": int(refused.sum())}


def test_what_is_wrong_with_a_claim_is_said_before_any_node_is_looked_at():
    cache = world(NODES, (), [])
    said = lambda made: DYNAMIC_RESOURCES.beforehand(pod_info_of(made).shape, cache.snapshot())  # noqa: E731
    put = lambda made: cache.columns.devices.devices.put_claim("default/c", made)  # noqa: E731
    assert said(pod_with()) is None
    assert said(pod_with("c")) == 'resourceclaim "c" not found'
    asked = [{"name": "r", "exactly": device_request(deviceClassName="nope")}]
    put(resource_claim("c", asked))
    assert said(pod_with("c")) == "request r: device class nope does not exist"
    put(resource_claim("c", [{"name": "r", "exactly": device_request(capacity={"requests": {}})}]))
    assert said(pod_with("c")) is None
    put(
        resource_claim(
            "c", [{"name": "r", "exactly": device_request(capacity={"requests": {"m": "1"}})}]
        )
    )
    assert (
        said(pod_with("c")) == "resource claim default/c: request r: capacity is not supported yet"
    )
    put(resource_claim("c", [], [{"distinctAttribute": "a/b"}]))
    assert "other than matchAttribute is not supported yet" in said(pod_with("c"))
    gone = resource_claim("c", [])
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    put(gone)
    assert said(pod_with("c")) == 'resourceclaim "c" is being deleted'


def test_to_administer_devices_is_for_namespaces_that_may():
    asked = [{"name": "r", "exactly": device_request(adminAccess=True)}]
    used = {"driver": DRIVER, "pool": "s", "device": "d0", "request": "r"}
    other = resource_claim("o", [], allocation={"devices": {"results": [used]}})
    there = [resource_slice("s", [device("d0")], nodeName="n0")]
    cache = world(NODES, there, [resource_claim("c", asked), other])
    shape = pod_info_of(pod_with("c")).shape
    said = DYNAMIC_RESOURCES.beforehand(shape, cache.snapshot())
    assert said == (
        "request r: admin access to devices requires the "
        "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    )
    cache.put_namespace("default", {"resource.kubernetes.io/admin-access": "true"})
    nodes = cache.snapshot()
    assert DYNAMIC_RESOURCES.beforehand(shape, nodes) is None
    assert DYNAMIC_RESOURCES.mask(shape, nodes).tolist() == [True, False, False, False]
    [(_, made)] = nodes.devices.allocations(shape.devices, nodes, "n0")
    assert made["devices"]["results"][0]["adminAccess"] is True


def test_a_claim_of_a_template_is_for_its_own_pod():
    made = pod_with()
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    claim = resource_claim("c", [{"name": "r", "exactly": device_request()}])
    cache = world(NODES, (), [claim])
    said = lambda: DYNAMIC_RESOURCES.beforehand(pod_info_of(made).shape, cache.snapshot())  # noqa: E731
    assert said() == 'pod "default/p": ResourceClaim not created yet'
    made["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}
    assert said() == "ResourceClaim default/c was not created for pod default/p (pod is not owner)"
    claim["metadata"]["ownerReferences"] = [{"uid": "p", "kind": "Pod", "controller": True}]
    cache.columns.devices.devices.put_claim("default/c", claim)
    assert said() is None
    made["status"] = {"resourceClaimStatuses": [{"name": "gpu"}]}  # none was needed
    assert not pod_info_of(made).shape.devices


def test_a_broken_selector_is_told_and_other_nodes_go_on():
    """One driver's devices lack the attribute; those of the other node have it."""
    good = resource_slice("a", [device("d0", model="x")], nodeName="n0")
    bad = resource_slice("b", [device("d0")], nodeName="n1")
    asked = [
        {"name": "r", "exactly": device_request("", f'device.attributes["{DRIVER}"].model == "x"')}
    ]
    nodes = world(NODES, [good, bad], [resource_claim("c", asked)]).snapshot()
    shape = pod_info_of(pod_with("c")).shape
    feasible, [refusal] = filter_nodes(shape, nodes, DEFAULT_PROFILE)
    assert feasible.tolist() == [True, False, False, False]
    assert dict(refusal.reasons) == {
        "claim default/c: selector #0: CEL runtime error: no such key: model": 1,
        "cannot allocate all claims": 2,
    }


def test_an_earlier_alternative_makes_a_node_better():
    there = [
        resource_slice("a", [device("d0", model="x")], nodeName="n0"),
        resource_slice("b", [device("d0", model="y")], nodeName="n1"),
    ]
    of = lambda model: f'device.attributes["{DRIVER}"].model == "{model}"'  # noqa: E731
    some = [device_request("big", of("y")), device_request("small", of("x"))]
    claim = resource_claim("c", [{"name": "r", "firstAvailable": some}])
    nodes = world(NODES, there, [claim]).snapshot()
    shape = pod_info_of(pod_with("c")).shape
    feasible = DYNAMIC_RESOURCES.mask(shape, nodes)
    points = PREFERRED_DEVICES.points(shape, nodes, feasible)
    assert points[1] == 100 > points[0] > 0
    [(_, made)] = nodes.devices.allocations(shape.devices, nodes, "n0")
    assert made["devices"]["results"][0]["request"] == "r/small"


def test_settings_of_the_class_and_of_the_claim_go_along():
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
    kind = device_class()
    kind["spec"]["config"] = [opaque]
    some = [device_request("big", "false"), device_request("small")]
    claim = resource_claim("c", [{"name": "r", "firstAvailable": some}])
    claim["spec"]["devices"]["config"] = [
        {**opaque, "requests": ["r/small"]}, {**opaque, "requests": ["r/big"]}, opaque,
    ]  # fmt: skip
    there = [resource_slice("a", [device("d0")], allNodes=True)]
    nodes = world(NODES, there, [claim], [kind]).snapshot()
    shape = pod_info_of(pod_with("c")).shape
    [(_, made)] = nodes.devices.allocations(shape.devices, nodes, "n0")
    assert made["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r/small"], **opaque},
        {"source": "FromClaim", "requests": ["r/small"], **opaque},
        {"source": "FromClaim", **opaque},
    ]
    assert "nodeSelector" not in made


def test_a_promise_holds_its_devices_until_the_api_has_its_word():
    there = [resource_slice("a", [device("d0")], nodeName="n0")]
    asked = [{"name": "r", "exactly": device_request()}]
    cache = world(NODES, there, [resource_claim("c", asked), resource_claim("e", asked)])
    devices, shape = cache.columns.devices.devices, pod_info_of(pod_with("c")).shape
    other = pod_info_of(pod_with("e")).shape
    [(_, made)] = cache.columns.devices.allocations(shape.devices, cache.snapshot(), "n0")
    devices.promise("default/c", made)
    assert DYNAMIC_RESOURCES.beforehand(shape, cache.snapshot()) == (
        "resource claim default/c is in the process of being allocated"
    )
    assert not DYNAMIC_RESOURCES.mask(other, cache.snapshot()).any()
    devices.put_claim("default/c", resource_claim("c", asked, allocation=made))
    assert not devices.promised
    assert not DYNAMIC_RESOURCES.mask(other, cache.snapshot()).any()
    assert DYNAMIC_RESOURCES.mask(shape, cache.snapshot()).tolist() == [True, False, False, False]
    row = pod_info_of(pod_with("c"))
    assert elsewhere(row, cache.snapshot()).key == "default/c"
    devices.put_claim(
        "default/c", resource_claim("c", asked, allocation=made, reservedFor=[{"uid": "another"}])
    )
    assert elsewhere(row, cache.snapshot()) is None
    devices.put_claim("default/c", None)
    assert DYNAMIC_RESOURCES.mask(other, cache.snapshot()).any()


def test_long_selectors_are_asked_beside_the_loop_and_their_answers_are_remembered():
    many = str(list(range(40)))
    long = f"{many}.all(a, {many}.all(b, {many}.all(c, a + b + c >= 0)))"
    claim = resource_claim("c", [{"name": "r", "exactly": device_request("", long)}])
    slices = [resource_slice("s", [device("d0"), device("d1")], nodeName="n0")]
    cache = world(NODES, slices, [claim])
    nodes, needs = cache.snapshot(), pod_info_of(pod_with("c")).shape.devices
    assert not nodes.devices.search_at_once(needs, nodes)
    nodes.devices.search(needs, nodes)()
    assert nodes.devices.search_at_once(needs, nodes)
    found = nodes.devices.found(needs, nodes)
    assert [row.name for row, here in zip(nodes.rows, found.allocated, strict=True) if here] == [
        "n0"
    ]
