import pytest

from sampan.cri.gen import runtime_pb2 as cri
from sampan.kubelet import cri_messages as messages
from sampan.kubelet.runtime import (
    ContainerSpec,
    ContainerState,
    LinuxResources,
    Mount,
    PortMapping,
    SandboxSpec,
    SecurityContext,
)


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
        resources=LinuxResources(cpu_shares=512, memory_limit_bytes=1024, oom_score_adj=-5),
    )
    assert [one.value for one in config.envs] == ["ä".encode(), b"\xff"]
    assert config.mounts[0].propagation == cri.PROPAGATION_BIDIRECTIONAL
    assert config.linux.resources.memory_limit_in_bytes == 1024
    assert config.linux.resources.oom_score_adj == -5


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
