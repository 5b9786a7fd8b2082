import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.features import Release
from sampan.scheduler.filters.node_volume_limits import NODE_VOLUME_LIMITS
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.storage_objects import claim, node, pod, storage_class, volume, world

NODES = [node(0, "a"), node(1, "b"), node(2, "")]

DRIVERS = ("disks", "files")
_claims = st.lists(
    st.tuples(st.sampled_from(DRIVERS), st.booleans()), min_size=4, max_size=4
)  # driver; bound
_some = st.sets(st.integers(0, 3), max_size=3)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    _claims,
    st.lists(_some, min_size=3, max_size=3),
    _some,
    st.lists(st.dictionaries(st.sampled_from(DRIVERS), st.integers(0, 3)), min_size=3, max_size=3),
)
def test_the_nodes_are_those_of_the_slow_way(claims, mounted, wanted, limits):
    """[S4] Each volume counts once a node; one that is there already costs nothing; a claim that
    is not bound yet counts for the driver of its class."""
    volumes = [volume(f"v{at}", 1, csi=driver) for at, (driver, _) in enumerate(claims)]
    written = [
        claim(f"c{at}", storage=driver, bound=f"v{at}" if bound else "")
        for at, (driver, bound) in enumerate(claims)
    ]
    classes = [storage_class(one, provisioner=one) for one in DRIVERS]
    placed = {
        f"n{at}": [pod(*(f"c{one}" for one in some), name=f"on-{at}")]
        for at, some in enumerate(mounted)
    }
    nodes = world(NODES, volumes, written, classes, placed)
    for at, of_node in enumerate(limits):
        drivers = [{"name": one, "allocatable": {"count": n}} for one, n in of_node.items()]
        nodes.volumes.put_limits(f"n{at}", {"spec": {"drivers": drivers}})
    found = NODE_VOLUME_LIMITS.mask(pod_info_of(pod(*(f"c{one}" for one in wanted))).shape, nodes)
    expected = [
        not any(
            driver in of_node
            and any(claims[one][0] == driver for one in wanted - some)
            and sum(claims[one][0] == driver for one in wanted | some) > of_node[driver]
            for driver in DRIVERS
        )
        for some, of_node in zip(mounted, limits, strict=True)
    ]
    assert (found.tolist() if found is not None else [True] * 3) == expected


def test_a_driver_attaches_only_so_many_volumes():
    volumes = [volume(f"v{at}", 1, csi="disks") for at in range(3)]
    claims = [claim(f"c{at}", bound=f"v{at}") for at in range(3)]
    placed = {"n0": [pod("c0", "c1", name="other")], "n1": [pod("c0", name="third")]}
    nodes = world(NODES, volumes, claims, placed=placed)
    limit = {"spec": {"drivers": [{"name": "disks", "allocatable": {"count": 2}}]}}
    for name in ("n0", "n1"):
        nodes.volumes.put_limits(name, limit)
    another, same = pod_info_of(pod("c2")).shape, pod_info_of(pod("c1")).shape
    assert NODE_VOLUME_LIMITS.mask(another, nodes).tolist() == [False, True, True]
    assert NODE_VOLUME_LIMITS.mask(same, nodes).tolist() == [True, True, True]
    assert NODE_VOLUME_LIMITS.mask(pod_info_of(pod()).shape, nodes) is None


