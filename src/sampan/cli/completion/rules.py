"""Which verbs complete what: types, names, pods, containers, ports, contexts.

Job: for a command and its arguments the words that could follow, as kubectl has them.
"""

import os
from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.completion.directives import NO_FILES, NO_SPACE
from sampan.cli.errors import CliError
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

Ask = Callable[[Session], list[str]]
Candidates = tuple[list[str], int]
WITH_PODS = (
    "daemonsets", "deployments", "pods", "jobs", "replicasets", "replicationcontrollers",
    "services", "statefulsets",
)  # fmt: skip
OUTPUTS = (
    "json", "yaml", "kyaml", "name", "go-template", "go-template-file", "template", "templatefile",
    "jsonpath", "jsonpath-as-json", "jsonpath-file", "custom-columns", "custom-columns-file",
    "wide",
)  # fmt: skip
SCALED = ("deployment", "replicaset", "replicationcontroller", "statefulset")
ROLLED = ("deployment", "daemonset", "statefulset")
POD_WAIT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Rule:
    """`kind`: which of the functions below; `of`: what it is about; `once`: no second argument."""

    kind: str
    of: tuple[str, ...] = ()
    once: bool = False


_OBJECTS = Rule("objects")
_NODES = Rule("names", ("node",))
_COMMANDS = {
    "get": _OBJECTS, "describe": _OBJECTS, "delete": _OBJECTS, "edit": _OBJECTS,
    "label": _OBJECTS, "annotate": _OBJECTS, "patch": _OBJECTS, "debug": _OBJECTS,
    "apply edit-last-applied": _OBJECTS, "apply view-last-applied": _OBJECTS,
    "rollout history": Rule("objects", ROLLED), "rollout restart": Rule("objects", ROLLED),
    "rollout undo": Rule("objects", ROLLED), "rollout status": Rule("objects", ROLLED, True),
    "rollout pause": Rule("objects", ("deployment",)),
    "rollout resume": Rule("objects", ("deployment",)),
    "expose": Rule(
        "objects", ("pod", "service", "replicationcontroller", "deployment", "replicaset")
    ),
    "scale": Rule("objects", SCALED), "autoscale": Rule("objects", SCALED),
    "taint": Rule("objects", ("node",)),
    "set image": Rule(
        "objects",
        ("daemonsets", "deployments", "pods", "cronjobs", "replicasets", "replicationcontrollers",
         "statefulsets"),
        True,
    ),
    "top node": _NODES, "top pod": Rule("names", ("pod",)),
    "cordon": _NODES, "uncordon": _NODES, "drain": _NODES,
    "create token": Rule("names", ("serviceaccount",)),
    "exec": Rule("pods"), "attach": Rule("pods"), "logs": Rule("pods", ("containers",)),
    "port-forward": Rule("pods", ("ports",)), "cp": Rule("copy"),
    "config use-context": Rule("contexts"), "config delete-context": Rule("contexts"),
    "config rename-context": Rule("contexts"), "config set-context": Rule("contexts"),
    "config delete-cluster": Rule("clusters"), "config delete-user": Rule("users"),
    "completion": Rule("fixed", ("bash", "zsh", "fish", "powershell")),
}  # fmt: skip


def of_command(path: list[str]) -> Rule | None:
    return _COMMANDS.get(" ".join(path))


def of_flag(path: list[str], name: str) -> Ask | None:
    """Who knows the values of a flag."""
    verb = " ".join(path)
    if name == "namespace":
        return lambda session: names_of(session, "namespace")
    if name in ("context", "cluster", "user"):
        return lambda session: _entries(session, f"{name}s")
    if name == "subresource" and verb != "auth can-i":
        return lambda session: ["status", "scale", "resize"]
    if name == "output" and verb == "get":
        return lambda session: list(OUTPUTS)
    if name == "container" and verb in ("exec", "logs", "attach"):  # kubectl: exec alone
        return lambda session: _containers(session, session.values.arguments[:1])
    if name == "clusterrole" and verb == "create clusterrolebinding":
        return lambda session: names_of(session, "clusterrole")
    return None


