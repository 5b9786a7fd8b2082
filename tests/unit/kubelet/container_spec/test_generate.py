import json

import pytest

from sampan.kubelet.container_spec.environment import ConfigError
from sampan.kubelet.container_spec.generate import (
    ContainerContext,
    NodeFacts,
    Reference,
    container_spec,
    references,
    sandbox_spec,
)
from sampan.kubelet.contracts.paths import termination_log
from sampan.kubelet.contracts.runtime import Device, Image, Mount, PortMapping
from sampan.kubelet.contracts.volumes_hook import MountedVolume

NODE = NodeFacts(
    "n1",
    root_dir="/data/kubelet",
    log_root="/data/logs",
    node_ips=("192.0.2.1",),
    memory_bytes=8 << 30,
)
IMAGE = Image("sha256:abc", ("app:1",), (), 1, uid=0)


def make_pod(container=None, **spec):
    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
        },
        "spec": {"containers": [{"name": "c", "image": "app:1", **(container or {})}], **spec},
    }


def contained(pod, **more):
    given_to_it = {
        "attempt": 2,
        "image_id": "sha256:abc",
        "image": IMAGE,
        "objects": {},
        "pod_ips": ["10.244.0.5"],
        "node": NODE,
        **more,
    }
    return container_spec(pod, pod["spec"]["containers"][0], ContainerContext(**given_to_it))


def test_a_sandbox_is_found_again_by_its_labels():
    spec = sandbox_spec(make_pod(), attempt=1, node=NODE)
    assert spec.labels == {
        "app": "web",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": "u1",
    }
    assert spec.annotations == {"note": "x"}
    assert (spec.attempt, spec.hostname) == (1, "web")
    assert spec.log_directory == "/data/logs/shop_web_u1"


def test_host_ports_become_mappings_except_in_the_node_s_network():
    ports = [
        {"containerPort": 80},
        {"containerPort": 53, "hostPort": 5353, "protocol": "UDP", "hostIP": "127.0.0.1"},
    ]
    pod = make_pod({"ports": ports})
    assert sandbox_spec(pod, attempt=0, node=NODE).port_mappings == (
        PortMapping(53, 5353, "UDP", "127.0.0.1"),
    )
    pod["spec"]["hostNetwork"] = True
    spec = sandbox_spec(pod, attempt=0, node=NODE)
    assert (spec.port_mappings, spec.hostname) == ((), "")
    assert spec.security.host_network


def test_sysctls_go_to_the_sandbox():
    pod = make_pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "0"}]})
    assert sandbox_spec(pod, attempt=0, node=NODE).sysctls == {"net.ipv4.tcp_syncookies": "0"}


def test_command_and_arguments_are_expanded_with_the_environment():
    """[N10]"""
    pod = make_pod(
        {
            "command": ["/bin/$(TOOL)", "$$(TOOL)"],
            "args": ["--ip=$(IP)", "$(UNKNOWN)"],
            "env": [
                {"name": "TOOL", "value": "sh"},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "workingDir": "/srv",
            "tty": True,
            "stdin": True,
            "stdinOnce": True,
        }
    )
    spec = contained(pod)
    assert spec.command == ("/bin/sh", "$(TOOL)")
    assert spec.args == ("--ip=10.244.0.5", "$(UNKNOWN)")
    assert spec.env == (("TOOL", "sh"), ("IP", "10.244.0.5"))
    assert (spec.working_dir, spec.tty, spec.stdin, spec.stdin_once) == ("/srv", True, True, True)


def test_a_container_carries_what_a_restarted_node_agent_must_know():
    """[N21]"""
    hook = {"exec": {"command": ["bye"]}}
    pod = make_pod(
        {
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "lifecycle": {"preStop": hook},
            "ports": [{"containerPort": 80}],
        },
        terminationGracePeriodSeconds=30,
    )
    spec = contained(pod)
    assert spec.labels["io.kubernetes.container.name"] == "c"
    assert spec.annotations["io.kubernetes.container.restartCount"] == "2"
    assert spec.annotations["io.kubernetes.pod.terminationGracePeriod"] == "30"
    assert json.loads(spec.annotations["io.kubernetes.container.preStopHandler"]) == hook
    assert spec.log_path == "c/2.log"
    assert (spec.image, spec.user_image) == ("sha256:abc", "app:1")


def test_hosts_file_and_termination_log_are_written_and_mounted():
    pod = make_pod({"terminationMessagePath": "/dev/termination-log"})
    spec = contained(pod)
    log = termination_log(pod, "c", attempt=2, root_dir="/data/kubelet")
    assert spec.mounts == (
        Mount("/etc/hosts", "/data/kubelet/pods/u1/etc-hosts"),
        Mount("/dev/termination-log", log),
    )
    hosts, message = spec.host_files
    assert "10.244.0.5\tweb\n" in hosts.content
    assert (message.path, message.mode) == (log, 0o666)


def test_a_hosts_file_of_the_user_s_own_is_left_alone():
    pod = make_pod({"volumeMounts": [{"name": "v", "mountPath": "/etc/hosts"}]})
    spec = contained(pod, mounts={"v": MountedVolume("/data/v")})
    assert spec.mounts == (Mount("/etc/hosts", "/data/v", volume="v"),)
    assert spec.host_files == ()


def test_volumes_are_mounted_where_the_container_wants_them():
    pod = make_pod(
        {
            "volumeMounts": [
                {"name": "v", "mountPath": "data", "readOnly": True},
                {"name": "v", "mountPath": "/x", "mountPropagation": "Bidirectional"},
            ]
        },
    )
    assert contained(pod, mounts={"v": MountedVolume("/host/v")}).mounts[:2] == (
        Mount("/data", "/host/v", read_only=True, volume="v"),
        Mount("/x", "/host/v", propagation="bidirectional", volume="v"),
    )
    with pytest.raises(ConfigError, match='cannot find volume "v" to mount into container "c"'):
        contained(pod)


def test_a_volume_that_is_read_only_stays_so_whatever_the_mount_says():
    """[N15] config maps, secrets and their like cannot be written to"""
    pod = make_pod({"volumeMounts": [{"name": "v", "mountPath": "/x"}]})
    mount, _ = contained(pod, mounts={"v": MountedVolume("/host/v", read_only=True)}).mounts
    assert mount.read_only


def test_a_pod_in_the_node_s_network_has_the_node_s_hosts():
    [hosts] = contained(make_pod(hostNetwork=True)).host_files
    assert hosts.path == "/data/kubelet/pods/u1/etc-hosts"
    assert hosts.content.startswith("# Kubernetes-managed hosts file (host network).\n")


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ({"subPath": "a/b"}, "a/b"),
        ({"subPathExpr": "$(WHO)/x"}, "me/x"),
        ({"subPathExpr": "$$(WHO)"}, "$(WHO)"),
    ],
)
def test_a_sub_path_is_expanded_and_left_to_be_found(mount, expected):
    """[N15]"""
    env = [{"name": "WHO", "value": "me"}]
    pod = make_pod({"env": env, "volumeMounts": [{"name": "v", "mountPath": "/x", **mount}]})
    found, _ = contained(pod, mounts={"v": MountedVolume("/host/v")}).mounts
    assert (found.host_path, found.sub_path) == ("/host/v", expected)


