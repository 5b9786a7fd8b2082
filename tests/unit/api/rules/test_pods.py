"""Facts about pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import quantity
from sampan.api.rules import pods


def container(name="c", requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def texts(amounts):
    return {name: str(amount) for name, amount in amounts.items()}


def test_containers_run_together_so_their_requests_are_added():
    one = pod(
        container(requests={"cpu": "100m", "memory": "1Gi"}), container(requests={"cpu": "1"})
    )
    assert texts(pods.requests(one)) == {"cpu": "1100m", "memory": "1Gi"}


def test_init_containers_run_one_by_one_so_the_greatest_counts():
    one = pod(
        container(requests={"cpu": "1"}),
        init=[container(requests={"cpu": "3"}), container(requests={"cpu": "2", "memory": "1Mi"})],
    )
    assert texts(pods.requests(one)) == {"cpu": "3", "memory": "1Mi"}


def test_a_sidecar_counts_with_the_containers_and_with_the_init_containers_after_it():
    one = pod(
        container(requests={"cpu": "1"}),
        init=[
            container(requests={"cpu": "4"}),  # before the sidecar: alone
            container(requests={"cpu": "1"}, restartPolicy="Always"),
            container(requests={"cpu": "5"}),  # after it: beside it
        ],
    )
    assert texts(pods.requests(one)) == {"cpu": "6"}


def test_overhead_is_added_to_requests_but_makes_no_limit():
    one = pod(
        container(requests={"cpu": "1"}, limits={"cpu": "2"}),
        overhead={"cpu": "250m", "memory": "10Mi"},
    )
    assert texts(pods.requests(one)) == {"cpu": "1250m", "memory": "10Mi"}
    assert texts(pods.limits(one)) == {"cpu": "2250m"}


def test_what_the_pod_asks_for_as_a_whole_replaces_the_sum():
    one = pod(container(requests={"cpu": "1"}), resources={"requests": {"cpu": "3"}})
    assert texts(pods.requests(one)) == {"cpu": "3"}


def test_the_scheduler_scores_a_silent_container_as_if_it_asked_for_a_little():
    assert pods.scored_requests(pod(container())) == (100, 200 * 1024 * 1024)
    assert pods.scored_requests(pod(container(requests={"cpu": "2"}))) == (2000, 200 * 1024 * 1024)


def test_quota_counts_requests_limits_and_the_pod_itself():
    one = pod(container(requests={"cpu": "1", "example.com/gpu": "2"}, limits={"cpu": "2"}))
    assert texts(pods.quota_usage(one)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "requests.example.com/gpu": "2",
        "limits.cpu": "2",
    }


def test_a_pod_that_is_over_takes_nothing_of_the_quota_but_its_object():
    one = {**pod(container(requests={"cpu": "1"})), "status": {"phase": "Succeeded"}}
    assert texts(pods.quota_usage(one)) == {"count/pods": "1"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "BestEffort"),
        ([container(requests={"cpu": "1"})], "Burstable"),
        (
            [container(requests={"example.com/gpu": "1"}, limits={"example.com/gpu": "1"})],
            "BestEffort",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}
                )
            ],
            "Guaranteed",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}
                )
            ],
            "Burstable",
        ),
        (
            [
                container(
                    requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}
                ),
                container(),
            ],
            "Burstable",
        ),
        ([container(requests={"cpu": "0"})], "BestEffort"),
    ],
)
def test_quality_of_service_follows_from_requests_and_limits(containers, expected):
    """[N16]"""
    assert pods.qos_class(pod(*containers)) == expected


def test_quality_of_service_looks_at_the_pod_as_a_whole_first():
    amounts = {"cpu": "1", "memory": "1Gi"}
    whole = {"requests": amounts, "limits": amounts}
    assert pods.qos_class(pod(container(), resources=whole)) == "Guaranteed"


def test_host_ports_of_containers_and_sidecars_are_taken_on_the_node():
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    side = container(
        restartPolicy="Always", ports=[{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    )
    brief = container(ports=[{"hostPort": 99}])
    found = pods.host_ports(pod(container(ports=ports), init=[side, brief]))
    assert found == {("TCP", "0.0.0.0", 8080), ("UDP", "10.0.0.1", 53)}


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


def test_a_container_is_restarted_by_its_own_policy_then_by_its_pods():
    always = pod(restartPolicy="Always")
    assert pods.restart_policy(always, {}, is_init=False) == "Always"
    assert pods.restart_policy(always, {}, is_init=True) == "OnFailure"
    assert pods.restart_policy(always, {"restartPolicy": "Never"}, is_init=False) == "Never"
    never = pod(restartPolicy="Never")
    assert pods.restart_policy(never, {"restartPolicy": "Always"}, is_init=True) == "Always"


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


CPU = st.integers(0, 4000).map(lambda milli: f"{milli}m")
CONTAINERS = st.lists(CPU, min_size=1, max_size=3).map(
    lambda cpus: [container(requests={"cpu": cpu}) for cpu in cpus]
)


@given(CONTAINERS, st.lists(st.tuples(CPU, st.booleans()), max_size=4))
def test_a_pod_never_asks_for_less_than_its_containers_or_any_init_container(usual, init):
    """The total is also what the last moment and each earlier moment need at most."""
    starts = [
        container(requests={"cpu": cpu}, **({"restartPolicy": "Always"} if stays else {}))
        for cpu, stays in init
    ]
    total = pods.requests(pod(*usual, init=starts))["cpu"].milli()
    running, moments = 0, []
    for cpu, stays in init:
        need = quantity.parse(cpu).milli()
        moments.append(running + need)
        running += need if stays else 0
    last = running + sum(
        quantity.parse(one["resources"]["requests"]["cpu"]).milli() for one in usual
    )
    assert total == max([last, *moments])
