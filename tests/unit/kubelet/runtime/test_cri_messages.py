import json

import pytest

from sampan.cri.gen import runtime_pb2 as cri
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerState,
    HandlerFeatures,
    IdRange,
    LinuxResources,
    Mount,
    PortMapping,
    SandboxSpec,
    SecurityContext,
)
from sampan.kubelet.runtime import cri_messages as messages


def container(**more):
    return messages.container_config(ContainerSpec("c", 2, "sha256:1", "app:1", **more))


def test_a_sandbox_goes_out_whole():
    spec = SandboxSpec(
        "web", "shop", "u1", 3, "web-host", "/logs",
        labels={"a": "b"},
        dns_servers=("10.96.0.10",),
        port_mappings=(PortMapping(53, 5353, "UDP", "127.0.0.1"),),
        sysctls={"net.x": "1"},
        security=SecurityContext(run_as_user=0, share_process_namespace=True),
    )  # fmt: skip
    config = messages.sandbox_config(spec)
    assert (config.metadata.uid, config.metadata.attempt) == ("u1", 3)
    assert config.port_mappings[0].protocol == cri.UDP
    context = config.linux.security_context
    assert context.HasField("run_as_user")
    assert context.run_as_user.value == 0
    assert not context.HasField("run_as_group")
    assert context.namespace_options.pid == cri.POD


@pytest.mark.parametrize(
    ("security", "pid"),
    [
        (SecurityContext(), cri.CONTAINER),
        (SecurityContext(share_process_namespace=True), cri.POD),
        (SecurityContext(host_pid=True, share_process_namespace=True), cri.NODE),
    ],
)
def test_processes_are_shared_as_far_as_asked_for(security, pid):
    config = container(security=security)
    assert config.linux.security_context.namespace_options.pid == pid


def test_a_privileged_container_sees_everything():
    closed = container().linux.security_context
    opened = container(
        security=SecurityContext(privileged=True, seccomp="RuntimeDefault")
    ).linux.security_context
    assert "/proc/kcore" in closed.masked_paths
    assert not opened.masked_paths
    assert not opened.readonly_paths
    assert opened.seccomp.profile_type == cri.SecurityProfile.Unconfined


def test_profiles_become_messages():
    security = SecurityContext(seccomp="localhost//p/a.json", apparmor="localhost/mine")
    context = container(security=security).linux.security_context
    assert context.seccomp.profile_type == cri.SecurityProfile.Localhost
    assert context.seccomp.localhost_ref == "/p/a.json"
    assert context.apparmor.localhost_ref == "mine"
    assert not container().linux.security_context.HasField("apparmor")


def test_environment_keeps_its_bytes_and_mounts_their_propagation():
    config = container(
        env=(("A", "ä"), ("B", b"\xff".decode(errors="surrogateescape"))),
        mounts=(Mount("/c", "/h", read_only=True, propagation="bidirectional"),),
        resources=LinuxResources(
            cpu_shares=512, memory_limit_bytes=1024, oom_score_adj=-5, hugepages={"2MB": 4096}
        ),
    )
    assert [one.value for one in config.envs] == ["ä".encode(), b"\xff"]
    assert config.mounts[0].propagation == cri.PROPAGATION_BIDIRECTIONAL
    assert config.linux.resources.memory_limit_in_bytes == 1024
    assert config.linux.resources.oom_score_adj == -5
    [pages] = config.linux.resources.hugepage_limits
    assert (pages.page_size, pages.limit) == ("2MB", 4096)


def test_statuses_come_back_in_seconds():
    status = messages.container_status(
        cri.ContainerStatus(
            id="c1",
            state=cri.CONTAINER_EXITED,
            created_at=1_500_000_000,
            finished_at=2_500_000_000,
            exit_code=7,
        ),
        "s1",
    )
    assert (status.created_at, status.finished_at, status.sandbox_id) == (1.5, 2.5, "s1")
    assert (status.state, status.exit_code) == (ContainerState.EXITED, 7)


def test_a_container_never_ends_before_it_began():
    def ended(began, end):
        status = cri.ContainerStatus(started_at=began, finished_at=end)
        return messages.container_status(status, "s").finished_at

    assert ended(3_000_000_000, 2_000_000_000) == 3.0
    assert ended(3_000_000_000, 0) == 0.0


def test_all_addresses_of_a_sandbox_are_told():
    network = cri.PodSandboxNetworkStatus(ip="10.0.0.1", additional_ips=[cri.PodIP(ip="fd00::1")])
    assert messages.sandbox_status(cri.PodSandboxStatus(network=network)).ips == (
        "10.0.0.1",
        "fd00::1",
    )
    assert messages.sandbox_status(cri.PodSandboxStatus()).ips == ()


def test_an_image_without_a_user_id_says_so():
    assert messages.image(cri.Image(id="i", username="www")).uid is None
    assert messages.image(cri.Image(id="i", uid=cri.Int64Value(value=0))).uid == 0


