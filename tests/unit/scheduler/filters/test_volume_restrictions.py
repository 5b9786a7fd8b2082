import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.filters.volume_restrictions import VOLUME_RESTRICTIONS
from sampan.scheduler.model.pod_info import pod_info_of
from tests.support.generators.storage_objects import claim, node, pod, world

NODES = [node(0, "a"), node(1, "b"), node(2, "")]

_read_only = st.booleans()
_disks = st.one_of(
    st.builds(
        lambda name, ro: {"gcePersistentDisk": {"pdName": name, "readOnly": ro}},
        st.sampled_from("ab"), _read_only,
    ),
    st.builds(
        lambda name, ro: {"awsElasticBlockStore": {"volumeID": name, "readOnly": ro}},
        st.sampled_from("ab"), _read_only,
    ),
    st.builds(
        lambda name, ro: {"iscsi": {"iqn": name, "readOnly": ro}},
        st.sampled_from("ab"), _read_only,
    ),
    st.builds(
        lambda monitors, pool, ro: {
            "rbd": {"monitors": monitors, "pool": pool, "image": "i", "readOnly": ro}
        },
        st.lists(st.sampled_from(("m1", "m2", "m3")), min_size=1, max_size=2),
        st.sampled_from(("rbd", "other")), _read_only,
    ),
)  # fmt: skip


def with_disks(disks, name):
    made = pod(name=name)
    made["spec"]["volumes"] = [{"name": f"d{at}", **one} for at, one in enumerate(disks)]
    return made


def in_each_others_way(one, other):
    """Two volumes, by upstream's four rules."""
    [(kind, a)], [(other_kind, b)] = one.items(), other.items()
    if kind != other_kind:
        return False
    both_read = a["readOnly"] and b["readOnly"]
    match kind:
        case "gcePersistentDisk":
            return a["pdName"] == b["pdName"] and not both_read
        case "awsElasticBlockStore":
            return a["volumeID"] == b["volumeID"]
        case "iscsi":
            return a["iqn"] == b["iqn"] and not both_read
        case _:
            near = set(a["monitors"]) & set(b["monitors"])
            return bool(near) and a["pool"] == b["pool"] and not both_read


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(_disks, max_size=2), min_size=3, max_size=3),
    st.lists(_disks, max_size=2),
    st.sampled_from((None, "ReadWriteOnce", "ReadWriteOncePod")),
    st.booleans(),
)
def test_the_nodes_are_those_of_the_slow_way(there, mine, mode, is_used):
    """[S4] Disks of pods' own specs, and claims that are for one pod in the cluster."""
    placed = {f"n{at}": [with_disks(disks, f"on-{at}")] for at, disks in enumerate(there)}
    if is_used:
        placed["n0"].append(pod("c", name="user"))
    asking = with_disks(mine, "p")
    if mode is not None:
        asking["spec"]["volumes"] += pod("c")["spec"]["volumes"]
    claims = [claim("c", modes=(mode or "ReadWriteOnce",))]
    nodes = world(NODES, (), claims, placed=placed)
    shape = pod_info_of(asking).shape
    taken = mode == "ReadWriteOncePod" and is_used
    blocked = [any(in_each_others_way(a, b) for a in mine for b in disks) for disks in there]
    found = VOLUME_RESTRICTIONS.mask(shape, nodes)
    expected = [not taken and not one for one in blocked]
    assert (found.tolist() if found is not None else [True] * 3) == expected
    if found is not None and not found.all():
        said = VOLUME_RESTRICTIONS.reasons(shape, nodes, ~found)
        assert said.get("node(s) had no available disk", 0) == sum(blocked)
        assert sum(said.values()) == expected.count(False)


def test_a_claim_for_one_pod_is_used_by_one_pod():
    mine = claim("c", modes=("ReadWriteOncePod",))
    shape = pod_info_of(pod("c")).shape
    assert VOLUME_RESTRICTIONS.mask(shape, world(NODES, (), [mine])) is None
    placed = {"n0": [pod("c", name="other")]}
    nodes = world(NODES, (), [mine], placed=placed)
    assert not VOLUME_RESTRICTIONS.mask(shape, nodes).any()
    shared = world(NODES, (), [claim("c")], placed=placed)
    assert VOLUME_RESTRICTIONS.mask(shape, shared) is None
