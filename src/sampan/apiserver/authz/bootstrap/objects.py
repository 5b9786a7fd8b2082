"""The RBAC objects that every cluster starts with, and how an older cluster is brought up to date.

Job: roles and bindings as objects, of data/bootstrap_roles.json and data/sampan_roles.json; what
    reconciliation changes of one that is there. Pure.
Invariant: reconciliation only adds, but for what an older version of ours gave too freely; an
    object whose annotation says autoupdate=false is left alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sampan.api import features
from sampan.api.objects import Obj, annotations_of, labels_of, meta_of, name_of
from sampan.api.resources import Resource, by_kind
from sampan.api.versioned_data import versioned_data
from sampan.core.files.packaged_data import packaged_data

GROUP = "rbac.authorization.k8s.io"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
PREFIX = "system:controller:"
_AGGREGATE = f"{GROUP}/aggregate-to-"
_SYSTEM = "kube-system"
_NODES, _NETWORK = "system:nodes", "sampan:node-network"
# Name → the label by which it gathers others, and the labels it has itself.
_AGGREGATED = {
    "admin": ("admin", ()),
    "edit": ("edit", ("admin",)),
    "view": ("view", ("edit",)),
}
_AGGREGATED_FROM = {f"system:aggregate-to-{name}": name for name in _AGGREGATED}

Roles = dict[str, list[Obj]]  # name → rules


def _row(kind: str) -> Resource:
    found = by_kind(f"{GROUP}/v1", kind)
    assert found is not None, kind
    return found


CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = _row("ClusterRole"), _row("ClusterRoleBinding")
ROLES, ROLE_BINDINGS = _row("Role"), _row("RoleBinding")


def rbac_objects() -> list[tuple[Resource, Obj]]:
    """Everything, fresh: the caller's to change."""
    both = _in_effect(versioned_data("bootstrap_roles")), packaged_data("sampan_roles")
    rules: Roles = {**both[0]["clusterRoles"], **both[1]["clusterRoles"]}
    upstreams = {**_gated_roles(both[0]["gatedControllerRoles"]), **both[0]["controllerRoles"]}
    controllers = _controller_roles(upstreams, both[1]["controllerRoles"])
    made = [(CLUSTER_ROLES, _cluster_role(name, of)) for name, of in rules.items()]
    made += [(CLUSTER_ROLES, _aggregate(name, rules)) for name in _AGGREGATED]
    for data in both:
        made += [
            (CLUSTER_ROLE_BINDINGS, _binding(name, **binding))
            for name, binding in data["clusterRoleBindings"].items()
        ]
    for account, of in controllers.items():
        subject = {"kind": "ServiceAccount", "name": account, "namespace": _SYSTEM}
        made.append((CLUSTER_ROLES, _cluster_role(PREFIX + account, of)))
        made.append(
            (CLUSTER_ROLE_BINDINGS, _binding(PREFIX + account, PREFIX + account, [subject]))
        )
    return [*made, *(item for data in both for item in _namespaced(data))]


def node_rules() -> tuple[Obj, ...]:
    """Of system:node: what the Node authorizer allows every node, but for what is its own."""
    return features.of_release(_node_rules)


def _node_rules(_release: features.Release) -> tuple[Obj, ...]:
    return tuple(_rules_in_effect(versioned_data("bootstrap_roles")["clusterRoles"]["system:node"]))


def _in_effect(data: dict[str, Any]) -> dict[str, Any]:
    """Without what belongs to features that are off: rules, roles of such rules only, bindings."""
    made = dict(data)
    for field in ("clusterRoles", "controllerRoles"):
        kept = {name: _rules_in_effect(rules) for name, rules in data[field].items()}
        made[field] = {name: rules for name, rules in kept.items() if rules}
    made["clusterRoleBindings"] = {
        name: {key: value for key, value in binding.items() if key != "gate"}
        for name, binding in data["clusterRoleBindings"].items()
        if "gate" not in binding or binding["gate"] in features.all_enabled()
    }
    return made


