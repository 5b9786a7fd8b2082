"""`auth can-i|whoami|reconcile`: who am I, and what may I do.

Job: ask the server's reviews; show the answers.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, switch
from sampan.cli.describe.access_rules import breakdown
from sampan.cli.errors import CliError, Plain, Quiet
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, selection
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
VERBS = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use",
    "bind", "impersonate", "*", "approve", "sign", "escalate", "attest",
}  # fmt: skip
URL_VERBS = {"get", "put", "post", "head", "options", "delete", "patch", "*"}


def can_i(session: Session, values: Values) -> int:
    if values["no-headers"] and not values["list"]:
        raise CliError("--no-headers cannot be set without --list specified")
    if values["list"]:
        if values.arguments:
            raise CliError("list option must be specified with no arguments")
        _list(session, values)
        return 0
    if len(values.arguments) not in (2, 3):
        raise Plain(
            "error: you must specify two arguments: verb resource or verb resource/resourceName.\n"
            f"See '{session.path} -h' for help and examples."
        )
    verb, what, *rest = values.arguments
    spec = _question(session, values, verb, what, rest[0] if rest else "")
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": spec,
    }
    answer = session.api.json("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", body=body)
    status = answer.get("status") or {}
    allowed = bool(status.get("allowed"))
    if not values["quiet"]:
        text = "yes" if allowed else "no"
        if status.get("reason") and not allowed:
            text += f" - {status['reason']}" if _is_worth_saying(status["reason"]) else ""
        session.print(text)
    return 0 if allowed else 1


def _warn(session: Session, text: str) -> None:
    session.complain(f"Warning: {text}\n")


def _is_worth_saying(reason: str) -> bool:
    return not reason.startswith(("RBAC", "no RBAC"))


def _question(session: Session, values: Values, verb: str, what: str, name: str) -> Obj:
    if what.startswith("/"):
        _check_verb(session, verb, URL_VERBS)
        return {"nonResourceAttributes": {"path": what, "verb": verb}}
    kind, _, own_name = what.partition("/")
    subresource = values.text("subresource")
    group, plural, namespaced = _resource(session, values, kind)
    _check_verb(session, verb, VERBS)
    namespace = "" if values["all-namespaces"] or not namespaced else session.namespace
    attributes: Obj = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}
    if subresource:
        attributes["subresource"] = subresource
    if own_name or name:
        attributes["name"] = own_name or name
    return {"resourceAttributes": attributes}


def _check_verb(session: Session, verb: str, choices: set[str]) -> None:
    if verb not in choices:
        _warn(session, f"verb '{verb}' is not a known verb")


def _resource(session: Session, values: Values, kind: str) -> tuple[str, str, bool]:
    """Group, plural and whether it is in namespaces; what nobody serves is asked for as it is."""
    if kind == "*":
        return "*", kind, True
    try:
        resource = session.discovery.find(kind)
    except CliError:
        word, _, group = kind.partition(".")
        _warn(session, f"the server doesn't have a resource type '{word}'{_in_group(group)}")
        return group, word, True
    group, plural, namespaced = resource.group, resource.plural, resource.namespaced
    if not namespaced and (session.namespace_is_given or values["all-namespaces"]):
        word = plural.partition(".")[0]
        _warn(session, f"resource '{word}' is not namespace scoped{_in_group(group)}")
    return group, plural, namespaced


def _in_group(group: str) -> str:
    return f" in group '{group}'" if group else ""


def _list(session: Session, values: Values) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": session.namespace},
    }  # fmt: skip
    answer = session.api.json("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", body=body)
    status = answer.get("status") or {}
    rules = [*(status.get("resourceRules") or []), *(status.get("nonResourceRules") or [])]
    rows = [list(row) for row in breakdown(rules)]
    if not values["no-headers"]:
        rows.insert(0, ["Resources", "Non-Resource URLs", "Resource Names", "Verbs"])
    session.write(align(rows))
    if status.get("incomplete"):
        why = status.get("evaluationError") or "incomplete"
        session.complain(f"warning: the list may be incomplete: {why}")


def whoami(session: Session, values: Values) -> None:
    printer = ObjectPrinter(values, typed=True)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = session.api.json("POST", path, body=body)
    except ApiError as error:
        if error.reason == "NotFound":
            raise CliError("the selfsubjectreviews API is not enabled in the cluster") from error
        raise
    if printer.format:
        session.write(printer.text(answer, "selfsubjectreview.authentication.k8s.io/"))
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
    for found in selection.from_files(session, values):
        if isinstance(found, Exception):
            raise found
        try:
            session.api.json("GET", found.path)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            session.api.json("POST", found.resource.path(found.namespace), body=found.obj)
            session.print(f"{found.label} reconciled")
            continue
        raise Quiet(1, f"error: {found.label} exists: merging rules is not supported, use apply")


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
                reconcile, (*PRINT_FLAGS, *common_flags.FILES, common_flags.DRY_RUN)),
        Command("whoami", "auth whoami [options]", "Experimental: Check self subject attributes",
                whoami, PRINT_FLAGS),
    ),
)  # fmt: skip