@pytest.mark.parametrize(
    ("mount", "why"),
    [
        ({"subPath": "../../etc"}, "unable to provision SubPath `../../etc`: must not contain"),
        ({"subPath": "/etc"}, "error SubPath `/etc` must not be an absolute path"),
        ({"subPathExpr": "$(UP)/etc"}, "must not contain '..'"),
        ({"subPathExpr": "$(ABSOLUTE)"}, "must not be an absolute path"),
        ({"subPathExpr": "$(NOBODY)/$(EMPTY)"}, "missing value for EMPTY, NOBODY"),
    ],
)
def test_a_sub_path_that_leads_out_is_refused_before_anything_is_opened(mount, why):
    """[N15] bad input: `..` and absolute paths, also through variables"""
    env = [
        {"name": "UP", "value": "a/.."},
        {"name": "ABSOLUTE", "value": "/etc"},
        {"name": "EMPTY", "value": ""},
    ]
    pod = make_pod({"env": env, "volumeMounts": [{"name": "v", "mountPath": "/x", **mount}]})
    with pytest.raises(ConfigError) as caught:
        contained(pod, mounts={"v": MountedVolume("/host/v")})
    assert why in str(caught.value)


def test_references_name_each_object_once():
    pod = make_pod(
        {
            "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "s"}}],
            "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
        },
        initContainers=[
            {
                "name": "i",
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}],
            }
        ],
    )
    assert set(references(pod)) == {
        Reference("ConfigMap", "a"),
        Reference("Secret", "s"),
        Reference("Secret", "t"),
    }


def test_resources_become_shares_quota_and_limit():
    """[N16]"""
    pod = make_pod(
        {
            "resources": {
                "requests": {"cpu": "500m", "memory": "64Mi"},
                "limits": {"cpu": "1500m", "memory": "128Mi"},
            }
        }
    )
    resources = contained(pod).resources
    assert (resources.cpu_shares, resources.cpu_quota, resources.cpu_period) == (
        512,
        150_000,
        100_000,
    )
    assert resources.memory_limit_bytes == 128 << 20


def test_a_limit_alone_is_also_the_request():
    assert contained(make_pod({"resources": {"limits": {"cpu": "2"}}})).resources.cpu_shares == 2048


def test_no_request_is_the_smallest_share_and_no_limit_no_quota():
    resources = contained(make_pod()).resources
    assert (resources.cpu_shares, resources.cpu_quota, resources.memory_limit_bytes) == (2, 0, 0)


def test_the_same_pod_gives_the_same_spec():
    assert contained(make_pod()) == contained(make_pod())


def test_block_volumes_are_devices_of_the_container():
    """[H6] where the container wants them, and only as far as the claim lets it."""
    wanted = [{"name": "a", "devicePath": "/dev/one"}, {"name": "b", "devicePath": "/dev/two"}]
    mounts = {
        "a": MountedVolume("", device="/k/a"),
        "b": MountedVolume("", read_only=True, device="/k/b"),
    }
    pod = make_pod({"volumeDevices": wanted})
    spec = contained(pod, mounts=mounts)
    assert spec.devices == (Device("/dev/one", "/k/a"), Device("/dev/two", "/k/b", "r"))
    with pytest.raises(ConfigError, match='cannot find volume "b" to pass into container'):
        contained(pod, mounts={"a": mounts["a"]})
