import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.features import Release
from sampan.scheduler.filters.node_declared_features import NODE_DECLARED_FEATURES
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.support.generators.random_clusters import snapshot_of

RESTART, HOST = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def pod(restarts_all, in_host_network, users):
    container = {"name": "c"}
    if restarts_all:
        container["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    spec = {"containers": [container], "hostNetwork": in_host_network, "hostUsers": users}
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}


@given(
    st.lists(st.sets(st.sampled_from((RESTART, HOST, "Other"))), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, True, False)),
)
def test_a_node_must_declare_what_the_pod_needs(declared, restarts_all, in_host_network, users):
    """[S4] Against each node, one by one."""
    there = [
        {"metadata": {"name": f"n{at}"}, "status": {"declaredFeatures": sorted(some)}}
        for at, some in enumerate(declared)
    ]
    needed = {RESTART} if restarts_all else set()
    if in_host_network and users is False:
        needed |= {HOST}
    shape = pod_info_of(pod(restarts_all, in_host_network, users)).shape
    with features.used(Release(gates={"NodeDeclaredFeatures": True})):
        found = NODE_DECLARED_FEATURES.mask(shape, snapshot_of((there, {})))
    if not needed:
        assert found is None
    else:
        assert found.tolist() == [needed <= some for some in declared]


@pytest.mark.kubernetes("1.35")
def test_where_the_gate_is_off_no_node_is_refused():
    """As the gate of its name in v1.35; the rule is in its place all the same."""
    assert NODE_DECLARED_FEATURES in DEFAULT_PROFILE.filters
    there = [{"metadata": {"name": "n"}, "status": {}}]
    shape = pod_info_of(pod(True, False, None)).shape
    assert NODE_DECLARED_FEATURES.mask(shape, snapshot_of((there, {}))) is None