def asked(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    try:
        return _RULES[rule.kind](session, rule, arguments, typed)
    except (ApiError, CliError, OSError):
        return [], NO_FILES


def names_of(session: Session, kind: str, namespace: str = "") -> list[str]:
    return [obj["metadata"]["name"] for obj in _listed(session, kind, namespace)]


def _listed(session: Session, kind: str, namespace: str = "") -> list[Obj]:
    resource = session.discovery.find(kind)
    where = (namespace or session.namespace) if resource.namespaced else ""
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    found: list[Obj] = (
        session.api.json("GET", resource.path(where), {"limit": "500"}, accept=accept).get("items")
        or []
    )
    return found


def _types(session: Session, typed: str) -> list[str]:
    """`pods,sv` goes on after its last comma."""
    lead, comma, last = typed.rpartition(",")
    found = sorted(
        (one for one in session.discovery.preferred() if "get" in one.verbs),
        key=lambda one: (one.group, one.plural),
    )
    return [lead + comma + one.qualified for one in found if one.qualified.startswith(last)]


def _begun(words: list[str], typed: str) -> list[str]:
    return [word for word in words if word.startswith(typed)]


def _objects(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    """`TYPE NAME …` or `TYPE/NAME …`."""
    is_typed = bool(arguments) and "/" not in arguments[0]
    if rule.once and len(arguments) > int(is_typed):
        return [], NO_FILES
    if is_typed:
        found = _begun(names_of(session, arguments[0]), typed)
        return _except(found, arguments[1:]), NO_FILES
    if "/" in typed:
        return _except(_slashed(session, typed), arguments), NO_FILES
    types = _begun(list(rule.of), typed) if rule.of else _types(session, typed)
    if not arguments:
        return types, NO_FILES
    return [f"{word}/" for word in types], NO_FILES | NO_SPACE


def _except(words: list[str], given: list[str]) -> list[str]:
    return [word for word in words if word not in given]


def _slashed(session: Session, typed: str) -> list[str]:
    kind, _, begun = typed.partition("/")
    return [f"{kind}/{name}" for name in _begun(names_of(session, kind), begun)]


def _names(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    if arguments:
        return [], NO_FILES
    return _begun(names_of(session, rule.of[0]), typed), NO_FILES


def _pods(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    if len(arguments) == 1 and rule.of:
        of_pod = _containers(session, arguments)
        if rule.of == ("ports",):
            of_pod = _ports(session, arguments[0], typed)
        return _begun(of_pod, typed), NO_FILES
    if arguments:
        return [], NO_FILES
    if "/" in typed:
        return _slashed(session, typed), NO_FILES
    found = _begun(names_of(session, "pod"), typed)
    kinds = [f"{kind}/" for kind in _begun(list(WITH_PODS), typed)]
    return [*found, *kinds], NO_FILES if found else NO_FILES | NO_SPACE


def _pod(session: Session, word: str) -> Obj:
    """Of `TYPE/NAME` the pod that would be taken."""
    from sampan.cli.workloads import pods_of

    info = pods_of.named(session, "pods", [word])
    return pods_of.attachable(session, info, POD_WAIT_SECONDS)


def _containers(session: Session, arguments: list[str]) -> list[str]:
    if not arguments:
        return []
    spec = _pod(session, arguments[0])["spec"]
    fields = ("initContainers", "containers")
    return [one["name"] for field in fields for one in spec.get(field) or []]


def _ports(session: Session, word: str, typed: str) -> list[str]:
    kind, slash, name = word.partition("/")
    local = typed.partition(":")[0]
    if slash and kind in ("service", "services", "svc"):
        path = f"/api/v1/namespaces/{session.namespace}/services/{name}"
        ports = session.api.json("GET", path)["spec"].get("ports") or []
        numbers = [port["port"] for port in ports]
    else:
        spec = _pod(session, word)["spec"]
        numbers = [
            port["containerPort"]
            for container in spec.get("containers") or []
            for port in container.get("ports") or []
        ]
    return [f"{local or number}:{number}" for number in numbers]


def _copy(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    """`NAMESPACE/POD:` or a file of this machine."""
    if arguments or typed.startswith(("/", ".", "~")) or ":" in typed:
        return [], NO_SPACE
    if "/" in typed:
        namespace = typed.partition("/")[0]
        pods = [f"{namespace}/{name}:" for name in names_of(session, "pod", namespace)]
        return _begun(pods, typed), NO_SPACE
    found = [f"{name}/" for name in _begun(names_of(session, "namespace"), typed)]
    found += [f"{name}:" for name in _begun(names_of(session, "pod"), typed)]
    if not typed:
        return [*found, "./", "/"], NO_SPACE  # a path will do, too
    return found + (_files(typed) if found else []), NO_SPACE


def _files(typed: str) -> list[str]:
    near = _begun(sorted(os.listdir(".")), typed)
    return [f"{name}/" if os.path.isdir(name) else name for name in near]


def _entries(session: Session, section: str) -> list[str]:
    return sorted(getattr(session.kubeconfig, section))


def _sections(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    if arguments:
        return [], NO_FILES
    return _begun(_entries(session, rule.kind), typed), NO_FILES


def _fixed(session: Session, rule: Rule, arguments: list[str], typed: str) -> Candidates:
    return ([] if arguments else _begun(list(rule.of), typed)), NO_FILES


_RULES: dict[str, Callable[[Session, Rule, list[str], str], Candidates]] = {
    "objects": _objects, "names": _names, "pods": _pods, "copy": _copy, "fixed": _fixed,
    "contexts": _sections, "clusters": _sections, "users": _sections,
}  # fmt: skip
