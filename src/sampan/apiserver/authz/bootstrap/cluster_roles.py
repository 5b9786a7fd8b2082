"""The cluster roles that every cluster has: of people, of components, of what runs in it.

Job: name → rules, as Kubernetes v1.35 bootstraps them with its default features. Pure.
"""

from sampan.apiserver.authz.bootstrap.rules import (
    CORE,
    READ,
    READ_UPDATE,
    READ_WRITE,
    WRITE,
    Rules,
    events,
    paths,
    rule,
)

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
CERTIFICATES, COORDINATION = "certificates.k8s.io", "coordination.k8s.io"
NETWORKING, DEVICES, STORAGE = "networking.k8s.io", "resource.k8s.io", "storage.k8s.io"
SIGNERS = {
    "legacy-unknown-approver": "kubernetes.io/legacy-unknown",
    "kubelet-serving-approver": "kubernetes.io/kubelet-serving",
    "kube-apiserver-client-approver": "kubernetes.io/kube-apiserver-client",
    "kube-apiserver-client-kubelet-approver": "kubernetes.io/kube-apiserver-client-kubelet",
}
_HEALTH = "/healthz /livez /readyz /version /version/"

# Name → the label by which it gathers others, and the labels it has itself.
AGGREGATED = {
    "admin": ("admin", ()),
    "edit": ("edit", ("admin",)),
    "view": ("view", ("edit",)),
}
AGGREGATED_FROM = {f"system:aggregate-to-{name}": name for name in AGGREGATED}


def cluster_roles() -> dict[str, Rules]:
    """All but the aggregated ones; fresh each time."""
    return {
        **_general(),
        "system:aggregate-to-admin": _admin(),
        "system:aggregate-to-edit": _edit(),
        "system:aggregate-to-view": _view(),
        "system:node": node_rules(),
        **_node_side(),
        **_components(),
        **_certificates(),
    }


