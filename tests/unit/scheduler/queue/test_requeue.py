import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.rules.host_ports import HostPort
from sampan.scheduler.decision.decide import Chosen, decide
from sampan.scheduler.model.assigned_pod import AssignedPod, assigned_pod_of
from sampan.scheduler.model.cluster_events import (
    DevicesChanged,
    NamespaceChanged,
    NodeAdded,
    NodeChanged,
    NodeGone,
    PodGone,
    PodPlaced,
)
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.requests import Usage
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.queue.requeue import may_help
from tests.support.generators.random_clusters import (
    cache_of,
    clusters,
    crowds,
    neighbours,
    nodes,
    pods,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.tuples(clusters(with_demands=True), pods(with_demands=True)),
        *(st.tuples(crowds(), neighbours(asks=(ask,))) for ask in ("near", "apart", "level")),
    ),
    st.data(),
)
def test_an_event_after_which_a_pod_fits_is_never_answered_with_no(case, data):
    """The hint may be wrong in one direction only: a pod must not be left waiting."""
    cluster, pod = case
    cache, shape = cache_of(*cluster), pod_info_of(pod).shape
    refused = decide(shape, cache.snapshot(), DEFAULT_PROFILE, random.Random(1))
    if isinstance(refused, Chosen):
        return
    events = changed(cache, cluster, data)
    after = decide(shape, cache.snapshot(), DEFAULT_PROFILE, random.Random(1))
    if isinstance(after, Chosen):
        assert any(may_help(event, shape, refused.rules) for event in events)


def changed(cache, cluster, data):
    """Something happens to the cluster; the events that it is."""
    there, placed = cluster
    on_nodes = [pod["metadata"]["uid"] for pods_there in placed.values() for pod in pods_there]
    match data.draw(st.sampled_from(["node", "no node", "pod", "no pod", "namespace"])):
        case "node":
            more = data.draw(nodes(most=6).filter(bool) | crowds().map(lambda crowd: crowd[0]))
            return [cache.put_node(node_info_of(more[-1]))]
        case "no node" if there:
            return [cache.remove_node(data.draw(st.sampled_from(there))["metadata"]["name"])]
        case "no pod" if on_nodes:
            return [cache.remove_pod(data.draw(st.sampled_from(on_nodes)))]
        case "namespace":
            return [cache.put_namespace("default", {"team": "x"})]
        case _:
            uid = data.draw(st.sampled_from([*on_nodes, "new"]))
            made = assigned_pod_of(data.draw(neighbours()))
            return cache.put_pod(uid, data.draw(st.sampled_from(list(placed))), made)


def pod(**spec):
    return pod_info_of({"metadata": {}, "spec": {"containers": [{"name": "c"}], **spec}}).shape


def node(**spec):
    status = {"allocatable": {"cpu": "1", "pods": "10"}}
    return node_info_of({"metadata": {"name": "n"}, "spec": spec, "status": status})


def test_a_node_that_cannot_take_the_pod_wakes_nobody():
    tainted = node(taints=[{"key": "a", "effect": "NoSchedule"}])
    rules = frozenset({"NodeResourcesFit"})
    assert not may_help(NodeAdded(tainted), pod(), rules)
    assert not may_help(NodeAdded(node()), pod(nodeSelector={"a": "b"}), rules)
    assert may_help(NodeAdded(node()), pod(), rules)


