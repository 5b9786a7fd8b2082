"""The RBAC objects that every cluster starts with, and how an older cluster is brought up to date.

Job: roles and bindings as objects; what reconciliation changes of one that is there. Pure.
Invariant: reconciliation only adds, but for what an older version of ours gave too freely; an
    object whose annotation says autoupdate=false is left alone.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, annotations_of, labels_of, meta_of, name_of
from sampan.api.resources import Resource, by_kind
from sampan.api.rules.account_token import NETWORK_ACCOUNT, NODE_ACCOUNTS, VOLUMES_ACCOUNT
from sampan.api.rules.cluster_configuration import NAME as CONFIGURATION
from sampan.apiserver.authz.bootstrap.cluster_roles import (
    AGGREGATED,
    AGGREGATED_FROM,
    COORDINATION,
    cluster_roles,
)
from sampan.apiserver.authz.bootstrap.controller_roles import PREFIX, controller_roles
from sampan.apiserver.authz.bootstrap.rules import CORE, READ, Rules, events, rule

GROUP = "rbac.authorization.k8s.io"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE = f"{GROUP}/aggregate-to-"
_SYSTEM, _PUBLIC = "kube-system", "kube-public"
# How a new node comes in, as other installers bind it: with a bootstrap token it asks for a client
# certificate, with that it asks for the next one.
_JOINING = (
    ("sampan:node-bootstrap", "system:node-bootstrapper", "system:bootstrappers"),
    (
        "sampan:node-autoapprove-bootstrap",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "system:bootstrappers",
    ),
    (
        "sampan:node-autoapprove-rotation",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "system:nodes",
    ),
)
_NODES = "system:nodes"
_NETWORK, _NETWORK_TOKEN = "sampan:node-network", "sampan:node-network-token"
# As kubeadm's kubeadm:nodes-kubeadm-config, and who writes what they read.
_READ_CONFIGURATION = f"sampan:nodes-{CONFIGURATION}"
_WRITE_CONFIGURATION = f"sampan:write-{CONFIGURATION}"
_EVERYBODY = ("system:authenticated", "system:unauthenticated")


def _row(kind: str) -> Resource:
    found = by_kind(f"{GROUP}/v1", kind)
    assert found is not None, kind
    return found


CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = _row("ClusterRole"), _row("ClusterRoleBinding")
ROLES, ROLE_BINDINGS = _row("Role"), _row("RoleBinding")


def rbac_objects() -> list[tuple[Resource, Obj]]:
    """Everything, fresh: the caller's to change."""
    rules = cluster_roles()
    controllers = controller_roles()
    made = [(CLUSTER_ROLES, _cluster_role(name, of)) for name, of in rules.items()]
    made += [(CLUSTER_ROLES, _aggregate(name, rules)) for name in AGGREGATED]
    made += [
        (CLUSTER_ROLES, _cluster_role(PREFIX + controller, of))
        for controller, of in controllers.items()
    ]
    made += [(CLUSTER_ROLE_BINDINGS, binding) for binding in _cluster_role_bindings()]
    made += [
        (CLUSTER_ROLE_BINDINGS, _binding(PREFIX + controller, [_account(controller)]))
        for controller in controllers
    ]
    return made + _namespaced_roles()


def reconcile(found: Obj, wanted: Obj) -> Obj | None:
    """What is there, with what is missing added; None where nothing is."""
    if annotations_of(found).get(AUTOUPDATE) == "false":
        return None
    changed: Obj = {}
    for field in ("rules", "subjects"):
        if field in wanted and "aggregationRule" not in wanted:
            kept = _keep(name_of(found), field, found.get(field) or [])
            missing = _missing(kept, wanted[field])
            if missing or len(kept) < len(found.get(field) or []):
                changed[field] = [*kept, *missing]
    if "aggregationRule" in wanted and found.get("aggregationRule") != wanted["aggregationRule"]:
        changed["aggregationRule"] = wanted["aggregationRule"]
    labels = {**labels_of(found), **labels_of(wanted)}
    annotations = {**annotations_of(wanted), **annotations_of(found)}
    if labels != labels_of(found) or annotations != annotations_of(found):
        changed["metadata"] = {**meta_of(found), "labels": labels, "annotations": annotations}
    return {**found, **changed} if changed else None


