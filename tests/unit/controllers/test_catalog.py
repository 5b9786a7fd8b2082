import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
)
from sampan.api.rules.aspects import controller_kind, interest_of, touched
from sampan.client.indexer import Cache
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import (
    NOT_ALWAYS,
    ControllerSettings,
    all_controllers,
    chosen_controllers,
)
from sampan.controllers.controller import UnknownController
from sampan.controllers.identities import user_name
from sampan.controllers.workloads.disruption import Stale

EVERYTHING = ControllerSettings("", Ca(b"", b""), lambda *_: "")


def test_no_two_controllers_share_a_name():
    names = [n for one in all_controllers(EVERYTHING) for n in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_those_that_need_a_key_are_known_where_there_is_none():
    with_key = {one.name for one in all_controllers(EVERYTHING)}
    without = {one.name for one in all_controllers(ControllerSettings(""))}
    assert with_key - without <= set(NOT_ALWAYS)
    chosen = chosen_controllers(ControllerSettings(""), ["*", "-csrsigning", "-job"])
    named_only = {one.name for one in all_controllers(EVERYTHING) if one.is_named_only}
    assert {one.name for one in chosen} == without - named_only - {"job-controller"}
    with pytest.raises(UnknownController):
        chosen_controllers(ControllerSettings(""), ["-nobody"])


def test_controllers_wait_for_a_request_before_they_load_cryptography():
    """15 MiB of an idle cluster."""
    code = "import sys, sampan.controllers.catalog; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cryptography" not in done.stdout.split()


def test_each_acts_as_an_account_of_its_own():
    for one in all_controllers(EVERYTHING):
        assert user_name(one.name).startswith("system:")


def test_each_has_a_line_in_the_documentation():
    document = (Path(__file__).parents[3] / "docs" / "controllers.md").read_text()
    for one in all_controllers(EVERYTHING):
        short = " | ".join([one.name, *one.aliases])
        assert f"| {short} |" in document, short


# What of a pod anybody looks at, each with some values.
OWNER_KINDS = ("ReplicaSet", "ReplicationController", "Job", "DaemonSet", "StatefulSet", "Other")
FIELDS = {
    ("metadata", "labels"): [None, {"app": "web"}, {"app": "db"}],
    ("metadata", "annotations"): [None, {"a": "b"}],
    ("metadata", "ownerReferences"): [
        None,
        *([{"kind": kind, "name": "web", "uid": kind, "controller": True}] for kind in OWNER_KINDS),
    ],
    ("metadata", "deletionTimestamp"): [None, "2026-01-01T00:00:00Z"],
    ("metadata", "finalizers"): [None, ["foregroundDeletion"], ["example.com/f"]],
    ("spec", "nodeName"): [None, "silent", "tainted", "gone"],
    ("spec", "hostname"): [None, "a"],
    ("spec", "volumes"): [
        None,
        [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        [{"name": "v", "ephemeral": {}}],
    ],
    ("spec", "resourceClaims"): [None, [{"name": "d", "resourceClaimTemplateName": "t"}]],
    ("spec", "containers"): [
        [{"name": "c"}],
        [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    ],
    ("status", "phase"): [None, "Pending", "Running", "Failed"],
    ("status", "podIPs"): [None, [{"ip": "10.0.0.1"}]],
    ("status", "conditions"): [
        None,
        [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        [{"type": "DisruptionTarget", "status": "True"}],
    ],
}
SELECTING = {"selector": {"matchLabels": {"app": "web"}}}
WORLD = {
    NAMESPACES: {"ns": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}},
    NODES: {
        "silent": {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        "tainted": {
            "spec": {
                "taints": [
                    {"key": "a", "effect": "NoExecute"},
                    {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"},
                ]
            }
        },
    },
    RESOURCE_QUOTAS: {"ns/q": {}},
    SERVICES: {"ns/web": {"spec": {"selector": {"app": "web"}}}},
    REPLICATION_CONTROLLERS: {"ns/web": {"spec": {"selector": {"app": "web"}}}},
    PERSISTENT_VOLUME_CLAIMS: {"ns/c": {"spec": {}}},
    DEPLOYMENTS: {"ns/web": {"spec": {"strategy": {"type": "Recreate"}, **SELECTING}}},
    REPLICA_SETS: {
        "ns/web": {
            "metadata": {
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]
            },
            "spec": SELECTING,
        }
    },
    **{
        resource: {"ns/web": {"spec": SELECTING}}
        for resource in (JOBS, DAEMON_SETS, STATEFUL_SETS, POD_DISRUPTION_BUDGETS)
    },
}


BY_STATE = {
    "device-taint-eviction-controller",
    "deployment-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "resourceclaim-controller",
    "taint-eviction-controller",
}


def pod_of(values):
    found = {"metadata": {"name": "web-0", "namespace": "ns", "uid": "u"}, "spec": {}, "status": {}}
    for (part, name), value in values.items():
        if value is not None:
            found[part][name] = value
    return found


STATES = st.fixed_dictionaries({name: st.sampled_from(some) for name, some in FIELDS.items()})


@st.composite
def changes(draw):
    """Two states of a pod, most often alike but for one or two fields."""
    old, other = draw(STATES), draw(STATES)
    changed = draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=3))
    return pod_of(old), pod_of({**old, **{name: other[name] for name in changed}})


def caches_for(controller):
    caches = {}

    def cache(resource):
        if resource not in caches:
            caches[resource] = Cache(controller.indices.get(resource))
            for key, obj in WORLD.get(resource, {}).items():
                namespace, _, name = key.rpartition("/")
                meta = {"name": name, "namespace": namespace, "uid": key}
                caches[resource].put({**obj, "metadata": {**meta, **obj.get("metadata", {})}})
        return caches[resource]

    return cache


@pytest.mark.kubernetes("1.37")
@pytest.mark.slow
@given(changes())
def test_a_change_that_does_not_concern_a_controller_would_wake_nobody_who_was_not_awake(change):
    old, new = change
    touches = touched(old, new)
    for controller in all_controllers(EVERYTHING):
        wake = controller.wakes.get(PODS)
        if wake is None or interest_of(wake).is_met(touches, controller_kind(touches, old, new)):
            continue
        caches = caches_for(controller)
        awake = set(wake(caches, None, old))
        # Some look at what is, not at what changed: whom that wakes was awake before.
        by_state = controller.name in BY_STATE
        allowed = {key for key in awake if by_state or isinstance(key, Stale)}
        assert set(wake(caches, old, new)) <= allowed, controller.name


@pytest.mark.slow
@given(changes())
def test_an_index_or_count_depends_on_nothing_but_what_it_says(change):
    old, new = change
    touches = touched(old, new)
    for controller in all_controllers(EVERYTHING):
        for functions in (controller.indices, controller.tallies):
            for name, function in functions.get(PODS, {}).items():
                if not interest_of(function).aspects & touches:
                    answers = [function(pod) for pod in (old, new)]
                    assert answers[0] == answers[1], (controller.name, name)
