import pytest

from sampan.kubelet.container_spec.environment import ConfigError
from sampan.kubelet.container_spec.security_context import (
    SeccompProfiles,
    check_user_namespaces,
    container_security,
    effective,
    mounts_recursively,
    sandbox_security,
)
from sampan.kubelet.contracts.runtime import HandlerFeatures, IdRange, Image, RuntimeFeatures

ROOT_IMAGE = Image("sha256:1", (), (), 1, uid=0)


def pod(container=None, **spec):
    whole = {"containers": [container or {"name": "c"}], **spec}
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": whole}


def secured(own=None, whole=None, image=ROOT_IMAGE, default="Unconfined", **spec):
    container = {"name": "c", "securityContext": own or {}}
    the_pod = pod(container, securityContext=whole or {}, **spec)
    return container_security(
        the_pod,
        container,
        image,
        seccomp=SeccompProfiles(default, "/node/seccomp"),
        features=RuntimeFeatures(),
    )


def test_the_container_s_word_counts_more_than_the_pod_s():
    found = secured({"runAsUser": 7}, {"runAsUser": 5, "runAsGroup": 6})
    assert (found.run_as_user, found.run_as_group) == (7, 6)


def test_the_image_s_user_is_used_where_nobody_says_more():
    assert secured().run_as_user == 0
    assert secured(image=Image("i", (), (), 1, uid=101)).run_as_user == 101
    named = secured(image=Image("i", (), (), 1, uid=None, username="www"))
    assert (named.run_as_user, named.run_as_username) == (None, "www")


def test_only_what_may_be_inherited_is():
    found = effective(
        pod(securityContext={"fsGroup": 3, "runAsNonRoot": True}), {"securityContext": {}}
    )
    assert found == {"runAsNonRoot": True}


@pytest.mark.parametrize(
    ("own", "image", "message"),
    [
        ({"runAsUser": 0}, ROOT_IMAGE, "container's runAsUser breaks non-root policy"),
        ({}, ROOT_IMAGE, "container has runAsNonRoot and image will run as root"),
        (
            {},
            Image("i", (), (), 1, uid=None),
            "container has runAsNonRoot and image will run as root",
        ),
        (
            {},
            Image("i", (), (), 1, uid=None, username="www"),
            r"image has non-numeric user \(www\), cannot verify user is non-root",
        ),
        ({}, Image("i", (), (), 1, uid=2**40), "invalid user id"),
    ],
)
def test_a_container_that_must_not_be_root_is_checked(own, image, message):
    """[N10]"""
    with pytest.raises(ConfigError, match=message) as caught:
        secured({"runAsNonRoot": True, **own}, image=image)
    assert str(caught.value).endswith('(pod: "p_ns(u)", container: c)')


@pytest.mark.parametrize(
    ("own", "image"),
    [({"runAsUser": 5}, ROOT_IMAGE), ({}, Image("i", (), (), 1, uid=101))],
)
def test_a_container_that_is_not_root_passes(own, image):
    assert secured({"runAsNonRoot": True, **own}, image=image).run_as_user in (5, 101)


def test_groups_are_those_of_the_pod_and_its_volumes():
    assert secured(whole={"supplementalGroups": [1, 2], "fsGroup": 3}).supplemental_groups == (
        1,
        2,
        3,
    )


def test_privileges_and_capabilities_go_through():
    found = secured(
        {
            "privileged": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
            "procMount": "Unmasked",
        }
    )
    assert found.privileged
    assert found.read_only_root
    assert found.no_new_privileges
    assert found.unmasked_proc
    assert (found.add_capabilities, found.drop_capabilities) == (("NET_ADMIN",), ("ALL",))


@pytest.mark.parametrize(
    ("own", "whole", "expected"),
    [
        (None, None, "Unconfined"),
        (None, {"type": "RuntimeDefault"}, "RuntimeDefault"),
        ({"type": "Unconfined"}, {"type": "RuntimeDefault"}, "Unconfined"),
        (
            {"type": "Localhost", "localhostProfile": "a/b.json"},
            None,
            "localhost//node/seccomp/a/b.json",
        ),
    ],
)
def test_the_nearest_seccomp_profile_counts(own, whole, expected):
    assert secured({"seccompProfile": own}, {"seccompProfile": whole}).seccomp == expected


