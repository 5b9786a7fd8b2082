"""The built-in plugins, each on an object of its own."""

import random

import pytest

from sampan.api.calls import Item
from sampan.api.errors import Forbidden
from sampan.api.objects import key_of
from sampan.api.resources import NODES, PODS, PRIORITY_CLASSES, SERVICE_ACCOUNTS, by_kind
from sampan.apiserver.admission.chain import CREATE, UPDATE, Admission, Attributes
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.plugins import chosen_plugins
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.rbac import Rbac
from sampan.apiserver.watch.watch_cache import KindCache
from sampan.core.metrics import Metrics
from sampan.core.side_thread import SideThread
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import published_schema

USER = User("jane", ("dev",), "u1", {"scope": ("a",)})
NAMESPACE = {"metadata": {"name": "team"}, "status": {"phase": "Active"}}
ACCOUNT = {"metadata": {"name": "default"}}


class KnownObjects:
    """What plugins ask of the registry, over objects that are simply there."""

    def __init__(self, objects):
        self._objects = objects

    def find_all(self, wanted):
        return self._objects.get(wanted.plural, [])

    def find(self, wanted, _namespace, name):
        found = self.find_all(wanted)
        return next((one for one in found if one["metadata"]["name"] == name), None)

    def kind(self, resource):
        cache = KindCache(0)
        items = [Item(key_of(one), 1, one, b"") for one in self.find_all(resource)]
        cache.load(items, 1)
        return cache


def admitted(obj, resource=PODS, operation=CREATE, old=None, mount_tokens=False, **found):
    objects = {"namespaces": [NAMESPACE], "serviceaccounts": [ACCOUNT], **found}

    registry = KnownObjects(objects)
    rbac = Rbac(registry.find, registry.find_all)
    initializer = PluginInitializer(
        registry, Authorization([]), rbac, mount_tokens, AdmissionSettings(), None, Metrics(),
        LoopClock(), random.Random(1), published_schema(), SideThread("test"), None,
        None,
    )  # fmt: skip
    chain = Admission(chosen_plugins(initializer))
    namespace = "team" if resource.namespaced else ""
    attributes = Attributes(USER, operation, resource, namespace, "x", "", obj, old, False)

    async def both():
        await chain.mutate(attributes)
        await chain.validate(attributes)

    virtual_time.run(both())
    return obj


def pod(**spec):
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}], **spec}}


def test_a_pod_gets_account_priority_and_tolerations():
    """[A3]"""
    spec = admitted(pod())["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert spec["tolerations"][0]["tolerationSeconds"] == 300


def test_a_toleration_of_everything_needs_no_other():
    everything = [{"operator": "Exists"}]
    assert admitted(pod(tolerations=everything))["spec"]["tolerations"] == everything


def test_a_missing_account_is_named():
    with pytest.raises(Forbidden) as refused:
        admitted(pod(serviceAccountName="bot"))
    assert refused.value.message == (
        'pods "x" is forbidden: error looking up service account team/bot: serviceaccount "bot" '
        "not found"
    )


def test_pull_secrets_come_from_the_account():
    account = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "reg"}]}
    assert admitted(pod(), serviceaccounts=[account])["spec"]["imagePullSecrets"] == [
        {"name": "reg"}
    ]


def test_a_token_is_mounted_where_the_setting_says_so():
    spec = admitted(pod(), mount_tokens=True)["spec"]
    mount = spec["containers"][0]["volumeMounts"][0]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert spec["volumes"][0]["name"] == mount["name"]
    assert mount["name"].startswith("kube-api-access-")
    refused = admitted(pod(automountServiceAccountToken=False), mount_tokens=True)["spec"]
    assert "volumes" not in refused
    assert "volumes" not in admitted(pod())["spec"]


def test_a_mirror_pod_has_no_account():
    mirror = pod(serviceAccountName="default")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    with pytest.raises(Forbidden, match="mirror pod may not reference service accounts"):
        admitted(mirror)


HIGH = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}


def test_priority_comes_from_the_class():
    spec = admitted(pod(priorityClassName="high"), priorityclasses=[HIGH])["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    default = {**HIGH, "globalDefault": True}
    assert admitted(pod(), priorityclasses=[default])["spec"]["priorityClassName"] == "high"
    with pytest.raises(Forbidden, match="no PriorityClass with name low was found"):
        admitted(pod(priorityClassName="low"), priorityclasses=[HIGH])
    with pytest.raises(Forbidden, match="computed 1000 from the given PriorityClass name"):
        admitted(pod(priorityClassName="high", priority=5), priorityclasses=[HIGH])


def test_an_update_keeps_the_priority():
    old = pod(priority=7, preemptionPolicy="Never")
    spec = admitted(pod(), operation=UPDATE, old=old)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


def test_only_one_class_is_the_default():
    default = {**HIGH, "globalDefault": True}
    second = {"metadata": {"name": "second"}, "value": 1, "globalDefault": True}
    with pytest.raises(Forbidden, match="Only one default can exist"):
        admitted(second, PRIORITY_CLASSES, priorityclasses=[default])
    assert admitted(dict(default), PRIORITY_CLASSES, priorityclasses=[default])


def test_a_new_node_is_tainted_until_it_is_ready():
    node = admitted({"metadata": {"name": "n"}}, NODES)
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert node["spec"]["taints"] == [taint]
    assert admitted(node, NODES)["spec"]["taints"] == [taint]


def test_the_requester_of_a_certificate_is_who_asks():
    requests = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
    spec = admitted({"metadata": {"name": "c"}, "spec": {"username": "root"}}, requests)["spec"]
    assert spec == {"username": "jane", "uid": "u1", "groups": ["dev"], "extra": {"scope": ["a"]}}


def test_other_kinds_are_left_alone():
    account = {"metadata": {"name": "bot"}}
    assert admitted(dict(account), SERVICE_ACCOUNTS) == account
