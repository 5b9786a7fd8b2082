"""What the OCI runtime is told, and who runs in a container."""

from dataclasses import replace

import pytest

from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    LinuxResources,
    Mount,
    RuntimeFailure,
    SandboxSpec,
    SecurityContext,
)
from sampan.kubelet.native import oci_spec, seccomp
from sampan.kubelet.native.oci_spec import Identity, Machine, Surroundings
from sampan.runtime.images.manifests import ImageConfig

IMAGE = ImageConfig("amd64", (), ("/entry",), ("default",), ("A=image", "B=image"), "/work")
SANDBOX = SandboxSpec("web", "default", "u1", 0, "web-host", "/logs")
AROUND = Surroundings(
    {"net": "/s/net", "ipc": "/s/ipc", "uts": "/s/uts"}, {"/etc/resolv.conf": "/s/resolv.conf"},
    "/s/shm", "/pods/c1",
)  # fmt: skip
MACHINE = Machine(("CAP_SYS_ADMIN", *oci_spec.DEFAULT_CAPABILITIES), ({"path": "/dev/kvm"},), 100)


def spec(**more):
    security = more.pop("security", SecurityContext())
    container = ContainerSpec("main", 0, "sha256:1", "app", security=security, **more)
    return oci_spec.oci_spec(container, SANDBOX, IMAGE, Identity(), AROUND, MACHINE)


@pytest.mark.parametrize(
    ("command", "args", "found"),
    [
        ((), (), ["/entry", "default"]),
        ((), ("x",), ["/entry", "x"]),
        (("/own",), (), ["/own"]),
        (("/own",), ("x",), ["/own", "x"]),
    ],
)
def test_command_and_arguments_replace_the_images_as_cri_says(command, args, found):
    assert spec(command=command, args=args)["process"]["args"] == found


def test_no_command_at_all_is_a_failure():
    nothing = ImageConfig("amd64", ())
    container = ContainerSpec("main", 0, "sha256:1", "app")
    with pytest.raises(RuntimeFailure, match="no command specified"):
        oci_spec.oci_spec(container, SANDBOX, nothing, Identity(), AROUND, MACHINE)


def test_the_pods_environment_wins_over_the_images():
    env = dict(entry.split("=", 1) for entry in spec(env=(("B", "pod"),))["process"]["env"])
    assert (env["A"], env["B"], env["HOSTNAME"]) == ("image", "pod", "web-host")
    assert env["PATH"]


def test_the_pods_namespaces_are_shared_and_its_processes_are_not():
    found = {entry["type"]: entry.get("path") for entry in spec()["linux"]["namespaces"]}
    assert found == {
        "mount": None, "pid": None, "network": "/s/net", "ipc": "/s/ipc", "uts": "/s/uts",
    }  # fmt: skip


def test_an_ordinary_container_has_few_rights_a_privileged_one_all():
    ordinary = spec()
    assert "CAP_SYS_ADMIN" not in ordinary["process"]["capabilities"]["bounding"]
    assert {"/proc/kcore", "/proc/interrupts"} <= set(ordinary["linux"]["maskedPaths"])
    privileged = spec(security=SecurityContext(privileged=True))
    assert "CAP_SYS_ADMIN" in privileged["process"]["capabilities"]["effective"]
    assert "maskedPaths" not in privileged["linux"]
    assert privileged["linux"]["devices"] == [{"path": "/dev/kvm"}]


def test_capabilities_are_added_and_dropped_by_name():
    def bounding(**more):
        return set(spec(security=SecurityContext(**more))["process"]["capabilities"]["bounding"])

    assert bounding(drop_capabilities=("ALL",)) == set()
    assert bounding(drop_capabilities=("ALL",), add_capabilities=("CHOWN",)) == {"CAP_CHOWN"}
    assert "CAP_SYS_ADMIN" in bounding(add_capabilities=("SYS_ADMIN",))
    assert "CAP_SYS_ADMIN" in bounding(add_capabilities=("ALL",))
    with pytest.raises(RuntimeFailure, match="CAP_SYS_BOOT"):
        bounding(add_capabilities=("SYS_BOOT",))


def test_limits_become_the_cgroups():
    limits = LinuxResources(512, 50_000, 100_000, 1 << 20, -997, {"2MB": 4 << 20})
    found = spec(resources=limits)
    assert found["linux"]["resources"]["cpu"] == {"shares": 512, "quota": 50_000, "period": 100_000}
    assert found["linux"]["resources"]["memory"]["limit"] == 1 << 20
    assert found["linux"]["resources"]["hugepageLimits"] == [{"pageSize": "2MB", "limit": 4 << 20}]
    # Less than our own we may not give.
    assert found["process"]["oomScoreAdj"] == 100
    assert found["linux"]["cgroupsPath"] == "/pods/c1"


def test_no_quota_is_none_at_all():
    """[H5] of a container with processors of its own"""
    found = spec(resources=LinuxResources(1024, -1, 100_000))
    assert found["linux"]["resources"]["cpu"] == {"shares": 1024, "period": 100_000}


def test_mounts_come_in_an_order_in_which_none_hides_another():
    mounts = (
        Mount("/a/b", "/h/b", read_only=True),
        Mount("/a", "/h/a", propagation="bidirectional"),
        Mount("/etc/resolv.conf", "/h/own"),
    )
    found = spec(mounts=mounts)
    targets = [entry["destination"] for entry in found["mounts"]]
    assert targets.index("/a") < targets.index("/a/b")
    assert targets.count("/etc/resolv.conf") == 1
    options = {entry["destination"]: entry["options"] for entry in found["mounts"]}
    assert "ro" in options["/a/b"]
    assert "rshared" in options["/a"]
    assert found["linux"]["rootfsPropagation"] == "rshared"


