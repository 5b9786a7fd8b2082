from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.filters.volume_binding import VOLUME_BINDING, bindings
from sampan.scheduler.model.assigned_pod import assigned_pod_of
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.random_clusters import cache_of
from tests.support.generators.storage_objects import (
    ZONE,
    claim,
    node,
    pod,
    storage_class,
    volume,
    world,
)

NODES = [node(0, "a"), node(1, "b"), node(2, "")]
_zones = st.sampled_from((None, ("a",), ("b",), ("a", "b")))


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 3), _zones), max_size=3),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.booleans(),
    _zones,
)
def test_a_node_is_allowed_exactly_where_each_claim_finds_a_volume(offered, sizes, dynamic, zones):
    """[S4] Against every way to deal the volumes out, smallest claim to smallest volume."""
    volumes = [volume(f"v{at}", size, where) for at, (size, where) in enumerate(offered)]
    claims = [claim(f"c{at}", size) for at, size in enumerate(sizes)]
    provisioner = "example.com/disks" if dynamic else "kubernetes.io/no-provisioner"
    classes = [storage_class(provisioner=provisioner, zones=zones)]
    nodes = world(NODES, volumes, claims, classes)
    shape = pod_info_of(pod(*(one["metadata"]["name"] for one in claims))).shape
    found = VOLUME_BINDING.mask(shape, nodes).tolist()
    for at, where in enumerate(("a", "b", "")):
        reach = [size for size, near in offered if near is None or where in near]
        makes = dynamic and (zones is None or where in zones)
        assert found[at] == (makes or dealt(sorted(sizes), sorted(reach))), (at, reach)
        if found[at]:
            chosen = [one.name for _, one in bindings(shape, nodes, at) if one is not None]
            assert len(chosen) == len(set(chosen))
            assert makes or len(chosen) == len(claims)
    refused = ~VOLUME_BINDING.mask(shape, nodes)
    assert sum(VOLUME_BINDING.reasons(shape, nodes, refused).values()) >= refused.sum()


def dealt(sizes, reach):
    return any(
        all(want <= have for want, have in zip(sizes, some, strict=False))
        for some in permutations(reach, len(sizes))
    )


def test_a_bound_volume_must_be_within_reach():
    there = [volume("v", 1, ("a",), claim="c")]
    nodes = world(NODES, there, [claim("c", bound="v")], [storage_class()])
    shape = pod_info_of(pod("c")).shape
    assert VOLUME_BINDING.mask(shape, nodes).tolist() == [True, False, False]
    refused = ~VOLUME_BINDING.mask(shape, nodes)
    text = "node(s) didn't match PersistentVolume's node affinity"
    assert VOLUME_BINDING.reasons(shape, nodes, refused) == {text: 2}


def test_an_in_tree_disk_is_where_its_driver_says_on_nodes_that_have_moved_to_it():
    """[H1]"""
    disk = volume("v", 1, ("a",), claim="c")
    disk["spec"]["gcePersistentDisk"] = {"pdName": "d"}
    nodes = [node(at, zone) for at, zone in enumerate("aab")]
    nodes[1]["metadata"]["labels"]["topology.gke.io/zone"] = "a"
    seen = world(nodes, [disk], [claim("c", bound="v")], [storage_class()])
    shape = pod_info_of(pod("c")).shape
    assert VOLUME_BINDING.mask(shape, seen).tolist() == [True, True, False]
    marks = {
        "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder,kubernetes.io/gce-pd"
    }
    for at in range(3):
        seen.volumes.put_limits(f"n{at}", {"metadata": {"annotations": marks}, "spec": {}})
    assert VOLUME_BINDING.mask(shape, seen).tolist() == [False, True, False]
    seen.volumes.put_limits("n0", None)
    assert VOLUME_BINDING.mask(shape, seen).tolist() == [True, True, False]


def test_what_is_wrong_with_a_claim_is_said_before_any_node_is_looked_at():
    said = lambda one, *classes: VOLUME_BINDING.beforehand(  # noqa: E731
        pod_info_of(pod("c")).shape, world(NODES, (), one, classes)
    )
    assert said([]) == 'persistentvolumeclaim "c" not found'
    deleted = claim("c", deletionTimestamp="2026-01-01T00:00:00Z")
    assert said([deleted]) == 'persistentvolumeclaim "c" is being deleted'
    lost = claim("c", bound="v")
    lost["status"]["phase"] = "Lost"
    assert said([lost]) == ('persistentvolumeclaim "c" bound to non-existent persistentvolume "v"')
    immediate = "pod has unbound immediate PersistentVolumeClaims"
    assert said([claim("c")]) == immediate
    assert said([claim("c")], storage_class(wait=False)) == immediate
    assert said([claim("c")], storage_class()) is None


