"""The cluster roles of the controllers: each acts as a service account of its own.

Job: service account in kube-system → rules, as Kubernetes v1.35 bootstraps them. Pure.
"""

from sampan.api.objects import Obj
from sampan.apiserver.authz.bootstrap.cluster_roles import (
    AUTHORIZATION,
    CERTIFICATES,
    DEVICES,
    NETWORKING,
    SIGNERS,
    STORAGE,
)
from sampan.apiserver.authz.bootstrap.rules import CORE, READ, Rules, events, rule

PREFIX = "system:controller:"
_WORKLOADS = "apps extensions"
_SLICES = "discovery.k8s.io"
_CLAIMS = "persistentvolumeclaims"


def controller_roles() -> dict[str, Rules]:
    """By service account; fresh each time."""
    groups = (
        _workloads(), _jobs_and_scaling(), _networking(), _storage(), _storage_protection(),
        _cluster(), _cleaners(),
    )  # fmt: skip
    upstreams = {account: rules for group in groups for account, rules in group.items()}
    return {account: tuple(map(_patching, rules)) for account, rules in upstreams.items()}


def _patching(of: Obj) -> Obj:
    """Our controllers patch where upstream's update: the same right, with fewer conflicts."""
    if "update" not in of["verbs"] or "patch" in of["verbs"]:
        return of
    return {**of, "verbs": sorted([*of["verbs"], "patch"])}


def _workloads() -> dict[str, Rules]:
    revisions = rule(f"{READ} create delete patch update", "apps", "controllerrevisions")
    return {
        "daemon-set-controller": (
            rule(READ, _WORKLOADS, "daemonsets"),
            rule("update", _WORKLOADS, "daemonsets/status"),
            rule("update", _WORKLOADS, "daemonsets/finalizers"),
            rule("list watch", CORE, "nodes"),
            rule("create delete list patch watch", CORE, "pods"),
            rule("create", CORE, "pods/binding"),
            revisions,
            events(),
        ),
        "deployment-controller": (
            rule(f"{READ} update", _WORKLOADS, "deployments"),
            rule("update", _WORKLOADS, "deployments/status"),
            rule("update", _WORKLOADS, "deployments/finalizers"),
            rule(f"{READ} create delete patch update", _WORKLOADS, "replicasets"),
            rule(f"{READ} update", CORE, "pods"),
            events(),
        ),
        "replicaset-controller": (
            rule(f"{READ} update", _WORKLOADS, "replicasets"),
            rule("update", _WORKLOADS, "replicasets/status"),
            rule("update", _WORKLOADS, "replicasets/finalizers"),
            rule("create delete list patch watch", CORE, "pods"),
            events(),
        ),
        "replication-controller": (
            rule(f"{READ} update", CORE, "replicationcontrollers"),
            rule("update", CORE, "replicationcontrollers/status"),
            rule("update", CORE, "replicationcontrollers/finalizers"),
            rule("create delete list patch watch", CORE, "pods"),
            events(),
        ),
        "statefulset-controller": (
            rule("list watch", CORE, "pods"),
            rule(READ, "apps", "statefulsets"),
            rule("update", "apps", "statefulsets/status"),
            rule("update", "apps", "statefulsets/finalizers"),
            rule("create delete get patch update", CORE, "pods"),
            revisions,
            rule(f"create {READ}", CORE, _CLAIMS),
            rule("delete update", CORE, _CLAIMS),
            rule("update", CORE, "pods/finalizers"),
            events(),
        ),
    }


