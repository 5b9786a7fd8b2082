"""Every check of the pod security standards, in every version. [A3]"""

import copy

import pytest

from sampan.apiserver.admission.pod_security.checks import Pod, violations
from sampan.apiserver.admission.settings import BASELINE, LATEST, PRIVILEGED, RESTRICTED

VERSIONS = [(1, minor) for minor in range(LATEST[1] + 1)]
NONE = (9, 9)


def pod(spec=None, container=None, meta=None, second=None):
    """A pod that meets `restricted` in every version, but for what is given."""
    own = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    good = {"name": "c", "securityContext": own}
    containers = [_merged(good, container or {})]
    if second is not None:
        containers.append(_merged({**good, "name": "d"}, second))
    return Pod(meta or {}, {"containers": containers, **(spec or {})})


def _merged(container, changes):
    made = copy.deepcopy(container)
    made["securityContext"] |= changes.get("securityContext", {})
    made |= {key: value for key, value in changes.items() if key != "securityContext"}
    return made


def within(**context):
    return {"container": {"securityContext": context}}


def of_pod(**context):
    return {"spec": {"securityContext": context}}


# (what it is, the pod, from which version on baseline refuses it, restricted likewise, in words)
CASES = [
    ("privileged", within(privileged=True), (1, 0), (1, 0),
     'privileged (container "c" must not set securityContext.privileged=true)'),
    ("host network", {"spec": {"hostNetwork": True, "hostPID": True}}, (1, 0), (1, 0),
     "host namespaces (hostNetwork=true, hostPID=true)"),
    ("host IPC", {"spec": {"hostIPC": True}}, (1, 0), (1, 0), "host namespaces (hostIPC=true)"),
    ("host path", {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}, (1, 0), NONE,
     'hostPath volumes (volume "v")'),
    ("host path, restricted", {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
     NONE, (1, 0),
     'restricted volume types (volume "v" uses restricted volume type "hostPath")'),
    ("nfs", {"spec": {"volumes": [{"name": "a", "nfs": {}}, {"name": "b", "iscsi": {}}]}}, NONE,
     (1, 0), 'restricted volume types (volumes "a", "b" use restricted volume types "iscsi", '
     '"nfs")'),
    ("host port", {"container": {"ports": [{"hostPort": 80}, {"hostPort": 81}]}}, (1, 0), (1, 0),
     'hostPort (container "c" uses hostPorts 80, 81)'),
    ("a capability", within(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), (1, 0), None,
     'non-default capabilities (container "c" must not include "SYS_ADMIN" in '
     "securityContext.capabilities.add)"),
    ("a capability, restricted", within(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), NONE,
     (1, 22), 'unrestricted capabilities (container "c" must not include "CHOWN" in '
     "securityContext.capabilities.add)"),
    ("capabilities kept", within(capabilities={}), NONE, (1, 22),
     'unrestricted capabilities (container "c" must set '
     'securityContext.capabilities.drop=["ALL"])'),
    ("AppArmor by annotation", {"meta": {"annotations": {
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}}, (1, 0), (1, 0),
     "forbidden AppArmor profile (annotation "
     'container.apparmor.security.beta.kubernetes.io/c="unconfined")'),
    ("AppArmor", {**of_pod(appArmorProfile={"type": "Unconfined"}),
                  **within(appArmorProfile={"type": "Unconfined"})}, (1, 0), (1, 0),
     'forbidden AppArmor profile (pod and container "c" must not set AppArmor profile type to '
     '"Unconfined")'),
    ("SELinux", {**of_pod(seLinuxOptions={"user": "u"}),
                 **within(seLinuxOptions={"type": "spc_t", "role": "r"})}, (1, 0), (1, 0),
     'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type '
     '"spc_t"; user may not be set; role may not be set)'),
    ("proc mount", within(procMount="Unmasked"), (1, 0), (1, 0),
     'procMount (container "c" must not set securityContext.procMount to "Unmasked")'),
    ("sysctl", of_pod(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), (1, 0), (1, 0),
     "forbidden sysctls (kernel.msgmax)"),
    ("host process", within(windowsOptions={"hostProcess": True}), (1, 0), (1, 0),
     'hostProcess (container "c" must not set securityContext.windowsOptions.hostProcess=true)'),
    ("seccomp", within(seccompProfile={"type": "Unconfined"}), (1, 19), (1, 19),
     'seccompProfile (container "c" must not set securityContext.seccompProfile.type to '
     '"Unconfined")'),
    ("seccomp unset", within(seccompProfile=None), NONE, (1, 19),
     'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to '
     '"RuntimeDefault" or "Localhost")'),
    ("probed host", {"container": {"livenessProbe": {"httpGet": {"host": "h"}}}}, (1, 34), (1, 34),
     'probe or lifecycle host (container "c" uses probe or lifecycle host "h")'),
    ("hooked host", {"container": {"lifecycle": {"preStop": {"tcpSocket": {"host": "h"}}}}},
     (1, 34), (1, 34),
     'probe or lifecycle host (container "c" uses probe or lifecycle host "h")'),
    ("escalation", within(allowPrivilegeEscalation=None), NONE, (1, 8),
     'allowPrivilegeEscalation != false (container "c" must set '
     "securityContext.allowPrivilegeEscalation=false)"),
    ("root", within(runAsNonRoot=False), NONE, (1, 0),
     'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)'),
    ("root perhaps", within(runAsNonRoot=None), NONE, (1, 0),
     'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)'),
    ("user 0", {**of_pod(runAsUser=0), **within(runAsUser=0)}, NONE, (1, 23),
     'runAsUser=0 (pod and container "c" must not set runAsUser=0)'),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "baseline", "restricted", "said"),
                         [one[1:] for one in CASES], ids=[one[0] for one in CASES])  # fmt: skip
def test_a_check_holds_from_its_version_on(changes, baseline, restricted, said):
    for version in VERSIONS:
        tried = pod(**changes)
        assert violations(tried, PRIVILEGED, version) == []
        assert (said in violations(tried, BASELINE, version)) == (version >= baseline), version
        if restricted is not None:
            found = said in violations(tried, RESTRICTED, version)
            assert found == (version >= restricted), version


def test_a_restricted_check_takes_the_place_of_the_baseline_one():
    tried = pod(**within(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}))
    assert violations(tried, RESTRICTED, (1, 21))[0].startswith("non-default capabilities")
    (only,) = violations(tried, RESTRICTED, (1, 22))
    assert only.startswith("unrestricted capabilities")


