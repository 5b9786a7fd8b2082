"""create role, clusterrole, rolebinding, clusterrolebinding, serviceaccount, token.

Job: rules and subjects from the command line.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.create.generator import Kind, generator
from sampan.cli.create.parts import metadata, single_name
from sampan.cli.errors import CliError, FlagError, Plain
from sampan.cli.flags import Flag, Values
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

RBAC = "rbac.authorization.k8s.io"
STANDARD_VERBS = (
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use",
    "bind", "escalate", "impersonate", "proxy", "*",
)  # fmt: skip
SPECIAL_VERBS = {
    "use": (("policy", "podsecuritypolicies"), ("extensions", "podsecuritypolicies")),
    "bind": ((RBAC, "roles"), (RBAC, "clusterroles")),
    "escalate": ((RBAC, "roles"), (RBAC, "clusterroles")),
    "impersonate": (
        ("", "users"), ("", "serviceaccounts"), ("", "groups"),
        ("authentication.k8s.io", "userextras"),
    ),
}  # fmt: skip
NON_RESOURCE_VERBS = ("get", "put", "post", "head", "options", "delete", "patch", "*")
VERB = Flag("verb", "slice", [], "Verb that applies to the resources contained in the rule.")
RESOURCE = Flag("resource", "slice", [], "Resource that the rule applies to.")
RESOURCE_NAME = Flag(
    "resource-name", "array", [], "Resource in the white list that the rule applies to."
)


def _resource_rules(session: Session, values: Values, verbs: list[str]) -> list[Obj]:
    groups: dict[str, list[str]] = {}
    for text in _resources(values):
        name, slash, subresource = text.partition("/")
        group, plural = _found(session, name) or _unknown(name)
        resource = f"{plural}/{subresource}" if slash and subresource else plural
        members = groups.setdefault(group, [])
        if resource not in members:
            members.append(resource)
    names = list(dict.fromkeys(values["resource-name"]))
    return [
        {
            "verbs": verbs,
            "apiGroups": [group],
            "resources": groups[group],
            **({"resourceNames": names} if names else {}),
        }
        for group in sorted(groups)
    ]


def _resources(values: Values) -> list[str]:
    """Where one of them is all of them, no other counts."""
    texts: list[str] = values["resource"]
    return ["*"] if "*" in texts else texts


def _found(session: Session, name: str) -> tuple[str, str] | None:
    """Group and plural of what a user calls it."""
    if name == "*":
        return "*", "*"
    try:
        found = session.discovery.find(name)
    except CliError:
        return None
    return found.group, found.plural


def _unknown(name: str) -> tuple[str, str]:
    word, _, group = name.partition(".")
    return group, word


def _check_resources(session: Session, values: Values, verbs: list[str]) -> None:
    for verb in verbs:
        if verb not in STANDARD_VERBS:
            session.complain(f"Warning: '{verb}' is not a standard resource verb")
    for text in _resources(values):
        name = text.partition("/")[0]
        if not name.partition(".")[0]:
            raise CliError("resource must be specified if apiGroup/subresource specified")
        if name.partition(".")[0] == "*":
            return
        found = _found(session, name)
        group, plural = found or _unknown(name)
        for verb in verbs:
            if verb not in SPECIAL_VERBS:
                continue
            if (group, plural) not in SPECIAL_VERBS[verb]:
                raise CliError(f"can not perform '{verb}' on '{plural}' in group '{group}'")
            found = group, plural
        if found is None:
            where = f' in group "{group}"' if group else ""
            raise Plain(f'the server doesn\'t have a resource type "{plural}"{where}')


def _verbs(values: Values) -> list[str]:
    verbs = list(dict.fromkeys(values["verb"]))
    return ["*"] if "*" in verbs else verbs


def role(session: Session, values: Values) -> Obj:
    name = single_name(values)
    verbs = _verbs(values)
    if not verbs:
        raise CliError("at least one verb must be specified")
    if not values["resource"]:
        raise CliError("at least one resource must be specified")
    _check_resources(session, values, verbs)
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata(name),
        "rules": _resource_rules(session, values, verbs),
    }


def cluster_role(session: Session, values: Values) -> Obj:
    name = single_name(values)
    verbs, urls = _verbs(values), values["non-resource-url"]
    meta = metadata(name)
    selector = _pairs(values["aggregation-rule"] or [])
    if selector:
        if verbs or urls or values["resource"] or values["resource-name"]:
            raise CliError(
                "aggregation rule must be specified without nonResourceURLs, verbs, resources or "
                "resourceNames"
            )
        rule = {"clusterRoleSelectors": [{"matchLabels": selector}]}
        return {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta,
            "aggregationRule": rule, "rules": None,
        }  # fmt: skip
    if not verbs:
        raise CliError("at least one verb must be specified")
    if not values["resource"] and not urls:
        raise CliError("one of resource or nonResourceURL must be specified")
    if values["resource"]:
        _check_resources(session, values, verbs)
    if urls:
        _check_urls(urls, verbs)
    rules = _resource_rules(session, values, verbs)
    if urls:
        rules.append({"verbs": verbs, "nonResourceURLs": urls})
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}


def _check_urls(urls: list[str], verbs: list[str]) -> None:
    for verb in verbs:
        if verb not in NON_RESOURCE_VERBS:
            raise CliError(f"invalid verb: '{verb}' for nonResourceURL")
    for url in urls:
        if url == "*":
            continue
        if not url.startswith("/"):
            raise CliError("nonResourceURL should start with /")
        if "*" in url[:-1]:
            raise CliError("nonResourceURL only supports wildcard matches when '*' is at the end")


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise FlagError(
                f'invalid argument "{text}" for "--aggregation-rule" flag: malformed pair, expect '
                "string=string"
            )
        pairs[key] = value
    return pairs


def _subjects(values: Values) -> list[Obj]:
    subjects: list[Obj] = []
    for flag, kind in (("user", "User"), ("group", "Group")):
        for name in values[flag]:
            subjects.append({"kind": kind, "apiGroup": RBAC, "name": name})
    for text in values["serviceaccount"]:
        parts = text.split(":")
        if len(parts) != 2 or not all(parts):
            raise CliError("serviceaccount must be <namespace>:<name>")
        subjects.append({"kind": "ServiceAccount", "namespace": parts[0], "name": parts[1]})
    return subjects


def _binding(kind: str, name: str, role_kind: str, role_name: str, values: Values) -> Obj:
    subjects = _subjects(values)
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata(name),
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role_name},
        **({"subjects": subjects} if subjects else {}),
    }


def role_binding(session: Session, values: Values) -> Obj:
    name = single_name(values)
    if bool(values["clusterrole"]) == bool(values["role"]):
        raise CliError("exactly one of clusterrole or role must be specified")
    if values["role"]:
        return _binding("RoleBinding", name, "Role", values.text("role"), values)
    return _binding("RoleBinding", name, "ClusterRole", values.text("clusterrole"), values)


def cluster_role_binding(session: Session, values: Values) -> Obj:
    name = single_name(values)
    role_name = values.text("clusterrole")
    return _binding("ClusterRoleBinding", name, "ClusterRole", role_name, values)


def service_account(session: Session, values: Values) -> Obj:
    return {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(single_name(values))
    }  # fmt: skip


def token(session: Session, values: Values) -> None:
    name = single_name(values)
    printer = ObjectPrinter(values, typed=True)
    kind = values.text("bound-object-kind")
    if values["duration"] < 0:
        raise CliError("--duration must be greater than or equal to 0")
    if values["duration"] % 1:
        raise CliError("--duration cannot be expressed in units less than seconds")
    if kind:
        if kind not in ("Node", "Pod", "Secret"):
            raise CliError("supported --bound-object-kind values are Node, Pod, Secret")
        if not values["bound-object-name"]:
            raise CliError("--bound-object-name is required if --bound-object-kind is provided")
    for flag in () if kind else ("bound-object-name", "bound-object-uid"):
        if values[flag]:
            raise CliError(f"--{flag} can only be set if --bound-object-kind is provided")
    spec: Obj = {}
    if values["audience"]:
        spec["audiences"] = values["audience"]
    if values["duration"]:
        spec["expirationSeconds"] = int(values["duration"])
    if kind:
        spec["boundObjectRef"] = {
            "kind": kind, "apiVersion": "v1", "name": values["bound-object-name"],
            **({"uid": values["bound-object-uid"]} if values["bound-object-uid"] else {}),
        }  # fmt: skip
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{session.namespace}/serviceaccounts/{name}/token"
    try:
        answer = session.api.json("POST", path, body=body)
    except ApiError as error:
        raise CliError(f"failed to create token: {error.message}") from error
    if printer.format:
        session.write(printer.text(answer, f"tokenrequest.authentication.k8s.io/{name}"))
    else:
        session.write(answer["status"]["token"] + ("\n" if session.io.is_terminal() else ""))


SUBJECTS = (
    Flag("group", "array", [], "Groups to bind to the role."),
    Flag("serviceaccount", "array", [], "Service accounts to bind, <namespace>:<name>."),
    Flag("user", "array", [], "Usernames to bind to the role."),
)
ROLE = generator(
    "role",
    "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename] [--dry-run=server|client|none] [options]",
    "Create a role with single rule", role, Kind("roles", "", RBAC), (VERB, RESOURCE, RESOURCE_NAME),
)  # fmt: skip
CLUSTER_ROLE = generator(
    "clusterrole",
    "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename] [--dry-run=server|client|none] [options]",
    "Create a cluster role", cluster_role, Kind("clusterroles", "", RBAC, namespaced=False),
    (VERB, RESOURCE, RESOURCE_NAME,
     Flag("aggregation-rule", "array", None, "An aggregation label selector (key=value)."),
     Flag("non-resource-url", "slice", [], "A partial URL that the user should have access to.")),
)  # fmt: skip
ROLE_BINDING = generator(
    "rolebinding",
    "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
    "Create a role binding for a particular role or cluster role", role_binding,
    Kind("rolebindings", "rolebinding", RBAC),
    (*SUBJECTS, Flag("clusterrole", usage="ClusterRole this RoleBinding should reference."),
     Flag("role", usage="Role this RoleBinding should reference.")),
)  # fmt: skip
CLUSTER_ROLE_BINDING = generator(
    "clusterrolebinding",
    "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
    "Create a cluster role binding for a particular cluster role", cluster_role_binding,
    Kind("clusterrolebindings", "clusterrolebinding", RBAC, namespaced=False),
    (*SUBJECTS, Flag("clusterrole", usage="ClusterRole this ClusterRoleBinding should reference.", required=True)),
)  # fmt: skip
SERVICE_ACCOUNT = generator(
    "serviceaccount", "serviceaccount NAME [--dry-run=server|client|none] [options]",
    "Create a service account with the specified name", service_account,
    Kind("serviceaccounts", "serviceaccount", aliases=("sa",)))  # fmt: skip
TOKEN = Command(
    "token", "create token SERVICE_ACCOUNT_NAME [options]", "Request a service account token", token,
    (*PRINT_FLAGS,
     Flag("audience", "array", [], "Audience of the requested token; may be repeated."),
     Flag("bound-object-kind", usage="Kind of an object to bind the token to: Node, Pod, Secret."),
     Flag("bound-object-name", usage="Name of an object to bind the token to."),
     Flag("bound-object-uid", usage="UID of an object to bind the token to."),
     Flag("duration", "duration", 0.0, "Requested lifetime of the issued token.")),
)  # fmt: skip