def _jobs_and_scaling() -> dict[str, Rules]:
    return {
        "cronjob-controller": (
            rule(f"{READ} update", "batch", "cronjobs"),
            rule(f"{READ} create delete patch update", "batch", "jobs"),
            rule("update", "batch", "cronjobs/status"),
            rule("update", "batch", "cronjobs/finalizers"),
            rule("list watch delete", CORE, "pods"),
            events(),
        ),
        "horizontal-pod-autoscaler": (
            rule(READ, "autoscaling", "horizontalpodautoscalers"),
            rule("update", "autoscaling", "horizontalpodautoscalers/status"),
            rule("get update", "*", "*/scale"),
            rule("list watch", CORE, "pods"),
            rule("list watch", "metrics.k8s.io", "pods"),
            rule(READ, "custom.metrics.k8s.io", "*"),
            rule(READ, "external.metrics.k8s.io", "*"),
            events(),
        ),
        "job-controller": (
            rule(f"{READ} patch update", "batch", "jobs"),
            rule("update", "batch", "jobs/status"),
            rule("update", "batch", "jobs/finalizers"),
            rule("create delete list patch watch", CORE, "pods"),
            events(),
        ),
        "disruption-controller": (
            rule(READ, _WORKLOADS, "deployments"),
            rule(READ, _WORKLOADS, "replicasets"),
            rule(READ, CORE, "replicationcontrollers"),
            rule(READ, "policy", "poddisruptionbudgets"),
            rule(READ, "apps", "statefulsets"),
            rule("update", "policy", "poddisruptionbudgets/status"),
            rule("patch update", CORE, "pods/status"),
            rule("get", "*", "*/scale"),
            events(),
        ),
    }


def _networking() -> dict[str, Rules]:
    slices = rule(f"{READ} create delete update", _SLICES, "endpointslices")
    return {
        "endpoint-controller": (
            rule(READ, CORE, "pods services"),
            rule(f"{READ} create delete update", CORE, "endpoints"),
            rule("create", CORE, "endpoints/restricted"),
            events(),
        ),
        "endpointslice-controller": (
            rule(READ, CORE, "nodes pods services"),
            rule("update", CORE, "services/finalizers"),
            slices,
            events(),
        ),
        "endpointslicemirroring-controller": (
            rule(READ, CORE, "endpoints services"),
            rule("update", CORE, "services/finalizers"),
            rule("update", CORE, "endpoints/finalizers"),
            slices,
            events(),
        ),
        "route-controller": (
            rule("list watch", CORE, "nodes"),
            rule("patch", CORE, "nodes/status"),
            events(),
        ),
        "service-controller": (
            rule(READ, CORE, "services"),
            rule("patch update", CORE, "services/status"),
            rule("list watch", CORE, "nodes"),
            # sampan's own load balancer: only nodes with endpoints, under policy Local.
            rule("list watch", "discovery.k8s.io", "endpointslices"),
            events(),
        ),
        "service-cidrs-controller": (
            rule(f"{READ} patch update", NETWORKING, "servicecidrs"),
            rule("patch update", NETWORKING, "servicecidrs/finalizers"),
            rule("patch update", NETWORKING, "servicecidrs/status"),
            rule(READ, NETWORKING, "ipaddresses"),
            events(),
        ),
    }


def _storage() -> dict[str, Rules]:
    return {
        "attachdetach-controller": (
            rule("list watch", CORE, f"persistentvolumes {_CLAIMS}"),
            rule(READ, CORE, "nodes"),
            rule("patch update", CORE, "nodes/status"),
            rule("list watch", CORE, "pods"),
            events(),
            rule(f"create delete {READ}", STORAGE, "volumeattachments"),
            rule(READ, STORAGE, "csidrivers"),
            rule(READ, STORAGE, "csinodes"),
        ),
        "expand-controller": (
            rule(f"{READ} patch update", CORE, "persistentvolumes"),
            rule("patch update", CORE, f"{_CLAIMS}/status"),
            rule(READ, CORE, _CLAIMS),
            events(),
            rule("get", CORE, "services"),
        ),
        "ephemeral-volume-controller": (
            rule(READ, CORE, "pods"),
            rule("update", CORE, "pods/finalizers"),
            rule(f"create {READ}", CORE, _CLAIMS),
            events(),
        ),
        "persistent-volume-binder": (
            rule(f"create delete {READ} update", CORE, "persistentvolumes"),
            rule("update", CORE, "persistentvolumes/status"),
            rule(f"{READ} update", CORE, _CLAIMS),
            rule("update", CORE, f"{_CLAIMS}/status"),
            rule(f"create delete {READ}", CORE, "pods"),
            rule(READ, STORAGE, "storageclasses"),
            rule("list watch", CORE, "nodes"),
            events(),
            rule("watch", CORE, "events"),
            rule("get", CORE, "services"),
        ),
        # sampan's own: the class `standard` and the volumes of its claims.
        "local-provisioner": (
            rule(f"create delete {READ} update", CORE, "persistentvolumes"),
            rule(f"{READ} update", CORE, _CLAIMS),
            rule(f"create {READ}", STORAGE, "storageclasses"),
            rule(READ, CORE, "nodes namespaces"),
            events(),
        ),
    }