def with_ephemeral(uid):
    made = pod()
    made["metadata"] |= {"namespace": "default", "uid": uid}
    made["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    return made


def test_the_claim_of_an_ephemeral_volume_must_have_been_made_for_the_pod():
    shape = pod_info_of(with_ephemeral("mine")).shape
    said = lambda *claims: VOLUME_BINDING.beforehand(  # noqa: E731
        shape, world(NODES, (), claims, [storage_class()])
    )
    waits = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    assert said() == f'{waits} "p-scratch"'
    owner = {"kind": "Pod", "name": "p", "controller": True}
    foreign = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert said(claim("p-scratch")) == foreign
    assert said(claim("p-scratch", ownerReferences=[owner | {"uid": "another"}])) == foreign
    assert said(claim("p-scratch", ownerReferences=[owner | {"uid": "mine"}])) is None


def test_a_volume_of_another_attributes_class_does_not_serve():
    fast = claim("c")
    fast["spec"]["volumeAttributesClassName"] = "gold"
    there = volume("v", 1)
    shape, classes = pod_info_of(pod("c")).shape, [storage_class()]
    assert not VOLUME_BINDING.mask(shape, world(NODES, [there], [fast], classes)).any()
    there["spec"]["volumeAttributesClassName"] = "gold"
    assert VOLUME_BINDING.mask(shape, world(NODES, [there], [fast], classes)).all()


_reports = st.tuples(
    st.sampled_from(("fast", "slow")),
    st.sampled_from((None, {}, {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b"}})),
    st.integers(0, 4),  # capacity
    st.sampled_from((None, 1, 3)),  # of one volume
)


@settings(deadline=None, max_examples=100)
@given(st.lists(_reports, max_size=3), st.integers(1, 3), st.booleans())
def test_a_driver_that_tracks_its_capacity_must_have_room(reports, size, tracks):
    """[S4] Against each report and each node, one by one."""
    classes = [storage_class(provisioner="disks")]
    nodes = world(NODES, (), [claim("c", size)], classes)
    driver = {"metadata": {"name": "disks"}, "spec": {"storageCapacity": tracks}}
    nodes.volumes.put_driver("disks", driver)
    for at, (storage, where, capacity, most) in enumerate(reports):
        report = {"storageClassName": storage, "nodeTopology": where, "capacity": f"{capacity}Gi"}
        if most is not None:
            report["maximumVolumeSize"] = f"{most}Gi"
        nodes.volumes.put_capacity(f"default/{at}", report)

    def enough(zone):
        for storage, where, capacity, most in reports:
            there = where is not None and where.get("matchLabels", {}).get(ZONE, zone) == zone
            if storage == "fast" and there and size <= (capacity if most is None else most):
                return True
        return False

    shape = pod_info_of(pod("c")).shape
    expected = [not tracks or enough(zone) for zone in ("a", "b", "")]
    found = VOLUME_BINDING.mask(shape, nodes)
    assert found.tolist() == expected
    said = VOLUME_BINDING.reasons(shape, nodes, ~found)
    text = "node(s) did not have enough free storage"
    assert said == ({text: expected.count(False)} if False in expected else {})


def test_a_claim_whose_node_was_chosen_goes_there_or_nowhere():
    chosen = claim("c", annotations={"volume.kubernetes.io/selected-node": "n1"})
    nodes = world(NODES, (), [chosen], [storage_class(provisioner="example.com/disks")])
    assert VOLUME_BINDING.mask(pod_info_of(pod("c")).shape, nodes).tolist() == [False, True, False]


def test_claims_are_counted_while_pods_come_and_go():
    cache = cache_of(NODES, {"n0": [pod("c", name="a")], "n1": [pod("c", name="b")]})
    assert cache.snapshot().claim_uses == {"default/c": 2}
    cache.remove_pod("a")
    assert cache.snapshot().claims_on == {"n1": {"default/c": 1}}
    cache.put_pod("a", "n1", assigned_pod_of(pod("c", name="a")))
    cache.remove_node("n1")
    assert cache.snapshot().claim_uses == {}
