"""The plan of EndpointSlices: which addresses a service leads to, in slices of a hundred."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import copy_of, time_text
from sampan.controllers.actions import NOTHING, Create, Update
from sampan.controllers.services.endpointslice import Topology, plan
from tests.support.generators.workload_objects import NOW, made_objects, removed_names

NOWHERE = Topology({})


def service(**spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "ns", "uid": "s", "labels": {"team": "a"}},
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
            "clusterIP": "10.0.0.1",
            **spec,
        },
    }


def pod(number, *, ready=True, deleted=False, phase="Running", ip=None, **spec):
    name = f"p{number}"
    found = {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [], **spec},
        "status": {
            "phase": phase,
            "podIPs": [{"ip": ip or f"10.1.{number // 250}.{number % 250 + 1}"}],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    if deleted:
        found["metadata"]["deletionTimestamp"] = time_text(NOW)
    return found


def endpoints(found):
    written = [one.obj for one in found.actions if isinstance(one, Create | Update)]
    return [endpoint for one in written for endpoint in one["endpoints"]]


def addresses(found):
    return [address for one in endpoints(found) for address in one["addresses"]]


def carried_out(found, slices=()):
    """The slices as they are afterwards."""
    gone = set(removed_names(found))
    there = {one["metadata"]["name"]: one for one in slices}
    for action in found.actions:
        if isinstance(action, Update):
            there[action.obj["metadata"]["name"]] = action.obj
        elif isinstance(action, Create):
            new = copy_of(action.obj)
            new["metadata"]["name"] = name = f"web-{len(there)}{len(new['endpoints'])}"
            there[name] = new
    return [one for name, one in there.items() if name not in gone]


def test_a_pod_becomes_an_endpoint_with_its_port_and_node():
    found = plan(service(), [pod(1)], (), Topology({"n1": "zone-a"}))
    [new] = made_objects(found)
    assert new["addressType"] == "IPv4"
    assert new["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    labels = new["metadata"]["labels"]
    assert labels["kubernetes.io/service-name"] == "web"
    assert labels["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
    assert labels["team"] == "a"
    [endpoint] = new["endpoints"]
    assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert (endpoint["nodeName"], endpoint["zone"]) == ("n1", "zone-a")
    assert endpoint["targetRef"]["name"] == "p1"


def test_readiness_and_the_end_are_conditions():
    going = pod(1, deleted=True)
    [endpoint] = endpoints(plan(service(), [going], (), NOWHERE))
    assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}
    [unready] = endpoints(plan(service(), [pod(1, ready=False)], (), NOWHERE))
    assert not unready["conditions"]["ready"]
    published = service(publishNotReadyAddresses=True)
    [shown] = endpoints(plan(published, [pod(1, ready=False)], (), NOWHERE))
    assert shown["conditions"]["ready"]


def test_who_has_ended_or_has_no_address_is_no_endpoint():
    waiting = pod(2)
    waiting["status"]["podIPs"] = []
    found = plan(service(), [pod(1, phase="Succeeded"), waiting], (), NOWHERE)
    [empty] = made_objects(found)
    assert empty["endpoints"] == [], "a service without pods has one empty slice"


def test_a_named_port_may_lead_elsewhere_on_each_pod():
    named = service(ports=[{"name": "http", "port": 80, "targetPort": "web"}])
    first, second = (
        pod(number, containers=[{"ports": [{"name": "web", "containerPort": port}]}])
        for number, port in ((1, 8080), (2, 9090))
    )
    found = plan(named, [first, second, pod(3)], (), NOWHERE)
    ports = [[port["port"] for port in each["ports"]] for each in made_objects(found)]
    assert sorted(ports) == [[], [8080], [9090]]


def test_both_families_have_their_own_slices():
    dual = service(ipFamilies=["IPv4", "IPv6"])
    both = pod(1)
    both["status"]["podIPs"].append({"ip": "fd00::1"})
    found = plan(dual, [both], (), NOWHERE)
    assert {
        one["addressType"]: one["endpoints"][0]["addresses"] for one in made_objects(found)
    } == {
        "IPv4": ["10.1.0.2"],
        "IPv6": ["fd00::1"],
    }


def test_slices_of_a_service_that_lost_its_selector_are_its_owners():
    slices = carried_out(plan(service(), [pod(1)], (), NOWHERE))
    assert plan(service(selector=None), [pod(1)], slices, NOWHERE) == NOTHING
    assert plan(service(type="ExternalName"), [pod(1)], slices, NOWHERE) == NOTHING


def test_a_service_that_goes_is_the_garbage_collectors():
    gone = service()
    gone["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert list(plan(gone, [pod(1)], (), NOWHERE).actions) == []


def test_a_change_of_one_pod_changes_one_slice():
    pods = [pod(number) for number in range(150)]
    slices = carried_out(plan(service(), pods, (), NOWHERE))
    assert sorted(len(one["endpoints"]) for one in slices) == [50, 100]
    found = plan(service(), [*pods[:-1], pod(149, ready=False)], slices, NOWHERE)
    [action] = found.actions
    assert isinstance(action, Update)


@pytest.mark.slow
@given(
    st.sets(st.integers(0, 260), max_size=260),
    st.sets(st.integers(0, 260), max_size=260),
)
def test_every_pod_is_in_one_slice_and_then_there_is_nothing_to_do(before, after):
    slices = carried_out(plan(service(), [pod(one) for one in sorted(before)], (), NOWHERE))
    pods = [pod(one) for one in sorted(after)]
    slices = carried_out(plan(service(), pods, slices, NOWHERE), slices)
    listed = [one["targetRef"]["uid"] for page in slices for one in page["endpoints"]]
    assert sorted(listed) == sorted(f"p{one}" for one in after)
    assert all(len(page["endpoints"]) <= 100 for page in slices)
    assert list(plan(service(), pods, slices, NOWHERE).actions) == []
