from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.filters.node_volume_limits import NODE_VOLUME_LIMITS
from sampan.scheduler.filters.volume_binding import VOLUME_BINDING, bindings
from sampan.scheduler.filters.volume_restrictions import VOLUME_RESTRICTIONS
from sampan.scheduler.filters.volume_zone import VOLUME_ZONE
from sampan.scheduler.resident import resident_of
from sampan.scheduler.rows import pod_row
from sampan.testing.random_clusters import cache_of

ZONE = "topology.kubernetes.io/zone"


def node(number, zone):
    labels = {ZONE: zone} if zone else {}
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    meta = {"name": f"n{number}", "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": amounts}}


def volume(name, size, zones=None, storage="fast", modes=("ReadWriteOnce",), claim=None, csi=None):
    spec = {"capacity": {"storage": f"{size}Gi"}, "accessModes": list(modes)}
    spec["storageClassName"] = storage
    if zones is not None:
        within = [{"key": ZONE, "operator": "In", "values": list(zones)}]
        terms = [{"matchExpressions": within}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim}
    if csi:
        spec["csi"] = {"driver": csi, "volumeHandle": name}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def claim(name, size=1, storage="fast", bound="", modes=("ReadWriteOnce",), **meta):
    spec = {"resources": {"requests": {"storage": f"{size}Gi"}}, "accessModes": list(modes)}
    spec |= {"storageClassName": storage, "volumeName": bound}
    phase = "Bound" if bound else "Pending"
    meta = {"name": name, "namespace": "default", "uid": name, **meta}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def storage_class(name="fast", provisioner="kubernetes.io/no-provisioner", zones=None, wait=True):
    made = {"metadata": {"name": name}, "provisioner": provisioner}
    made["volumeBindingMode"] = "WaitForFirstConsumer" if wait else "Immediate"
    if zones is not None:
        within = [{"key": ZONE, "values": list(zones)}]
        made["allowedTopologies"] = [{"matchLabelExpressions": within}]
    return made


def pod(*claims, name="p"):
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}], "volumes": volumes}}


def world(nodes, volumes=(), claims=(), classes=(), placed=None):
    cache = cache_of(nodes, placed or {})
    known = cache.columns.volumes
    for one in volumes:
        known.put_volume(one["metadata"]["name"], one)
    for one in claims:
        known.put_claim(f"default/{one['metadata']['name']}", one)
    for one in classes:
        known.put_class(one["metadata"]["name"], one)
    return cache.snapshot()


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
    shape = pod_row(pod(*(one["metadata"]["name"] for one in claims))).shape
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
    shape = pod_row(pod("c")).shape
    assert VOLUME_BINDING.mask(shape, nodes).tolist() == [True, False, False]
    refused = ~VOLUME_BINDING.mask(shape, nodes)
    text = "node(s) didn't match PersistentVolume's node affinity"
    assert VOLUME_BINDING.reasons(shape, nodes, refused) == {text: 2}


def test_what_is_wrong_with_a_claim_is_said_before_any_node_is_looked_at():
    said = lambda one, *classes: VOLUME_BINDING.beforehand(  # noqa: E731
        pod_row(pod("c")).shape, world(NODES, (), one, classes)
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


def test_a_claim_whose_node_was_chosen_goes_there_or_nowhere():
    chosen = claim("c", annotations={"volume.kubernetes.io/selected-node": "n1"})
    nodes = world(NODES, (), [chosen], [storage_class(provisioner="example.com/disks")])
    assert VOLUME_BINDING.mask(pod_row(pod("c")).shape, nodes).tolist() == [False, True, False]


def test_a_volume_with_a_zone_is_used_there():
    """[S4] Nodes without zones are of one zone, which is everywhere."""
    there = volume("v", 1)
    there["metadata"]["labels"] = {ZONE: "b__c"}
    nodes = world(NODES, [there], [claim("c", bound="v")])
    assert VOLUME_ZONE.mask(pod_row(pod("c")).shape, nodes).tolist() == [False, True, True]
    old = volume("v", 1)
    old["metadata"]["labels"] = {"failure-domain.beta.kubernetes.io/zone": "a"}
    nodes = world(NODES, [old], [claim("c", bound="v")])
    assert VOLUME_ZONE.mask(pod_row(pod("c")).shape, nodes).tolist() == [True, False, True]
    assert VOLUME_ZONE.mask(pod_row(pod()).shape, nodes) is None


def test_a_claim_for_one_pod_is_used_by_one_pod():
    mine = claim("c", modes=("ReadWriteOncePod",))
    shape = pod_row(pod("c")).shape
    assert VOLUME_RESTRICTIONS.mask(shape, world(NODES, (), [mine])) is None
    placed = {"n0": [pod("c", name="other")]}
    nodes = world(NODES, (), [mine], placed=placed)
    assert not VOLUME_RESTRICTIONS.mask(shape, nodes).any()
    shared = world(NODES, (), [claim("c")], placed=placed)
    assert VOLUME_RESTRICTIONS.mask(shape, shared) is None


def test_a_driver_attaches_only_so_many_volumes():
    volumes = [volume(f"v{at}", 1, csi="disks") for at in range(3)]
    claims = [claim(f"c{at}", bound=f"v{at}") for at in range(3)]
    placed = {"n0": [pod("c0", "c1", name="other")], "n1": [pod("c0", name="third")]}
    nodes = world(NODES, volumes, claims, placed=placed)
    limit = {"spec": {"drivers": [{"name": "disks", "allocatable": {"count": 2}}]}}
    for name in ("n0", "n1"):
        nodes.volumes.put_limits(name, limit)
    another, same = pod_row(pod("c2")).shape, pod_row(pod("c1")).shape
    assert NODE_VOLUME_LIMITS.mask(another, nodes).tolist() == [False, True, True]
    assert NODE_VOLUME_LIMITS.mask(same, nodes).tolist() == [True, True, True]
    assert NODE_VOLUME_LIMITS.mask(pod_row(pod()).shape, nodes) is None


def test_claims_are_counted_while_pods_come_and_go():
    cache = cache_of(NODES, {"n0": [pod("c", name="a")], "n1": [pod("c", name="b")]})
    assert cache.snapshot().claim_uses == {"default/c": 2}
    cache.remove_pod("a")
    assert cache.snapshot().claims_on == {"n1": {"default/c": 1}}
    cache.put_pod("a", "n1", resident_of(pod("c", name="a")))
    cache.remove_node("n1")
    assert cache.snapshot().claim_uses == {}