def test_a_freed_port_helps_only_who_wants_it():
    wants = pod(containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    rules = frozenset({"NodePorts"})

    def freed(port):
        return PodGone(AssignedPod(Usage((), 0, 0, (HostPort("TCP", port, "0.0.0.0"),))), "n")

    assert may_help(freed(80), wants, rules)
    assert not may_help(freed(81), wants, rules)


def test_a_pod_that_ends_does_not_help_against_taints():
    gone = PodGone(AssignedPod(Usage((("cpu", 1),), 1, 1)), "n")
    assert not may_help(gone, pod(), frozenset({"TaintToleration", "NodeAffinity"}))
    assert may_help(gone, pod(), frozenset({"TaintToleration", "NodeResourcesFit"}))


def test_where_there_was_no_node_only_a_new_one_helps():
    assert may_help(NodeAdded(node()), pod(), frozenset())
    assert not may_help(PodGone(AssignedPod(Usage((), 0, 0)), "n"), pod(), frozenset())


SPREAD, AFFINITY = frozenset({"PodTopologySpread"}), frozenset({"InterPodAffinity"})
FIT = frozenset({"NodeResourcesFit"})


def once_assigned(namespace="default"):
    return AssignedPod(Usage((), 0, 0), namespace=namespace)


def in_default(**spec):
    made = {"metadata": {"namespace": "default"}, "spec": {"containers": [], **spec}}
    return pod_info_of(made).shape


def test_a_node_that_goes_may_level_what_is_left_but_gives_no_room():
    assert may_help(NodeGone("n"), in_default(), SPREAD)
    assert may_help(NodeGone("n"), in_default(), AFFINITY)
    assert not may_help(NodeGone("n"), in_default(), FIT)


def asking(kind, **labels):
    """A pod that asks for pods with these labels, or for there to be none."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}
    if kind == "spread":
        spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return in_default(topologySpreadConstraints=[spread])
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return in_default(affinity={kind: required})


def labelled(namespace="default", **labels):
    return replace(once_assigned(namespace), labels=tuple(labels.items()))


def test_a_pod_that_comes_helps_those_who_want_to_be_near_or_level():
    near, level = asking("podAffinity", app="web"), asking("spread", app="web")
    for wanted, rules in ((near, AFFINITY), (level, SPREAD)):
        assert may_help(PodPlaced(labelled(app="web"), "n"), wanted, rules)
        assert not may_help(PodPlaced(labelled(app="db"), "n"), wanted, rules)
        assert not may_help(PodPlaced(labelled("other", app="web"), "n"), wanted, rules)
    apart = asking("podAntiAffinity", app="web")
    assert not may_help(PodPlaced(labelled(app="web"), "n"), apart, AFFINITY)
    assert not may_help(PodPlaced(labelled(app="web"), "n"), near, FIT)


def test_a_pod_that_goes_helps_those_who_want_to_be_apart_or_level():
    apart, level = asking("podAntiAffinity", app="web"), asking("spread", app="web")
    for wanted, rules in ((apart, AFFINITY), (level, SPREAD)):
        assert may_help(PodGone(labelled(app="web"), "n"), wanted, rules)
        assert not may_help(PodGone(labelled(app="db"), "n"), wanted, rules)
        assert not may_help(PodGone(labelled("other", app="web"), "n"), wanted, rules)
    # The last of a kind that goes makes room for the first of its kind.
    assert may_help(PodGone(labelled(app="web"), "n"), asking("podAffinity", app="web"), AFFINITY)


def test_a_pod_that_kept_others_away_helps_them_when_it_goes():
    jealous = {"metadata": {"namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    jealous["spec"]["affinity"] = {"podAntiAffinity": required}
    gone = PodGone(assigned_pod_of(jealous), "n")
    meant = {"metadata": {"namespace": "default", "labels": {"app": "web"}}, "spec": {}}
    other = {"metadata": {"namespace": "default", "labels": {"app": "db"}}, "spec": {}}
    assert may_help(gone, pod_info_of(meant).shape, AFFINITY)
    assert not may_help(gone, pod_info_of(other).shape, AFFINITY)


def test_a_relabelled_node_moves_domains_also_for_pods_that_cannot_go_there():
    tainted = node(taints=[{"key": "a", "effect": "NoSchedule"}])
    relabelled = replace(tainted, labels={"zone": "b"})
    larger = replace(tainted, allowed_pods=99)
    for rules in (SPREAD, AFFINITY):
        assert may_help(NodeChanged(tainted, relabelled), in_default(), rules)
        assert not may_help(NodeChanged(tainted, larger), in_default(), rules)
    assert not may_help(NodeChanged(tainted, relabelled), in_default(), FIT)


def test_namespaces_matter_to_who_looks_at_them():
    assert may_help(NamespaceChanged("default"), in_default(), AFFINITY)
    assert not may_help(NamespaceChanged("x"), in_default(), AFFINITY)
    assert not may_help(NamespaceChanged("default"), in_default(), SPREAD)
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    looks = in_default(affinity={"podAffinity": required})
    assert may_help(NamespaceChanged("x"), looks, AFFINITY)


def test_devices_matter_to_who_waits_for_them():
    devices = frozenset({"DynamicResources"})
    entry = {"name": "d", "resourceClaimName": "mine"}
    waiting = in_default(resourceClaims=[entry])
    assert may_help(DevicesChanged(), waiting, devices)
    assert may_help(DevicesChanged("default/mine"), waiting, devices)
    assert not may_help(DevicesChanged("default/other"), waiting, devices)
    assert may_help(DevicesChanged("default/other", freed=True), waiting, devices)
    assert may_help(NodeAdded(node()), waiting, devices)
    assert not may_help(DevicesChanged(), waiting, FIT)
    assert not may_help(NodeGone("n"), waiting, devices)
