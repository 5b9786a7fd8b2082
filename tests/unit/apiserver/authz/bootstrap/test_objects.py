"""The roles and bindings of every cluster. [A2]"""

import gzip
import json
from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.defaults import apply_defaults
from sampan.api.features import Release
from sampan.api.objects import copy_of, key_of, name_of
from sampan.api.rules.tokens import account_token
from sampan.api.validation import validate_create
from sampan.apiserver.authz.bootstrap.objects import AUTOUPDATE, PREFIX, rbac_objects, reconcile
from sampan.apiserver.flow.objects import flow_objects
from sampan.cmd.cluster.node import cluster_configuration

pytestmark = pytest.mark.kubernetes("1.35")
with features.used(Release("1.35")):
    OBJECTS = rbac_objects()
    FLOW = flow_objects(0.0)
# What kube-apiserver v1.35 bootstrapped: roles, bindings, flow schemas and priority levels.
RECORDED = json.loads(
    gzip.decompress(Path(__file__).with_name("recorded.json.gz").read_bytes())
)  # fmt: skip
# Rules that our controllers need beside upstream's.
MORE = {"service-controller": 1, "certificate-controller": 2}


def named(name, kind="ClusterRole"):
    [found] = [obj for row, obj in OBJECTS if row.kind == kind and name_of(obj) == name]
    return found


def with_patch(rule):
    if "update" not in rule["verbs"]:
        return rule
    return {**rule, "verbs": sorted({*rule["verbs"], "patch"})}


def identity(obj):
    return obj["kind"], obj["metadata"].get("namespace", ""), name_of(obj)


OURS = {identity(obj): obj for _, obj in (*OBJECTS, *FLOW)}


@pytest.mark.parametrize("theirs", RECORDED, ids=lambda obj: "/".join(identity(obj)))
def test_every_object_is_as_kube_apiserver_made_it(theirs):
    """Our controllers may patch what upstream's may update."""
    ours = {**OURS[identity(theirs)]}
    ours.pop("status", None)
    if name_of(theirs).startswith(PREFIX) and theirs["kind"] == "ClusterRole":
        more = MORE.get(name_of(theirs).removeprefix(PREFIX), 0)
        ours["rules"] = ours["rules"][: len(ours["rules"]) - more]
        theirs = {**theirs, "rules": [*map(with_patch, theirs["rules"])]}
    assert ours == theirs


def test_what_is_not_upstreams_says_so_or_is_a_binding_that_it_leaves_to_installers():
    for kind, _, name in OURS.keys() - set(map(identity, RECORDED)):
        known = {f"{PREFIX}local-provisioner", "system:kubelet-api-admin"}
        assert name.startswith("sampan:") or name in known, (kind, name)


def test_the_accounts_and_the_configuration_of_nodes_have_the_names_of_the_rules():
    token = OURS["Role", "kube-system", "sampan:node-network-token"]
    assert token["rules"][0]["resourceNames"] == list(account_token.NODE_ACCOUNTS)
    name = cluster_configuration.NAME
    read = OURS["Role", cluster_configuration.NAMESPACE, f"sampan:nodes-{name}"]
    assert read["rules"][0]["resourceNames"] == [name]


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
