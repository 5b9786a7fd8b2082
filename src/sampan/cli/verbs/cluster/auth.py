"""`auth can-i|whoami|reconcile`: who am I, and what may I do.

Job: ask the server's reviews; show the answers.
"""

import contextlib

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, DryRun, switch
from sampan.cli.describe.access_rules import breakdown
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, manifests, rbac_reconciliation
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
VERBS = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use",
    "bind", "impersonate", "*", "approve", "sign", "escalate", "attest",
}  # fmt: skip
NOT_SERVED = ("users", "groups")  # what may be asked for all the same
URL_VERBS = {"get", "put", "post", "head", "options", "delete", "patch", "*"}


def can_i(session: Session, values: Values) -> int:
    spec: Obj = {}
    if values["list"]:
        if values.arguments:
            raise CliError("list option must be specified with no arguments")
    else:
        spec = _asked(session, values)
    _ = session.connection
    namespace = "" if values["all-namespaces"] else session.namespace
    _check_question(session, values, spec)
    if values["list"]:
        _list(session, values)
        return 0
    if "resourceAttributes" in spec:
        spec["resourceAttributes"]["namespace"] = namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": spec,
    }
    answer = session.api.json("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", body=body)
    status = answer.get("status") or {}
    if not values["quiet"]:
        why = [status[field] for field in ("reason", "evaluationError") if status.get(field)]
        session.print("yes" if status.get("allowed") else " - ".join(["no", *why]))
    return 0 if status.get("allowed") else 1


def _warn(session: Session, text: str) -> None:
    session.print_warning(f"{text}\n")


def _asked(session: Session, values: Values) -> Obj:
    if len(values.arguments) != 2:
        raise CliError(
            "you must specify two arguments: verb resource or verb resource/resourceName.\n"
            "See 'kubectl auth can-i -h' for help and examples."
        )
    verb, what = values.arguments
    if what.startswith("/"):
        return {"nonResourceAttributes": {"path": what, "verb": verb}}
    kind, _, name = what.partition("/")
    group, plural = _resource(session, kind)
    attributes: Obj = {"verb": verb, "group": group, "resource": plural}
    if values["subresource"]:
        attributes["subresource"] = values.text("subresource")
    if name:
        attributes["name"] = name
    return {"resourceAttributes": attributes}


def _check_question(session: Session, values: Values, spec: Obj) -> None:
    if values["list"]:
        if values["quiet"] or values["all-namespaces"] or values["subresource"]:
            raise CliError(
                "list option can't be specified with neither quiet, all-namespaces nor subresource "
                "options"
            )
        return
    if "nonResourceAttributes" in spec:
        if values["subresource"]:
            raise CliError("--subresource can not be used with NonResourceURL")
        if spec["nonResourceAttributes"]["verb"] not in URL_VERBS:
            _warn(session, f"verb '{spec['nonResourceAttributes']['verb']}' is not a known verb")
    elif not values["all-namespaces"]:
        _check_resource(session, spec["resourceAttributes"])
    if values["no-headers"]:
        raise CliError("--no-headers cannot be set without --list specified")


def _check_resource(session: Session, asked: Obj) -> None:
    group, plural = asked["group"], asked["resource"]
    found = next(
        (one for one in session.discovery.resources if (one.group, one.plural) == (group, plural)),
        None,
    )
    if found is not None and not found.namespaced:
        _warn(session, f"resource '{plural}' is not namespace scoped{_in_group(group)}")
    if asked["verb"] not in VERBS:
        _warn(session, f"verb '{asked['verb']}' is not a known verb")


def _resource(session: Session, kind: str) -> tuple[str, str]:
    """Group and plural; what nobody serves is asked for as it is."""
    if kind == "*":
        return "", kind
    try:
        found = session.discovery.find(kind.lower())
    except CliError:
        word, _, group = kind.lower().partition(".")
        if kind.lower() not in NOT_SERVED:
            _warn(session, f"the server doesn't have a resource type '{word}'{_in_group(group)}")
        return "", kind
    return found.group, found.plural


def _in_group(group: str) -> str:
    return f" in group '{group}'" if group else ""


def _list(session: Session, values: Values) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": session.namespace},
    }  # fmt: skip
    answer = session.api.json("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", body=body)
    status = answer.get("status") or {}
    if status.get("incomplete"):
        why = status.get("evaluationError") or ""
        session.print_warning(f"the list may be incomplete: {why}")
    rules = [*(status.get("resourceRules") or []), *(status.get("nonResourceRules") or [])]
    rows = [list(row) for row in breakdown(rules)]
    if not values["no-headers"]:
        rows.insert(0, ["Resources", "Non-Resource URLs", "Resource Names", "Verbs"])
    session.write(align(rows))


_REVIEW = "selfsubjectreview.authentication.k8s.io/<unknown>"  # it has no name


def whoami(session: Session, values: Values) -> None:
    # A template alone is no format here, and is not looked at.
    printer = ObjectPrinter(values, typed=True) if values.is_set("output") else None
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    off = "the selfsubjectreviews API is not enabled in the cluster"
    try:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = session.api.json("POST", path, body=body)
    except ApiError as error:
        if error.reason == "NotFound":
            raise CliError(off) from error
        if error.reason == "Forbidden":
            raise CliError(f"{off} or you do not have permission to call it") from error
        raise
    if printer is not None:
        # An empty format that is asked for is that of names.
        session.write(printer.text(answer, _REVIEW) if printer.format else f"{_REVIEW}\n")
        return
    user = answer["status"]["userInfo"]
    rows = [["ATTRIBUTE", "VALUE"], ["Username", user.get("username") or ""]]
    if user.get("uid"):
        rows.append(["UID", user["uid"]])
    if user.get("groups"):
        rows.append(["Groups", f"[{' '.join(user['groups'])}]"])
    for key in sorted(user.get("extra") or {}):
        rows.append([f"Extra: {key}", f"[{' '.join(user['extra'][key])}]"])
    session.write(align(rows))