def _rules_in_effect(rules: list[Obj]) -> list[Obj]:
    if not any("gate" in rule for rule in rules):
        return rules
    return [
        {key: value for key, value in rule.items() if key != "gate"}
        for rule in rules
        if "gate" not in rule or rule["gate"] in features.all_enabled()
    ]


def _gated_roles(by_gate: Mapping[str, Roles]) -> Roles:
    """Of controllers that a version has only where a gate is on."""
    on = features.all_enabled()
    return {name: of for gate, roles in by_gate.items() if gate in on for name, of in roles.items()}


def _controller_roles(upstreams: Roles, own: Roles) -> Roles:
    names = {**upstreams, **own}
    return {name: [*map(_patching, upstreams.get(name, ())), *own.get(name, ())] for name in names}


def _patching(of: Obj) -> Obj:
    """Our controllers patch where upstream's update: the same right, with fewer conflicts."""
    if "update" not in of["verbs"] or "patch" in of["verbs"]:
        return of
    return {**of, "verbs": sorted([*of["verbs"], "patch"])}


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
    return [subject for subject in found if subject != _subject({"kind": "Group", "name": _NODES})]


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


def _cluster_role(name: str, rules: list[Obj]) -> Obj:
    gathered_by = [_AGGREGATED_FROM[name]] if name in _AGGREGATED_FROM else []
    return _object(CLUSTER_ROLES, _meta(name, gathered_by), rules=rules)


def _aggregate(name: str, rules: Roles) -> Obj:
    """With the rules that the controller will find, so that they hold before it runs."""
    own, gathered_by = _AGGREGATED[name]
    selector = {"matchLabels": {f"{_AGGREGATE}{own}": "true"}}
    return _object(
        CLUSTER_ROLES,
        _meta(name, gathered_by),
        aggregationRule={"clusterRoleSelectors": [selector]},
        rules=_gather(name, rules),
    )


def _gather(name: str, rules: Roles) -> list[Obj]:
    """In the order of the roles' names, each rule once: as the controller computes them."""
    found: list[Obj] = []
    sources = [(role, rules[role]) for role, to in _AGGREGATED_FROM.items() if to == name]
    sources += [(item, _gather(item, rules)) for item, (_, to) in _AGGREGATED.items() if name in to]
    for _, of in sorted(sources):
        found += [item for item in of if item not in found]
    return found


def _subject(subject: Mapping[str, str]) -> Obj:
    """As the API shows it: accounts have a namespace, users and groups a group of the API."""
    if subject["kind"] == "ServiceAccount":
        return dict(subject)
    return {"kind": subject["kind"], "apiGroup": GROUP, "name": subject["name"]}


def _reference(kind: str, role: str) -> Obj:
    return {"apiGroup": GROUP, "kind": kind, "name": role}


def _binding(name: str, role: str, subjects: list[Obj]) -> Obj:
    content: Obj = {"roleRef": _reference("ClusterRole", role)}
    if subjects:
        content["subjects"] = [*map(_subject, subjects)]
    return _object(CLUSTER_ROLE_BINDINGS, _meta(name), **content)


def _namespaced(data: dict[str, Any]) -> Iterable[tuple[Resource, Obj]]:
    for key, rules in data["roles"].items():
        yield ROLES, _object(ROLES, _meta_in(key), rules=rules)
    for key, binding in data["roleBindings"].items():
        subjects = [*map(_subject, binding["subjects"])]
        reference = _reference("Role", binding["role"])
        yield (
            ROLE_BINDINGS,
            _object(ROLE_BINDINGS, _meta_in(key), roleRef=reference, subjects=subjects),
        )


def _meta_in(key: str) -> Obj:
    namespace, _, name = key.partition("/")
    return {**_meta(name), "namespace": namespace}
