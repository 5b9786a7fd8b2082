import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.scheduler.config.configuration import API_VERSION, KIND, read
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
    found = NODE_DECLARED_FEATURES.mask(shape, snapshot_of((there, {})))
    if not needed:
        assert found is None
    else:
        assert found.tolist() == [needed <= some for some in declared]


@pytest.mark.parametrize("point", ["filter", "multiPoint"])
def test_the_rule_is_off_until_a_configuration_enables_it(point):
    """As the gate of its name in v1.35."""
    assert NODE_DECLARED_FEATURES not in DEFAULT_PROFILE.filters
    plugins = {point: {"enabled": [{"name": "NodeDeclaredFeatures"}]}}
    written = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": plugins}]}
    assert NODE_DECLARED_FEATURES in read(written).profiles[0].filters