def reconcile(session: Session, values: Values) -> None:
    manifests.require(values)
    if values.arguments:
        raise CliError("no arguments are allowed")
    try:
        strategy = common_flags.dry_run(session, values)
    except CliError as error:
        raise CliError(f"error accessing --dry-run flag for command reconcile: {error}") from error
    if strategy == "server":
        raise CliError("--dry-run=server for command reconcile is not supported yet")
    session.check_context()
    builder = Builder(session, continue_on_error=True).in_namespace().files(values)
    builder.typed = builder.is_local = True
    result = builder.do()
    printer = ObjectPrinter(values, typed=True)
    failures: list[Exception] = []
    for found in result.visit():
        try:
            if isinstance(found, Exception):
                raise found
            if found.resource.group == "rbac.authorization.k8s.io":
                _reconcile(session, values, found, printer, strategy)
        except (ApiError, CliError) as error:
            failures.append(error)
    raise_all(failures)


def _reconcile(
    session: Session, values: Values, found: Info, printer: ObjectPrinter, strategy: DryRun
) -> None:
    resource = session.discovery.of_kind(found.resource.api_version, found.resource.kind)
    if resource is None:
        raise CliError(f'no matches for kind "{found.resource.kind}"')
    info = Info(resource, found.namespace if resource.namespaced else "", found.name, found.obj)
    is_role = resource.kind in ("Role", "ClusterRole")
    removes = bool(values["remove-extra-permissions" if is_role else "remove-extra-subjects"])
    compare = rbac_reconciliation.role if is_role else rbac_reconciliation.binding
    live: Obj | None = None
    with contextlib.suppress(NotFound):
        live = session.api.json("GET", info.path)
    result = compare(live, info.obj, removes=removes)
    obj = result.obj
    if strategy == "none" and not result.is_protected:
        obj = _written(session, info, result, live)
    with contextlib.suppress(CliError):  # a template that fails is not told, as with kubectl
        changing.show(session, printer, info, obj, "reconciled", strategy)
    _tell(session, result, "rules" if is_role else "subjects", removes)


def _written(
    session: Session, info: Info, result: rbac_reconciliation.Reconciled, live: Obj | None
) -> Obj:
    path = info.resource.path(info.namespace)
    if result.operation == "update":
        return session.api.json("PUT", info.path, body=result.obj)
    if result.operation == "recreate" and live is not None:
        options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
        options["preconditions"] = {"uid": live["metadata"]["uid"]}
        session.api.json("DELETE", info.path, body=options)
    if result.operation:
        return session.api.json("POST", path, body=result.obj)
    return result.obj


def _tell(
    session: Session, result: rbac_reconciliation.Reconciled, what: str, removes: bool
) -> None:
    if not result.operation:
        return
    caveat = ""
    if result.is_protected:
        caveat = ", but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)"
    session.complain(f"\treconciliation required {result.operation}{caveat}")
    shown = _rule_text if what == "rules" else _subject_text
    groups = [(f"missing {what} added", result.missing)]
    groups += [(f"extra {what} removed", result.extra)] if removes else []
    for title, items in groups:
        if items:
            session.complain("\n\t\t".join([f"\t{title}:", *map(shown, items)]))


def _rule_text(rule: Obj) -> str:
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    names = ("Verbs", "APIGroups", "Resources", "ResourceNames", "NonResourceURLs")
    pairs = zip(names, (rule.get(field) or [] for field in fields), strict=True)
    return "{" + " ".join(f"{name}:[{' '.join(values)}]" for name, values in pairs) + "}"


def _subject_text(subject: Obj) -> str:
    fields = ("kind", "apiGroup", "name", "namespace")
    names = ("Kind", "APIGroup", "Name", "Namespace")
    pairs = zip(names, fields, strict=True)
    return "{" + " ".join(f"{name}:{subject.get(field, '')}" for name, field in pairs) + "}"


AUTH = Command(
    "auth", "auth [flags] [options]", "Inspect authorization.",
    children=(
        Command("can-i", "auth can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL] [options]",
                "Check whether an action is allowed", can_i,
                (ALL_NAMESPACES, switch("list", "Print all allowed actions."),
                 switch("no-headers", "Don't print headers."),
                 switch("quiet", "Only the exit code says it.", short="q"),
                 Flag("subresource", usage="SubResource such as pod/log or deployment/scale."))),
        Command("reconcile", "auth reconcile -f FILENAME [options]",
                "Reconciles rules for RBAC role, role binding, cluster role, and cluster role binding objects",
                reconcile, (*PRINT_FLAGS, *common_flags.FILES, common_flags.DRY_RUN,
                            switch("remove-extra-permissions", "Remove rules that the files do not have."),
                            switch("remove-extra-subjects", "Remove subjects that the files do not have."))),
        Command("whoami", "auth whoami [options]", "Experimental: Check self subject attributes",
                whoami, PRINT_FLAGS),
    ),
)  # fmt: skip