def test_the_default_filter_depends_on_capabilities():
    def allowed(*capabilities):
        rules = seccomp.runtime_default("amd64", capabilities)["syscalls"]
        return {name for rule in rules if "args" not in rule for name in rule["names"]
                if rule["action"] == "SCMP_ACT_ALLOW"}  # fmt: skip

    assert {"read", "execve", "futex"} <= allowed()
    assert not {"mount", "reboot", "clone3", "clone"} & allowed()
    assert {"mount", "clone3", "clone"} <= allowed("CAP_SYS_ADMIN")


def test_a_profile_of_the_node_is_read_and_a_broken_one_refused(tmp_path):
    file = tmp_path / "p.json"
    file.write_text('{"defaultAction": "SCMP_ACT_LOG", "extra": 1}')
    assert seccomp.profile(f"localhost/{file}", "amd64", ()) == {"defaultAction": "SCMP_ACT_LOG"}
    assert seccomp.profile("Unconfined", "amd64", ()) is None
    for wrong in ("{", "[]", '{"defaultAction": 1}'):
        file.write_text(wrong)
        with pytest.raises(RuntimeFailure, match="decoding seccomp profile failed"):
            seccomp.profile(f"localhost/{file}", "amd64", ())
    file.unlink()
    with pytest.raises(RuntimeFailure) as failure:
        seccomp.profile(f"localhost/{file}", "amd64", ())
    assert str(failure.value) == (
        f'cannot load seccomp profile "{file}": open {file}: no such file or directory'
    )


def test_limits_that_nothing_can_keep_are_left_out():
    """The node's start says so; the runtime would refuse the container."""
    limits = LinuxResources(512, 50_000, 100_000, 1 << 20, hugepages={"2MB": 4 << 20})
    assert set(oci_spec.resources(limits, {"cpu", "memory", "hugetlb"})) == {
        "cpu", "memory", "hugepageLimits",
    }  # fmt: skip
    assert set(oci_spec.resources(limits, {"memory", "pids"})) == {"memory"}
    assert set(oci_spec.resources(limits, {"hugetlb"})) == {"hugepageLimits"}
    assert oci_spec.resources(limits, ()) == {}


def test_given_devices_are_there_and_allowed_also_beside_all_others():
    """[H6]"""
    disk = {"path": "/dev/kvm", "type": "b", "major": 7, "minor": 3}
    around = replace(AROUND, devices=((disk, "r"),))
    ordinary = ContainerSpec("main", 0, "sha256:1", "app")
    made = oci_spec.oci_spec(ordinary, SANDBOX, IMAGE, Identity(), around, MACHINE)["linux"]
    assert made["devices"] == [disk]
    allowed = {"allow": True, "type": "b", "major": 7, "minor": 3, "access": "r"}
    assert made["resources"]["devices"] == [{"allow": False, "access": "rwm"}, allowed]
    privileged = replace(ordinary, security=SecurityContext(privileged=True))
    made = oci_spec.oci_spec(privileged, SANDBOX, IMAGE, Identity(), around, MACHINE)["linux"]
    assert made["devices"] == [disk]  # in place of the node's own of that name


@pytest.mark.parametrize(
    ("on", "label"), [(False, None), (True, "system_u:system_r:container_t:s0:c1,c2")]
)
def test_an_selinux_label_is_for_machines_that_have_selinux(on, label):
    """As containerd: where it is off, the label is left out."""
    security = SecurityContext(selinux=("", "", "", "s0:c1,c2"))
    container = ContainerSpec("main", 0, "sha256:1", "app", security=security)
    machine = replace(MACHINE, selinux=on)
    made = oci_spec.oci_spec(container, SANDBOX, IMAGE, Identity(), AROUND, machine)
    assert made["process"].get("selinuxLabel") == label


@pytest.mark.parametrize(
    ("wanted", "privileged", "profile"),
    [
        ("", False, "sampan-default"),
        ("", True, None),
        ("RuntimeDefault", False, "sampan-default"),
        ("localhost/mine", False, "mine"),
        ("Unconfined", False, None),
    ],
)
def test_who_names_no_apparmor_profile_has_the_runtimes(wanted, privileged, profile):
    security = SecurityContext(apparmor=wanted, privileged=privileged)
    container = ContainerSpec("main", 0, "sha256:1", "app", security=security)
    machine = replace(MACHINE, apparmor=True)
    made = oci_spec.oci_spec(container, SANDBOX, IMAGE, Identity(), AROUND, machine)
    assert made["process"].get("apparmorProfile") == profile


def test_an_apparmor_profile_is_enforced_or_refused_and_never_left_out():
    named = spec(security=SecurityContext(apparmor="localhost/mine"))
    assert named["process"]["apparmorProfile"] == "mine"
    assert "apparmorProfile" not in spec(security=SecurityContext(apparmor="Unconfined"))["process"]
    assert "apparmorProfile" not in spec()["process"]
    with pytest.raises(RuntimeFailure, match="AppArmor profile is not loaded"):
        spec(security=SecurityContext(apparmor="RuntimeDefault"))


def test_files_of_a_cgroup_of_version_2_are_passed_on():
    """[N16]"""
    limits = LinuxResources(memory_limit_bytes=1 << 20, swap_bytes=0, oom_group=True)
    told = spec(resources=limits)["linux"]["resources"]
    assert told["unified"] == {"memory.oom.group": "1", "memory.swap.max": "0"}
    assert told["memory"] == {"limit": 1 << 20}
    old = spec(resources=LinuxResources(memory_limit_bytes=1 << 20))["linux"]["resources"]
    assert old["memory"] == {"limit": 1 << 20, "swap": 1 << 20}
