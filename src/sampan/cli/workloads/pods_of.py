"""From what a user names to a pod: `web`, `deploy/web`, `svc/web`, `job/x`.

Job: find the object, follow its selector to a pod, choose the container.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.objects import Obj
from sampan.api.rules.conditions import condition_of
from sampan.cli.describe.writer import selector_text
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import waiting
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.changing import go_type
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

WORKLOADS = (
    "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController",
    "Service",
)  # fmt: skip
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_PHASES = {"Running": 0, "Unknown": 1, "Pending": 2}
NOT_POSITIVE = "--pod-running-timeout must be higher than zero"


def pod_timeout(seconds: float = 60.0) -> Flag:
    usage = "How long to wait until a pod is running."
    return Flag("pod-running-timeout", "duration", seconds, usage)


def check_timeout(values: Values) -> None:
    if values["pod-running-timeout"] <= 0:
        raise UsageError(NOT_POSITIVE)


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def named(session: Session, kind: str, words: list[str], values: Values | None = None) -> Info:
    """The one object that words or files name."""
    builder = Builder(session).in_namespace()
    builder.typed = True
    if values is not None:
        builder.files(values)
    if words:
        builder.names(kind, words)
    found = builder.do().infos()
    if len(found) != 1:
        raise CliError("cannot exec into multiple objects at a time")
    return found[0]


def selector_of(info: Info, doing: str) -> str:
    """The label query of an object's pods."""
    kind = info.resource.kind
    if kind not in WORKLOADS:
        raise CliError(
            f"cannot {doing} {go_type(info)}: selector for {go_type(info)} not implemented"
        )
    selector = info.obj["spec"].get("selector")
    if kind == "Service" and not selector:
        raise CliError(
            f"cannot {doing} {go_type(info)}: invalid service '{info.name}': Service is defined "
            "without a selector"
        )
    return label_query(kind, selector)


def label_query(kind: str, selector: Any) -> str:
    if kind in ("Service", "ReplicationController"):
        return ",".join(f"{key}={value}" for key, value in sorted((selector or {}).items()))
    return selector_text(selector)


def attachable(session: Session, info: Info, seconds: float) -> Obj:
    """The pod itself, or the best one of the workload."""
    if info.resource.kind == "Pod":
        return info.obj
    return all_of(session, info, seconds, "attach to", _for_attaching)[0]


def all_of(
    session: Session,
    info: Info,
    seconds: float,
    doing: str,
    rank: Callable[[Obj], tuple[Any, ...]],
) -> list[Obj]:
    """A workload's pods, the best first, as soon as there is one."""
    query = {"labelSelector": selector_of(info, doing)}
    path = f"/api/v1/namespaces/{info.namespace}/pods"
    found: list[Obj] = []

    def is_there(_: Obj | None) -> bool:
        found[:] = session.api.json("GET", path, query).get("items") or []
        return bool(found)

    if not waiting.poll(session, info.path, is_there, seconds):
        raise CliError("timed out waiting for the condition")
    return sorted(found, key=rank)


def _readiness(pod: Obj) -> tuple[Any, ...]:
    condition = condition_of(pod, "Ready") or {}
    is_ready = condition.get("status") == "True"
    since = condition.get("lastTransitionTime") or "~"
    return (0, since) if is_ready else (1, "")


def _restarts(pod: Obj) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return max((int(state.get("restartCount") or 0) for state in statuses), default=0)


def _begin(pod: Obj) -> tuple[Any, ...]:
    phase = str((pod.get("status") or {}).get("phase"))
    return (0 if pod["spec"].get("nodeName") else 1, _PHASES.get(phase, 0), *_readiness(pod))


def for_logging(pod: Obj) -> tuple[Any, ...]:
    """Running and ready longest, restarted most often, oldest."""
    return (*_begin(pod), -_restarts(pod), pod["metadata"]["creationTimestamp"])


def _for_attaching(pod: Obj) -> tuple[Any, ...]:
    return (*_begin(pod), _restarts(pod), pod["metadata"]["creationTimestamp"])


def container_of(session: Session, pod: Obj, name: str, *, quiet: bool = False) -> str:
    """The container to use; says so where it was not told and there are several."""
    spec = pod["spec"]
    main = [container["name"] for container in spec.get("containers") or []]
    if name:
        return name
    chosen = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    if chosen in container_names(pod):
        return str(chosen)
    if len(container_names(pod)) > 1 and not quiet:
        session.complain(f'Defaulted container "{main[0]}" out of: {all_names(pod)}')
    return str(main[0])


def all_names(pod: Obj) -> str:
    spec = pod["spec"]
    names = [container["name"] for container in spec.get("containers") or []]
    names += [f"{one['name']} (ephem)" for one in spec.get("ephemeralContainers") or []]
    names += [f"{one['name']} (init)" for one in spec.get("initContainers") or []]
    return ", ".join(names)


def container_names(pod: Obj) -> set[str]:
    spec = pod["spec"]
    return {
        item["name"]
        for field in ("containers", "initContainers", "ephemeralContainers")
        for item in spec.get(field) or []
    }
