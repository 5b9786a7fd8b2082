"""The Node authorizer: a kubelet and what its pods use. [A2]"""

import pytest

from sampan.api.calls import Item
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Decision
from sampan.apiserver.authz.node import NodeAuthorizer, NodeGraph

NODE = User("system:node:n1", ("system:nodes", "system:authenticated"))
POD = {
    "metadata": {"name": "web", "namespace": "a", "uid": "1"},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "bot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "env"}}]}],
        "volumes": [
            {"name": "s", "secret": {"secretName": "s1"}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "claim"}},
        ],
    },
}
OBJECTS = {
    ("persistentvolumeclaims", "a", "claim"): {"spec": {"volumeName": "v1"}},
    ("persistentvolumes", "", "v1"): {
        "spec": {
            "claimRef": {"namespace": "a", "name": "claim"},
            "csi": {"nodeStageSecretRef": {"namespace": "store", "name": "key"}},
        }
    },
    ("persistentvolumes", "", "v2"): {"spec": {"claimRef": {"namespace": "b", "name": "claim"}}},
    ("volumeattachments", "", "at1"): {"spec": {"nodeName": "n1"}},
    ("volumeattachments", "", "at2"): {"spec": {"nodeName": "n2"}},
}


def item(pod):
    meta = pod["metadata"]
    return Item(f"{meta['namespace']}/{meta['name']}", 1, pod, b"")


def authorizer(pods=(POD,)):
    items = [item(pod) for pod in pods]
    graph = NodeGraph(lambda row, ns, name: OBJECTS.get((row.plural, ns, name)), lambda: items)
    return NodeAuthorizer(graph), graph


def allowed(verb, group, resource, sub="", namespace="", name="", fields="", user=NODE):
    ask = Attributes(user, verb, group, resource, sub, namespace, name, "", fields)
    return authorizer()[0].authorize(ask)[0] is Decision.ALLOW


@pytest.mark.parametrize(
    "asked",
    [
        ("get", "", "secrets", "", "a", "s1"),
        ("watch", "", "secrets", "", "a", "s1"),
        ("get", "", "secrets", "", "a", "pull"),
        ("get", "", "secrets", "", "store", "key"),
        ("get", "", "configmaps", "", "a", "env"),
        ("get", "", "persistentvolumeclaims", "", "a", "claim"),
        ("update", "", "persistentvolumeclaims", "status", "a", "claim"),
        ("get", "", "persistentvolumes", "", "", "v1"),
        ("get", "storage.k8s.io", "volumeattachments", "", "", "at1"),
        ("create", "", "serviceaccounts", "token", "a", "bot"),
        ("get", "", "nodes", "", "", "n1"),
        ("list", "", "nodes", "", "", "n1", "metadata.name=n1"),
        ("create", "", "nodes"),
        ("patch", "", "nodes", "status", "", "n1"),
        ("get", "", "pods", "", "a", "web"),
        ("list", "", "pods", "", "", "", "spec.nodeName=n1"),
        ("watch", "", "pods", "", "", "", "spec.nodeName=n1,status.phase!=Failed"),
        ("patch", "", "pods", "status", "a", "web"),
        ("create", "", "pods", "eviction", "a", "web"),
        ("update", "coordination.k8s.io", "leases", "", "kube-node-lease", "n1"),
        ("create", "coordination.k8s.io", "leases", "", "kube-node-lease"),
        ("list", "", "services"),
        ("create", "", "events", "", "a"),
        ("list", "node.k8s.io", "runtimeclasses"),
        ("create", "certificates.k8s.io", "certificatesigningrequests"),
        ("get", "storage.k8s.io", "csinodes", "", "", "n1"),
    ],
)
def test_a_node_may(asked):
    assert allowed(*asked)


@pytest.mark.parametrize(
    "asked",
    [
        ("get", "", "secrets", "", "a", "other"),
        ("get", "", "secrets", "", "b", "s1"),
        ("list", "", "secrets", "", "a"),
        ("list", "", "secrets"),
        ("update", "", "secrets", "", "a", "s1"),
        ("delete", "", "configmaps", "", "a", "env"),
        ("get", "", "persistentvolumes", "", "", "v2"),
        ("list", "", "persistentvolumes"),
        ("get", "storage.k8s.io", "volumeattachments", "", "", "at2"),
        ("create", "", "serviceaccounts", "token", "a", "other"),
        ("get", "", "nodes", "", "", "n2"),
        ("list", "", "nodes"),
        ("delete", "", "nodes", "", "", "n1"),
        ("get", "", "pods", "", "a", "elsewhere"),
        ("list", "", "pods"),
        ("list", "", "pods", "", "", "", "spec.nodeName=n2"),
        ("list", "", "pods", "", "", "", "spec.nodeName!=n1"),
        ("create", "", "pods", "exec", "a", "web"),
        ("create", "", "pods", "binding", "a", "web"),
        ("update", "coordination.k8s.io", "leases", "", "kube-node-lease", "n2"),
        ("update", "coordination.k8s.io", "leases", "", "kube-system", "n1"),
        ("get", "storage.k8s.io", "csinodes", "", "", "n2"),
        ("list", "apps", "deployments"),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ],
)
def test_a_node_may_not(asked):
    assert not allowed(*asked)


def test_only_a_member_of_system_nodes_is_a_node():
    alone = User("system:node:n1", ("system:authenticated",))
    assert not allowed("get", "", "nodes", "", "", "n1", user=alone)
    nameless = User("system:node:", ("system:nodes",))
    assert not allowed("get", "", "services", user=nameless)


def test_a_mirror_pod_opens_no_doors():
    mirror = {
        **POD,
        "metadata": {**POD["metadata"], "annotations": {"kubernetes.io/config.mirror": "x"}},
    }
    subject, _ = authorizer([mirror])
    ask = Attributes(NODE, "get", "", "secrets", "", "a", "s1")
    assert subject.authorize(ask)[0] is Decision.NO_OPINION


def test_rights_come_with_the_pod_and_go_with_it():
    subject, graph = authorizer([])
    ask = Attributes(NODE, "get", "", "secrets", "", "a", "s1")
    assert subject.authorize(ask)[0] is Decision.NO_OPINION
    unbound = item({**POD, "spec": {**POD["spec"], "nodeName": ""}})
    graph.changed(None, unbound)
    assert subject.authorize(ask)[0] is Decision.NO_OPINION
    bound = item(POD)
    graph.changed(unbound, bound)
    assert subject.authorize(ask)[0] is Decision.ALLOW
    graph.changed(bound, None)
    assert subject.authorize(ask)[0] is Decision.NO_OPINION
