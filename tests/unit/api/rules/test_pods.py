"""Facts about pods."""

import pytest

from sampan.api.rules import pods


def container(name="c", requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def test_a_pod_is_ready_when_its_condition_says_so():
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert pods.is_ready(ready)
    assert not pods.is_ready({})


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_is_terminal(phase):
    assert pods.is_terminal({"status": {"phase": phase}})
    assert not pods.is_terminal({"status": {"phase": "Running"}})


def test_mirror_and_static_pods_are_told_by_their_annotations():
    mirror = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}
    static = {"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}}
    ordinary = {"metadata": {"annotations": {"kubernetes.io/config.source": "api"}}}
    assert pods.is_mirror(mirror)
    assert pods.is_static(static)
    assert not pods.is_static(ordinary)
    assert pods.is_critical(static)
    assert pods.is_critical({"spec": {"priority": 2_000_000_000}})
    assert not pods.is_critical(ordinary)


@pytest.mark.parametrize(
    ("phase", "over"), [("Succeeded", True), ("Failed", True), ("Running", False), ("", False)]
)
def test_a_pod_is_over_when_no_container_will_run_again(phase, over):
    assert pods.is_terminal({"status": {"phase": phase}}) is over


def test_a_pod_without_a_policy_is_always_restarted():
    assert pods.restart_policy(pod()) == "Always"
    assert pods.restart_policy(pod(restartPolicy="Never")) == "Never"


def test_a_pod_names_its_secrets_config_maps_and_claims():
    """[A2] What a kubelet may read because of this pod."""
    one = pod(
        {
            "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}],
            "env": [
                {"name": "a", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}},
                {"name": "c", "value": "x"},
            ],
        },
        imagePullSecrets=[{"name": "s3"}],
        volumes=[
            {"name": "v1", "secret": {"secretName": "s4"}},
            {"name": "v2", "configMap": {"name": "c3"}},
            {
                "name": "v3",
                "projected": {
                    "sources": [{"secret": {"name": "s5"}}, {"configMap": {"name": "c4"}}]
                },
            },
            {"name": "v4", "persistentVolumeClaim": {"claimName": "d1"}},
            {"name": "v5", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "v6", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s6"}}},
        ],
    )
    assert pods.secret_names(one) == {"s1", "s2", "s3", "s4", "s5", "s6"}
    assert pods.config_map_names(one) == {"c1", "c2", "c3", "c4"}
    assert pods.claim_names(one) == {"d1", "p-v5"}