def test_a_node_may_have_a_default_seccomp_profile():
    assert secured(default="RuntimeDefault").seccomp == "RuntimeDefault"


@pytest.mark.parametrize("name", ["../../etc/shadow", "/etc/shadow", "a/../../x", ""])
def test_a_seccomp_profile_stays_in_its_directory(name):
    with pytest.raises(ConfigError):
        secured({"seccompProfile": {"type": "Localhost", "localhostProfile": name}})


def test_what_the_runtime_would_ignore_is_refused():
    """[N10] nothing is accepted in silence."""
    container = {"name": "c"}
    with pytest.raises(ConfigError, match="not supported"):
        container_security(
            pod(container, securityContext={"supplementalGroupsPolicy": "Strict"}),
            container,
            ROOT_IMAGE,
            seccomp=SeccompProfiles("Unconfined", "/p"),
            features=RuntimeFeatures(),
        )


ABLE = RuntimeFeatures(
    {"": HandlerFeatures(), "able": HandlerFeatures(True, True)}, supplemental_groups_policy=True
)


def test_users_of_its_own_need_a_handler_that_can_give_them():
    """[N10] in upstream's words"""
    wanting = pod({"name": "c"}, hostUsers=False)
    check_user_namespaces(wanting, ABLE, "able")
    check_user_namespaces(pod({"name": "c"}, hostUsers=True), RuntimeFeatures(), "")
    with pytest.raises(ConfigError) as refused:
        check_user_namespaces(wanting, ABLE, "")
    assert str(refused.value) == (
        "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
    )
    with pytest.raises(ConfigError, match='RuntimeClass handler "other" does not support'):
        check_user_namespaces(wanting, ABLE, "other")


@pytest.mark.parametrize(
    ("mode", "can", "expected"),
    [
        (None, True, False),
        ("Disabled", True, False),
        ("IfPossible", True, True),
        ("IfPossible", False, False),
        ("Enabled", True, True),
    ],
)
def test_read_only_reaches_below_where_that_is_wanted_and_possible(mode, can, expected):
    mount = {"name": "v", "readOnly": True, "recursiveReadOnly": mode}
    assert mounts_recursively(mount, HandlerFeatures(recursive_read_only=can)) is expected


def test_read_only_that_must_reach_below_is_refused_where_it_cannot():
    with pytest.raises(ConfigError, match='volume "v" requested recursive read-only mount'):
        mounts_recursively(
            {"name": "v", "readOnly": True, "recursiveReadOnly": "Enabled"}, HandlerFeatures()
        )


def test_a_runtime_that_can_gets_the_strict_policy_and_the_ids():
    container = {"name": "c"}
    strict = pod(container, securityContext={"supplementalGroupsPolicy": "Strict"})
    found = container_security(
        strict, container, ROOT_IMAGE, seccomp=SeccompProfiles("Unconfined", "/p"),
        features=ABLE, users=IdRange(65536),
    )  # fmt: skip
    assert found.only_given_groups
    assert found.users == IdRange(65536, 65536)
    assert sandbox_security(strict, IdRange(65536)).only_given_groups


def test_the_sandbox_has_the_pod_s_namespaces_and_knows_of_privileged_containers():
    found = sandbox_security(
        pod(
            {"name": "c", "securityContext": {"privileged": True}},
            hostNetwork=True,
            hostPID=True,
            shareProcessNamespace=True,
            securityContext={"runAsUser": 5, "runAsGroup": 6},
        )
    )
    assert found.privileged
    assert (found.host_network, found.host_pid, found.host_ipc) == (True, True, False)
    assert found.share_process_namespace
    assert (found.run_as_user, found.run_as_group) == (5, 6)


def test_a_group_without_a_user_stays_out_of_the_sandbox():
    assert sandbox_security(pod(securityContext={"runAsGroup": 6})).run_as_group is None