def _keep(name: str, field: str, found: list[Obj]) -> list[Obj]:
    """Without what an older version of ours gave: nodes saw all pods by this role."""
    if (name, field) != (_NETWORK, "subjects"):
        return found
    return [subject for subject in found if subject != _subject("Group", _NODES)]


def _missing(found: list[Obj], wanted: list[Obj]) -> list[Obj]:
    if found == wanted:  # the usual case, and the cheap one
        return []
    return [item for item in wanted if item not in found]


def _meta(name: str, aggregated_to: Iterable[str] = ()) -> Obj:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    labels |= {f"{_AGGREGATE}{item}": "true" for item in aggregated_to}
    return {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}}


def _object(resource: Resource, meta: Obj, **content: object) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": meta,
        **content,
    }


def _cluster_role(name: str, rules: Rules) -> Obj:
    gathered_by = [AGGREGATED_FROM[name]] if name in AGGREGATED_FROM else []
    return _object(CLUSTER_ROLES, _meta(name, gathered_by), rules=list(rules))


def _aggregate(name: str, rules: dict[str, Rules]) -> Obj:
    """With the rules that the controller will find, so that they hold before it runs."""
    own, gathered_by = AGGREGATED[name]
    selector = {"matchLabels": {f"{_AGGREGATE}{own}": "true"}}
    return _object(
        CLUSTER_ROLES,
        _meta(name, gathered_by),
        aggregationRule={"clusterRoleSelectors": [selector]},
        rules=_gather(name, rules),
    )


def _gather(name: str, rules: dict[str, Rules]) -> list[Obj]:
    """In the order of the roles' names, each rule once: as the controller computes them."""
    found: list[Obj] = []
    sources: list[tuple[str, list[Obj]]] = [
        (role, list(rules[role])) for role, to in AGGREGATED_FROM.items() if to == name
    ]
    sources += [(item, _gather(item, rules)) for item, (_, to) in AGGREGATED.items() if name in to]
    for _, of in sorted(sources):
        found += [item for item in of if item not in found]
    return found


def _subject(kind: str, name: str) -> Obj:
    return {"kind": kind, "apiGroup": GROUP, "name": name}


def _account(name: str) -> Obj:
    return {"kind": "ServiceAccount", "name": name, "namespace": _SYSTEM}


def _binding(role: str, subjects: list[Obj], name: str = "") -> Obj:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    content: Obj = {"roleRef": reference}
    if subjects:
        content["subjects"] = subjects
    return _object(CLUSTER_ROLE_BINDINGS, _meta(name or role), **content)


def _cluster_role_bindings() -> list[Obj]:
    groups = {
        "cluster-admin": ("system:masters",),
        "system:monitoring": ("system:monitoring",),
        "system:discovery": _EVERYBODY[:1],
        "system:basic-user": _EVERYBODY[:1],
        "system:public-info-viewer": _EVERYBODY,
        "system:service-account-issuer-discovery": ("system:serviceaccounts",),
    }
    users = {
        "system:node-proxier": "system:kube-proxy",
        "sampan:cluster-dns": "system:sampan:cluster-dns",
        "system:kube-controller-manager": "system:kube-controller-manager",
        "system:kube-scheduler": "system:kube-scheduler",
        "system:volume-scheduler": "system:kube-scheduler",
        # Upstream leaves this one to the installer, who then takes system:masters for it.
        "system:kubelet-api-admin": "kube-apiserver-kubelet-client",
    }
    return [
        *(_binding(role, [_subject("Group", item) for item in to]) for role, to in groups.items()),
        *(_binding(role, [_subject("User", user)]) for role, user in users.items()),
        *(_binding(role, [_subject("Group", to)], name) for name, role, to in _JOINING),
        _binding("system:kube-dns", [_account("kube-dns")]),
        _binding(_NETWORK, [_account(NETWORK_ACCOUNT)]),
        _binding("sampan:node-volumes", [_account(VOLUMES_ACCOUNT)]),
        _binding("system:node", []),  # the Node authorizer's business; the binding stays empty
    ]


