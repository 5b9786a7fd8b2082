"""What the OCI runtime is told, and who runs in a container."""

import pytest

from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    LinuxResources,
    Mount,
    RuntimeFailure,
    SandboxSpec,
    SecurityContext,
)
from sampan.kubelet.native import oci_spec, seccomp, users
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
    assert "/proc/kcore" in ordinary["linux"]["maskedPaths"]
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


PASSWD = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\nbroken\n"
GROUP = "root:x:0:\nweb:x:34:\nextra:x:40:root,web\n"


@pytest.mark.parametrize(
    ("user", "security", "found"),
    [
        ("", {}, Identity(0, 0, (0, 40), "/root")),
        ("web", {}, Identity(33, 34, (34, 40), "/srv")),
        ("web:extra", {}, Identity(33, 40, (40,), "/srv")),
        ("33:7", {}, Identity(33, 7, (7, 40), "/srv")),
        ("1000", {}, Identity(1000, 0, (0,), "/")),
        ("web", {"run_as_user": 5}, Identity(5, 0, (0,), "/")),
        ("web", {"run_as_group": 9}, Identity(33, 9, (9, 40), "/srv")),
        ("web", {"only_given_groups": True, "supplemental_groups": (8,)},
         Identity(33, 34, (8, 34), "/srv")),
    ],
)  # fmt: skip
def test_users_and_groups_by_the_images_own_files(user, security, found):
    assert users.identity_of(SecurityContext(**security), user, PASSWD, GROUP) == found


@pytest.mark.parametrize("user", ["nobody", "web:nobody"])
def test_a_user_that_the_image_does_not_have_is_said(user):
    with pytest.raises(RuntimeFailure, match="no matching entries"):
        users.identity_of(SecurityContext(), user, PASSWD, GROUP)


def test_a_link_in_the_image_does_not_lead_to_a_file_of_the_node(tmp_path):
    (tmp_path / "etc").symlink_to("/etc")
    assert users.text_inside(tmp_path, "etc", "passwd") == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "passwd").symlink_to("/etc/passwd")
    assert users.text_inside(tmp_path, "real", "passwd") == ""
    (tmp_path / "real" / "group").write_text("x")
    assert users.text_inside(tmp_path, "real", "group") == "x"


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
        with pytest.raises(RuntimeFailure, match="cannot load seccomp profile"):
            seccomp.profile(f"localhost/{file}", "amd64", ())


def test_limits_that_nothing_can_keep_are_left_out():
    """The node's start says so; the runtime would refuse the container."""
    limits = LinuxResources(512, 50_000, 100_000, 1 << 20, hugepages={"2MB": 4 << 20})
    assert set(oci_spec.resources(limits, {"cpu", "memory", "hugetlb"})) == {
        "cpu", "memory", "hugepageLimits",
    }  # fmt: skip
    assert set(oci_spec.resources(limits, {"memory", "pids"})) == {"memory"}
    assert set(oci_spec.resources(limits, {"hugetlb"})) == {"hugepageLimits"}
    assert oci_spec.resources(limits, ()) == {}