def test_a_restricted_pod_is_good_in_every_version():
    volumes = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
               "persistentVolumeClaim", "projected", "secret")  # fmt: skip
    tried = pod({"volumes": [{"name": one, one: {}} for one in volumes]})
    for version in VERSIONS:
        assert violations(tried, RESTRICTED, version) == []


@pytest.mark.parametrize(
    ("sysctl", "since"),
    [("kernel.shm_rmid_forced", 0), ("net.ipv4.ip_unprivileged_port_start", 0),
     ("net.ipv4.ip_local_reserved_ports", 27), ("net.ipv4.tcp_fin_timeout", 29),
     ("net.ipv4.tcp_keepalive_probes", 29), ("net.ipv4.tcp_rmem", 32)],
)  # fmt: skip
def test_sysctls_become_safe(sysctl, since):
    for version in VERSIONS:
        wrong = violations(pod(**of_pod(sysctls=[{"name": sysctl}])), BASELINE, version)
        assert wrong == ([] if version >= (1, since) else [f"forbidden sysctls ({sysctl})"])


def test_an_engines_selinux_type_is_allowed_since_1_31():
    tried = pod(**within(seLinuxOptions={"type": "container_engine_t"}))
    assert violations(tried, BASELINE, (1, 30)) != []
    assert violations(tried, BASELINE, (1, 31)) == []


def test_seccomp_annotations_counted_before_1_19():
    annotations = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    tried = pod(meta={"annotations": annotations})
    assert violations(tried, BASELINE, (1, 18)) != []
    assert violations(tried, BASELINE, (1, 19)) == []


def test_windows_pods_need_not_say_what_means_nothing_there_since_1_25():
    own = {"allowPrivilegeEscalation": None, "capabilities": {}, "seccompProfile": None}
    tried = pod({"os": {"name": "windows"}}, {"securityContext": own})
    assert len(violations(tried, RESTRICTED, (1, 24))) == 3
    assert violations(tried, RESTRICTED, (1, 25)) == []


def test_root_in_a_user_namespace_is_nobody_since_1_35():
    own = {"runAsNonRoot": False, "runAsUser": 0, "procMount": "Unmasked"}
    tried = pod({"hostUsers": False}, {"securityContext": own})
    assert violations(tried, BASELINE, (1, 34)) != []
    assert violations(tried, BASELINE, (1, 35)) == []
    assert len(violations(tried, RESTRICTED, (1, 34))) == 3
    (left,) = violations(tried, RESTRICTED, (1, 35))
    assert left.startswith("procMount")


def test_several_containers_are_named_together():
    bad = {"securityContext": {"privileged": True, "windowsOptions": {"hostProcess": True}}}
    found = violations(pod(container=bad, second=bad), BASELINE, LATEST)
    assert found == [
        'privileged (containers "c", "d" must not set securityContext.privileged=true)',
        'hostProcess (containers "c", "d" must not set '
        "securityContext.windowsOptions.hostProcess=true)",
    ]


def test_init_and_ephemeral_containers_count():
    for field in ("initContainers", "ephemeralContainers"):
        one = {"name": "x", "securityContext": {"privileged": True}}
        assert violations(pod({field: [one]}), BASELINE, LATEST) != []