def _general() -> dict[str, Rules]:
    return {
        "cluster-admin": (rule("*", "*", "*"), paths("*", "*")),
        "system:discovery": (paths(f"{_HEALTH} /api /api/* /apis /apis/* /openapi /openapi/*"),),
        "system:monitoring": (
            paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
        ),
        "system:basic-user": (
            rule("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
            rule("create", AUTHENTICATION, "selfsubjectreviews"),
        ),
        "system:public-info-viewer": (paths(_HEALTH),),
        "system:service-account-issuer-discovery": (
            paths(
                "/.well-known/openid-configuration /.well-known/openid-configuration/ "
                "/openid/v1/jwks /openid/v1/jwks/"
            ),
        ),
    }


def _admin() -> Rules:
    return (
        rule("create", AUTHORIZATION, "localsubjectaccessreviews"),
        rule(READ_WRITE, "rbac.authorization.k8s.io", "rolebindings roles"),
    )


def _edit() -> Rules:
    streams = "pods/attach pods/exec pods/portforward pods/proxy"
    workloads = (
        "daemonsets deployments deployments/rollback deployments/scale replicasets "
        "replicasets/scale"
    )
    return (
        rule(READ, CORE, f"{streams} secrets services/proxy"),
        rule("impersonate", CORE, "serviceaccounts"),
        rule(WRITE, CORE, f"pods {streams}"),
        rule("create", CORE, "pods/eviction"),
        rule(
            WRITE, CORE,
            "configmaps events persistentvolumeclaims replicationcontrollers "
            "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
        ),
        rule("create", CORE, "serviceaccounts/token"),
        rule(WRITE, "apps", f"{workloads} statefulsets statefulsets/scale"),
        rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
        rule(WRITE, "batch", "cronjobs jobs"),
        rule(
            WRITE, "extensions",
            f"{workloads} ingresses networkpolicies replicationcontrollers/scale",
        ),
        rule(WRITE, "policy", "poddisruptionbudgets"),
        rule(WRITE, NETWORKING, "ingresses networkpolicies"),
        rule(READ_WRITE, COORDINATION, "leases"),
        rule(WRITE, DEVICES, "resourceclaims resourceclaimtemplates"),
    )  # fmt: skip


def _view() -> Rules:
    return (
        rule(
            READ, CORE,
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
            "services/status",
        ),
        rule(
            READ, CORE,
            "bindings events limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        rule(READ, CORE, "namespaces"),
        rule(READ, "discovery.k8s.io", "endpointslices"),
        rule(
            READ, "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
            "statefulsets/scale statefulsets/status",
        ),
        rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
        rule(
            READ, "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "ingresses ingresses/status networkpolicies replicasets replicasets/scale "
            "replicasets/status replicationcontrollers/scale",
        ),
        rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        rule(READ, NETWORKING, "ingresses ingresses/status networkpolicies"),
        rule(READ, DEVICES, "resourceclaims resourceclaims/status resourceclaimtemplates"),
    )  # fmt: skip


def node_rules() -> Rules:
    """What a node may do whatever runs on it; the Node authorizer narrows the reads down."""
    return (
        rule("create", AUTHENTICATION, "tokenreviews"),
        rule("create", AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
        rule(READ, CORE, "services"),
        rule(f"create {READ}", CORE, "nodes"),
        rule("patch update", CORE, "nodes/status"),
        rule("patch update", CORE, "nodes"),
        rule("create patch update", CORE, "events"),
        rule(READ, CORE, "pods"),
        rule("create delete", CORE, "pods"),
        rule("patch update", CORE, "pods/status"),
        rule("create", CORE, "pods/eviction"),
        rule(READ, CORE, "configmaps secrets"),
        rule("get", CORE, "persistentvolumeclaims persistentvolumes"),
        rule("get", CORE, "endpoints"),
        rule(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),
        rule("create delete get patch update", COORDINATION, "leases"),
        rule("get", STORAGE, "volumeattachments"),
        rule("create", CORE, "serviceaccounts/token"),
        rule("get patch update", CORE, "persistentvolumeclaims/status"),
        rule(READ, STORAGE, "csidrivers"),
        rule("create delete get patch update", STORAGE, "csinodes"),
        rule(READ, "node.k8s.io", "runtimeclasses"),
        rule("get", DEVICES, "resourceclaims"),
        rule("deletecollection", DEVICES, "resourceslices"),
        rule("get", CORE, "serviceaccounts"),
    )


def _node_side() -> dict[str, Rules]:
    return {
        "system:node-problem-detector": (
            rule("get", CORE, "nodes"),
            rule("patch", CORE, "nodes/status"),
            events(),
        ),
        "system:kubelet-api-admin": (
            rule(READ, CORE, "nodes"),
            rule("proxy", CORE, "nodes"),
            rule("*", CORE, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
            rule("*", CORE, "nodes/configz nodes/healthz nodes/pods"),
        ),
        "system:node-bootstrapper": (
            rule(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),
        ),
        "system:node-proxier": (
            rule("list watch", CORE, "endpoints services"),
            rule(READ, CORE, "nodes"),
            events(),
            rule("list watch", NETWORKING, "servicecidrs"),
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ),
        # What the network of a node of ours needs for Services, names and policies; upstream's
        # network plugins have roles of the same kind.
        "sampan:node-network": (
            rule("list watch", CORE, "services nodes pods namespaces"),
            rule("list watch", NETWORKING, "networkpolicies servicecidrs"),
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ),
        # The directories behind its volumes; NodeRestriction says which a node may let go of.
        "sampan:node-volumes": (rule("list watch patch", CORE, "persistentvolumes"),),
        "sampan:cluster-dns": (
            rule("get create", CORE, "services"),
            rule("get create update delete", "discovery.k8s.io", "endpointslices"),
        ),
        "system:persistent-volume-provisioner": (
            rule(f"create delete {READ}", CORE, "persistentvolumes"),
            rule(f"{READ} update", CORE, "persistentvolumeclaims"),
            rule(READ, STORAGE, "storageclasses"),
            rule("watch", CORE, "events"),
            events(),
        ),
        "system:kube-dns": (rule("list watch", CORE, "endpoints services"),),
        "system:heapster": (
            rule(READ, CORE, "events namespaces nodes pods"),
            rule(READ, "extensions", "deployments"),
        ),
    }


def _reviews() -> Rules:
    return (
        rule("create", AUTHENTICATION, "tokenreviews"),
        rule("create", AUTHORIZATION, "subjectaccessreviews"),
    )


def _components() -> dict[str, Rules]:
    return {
        "system:auth-delegator": _reviews(),
        "system:kube-aggregator": (rule(READ, CORE, "endpoints services"),),
        "system:kube-controller-manager": (
            events(),
            rule("create", COORDINATION, "leases"),
            rule("get update", COORDINATION, "leases", "kube-controller-manager"),
            rule("create", CORE, "secrets serviceaccounts"),
            rule("delete", CORE, "secrets"),
            rule("get", CORE, "configmaps namespaces secrets serviceaccounts"),
            rule("update", CORE, "secrets serviceaccounts"),
            *_reviews(),
            rule("list watch", "*", "*"),
            rule("create", CORE, "serviceaccounts/token"),
        ),
        "system:kube-scheduler": _scheduler(),
        "system:volume-scheduler": (
            rule(READ_UPDATE, CORE, "persistentvolumes"),
            rule(READ, STORAGE, "storageclasses"),
            rule(READ_UPDATE, CORE, "persistentvolumeclaims"),
        ),
    }


def _scheduler() -> Rules:
    return (
        events(),
        rule("create", COORDINATION, "leases"),
        rule("get list update watch", COORDINATION, "leases", "kube-scheduler"),
        rule(READ, CORE, "nodes"),
        rule(f"delete {READ}", CORE, "pods"),
        rule("create", CORE, "bindings pods/binding"),
        rule("patch update", CORE, "pods/status"),
        rule(READ, CORE, "replicationcontrollers services"),
        rule(READ, "apps extensions", "replicasets"),
        rule(READ, "apps", "statefulsets"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule(READ, CORE, "persistentvolumeclaims persistentvolumes"),
        *_reviews(),
        rule(READ, STORAGE, "csinodes"),
        rule(READ, STORAGE, "volumeattachments"),
        rule(READ, CORE, "namespaces"),
        rule(READ, STORAGE, "csidrivers"),
        rule(READ, STORAGE, "csistoragecapacities"),
        rule(READ, DEVICES, "deviceclasses"),
        rule(READ_UPDATE, DEVICES, "resourceclaims"),
        rule(READ_UPDATE, DEVICES, "resourceclaims/status"),
        rule(READ_UPDATE, CORE, "pods/finalizers"),
        rule(READ, DEVICES, "resourceslices"),
    )


def _certificates() -> dict[str, Rules]:
    requests = "certificatesigningrequests"
    return {
        **{
            f"system:{CERTIFICATES}:{requests}:{item}": (
                rule("create", CERTIFICATES, f"{requests}/{item}"),
            )
            for item in ("nodeclient", "selfnodeclient")
        },
        **{
            f"system:{CERTIFICATES}:{name}": (rule("approve", CERTIFICATES, "signers", signer),)
            for name, signer in SIGNERS.items()
        },
    }
