"""The roles and bindings of every cluster. [A2]"""

import pytest

from sampan.api.defaults import apply_defaults
from sampan.api.objects import copy_of, key_of, name_of
from sampan.api.validation import validate_create
from sampan.apiserver.authz.bootstrap.objects import AUTOUPDATE, rbac_objects, reconcile

OBJECTS = rbac_objects()


def named(name, kind="ClusterRole"):
    [found] = [obj for row, obj in OBJECTS if row.kind == kind and name_of(obj) == name]
    return found


def test_every_object_is_valid_and_named_once():
    seen = set()
    for resource, obj in rbac_objects():
        apply_defaults(resource, obj)
        assert validate_create(resource, obj) == [], name_of(obj)
        seen.add((resource.kind, key_of(obj)))
    assert len(seen) == len(OBJECTS)


def test_every_binding_names_a_role_that_is_there():
    roles = {(row.kind, name_of(obj)) for row, obj in OBJECTS}
    for _, obj in OBJECTS:
        if "roleRef" in obj:
            assert (obj["roleRef"]["kind"], obj["roleRef"]["name"]) in roles


@pytest.mark.parametrize(
    "name",
    [
        "cluster-admin", "admin", "edit", "view", "system:node", "system:kube-scheduler",
        "system:kube-controller-manager", "system:kube-dns", "system:discovery",
        "system:basic-user", "system:public-info-viewer", "system:monitoring",
        "system:auth-delegator", "system:heapster", "system:kube-aggregator",
        "system:kubelet-api-admin", "system:node-bootstrapper", "system:node-proxier",
        "system:node-problem-detector", "system:persistent-volume-provisioner",
        "system:volume-scheduler", "system:service-account-issuer-discovery",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "system:controller:generic-garbage-collector", "system:controller:job-controller",
    ],
)  # fmt: skip
def test_the_names_are_upstreams(name):
    assert named(name)["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"


def test_admin_has_the_rules_of_edit_and_edit_those_of_view():
    admin, edit, view = (named(one)["rules"] for one in ("admin", "edit", "view"))
    assert all(rule in edit for rule in view)
    assert all(rule in admin for rule in edit)
    assert len(view) < len(edit) < len(admin)


def test_what_an_older_version_gave_to_all_nodes_is_taken_back():
    wanted = named("sampan:node-network", "ClusterRoleBinding")
    nodes = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}
    mine = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}
    old = {**copy_of(wanted), "subjects": [nodes, mine]}
    assert reconcile(old, wanted)["subjects"] == [mine, *wanted["subjects"]]
    assert reconcile({**wanted, "subjects": [*wanted["subjects"], mine]}, wanted) is None
    frozen = {**old, "metadata": {**old["metadata"], "annotations": {AUTOUPDATE: "false"}}}
    assert reconcile(frozen, wanted) is None


def watched_by(role):
    rules = [rule for rule in named(role)["rules"] if "watch" in rule["verbs"]]
    return {(group, kind) for r in rules for group in r["apiGroups"] for kind in r["resources"]}


def test_the_network_of_a_node_may_follow_what_a_proxy_does():
    assert watched_by("system:node-proxier") - {("", "endpoints")} <= watched_by(
        "sampan:node-network"
    )


def test_nobody_sees_secrets_by_view():
    for rule in named("view")["rules"]:
        assert "secrets" not in rule["resources"]


def test_what_is_there_is_left_alone():
    for _, obj in OBJECTS:
        assert reconcile(obj, copy_of(obj)) is None


def test_what_was_taken_away_is_added_again_and_nothing_else():
    wanted = named("system:kube-scheduler")
    found = copy_of(wanted)
    own = {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
    found["rules"] = [own, *found["rules"][1:]]
    del found["metadata"]["labels"]
    changed = reconcile(found, wanted)
    assert own in changed["rules"]
    assert all(rule in changed["rules"] for rule in wanted["rules"])
    assert changed["metadata"]["labels"] == wanted["metadata"]["labels"]
    found["metadata"]["annotations"][AUTOUPDATE] = "false"
    assert reconcile(found, wanted) is None


def test_a_subject_that_is_missing_comes_back():
    wanted = named("cluster-admin", "ClusterRoleBinding")
    found = {**copy_of(wanted), "subjects": [{"kind": "User", "name": "me"}]}
    names = [one["name"] for one in reconcile(found, wanted)["subjects"]]
    assert names == ["me", "system:masters"]