def _namespaced_roles() -> list[tuple[Resource, Obj]]:
    signer, cleaner, cloud = (
        PREFIX + item for item in ("bootstrap-signer", "token-cleaner", "cloud-provider")
    )
    reader = "extension-apiserver-authentication-reader"
    manager, scheduler = "kube-controller-manager", "kube-scheduler"
    lock = "system::leader-locking-"
    both = [_subject("User", f"system:{item}") for item in (manager, scheduler)]
    return [
        _role(_SYSTEM, reader, rule(READ, CORE, "configmaps", reader.removesuffix("-reader"))),
        _role(_SYSTEM, signer, rule(READ, CORE, "secrets")),
        _role(_SYSTEM, cloud, rule(f"create {READ}", CORE, "configmaps")),
        _role(_SYSTEM, cleaner, rule(f"delete {READ}", CORE, "secrets"), events()),
        _lock_role(manager),
        _lock_role(scheduler),
        # A node gets tokens of its parts' accounts, bound to itself (NodeRestriction).
        _role(
            _SYSTEM, _NETWORK_TOKEN,
            rule("create", CORE, "serviceaccounts/token", " ".join(NODE_ACCOUNTS)),
        ),
        _role(_SYSTEM, _READ_CONFIGURATION, rule("get", CORE, "configmaps", CONFIGURATION)),
        _role(
            _SYSTEM, _WRITE_CONFIGURATION, rule("create", CORE, "configmaps"),
            rule("get update", CORE, "configmaps", CONFIGURATION),
        ),
        _role(
            _PUBLIC, signer, rule(READ, CORE, "configmaps"),
            rule("update", CORE, "configmaps", "cluster-info"), events(),
        ),
        _role_binding(_SYSTEM, f"system::{reader}", reader, both),
        _role_binding(
            _SYSTEM, lock + manager, lock + manager,
            [both[0], _account(manager), _account("leader-election-controller")],
        ),
        _role_binding(
            _SYSTEM, lock + scheduler, lock + scheduler, [both[1], _account(scheduler)]
        ),
        _role_binding(_SYSTEM, signer, signer, [_account("bootstrap-signer")]),
        _role_binding(_SYSTEM, cloud, cloud, [_account("cloud-provider")]),
        _role_binding(_SYSTEM, cleaner, cleaner, [_account("token-cleaner")]),
        _role_binding(
            _SYSTEM, _NETWORK_TOKEN, _NETWORK_TOKEN, [_subject("Group", _NODES)]
        ),
        _role_binding(
            _SYSTEM, _READ_CONFIGURATION, _READ_CONFIGURATION,
            [_subject("Group", _NODES), _subject("Group", "system:bootstrappers"),
             _subject("User", "system:kube-proxy")],
        ),
        _role_binding(_SYSTEM, _WRITE_CONFIGURATION, _WRITE_CONFIGURATION, both[:1]),
        _role_binding(_PUBLIC, signer, signer, [_account("bootstrap-signer")]),
    ]  # fmt: skip


def _lock_role(component: str) -> tuple[Resource, Obj]:
    return _role(
        _SYSTEM,
        f"system::leader-locking-{component}",
        rule("watch", CORE, "configmaps"),
        rule("get update", CORE, "configmaps", component),
        rule("create get list update watch", COORDINATION, "leases"),
    )


def _role(namespace: str, name: str, *rules: Obj) -> tuple[Resource, Obj]:
    return ROLES, _object(ROLES, {**_meta(name), "namespace": namespace}, rules=list(rules))


def _role_binding(
    namespace: str, name: str, role: str, subjects: list[Obj]
) -> tuple[Resource, Obj]:
    reference = {"apiGroup": GROUP, "kind": "Role", "name": role}
    meta = {**_meta(name), "namespace": namespace}
    return ROLE_BINDINGS, _object(ROLE_BINDINGS, meta, roleRef=reference, subjects=subjects)