def test_users_of_its_own_reach_namespaces_and_mounts():
    """[N10] for runtimes that can; others never see the field"""
    plain = container(mounts=(Mount("/a", "/b"),))
    assert not plain.linux.security_context.namespace_options.HasField("userns_options")
    assert not plain.mounts[0].uidMappings
    own = container(
        mounts=(Mount("/a", "/b", read_only=True, recursive_read_only=True),),
        security=SecurityContext(users=IdRange(131072), only_given_groups=True),
    )
    context = own.linux.security_context
    assert context.namespace_options.userns_options.mode == cri.POD
    (ids,) = context.namespace_options.userns_options.gids
    assert (ids.host_id, ids.container_id, ids.length) == (131072, 0, 65536)
    assert own.mounts[0].uidMappings[0] == own.mounts[0].gidMappings[0] == ids
    assert own.mounts[0].recursive_read_only
    assert context.supplemental_groups_policy == cri.Strict
    sandbox = SandboxSpec("web", "shop", "u1", 0, "h", "/l", security=SecurityContext(
        users=IdRange(131072)))  # fmt: skip
    options = messages.sandbox_config(sandbox).linux.security_context.namespace_options
    assert options.userns_options.uids[0] == ids


READY = [{"type": "RuntimeReady", "status": True}, {"type": "NetworkReady", "status": True}]
DEFAULT_AND_RUNC = [
    {"name": "", "features": {"recursive_read_only_mounts": True, "user_namespaces": True}},
    {"name": "runc", "features": {"recursive_read_only_mounts": True, "user_namespaces": True}},
]
# What runtimes answer to Version and Status, as far as it differs: containerd 1.6 as recorded, the
# others as their releases document it.
ANSWERS = {
    "containerd 1.6": (("containerd", "1.6.20~ds1"), {}),
    "containerd 1.7": (("containerd", "v1.7.22"), {}),
    "containerd 2.0": (
        ("containerd", "v2.0.2"),
        {"runtime_handlers": DEFAULT_AND_RUNC, "features": {"supplemental_groups_policy": True}},
    ),
    "containerd 2.1": (
        ("containerd", "v2.1.0"),
        {"runtime_handlers": DEFAULT_AND_RUNC, "features": {"supplemental_groups_policy": True}},
    ),
    "cri-o 1.30": (
        ("cri-o", "1.30.4"),
        {"runtime_handlers": [{"name": "crun", "features": {"user_namespaces": True}}]},
    ),
    "cri-o 1.32": (
        ("cri-o", "1.32.0-dev"),
        {"runtime_handlers": DEFAULT_AND_RUNC, "features": {"supplemental_groups_policy": True}},
    ),
}


@pytest.mark.parametrize(
    ("which", "own_users", "read_only", "strict", "images"),
    [
        ("containerd 1.6", False, False, False, False),
        ("containerd 1.7", False, False, False, False),
        ("containerd 2.0", True, True, True, False),
        ("containerd 2.1", True, True, True, True),
        ("cri-o 1.30", False, False, False, False),
        ("cri-o 1.32", True, True, True, True),
    ],
)
def test_what_a_runtime_can_is_what_it_says(which, own_users, read_only, strict, images):
    """[R1]"""
    (name, version), told = ANSWERS[which]
    info = messages.runtime_info(
        cri.VersionResponse(runtime_name=name, runtime_version=version),
        cri.StatusResponse(status={"conditions": READY}, **told),
    )
    assert (info.ready, info.network_ready, info.message) == (True, True, "")
    assert info.features.of("") == HandlerFeatures(read_only, own_users)
    assert info.features.supplemental_groups_policy is strict
    assert info.features.image_volumes is images
    assert info.features.of("unheard-of") == HandlerFeatures()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("v2.1.3", (2, 1)), ("1.6.20~ds1", (1, 6)), ("1.32.0-dev", (1, 32)), ("dev", (0, 0))],
)
def test_a_release_is_its_first_two_numbers(text, expected):
    assert messages.release(text) == expected


@pytest.mark.parametrize(
    ("config", "driver"),
    [
        ({"containerd": {"defaultRuntimeName": "runc", "runtimes": {
            "runc": {"options": {"SystemdCgroup": True}}}}}, "systemd"),
        ({"containerd": {"runtimes": {"runc": {"options": {"SystemdCgroup": False}}}}}, "cgroupfs"),
        ({"containerd": {"runtimes": {"runc": {"options": None}}}}, "cgroupfs"),
        ({"containerd": {"defaultRuntimeName": "kata", "runtimes": {}}}, ""),
        ({}, ""),
        ("nonsense", ""),
    ],
)  # fmt: skip
def test_the_cgroup_driver_is_in_containerds_own_configuration(config, driver):
    status = cri.StatusResponse(info={"config": json.dumps(config)})
    assert messages.configured_driver(status) == driver


def test_a_volume_that_is_an_image_is_the_runtimes_to_mount():
    """[N15]"""
    [mount] = container(mounts=(Mount("/a", "", image="sha256:1", image_sub_path="etc"),)).mounts
    assert (mount.image.image, mount.image_sub_path, mount.host_path) == ("sha256:1", "etc", "")
    [plain] = container(mounts=(Mount("/a", "/b"),)).mounts
    assert not plain.HasField("image")
