"""From what a user names to a pod: `web`, `deploy/web`, `svc/web`, `job/x`.

Job: find the object, follow its selector to a pod, choose the container.
"""

from typing import Any

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.cli.describe.writer import selector_text
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag
from sampan.cli.objects import selection, waiting
from sampan.cli.session import Session

POD_TIMEOUT = Flag(
    "pod-running-timeout", "duration", 60.0, "How long to wait until a pod is running."
)
WORKLOADS = (
    "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController",
    "Service",
)  # fmt: skip
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def selector_of(obj: Obj, kind: str, doing: str) -> str:
    """The label query of an object's pods."""
    go_type = f"*v1.{kind}"
    if kind not in WORKLOADS:
        raise CliError(f"cannot {doing} {go_type}: selector for {go_type} not implemented")
    selector = obj["spec"].get("selector")
    if kind in ("Service", "ReplicationController"):
        if not selector:
            name = obj["metadata"]["name"]
            raise CliError(
                f"cannot {doing} {go_type}: invalid service '{name}': Service is defined without "
                "a selector"
            )
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return selector_text(selector)


def attachable(session: Session, words: list[str], seconds: float, doing: str = "attach to") -> Obj:
    """The pod that the words name, or one of the workload that they name."""
    if len(words) == 1 and "/" not in words[0]:
        return session.api.json("GET", pod_path(session.namespace, words[0]))
    target = selection.targets(session, words)[0]
    obj = session.api.json("GET", target.resource.path(session.namespace, target.name))
    if target.resource.kind == "Pod":
        return obj
    query = {"labelSelector": selector_of(obj, target.resource.kind, doing)}
    found: list[Obj] = []

    def is_there(_: Obj | None) -> bool:
        path = f"/api/v1/namespaces/{session.namespace}/pods"
        found[:] = session.api.json("GET", path, query).get("items") or []
        return bool(found)

    path = target.resource.path(session.namespace, target.name)
    if not waiting.poll(session, path, is_there, seconds):
        raise CliError("timed out waiting for the condition")
    chosen = min(found, key=_rank)
    if len(found) > 1 and doing.startswith("get the logs"):
        session.complain(f"Found {len(found)} pods, using pod/{chosen['metadata']['name']}")
    return chosen


def _rank(pod: Obj) -> tuple[Any, ...]:
    """Running and ready pods first, then the oldest."""
    phase = (pod.get("status") or {}).get("phase")
    order = {"Running": 0, "Pending": 1}.get(str(phase), 2)
    return (0 if pod["spec"].get("nodeName") else 1, order, pod["metadata"]["creationTimestamp"])


def container_of(session: Session, pod: Obj, name: str, *, quiet: bool = False) -> str:
    """The container to use; says so where it was not told and there are several."""
    spec = pod["spec"]
    main = [container["name"] for container in spec.get("containers") or []]
    if name:
        return name
    chosen = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    if chosen in main:
        return str(chosen)
    others = [f"{container['name']} (ephem)" for container in spec.get("ephemeralContainers") or []]
    others += [f"{container['name']} (init)" for container in spec.get("initContainers") or []]
    if (len(main) > 1 or others) and not quiet:
        everything = ", ".join([*main, *others])
        session.complain(f'Defaulted container "{main[0]}" out of: {everything}')
    return str(main[0])


def container_names(pod: Obj) -> set[str]:
    spec = pod["spec"]
    return {
        item["name"]
        for field in ("containers", "initContainers", "ephemeralContainers")
        for item in spec.get(field) or []
    }


def check_container(pod: Obj, name: str) -> None:
    if name not in container_names(pod):
        raise BadRequest(f"container {name} is not valid for pod {pod['metadata']['name']}")
