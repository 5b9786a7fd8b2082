import pytest

from sampan.api.errors import NotFound
from sampan.api.resources import ENDPOINT_SLICES, ENDPOINTS, EVENTS, NODES, PODS, SERVICES
from tests.support.worlds.control_plane import story

with_endpoints = story(
    ["endpointslice-controller", "endpoints-controller", "garbage-collector-controller"]
)


def service(**spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "a"}},
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "web"}],
            **spec,
        },
    }


async def add_pod(plane, name, ip, ready=True, port=8080, app="web"):
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"name": "web", "containerPort": port}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [container], "nodeName": "n1"},
    }
    await plane.client.create(PODS, pod)
    await set_status(plane, name, ip, ready)


async def set_status(plane, name, ip, ready, phase="Running"):
    status = {
        "phase": phase,
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    await plane.client.patch(
        PODS, "default", name, {"status": status}, patch_type="merge", subresource="status"
    )


async def slices(plane):
    await plane.settled()
    listed = (await plane.client.list(ENDPOINT_SLICES, "default")).items
    return [one for one in listed if one["metadata"]["name"] != "kubernetes"]


async def shown(plane):
    """Address → (ready, serving, terminating), over all slices."""
    found = {}
    for one in await slices(plane):
        for endpoint in one.get("endpoints") or ():
            conditions = endpoint["conditions"]
            kinds = ("ready", "serving", "terminating")
            found[endpoint["addresses"][0]] = tuple(conditions[kind] for kind in kinds)
    return found


@with_endpoints
async def test_a_service_without_pods_has_one_empty_slice(plane):
    await plane.client.create(SERVICES, service())
    [one] = await slices(plane)
    assert not one.get("endpoints")
    assert one["metadata"]["name"].startswith("web-")
    assert one["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }


@with_endpoints
async def test_pods_come_ready_and_go(plane):
    await plane.client.create(SERVICES, service())
    await add_pod(plane, "a", "10.0.0.1", ready=False)
    await add_pod(plane, "b", "10.0.0.2")
    await add_pod(plane, "other", "10.0.0.3", app="other")
    assert await shown(plane) == {
        "10.0.0.1": (False, False, False),
        "10.0.0.2": (True, True, False),
    }
    [one] = await slices(plane)
    assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    endpoint = next(e for e in one["endpoints"] if e["addresses"] == ["10.0.0.2"])
    assert endpoint["nodeName"] == "n1"
    assert endpoint["targetRef"]["name"] == "b"
    await set_status(plane, "a", "10.0.0.1", True)
    await plane.client.delete(PODS, "default", "b")
    assert await shown(plane) == {
        "10.0.0.1": (True, True, False),
        "10.0.0.2": (False, True, True),
    }
    await set_status(plane, "a", "10.0.0.1", False, phase="Failed")
    await plane.client.delete(PODS, "default", "b", grace_seconds=0)
    assert await shown(plane) == {}


@with_endpoints
async def test_the_old_form_says_the_same(plane):
    await plane.client.create(SERVICES, service())
    await add_pod(plane, "a", "10.0.0.1", ready=False)
    await add_pod(plane, "b", "10.0.0.2")
    await plane.settled()
    endpoints = await plane.client.get(ENDPOINTS, "default", "web")
    [subset] = endpoints["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.0.0.2"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.0.0.1"]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    await plane.client.delete(SERVICES, "default", "web")
    await plane.settled()
    remaining = {one["metadata"]["name"] for one in (await plane.client.list(ENDPOINTS)).items}
    assert "web" not in remaining
    assert await slices(plane) == []


@with_endpoints
async def test_pods_with_different_ports_are_in_different_slices(plane):
    await plane.client.create(SERVICES, service())
    await add_pod(plane, "a", "10.0.0.1", port=8080)
    await add_pod(plane, "b", "10.0.0.2", port=9090)
    found = {one["ports"][0]["port"]: len(one["endpoints"]) for one in await slices(plane)}
    assert found == {8080: 1, 9090: 1}


@with_endpoints
async def test_not_ready_addresses_are_published_where_asked_for(plane):
    await plane.client.create(SERVICES, service(clusterIP="None", publishNotReadyAddresses=True))
    await add_pod(plane, "a", "10.0.0.1", ready=False)
    assert await shown(plane) == {"10.0.0.1": (True, False, False)}
    [one] = await slices(plane)
    assert one["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


@with_endpoints
async def test_a_service_without_selector_is_left_to_its_owner(plane):
    spec = service()
    del spec["spec"]["selector"]
    await plane.client.create(SERVICES, spec)
    await add_pod(plane, "a", "10.0.0.1")
    assert await slices(plane) == []


@with_endpoints
async def test_endpoints_that_somebody_wrote_go_with_their_service(plane):
    meta = {"name": "db", "namespace": "default"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"ports": [{"port": 5432}]},
    }
    subset = {"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}
    written = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}
    await plane.client.create(ENDPOINTS, written)
    await plane.settled()
    assert await plane.client.get(ENDPOINTS, "default", "db")  # before their service
    await plane.client.create(SERVICES, service)
    await plane.settled()
    await plane.client.delete(SERVICES, "default", "db")
    await plane.settled()
    with pytest.raises(NotFound):
        await plane.client.get(ENDPOINTS, "default", "db")


@pytest.mark.slow
@with_endpoints
async def test_many_pods_are_spread_over_full_slices_and_a_change_touches_one(plane):
    for number in range(250):
        await add_pod(plane, f"p{number}", f"10.0.{number // 200}.{number % 200}")
    await plane.client.create(SERVICES, service())
    before = {one["metadata"]["name"]: one for one in await slices(plane)}
    assert sorted(len(one["endpoints"]) for one in before.values()) == [50, 100, 100]
    await set_status(plane, "p7", "10.0.0.7", False)
    after = {one["metadata"]["name"]: one for one in await slices(plane)}
    changed = [name for name in after if after[name] != before[name]]
    assert len(changed) == 1


@with_endpoints
async def test_a_slice_that_somebody_changed_is_put_right(plane):
    await plane.client.create(SERVICES, service())
    await add_pod(plane, "a", "10.0.0.1")
    [one] = await slices(plane)
    name = one["metadata"]["name"]
    await plane.client.patch(
        ENDPOINT_SLICES, "default", name, {"endpoints": []}, patch_type="merge"
    )
    assert await shown(plane) == {"10.0.0.1": (True, True, False)}
    await plane.client.delete(ENDPOINT_SLICES, "default", name)
    assert await shown(plane) == {"10.0.0.1": (True, True, False)}


def a_node(name, zone):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


async def hints_of(plane):
    listed = [one for page in await slices(plane) for one in page.get("endpoints") or ()]
    return {one["addresses"][0]: one.get("hints") for one in listed}


@with_endpoints
async def test_a_service_may_prefer_what_is_close(plane):
    await plane.client.create(NODES, a_node("n1", "west"))
    await plane.client.create(SERVICES, service(trafficDistribution="PreferSameNode"))
    await add_pod(plane, "one", "10.0.0.1")
    await add_pod(plane, "two", "10.0.0.2", ready=False)
    both = {"forZones": [{"name": "west"}], "forNodes": [{"name": "n1"}]}
    assert await hints_of(plane) == {"10.0.0.1": both, "10.0.0.2": None}
    patch = {"spec": {"trafficDistribution": "PreferClose"}}
    await plane.client.patch(SERVICES, "default", "web", patch, patch_type="merge")
    found = await hints_of(plane)
    assert found["10.0.0.1"] == {"forZones": [{"name": "west"}]}


@with_endpoints
async def test_endpoints_are_shared_by_zones_as_their_processors_are(plane):
    made = service()
    made["metadata"]["annotations"] = {"service.kubernetes.io/topology-mode": "Auto"}
    await plane.client.create(SERVICES, made)
    await plane.client.create(NODES, a_node("n1", "west"))
    for number in range(4):
        await add_pod(plane, f"p{number}", f"10.0.0.{number + 1}")
    assert set(map(str, (await hints_of(plane)).values())) == {"None"}
    await plane.client.create(NODES, a_node("n2", "east"))
    zones = [one["forZones"][0]["name"] for one in (await hints_of(plane)).values()]
    assert sorted(zones) == ["east", "east", "west", "west"]
    events = (await plane.client.list(EVENTS, "default")).items
    told = {(one["reason"], one["message"]) for one in events}
    enabled = "Topology Aware Hints has been enabled, addressType: IPv4"
    assert ("TopologyAwareHintsEnabled", enabled) in told
    disabled = (
        "Insufficient Node information: allocatable CPU or zone not specified on one or more "
        "nodes, addressType: IPv4"
    )
    assert ("TopologyAwareHintsDisabled", disabled) in told


@with_endpoints
async def test_a_pod_without_the_port_of_that_name_is_an_endpoint_without_ports(plane):
    """As the original: its name resolves under a headless service, though no port leads to it."""
    await plane.client.create(SERVICES, service(ports=[{"port": 80, "targetPort": "nowhere"}]))
    await add_pod(plane, "a", "10.0.0.1")
    assert await shown(plane) == {"10.0.0.1": (True, True, False)}
    [one] = await slices(plane)
    assert not one["ports"]
    endpoints = await plane.client.get(ENDPOINTS, "default", "web")
    assert not endpoints.get("subsets")


with_balancers = story(["service-lb-controller"])


async def balanced(plane, name):
    await plane.settled()
    found = await plane.client.get(SERVICES, "default", name)
    return [each["ip"] for each in found["status"]["loadBalancer"].get("ingress") or ()]


@with_balancers
async def test_of_two_load_balancers_with_one_port_the_older_has_it_until_it_goes(plane):
    status = {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
              "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}
    await plane.client.create(NODES, node)
    for name in ("first", "second"):
        obj = service(type="LoadBalancer")
        await plane.client.create(SERVICES, {**obj, "metadata": {"name": name}}, "default")
        await plane.clock.sleep(1)
    assert await balanced(plane, "first") == ["192.0.2.1"]
    assert await balanced(plane, "second") == []
    [event] = (await plane.client.list(EVENTS, "default")).items
    assert event["involvedObject"]["name"] == "second"
    assert event["reason"] == "SyncLoadBalancerFailed"
    assert "port 80/TCP of the nodes is Service default/first's" in event["message"]
    await plane.client.delete(SERVICES, "default", "first")
    assert await balanced(plane, "second") == ["192.0.2.1"]
