import tomllib
from pathlib import Path

import pytest

from sampan.kubelet.containerd.config import (
    ContainerdError,
    HostFacts,
    config_toml,
    layout,
    missing_programs,
)

PLAIN = HostFacts(apparmor=True, may_lower_oom_score=True, cgroups="v2", crun="")


def config(facts=PLAIN, data_dir=Path("/data")):
    return tomllib.loads(config_toml(layout(data_dir), facts, Path("/data/cni"), Path("/opt/cni")))


def test_everything_is_below_the_data_directory():
    found = config()
    cri = found["plugins"]["io.containerd.grpc.v1.cri"]
    assert found["root"] == "/data/containerd/root"
    assert found["state"] == "/data/containerd/state"
    assert found["grpc"]["address"] == "/data/containerd/containerd.sock"
    assert cri["cni"] == {"bin_dir": "/opt/cni", "conf_dir": "/data/cni", "ip_pref": "cni"}
    options = cri["containerd"]["runtimes"]["runc"]["options"]
    assert options["Root"] == "/data/containerd/state/runc"
    assert found["plugins"]["io.containerd.nri.v1.nri"]["disable"] is True


def test_what_the_machine_lacks_is_turned_off():
    cri = config(HostFacts(False, False, "v1", ""))["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["disable_apparmor"] is True
    assert cri["restrict_oom_score_adj"] is True
    cri = config()["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["disable_apparmor"] is False
    assert cri["restrict_oom_score_adj"] is False


def test_crun_is_offered_where_it_is_installed():
    facts = HostFacts(True, True, "v2", "/usr/bin/crun")
    runtimes = config(facts)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert runtimes["crun"]["options"]["BinaryName"] == "/usr/bin/crun"
    assert set(runtimes) == {"runc", "host-ports", "crun"}


def test_pods_with_host_ports_have_a_network_configuration_of_their_own():
    runtimes = config()["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert runtimes["host-ports"]["cni_conf_dir"] == "/data/cni/host-ports"
    assert runtimes["host-ports"]["options"]["Root"] == runtimes["runc"]["options"]["Root"]


def test_a_long_path_gets_a_short_socket():
    far = Path("/" + "d" * 120)
    paths = layout(far)
    for length in range(60, 130):  # containerd refuses more than 104
        assert len(f"{layout(Path('/' + 'd' * length)).socket}.ttrpc".encode()) <= 104
    assert str(paths.socket).startswith("/run/sampan-")
    assert layout(far).socket == paths.socket
    assert layout(Path("/" + "e" * 120)).socket != paths.socket
    assert layout(Path("/data")).socket == Path("/data/containerd/containerd.sock")


@pytest.mark.parametrize("name", ["a:b", "a,b", 'a"b'])
def test_a_name_that_overlay_mounts_cannot_take_is_refused(name):
    with pytest.raises(ContainerdError, match="data directory"):
        layout(Path("/") / name)


def test_missing_programs_are_named_with_their_packages(tmp_path):
    assert "runc (apt package runc)" in missing_programs(str(tmp_path))