def test_what_is_still_attached_counts():
    """[S4] as upstream, also where it is the very volume that the pod wants."""
    volumes = [volume(f"v{at}", 1, csi="disks") for at in range(3)]
    claims = [claim(f"c{at}", bound=f"v{at}") for at in range(3)]
    nodes = world(NODES, volumes, claims, placed={"n0": [pod("c1", name="other")]})
    limit = {"spec": {"drivers": [{"name": "disks", "allocatable": {"count": 2}}]}}
    nodes.volumes.put_limits("n0", limit)
    wanted = pod_info_of(pod("c0")).shape
    assert NODE_VOLUME_LIMITS.mask(wanted, nodes).tolist() == [True] * 3
    source = {"attacher": "disks", "nodeName": "n0", "source": {"persistentVolumeName": "v0"}}
    nodes.volumes.put_attachment("a", {"spec": source})
    assert NODE_VOLUME_LIMITS.mask(wanted, nodes).tolist() == [False, True, True]
    used = {**source, "source": {"persistentVolumeName": "v1"}}
    nodes.volumes.put_attachment("a", {"spec": used})  # the other pod's: counted once
    assert NODE_VOLUME_LIMITS.mask(wanted, nodes).tolist() == [True] * 3
    nodes.volumes.put_attachment("b", {"spec": {**source, "nodeName": "n1"}})
    assert NODE_VOLUME_LIMITS.mask(wanted, nodes).tolist() == [True] * 3
    nodes.volumes.put_attachment("a", None)
    nodes.volumes.put_attachment("b", None)
    assert list(nodes.volumes.attached_to("n1")) == []


def ebs(name, number):
    return {"metadata": {"name": name}, "spec": {"awsElasticBlockStore": {"volumeID": number}}}


def test_in_tree_disks_count_as_their_drivers_do():
    """[H1] behind claims, for claims that wait, and in the pod's own spec; not azureFile."""
    claims = [claim("a", bound="va"), claim("b", bound="vb"), claim("new", storage="old")]
    volumes = [ebs("va", "vol-a"), ebs("vb", "vol-b")]
    own = pod(name="own")
    own["spec"]["volumes"] = [{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://z/vol-c"}}]
    classes = [storage_class("old", provisioner="kubernetes.io/aws-ebs")]
    nodes = world(NODES, volumes, claims, classes, {"n0": [pod("a", name="x"), own]})
    drivers = ("ebs.csi.aws.com", "file.csi.azure.com")
    limited = [{"name": name, "allocatable": {"count": 2}} for name in drivers]
    nodes.volumes.put_limits("n0", {"spec": {"drivers": limited}})
    for wanted, allowed in ((pod("a"), True), (pod("b"), False), (pod("new"), False), (own, True)):
        found = NODE_VOLUME_LIMITS.mask(pod_info_of(wanted).shape, nodes)
        assert found.tolist() == [allowed, True, True]
    files = pod()
    files["spec"]["volumes"] = [
        {"name": f"v{at}", "azureFile": {"secretName": "s", "shareName": f"s{at}"}}
        for at in range(3)
    ]
    assert NODE_VOLUME_LIMITS.mask(pod_info_of(files).shape, nodes) is None
    source = {"attacher": "ebs.csi.aws.com", "nodeName": "n1"}
    nodes.volumes.put_attachment(
        "a", {"spec": {**source, "source": {"persistentVolumeName": "vb"}}}
    )
    assert list(nodes.volumes.attached_to("n1")) == []  # as upstream: only of CSI volumes


@pytest.mark.parametrize("on", [True, False])
def test_a_pod_goes_where_its_driver_is_if_the_driver_says_so(on):
    """[V2]"""
    with features.used(Release("1.37", gates={"VolumeLimitScaling": on})):
        nodes = world(NODES, [volume("v", 1, csi="disks")], [claim("c", bound="v")])
        for at, drivers in enumerate((["files"], ["disks", "files"])):
            listed = [{"name": name} for name in drivers]
            nodes.volumes.put_limits(f"n{at}", {"spec": {"drivers": listed}})
        nodes.volumes.put_driver("disks", {"spec": {"preventPodSchedulingIfMissing": True}})
    shape = pod_info_of(pod("c")).shape
    found = NODE_VOLUME_LIMITS.mask(shape, nodes)
    assert found.tolist() == ([False, True, False] if on else [True] * 3)
    said = {"disks CSI driver is not installed on the node": 2} if on else {}
    assert NODE_VOLUME_LIMITS.reasons(shape, nodes, ~found) == said