def _storage_protection() -> dict[str, Rules]:
    return {
        "pvc-protection-controller": (
            rule(f"{READ} update", CORE, _CLAIMS),
            rule(READ, CORE, "pods"),
            events(),
        ),
        "pv-protection-controller": (
            rule(f"{READ} update", CORE, "persistentvolumes"),
            events(),
        ),
        "volumeattributesclass-protection-controller": (
            rule(READ, CORE, _CLAIMS),
            rule(READ, CORE, "persistentvolumes"),
            rule(f"{READ} update", STORAGE, "volumeattributesclasses"),
            events(),
        ),
        "selinux-warning-controller": (
            events(),
            rule(READ, CORE, "persistentvolumes"),
            rule(READ, CORE, _CLAIMS),
            rule(READ, CORE, "pods"),
            rule(READ, STORAGE, "csidrivers"),
        ),
    }


def _cluster() -> dict[str, Rules]:
    requests = "certificatesigningrequests"
    return {
        "certificate-controller": (
            rule(f"delete {READ}", CERTIFICATES, requests),
            rule("update", CERTIFICATES, f"{requests}/approval {requests}/status"),
            rule("approve", CERTIFICATES, "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
            # Beyond upstream: our API server trusts kubelets only by the cluster's authority.
            rule("approve", CERTIFICATES, "signers", "kubernetes.io/kubelet-serving"),
            rule("list watch", CORE, "nodes"),
            rule("sign", CERTIFICATES, "signers", " ".join(SIGNERS.values())),
            rule("create", AUTHORIZATION, "subjectaccessreviews"),
            events(),
        ),
        "clusterrole-aggregation-controller": (
            rule(f"escalate {READ} patch update", "rbac.authorization.k8s.io", "clusterroles"),
        ),
        "namespace-controller": (
            rule(f"delete {READ}", CORE, "namespaces"),
            rule("update", CORE, "namespaces/finalize namespaces/status"),
            rule(f"delete deletecollection {READ}", "*", "*"),
        ),
        "node-controller": (
            rule(f"delete {READ} patch update", CORE, "nodes"),
            rule("patch update", CORE, "nodes/status"),
            rule("patch update", CORE, "pods/status"),
            rule(f"delete {READ}", CORE, "pods"),
            events(),
        ),
        "resource-claim-controller": (
            rule(READ, CORE, "pods"),
            rule("update", CORE, "pods/finalizers"),
            rule(f"create delete {READ}", DEVICES, "resourceclaims"),
            rule("patch update", DEVICES, "resourceclaims resourceclaims/status"),
            rule("patch update", CORE, "pods/status"),
            events(),
        ),
        "resourcequota-controller": (
            rule("list watch", "*", "*"),
            rule("update", CORE, "resourcequotas/status"),
            events(),
        ),
        "root-ca-cert-publisher": (rule("create update", CORE, "configmaps"), events()),
        "service-account-controller": (rule("create", CORE, "serviceaccounts"), events()),
        "ttl-controller": (rule("list patch update watch", CORE, "nodes"), events()),
        "validatingadmissionpolicy-status-controller": (
            rule(READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
            rule(
                "get patch update",
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies/status",
            ),
            events(),
        ),
    }


def _cleaners() -> dict[str, Rules]:
    return {
        "generic-garbage-collector": (
            rule(f"delete {READ} patch update", "*", "*"),
            events(),
        ),
        "legacy-service-account-token-cleaner": (
            rule("get", CORE, "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
            rule("delete patch", CORE, "secrets"),
        ),
        "pod-garbage-collector": (
            rule("delete list watch", CORE, "pods"),
            rule(READ, CORE, "nodes"),
            rule("patch", CORE, "pods/status"),
        ),
        "ttl-after-finished-controller": (rule(f"delete {READ}", "batch", "jobs"), events()),
    }
